// cuRAND's generator, which candle makes for every device and the trainer never asks for a number.
typedef void *Handle;
enum { SUCCESS = 0 };

extern "C" {

int curandCreateGenerator(Handle *generator, int) { return *generator = (Handle)5, SUCCESS; }
int curandDestroyGenerator(Handle) { return SUCCESS; }
int curandSetStream(Handle, Handle) { return SUCCESS; }
int curandSetPseudoRandomGeneratorSeed(Handle, unsigned long long) { return SUCCESS; }
}
