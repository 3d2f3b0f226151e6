// The matrix products of cuBLAS, by their definition; matrices are stored by columns.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NORMAL = 0 };
// Of the types, the arithmetics and the algorithms those that are emulated.
enum { SINGLE = 0, DOUBLE = 1, COMPUTE_SINGLE = 69, COMPUTE_DOUBLE = 71, COMPUTE_TF32 = 77, DEFAULT_ALGORITHM = -1 };
typedef void *Handle;

// The driver's copies that come before in the order of the stream.
static void finish_copies() {
    static void (*const finish)() = (void (*)())dlsym(RTLD_DEFAULT, "emulated_finish_copies");
    finish();
}

// Whether factors keep only the digits of TF32: as the call says, unless the environment says otherwise.
static bool is_tf32(int compute) {
    const char *override = getenv("NVIDIA_TF32_OVERRIDE");
    return override ? strcmp(override, "1") == 0 : compute == COMPUTE_TF32;
}

static float factor(float value, bool tf32) {
    unsigned int bits;
    memcpy(&bits, &value, sizeof bits);
    if (tf32) bits = (bits + 0x1000) & ~0x1fffu;
    return memcpy(&value, &bits, sizeof bits), value;
}
static double factor(double value, bool) {
    return value;
}

template <class T>
static int product(bool tf32, int lanes, int op_a, int op_b, int m, int n, int k, const T *alpha, const T *a, int lda, const T *b, int ldb,
                   const T *beta, T *c, int ldc) {
    if (m < 0 || n < 0 || k < 0 || lda < (op_a == NORMAL ? m : k) || ldb < (op_b == NORMAL ? k : n) || ldc < m) return INVALID_VALUE;
    for (long j = 0; j < n; j++) {
        // Padding is cheap.
        bool padding = true;
        for (long l = 0; l < k && padding; l++) padding = b[op_b == NORMAL ? l + j * ldb : j + l * ldb] == 0;
        for (long i = 0; i < m; i++) {
            double sum = 0;
            for (int lane = 0; lane < lanes && !padding; lane++) {
                double of_lane = 0;
                for (long l = lane; l < k; l += lanes)
                    of_lane += (double)factor(a[op_a == NORMAL ? i + l * lda : l + i * lda], tf32) *
                               factor(b[op_b == NORMAL ? l + j * ldb : j + l * ldb], tf32);
                sum += of_lane;
            }
            // With a factor of 0 what was there is not read.
            c[i + j * ldc] = (T)(*alpha * sum + (*beta == 0 ? 0 : *beta * c[i + j * ldc]));
        }
    }
    return SUCCESS;
}

// In an order of additions that depends on the shape, as that of the kernel does which cuBLAS chooses.
template <class T>
static int products(bool tf32, int op_a, int op_b, int m, int n, int k, const T *alpha, const T *a, int lda, long long stride_a,
                    const T *b, int ldb, long long stride_b, const T *beta, T *c, int ldc, long long stride_c, int batch) {
    finish_copies();
    const int lanes = 1 + (m % 7 + n % 11 + k % 5 + batch % 13) % 4;
    int status = SUCCESS;
    for (long long i = 0; i < batch && status == SUCCESS; i++)
        status = product(tf32, lanes, op_a, op_b, m, n, k, alpha, a + i * stride_a, lda, b + i * stride_b, ldb, beta,
                         c + i * stride_c, ldc);
    return status;
}

extern "C" {

int cublasCreate_v2(Handle *handle) { return *handle = (Handle)4, SUCCESS; }
// As after a fault of the device.
int cublasDestroy_v2(Handle) { return NOT_INITIALIZED; }
int cublasSetStream_v2(Handle, Handle) { return SUCCESS; }
int cublasSetMathMode(Handle, int) { return SUCCESS; }
int cublasSetWorkspace_v2(Handle, void *workspace, unsigned long bytes) { return workspace && bytes ? SUCCESS : INVALID_VALUE; }

// Single and double precision, in their own arithmetic or, of single precision, in TF32.
int cublasGemmStridedBatchedEx(Handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
                               long long stride_a, const void *b, int type_b, int ldb, long long stride_b, const void *beta, void *c,
                               int type_c, int ldc, long long stride_c, int batch, int compute, int algorithm) {
    if (type_a != type_b || type_a != type_c || algorithm != DEFAULT_ALGORITHM) return INVALID_VALUE;
    if (type_a == SINGLE && (compute == COMPUTE_SINGLE || compute == COMPUTE_TF32))
        return products(is_tf32(compute), op_a, op_b, m, n, k, (const float *)alpha, (const float *)a, lda, stride_a, (const float *)b, ldb,
                        stride_b, (const float *)beta, (float *)c, ldc, stride_c, batch);
    if (type_a == DOUBLE && compute == COMPUTE_DOUBLE)
        return products(false, op_a, op_b, m, n, k, (const double *)alpha, (const double *)a, lda, stride_a, (const double *)b, ldb, stride_b,
                        (const double *)beta, (double *)c, ldc, stride_c, batch);
    return INVALID_VALUE;
}

int cublasGemmEx(Handle handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
                 const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc, int compute, int algorithm) {
    return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c, type_c, ldc, 0, 1,
                                      compute, algorithm);
}
}
