// The CUDA driver on a machine without a GPU: device memory is host memory, kernels run one thread at a time when they are launched.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

typedef int Status;
typedef void *Handle;
enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_DEVICE = 101, NOT_FOUND = 500, NOT_READY = 600 };

// What every GPU allows of a grid and of a block.
static const unsigned int MOST_BLOCKS = 2147483647, MOST_THREADS = 1024;

struct Entry {
    const char *name;
    void (*launch)(unsigned int blocks, unsigned int threads, void **arguments);
};

static std::mutex one_at_a_time;
static std::map<char *, size_t> memory;
// Page-locked memory of the host. A copy from it reads it as late as it may: before the next operation of any stream.
static std::map<char *, size_t> pinned;
struct Copy {
    char *dst;
    const char *src;
    size_t bytes;
};
static std::vector<Copy> pending;
// Copies from page-locked memory that were made so far.
static long long n_copied;
// When everything before it is done: the number of copies that were then made or pending.
struct Event {
    long long n_copies;
};

static bool within(const std::map<char *, size_t> &allocations, const char *pointer, size_t bytes) {
    auto next = allocations.upper_bound((char *)pointer);
    if (next == allocations.begin()) return false;
    --next;
    return pointer + bytes <= next->first + next->second;
}

static void finish_copies() {
    for (const Copy &copy : pending) memcpy(copy.dst, copy.src, copy.bytes);
    n_copied += pending.size();
    pending.clear();
}

extern "C" {

Status cuInit(unsigned int) { return SUCCESS; }
Status cuDriverGetVersion(int *version) { return *version = 13000, SUCCESS; }
Status cuDeviceGetCount(int *count) { return *count = 1, SUCCESS; }
Status cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal == 0 ? SUCCESS : INVALID_DEVICE; }
// Compute capability 8.0, an A100's; of all else there is 1.
Status cuDeviceGetAttribute(int *value, int attribute, int) { return *value = attribute == 75 ? 8 : attribute != 76, SUCCESS; }
Status cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = (size_t)4 << 30, SUCCESS; }
Status cuDevicePrimaryCtxRetain(Handle *context, int) { return *context = (Handle)1, SUCCESS; }
Status cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
Status cuCtxGetCurrent(Handle *context) { return *context = (Handle)1, SUCCESS; }
Status cuCtxSynchronize() {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    return finish_copies(), SUCCESS;
}
Status cuStreamCreate(Handle *stream, unsigned int) { return *stream = (Handle)2, SUCCESS; }
Status cuStreamDestroy_v2(Handle) { return SUCCESS; }
Status cuStreamSynchronize(Handle) { return cuCtxSynchronize(); }

Status cuEventCreate(Event **event, unsigned int) { return *event = new Event{0}, SUCCESS; }
Status cuEventDestroy_v2(Event *event) { return delete event, SUCCESS; }
Status cuEventRecord(Event *event, Handle) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    return event->n_copies = n_copied + (long long)pending.size(), SUCCESS;
}
Status cuEventQuery(Event *event) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    return event->n_copies <= n_copied ? SUCCESS : NOT_READY;
}
Status cuEventSynchronize(Event *event) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    if (event->n_copies > n_copied) finish_copies();
    return SUCCESS;
}

Status cuDeviceGetMemPool(Handle *pool, int) { return *pool = (Handle)3, SUCCESS; }
// Of a pool's attributes only the release threshold.
Status cuMemPoolSetAttribute(Handle, int attribute, void *value) {
    return attribute == 4 && *(unsigned long long *)value == ~0ull ? SUCCESS : INVALID_VALUE;
}

Status cuMemHostAlloc(char **pointer, size_t bytes, unsigned int) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    *pointer = (char *)memset(malloc(bytes), 0xff, bytes);
    pinned[*pointer] = bytes;
    return SUCCESS;
}
Status cuMemFreeHost(char *pointer) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    for (const Copy &copy : pending) {
        if (copy.src < pointer || copy.src >= pointer + pinned[pointer]) continue;
        fprintf(stderr, "emulated driver: memory that a copy still reads is given back\n");
        return INVALID_VALUE;
    }
    if (pinned.erase(pointer) == 0) return INVALID_VALUE;
    return free(pointer), SUCCESS;
}

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
    finish_copies();
    if (memory.erase(pointer) == 0) return INVALID_VALUE;
    free(pointer);
    return SUCCESS;
}
Status cuMemFree_v2(char *pointer) { return cuMemFreeAsync(pointer, nullptr); }

Status cuMemcpyHtoDAsync_v2(char *dst, const char *src, size_t bytes, Handle) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    if (!within(memory, dst, bytes)) return INVALID_VALUE;
    finish_copies();
    if (within(pinned, src, bytes)) return pending.push_back({dst, src, bytes}), SUCCESS;
    return memcpy(dst, src, bytes), SUCCESS;
}
Status cuMemcpyDtoHAsync_v2(void *dst, const char *src, size_t bytes, Handle) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    if (!within(memory, src, bytes)) return INVALID_VALUE;
    return finish_copies(), memcpy(dst, src, bytes), SUCCESS;
}
Status cuMemcpyDtoDAsync_v2(char *dst, const char *src, size_t bytes, Handle) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    if (!within(memory, dst, bytes) || !within(memory, src, bytes)) return INVALID_VALUE;
    return finish_copies(), memmove(dst, src, bytes), SUCCESS;
}
Status cuMemsetD8Async(char *dst, unsigned char value, size_t bytes, Handle) {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    if (!within(memory, dst, bytes)) return INVALID_VALUE;
    return finish_copies(), memset(dst, value, bytes), SUCCESS;
}
// For the emulated libraries, whose work is in the order of the stream as well.
void emulated_finish_copies() {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    finish_copies();
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
    finish_copies();
    ((const Entry *)function)->launch(blocks, threads, arguments);
    return SUCCESS;
}

Status cuGetErrorName(Status, const char **text) { return *text = "emulated driver", SUCCESS; }
Status cuGetErrorString(Status, const char **text) { return *text = "refused by the emulated driver", SUCCESS; }
}
