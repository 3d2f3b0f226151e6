// The CUDA driver on a machine without a GPU: device memory is host memory, kernels run one thread at a time when they are launched.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>
#include <string>

typedef int Status;
typedef void *Handle;
enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_DEVICE = 101, NOT_FOUND = 500 };

// What every GPU allows of a grid and of a block.
static const unsigned int MOST_BLOCKS = 2147483647, MOST_THREADS = 1024;

struct Entry {
    const char *name;
    void (*launch)(unsigned int blocks, unsigned int threads, void **arguments);
};

static std::mutex one_at_a_time;
static std::map<char *, size_t> memory;

extern "C" {

Status cuInit(unsigned int) { return SUCCESS; }
Status cuDriverGetVersion(int *version) { return *version = 13000, SUCCESS; }
Status cuDeviceGetCount(int *count) { return *count = 1, SUCCESS; }
Status cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal == 0 ? SUCCESS : INVALID_DEVICE; }
Status cuDeviceGetAttribute(int *value, int, int) { return *value = 1, SUCCESS; }
Status cuDevicePrimaryCtxRetain(Handle *context, int) { return *context = (Handle)1, SUCCESS; }
Status cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
Status cuCtxGetCurrent(Handle *context) { return *context = (Handle)1, SUCCESS; }
Status cuCtxSynchronize() { return SUCCESS; }
Status cuStreamCreate(Handle *stream, unsigned int) { return *stream = (Handle)2, SUCCESS; }
Status cuStreamDestroy_v2(Handle) { return SUCCESS; }
Status cuStreamSynchronize(Handle) { return SUCCESS; }

// Fresh memory is NaN in every number type, so that a kernel that reads what was not written shows.
Status cuMemAllocAsync(char **pointer, size_t bytes, Handle) {
    if (bytes == 0) return INVALID_VALUE;
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    *pointer = (char *)memset(malloc(bytes), 0xff, bytes);
    memory[*pointer] = bytes;
    return SUCCESS;
}
Status cuMemAlloc_v2(char **pointer, size_t bytes) { return cuMemAllocAsync(pointer, bytes, nullptr); }
Status cuMemFreeAsync(char *pointer, Handle) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    if (memory.erase(pointer) == 0) return INVALID_VALUE;
    free(pointer);
    return SUCCESS;
}
Status cuMemFree_v2(char *pointer) { return cuMemFreeAsync(pointer, nullptr); }

// Whether a range lies in one allocation.
static bool allocated(const char *pointer, size_t bytes) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    auto next = memory.upper_bound((char *)pointer);
    if (next == memory.begin()) return false;
    --next;
    return pointer + bytes <= next->first + next->second;
}

Status cuMemcpyHtoDAsync_v2(char *dst, const void *src, size_t bytes, Handle) {
    if (!allocated(dst, bytes)) return INVALID_VALUE;
    return memcpy(dst, src, bytes), SUCCESS;
}
Status cuMemcpyDtoHAsync_v2(void *dst, const char *src, size_t bytes, Handle) {
    if (!allocated(src, bytes)) return INVALID_VALUE;
    return memcpy(dst, src, bytes), SUCCESS;
}
Status cuMemcpyDtoDAsync_v2(char *dst, const char *src, size_t bytes, Handle) {
    if (!allocated(dst, bytes) || !allocated(src, bytes)) return INVALID_VALUE;
    return memmove(dst, src, bytes), SUCCESS;
}
Status cuMemsetD8Async(char *dst, unsigned char value, size_t bytes, Handle) {
    if (!allocated(dst, bytes)) return INVALID_VALUE;
    return memset(dst, value, bytes), SUCCESS;
}

Status cuModuleLoadData(Handle *module, const char *ptx) {
    char path[4096];
    if (sscanf(ptx, "emulated %4095s", path) != 1) return INVALID_VALUE;
    *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "emulated driver: %s\n", dlerror());
    return *module ? SUCCESS : NOT_FOUND;
}
Status cuModuleUnload(Handle module) { return dlclose(module) == 0 ? SUCCESS : INVALID_VALUE; }
Status cuModuleGetFunction(Handle *function, Handle module, const char *name) {
    for (const Entry *entry = (const Entry *)dlsym(module, "entries"); entry->name; entry++) {
        if (strcmp(entry->name, name) == 0) return *function = (Handle)entry, SUCCESS;
    }
    fprintf(stderr, "emulated driver: no kernel %s\n", name);
    return NOT_FOUND;
}
Status cuLaunchKernel(Handle function, unsigned int blocks, unsigned int blocks_y, unsigned int blocks_z, unsigned int threads,
                      unsigned int threads_y, unsigned int threads_z, unsigned int, Handle, void **arguments, void **) {
    // The kernels use one dimension.
    if (blocks_y * blocks_z * threads_y * threads_z != 1) return INVALID_VALUE;
    if (blocks == 0 || blocks > MOST_BLOCKS || threads == 0 || threads > MOST_THREADS) return INVALID_VALUE;
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    ((const Entry *)function)->launch(blocks, threads, arguments);
    return SUCCESS;
}

Status cuGetErrorName(Status, const char **text) { return *text = "emulated driver", SUCCESS; }
Status cuGetErrorString(Status, const char **text) { return *text = "refused by the emulated driver", SUCCESS; }
}
