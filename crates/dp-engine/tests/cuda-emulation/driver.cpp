// The CUDA driver on a machine without a GPU: device memory is host memory, and the threads of a
// kernel run one after the other.
#include <dlfcn.h>
#include <stdio.h>

#include <vector>

#include "stream.h"

typedef int Status;
typedef void *Handle;
enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_DEVICE = 101, NOT_FOUND = 500, NOT_READY = 600 };
typedef std::lock_guard<std::recursive_mutex> Lock;

// What every GPU allows of a grid and of a block.
static const unsigned int MOST_BLOCKS = 2147483647, MOST_THREADS = 1024;

// Up to which piece of a stream's work an event waits.
struct Event {
    Stream *stream = &default_stream;
    unsigned long until = 0;
};

typedef std::map<char *, size_t> Allocations;
// On the device, and page-locked on the host.
static Allocations memory, pinned;

// Whether a range lies in one allocation.
static bool holds(const Allocations &allocations, const void *pointer, size_t bytes) {
    auto next = allocations.upper_bound((char *)pointer);
    if (next == allocations.begin()) return false;
    --next;
    return (char *)pointer + bytes <= next->first + next->second;
}

// Fresh memory is NaN in every number type, so that a kernel that reads what was not written shows.
static char *fresh(Allocations &allocations, size_t bytes) {
    char *pointer = (char *)memset(malloc(bytes), 0xff, bytes);
    allocations[pointer] = bytes;
    return pointer;
}

extern "C" {

Status cuInit(unsigned int) {
    if (is_known(planted_fault())) return SUCCESS;
    fprintf(stderr, "emulated driver: EMULATE_FAULT=%s: expected", planted_fault());
    for (const char *fault : FAULTS) fprintf(stderr, " %s", fault);
    fprintf(stderr, "\n");
    return INVALID_VALUE;
}
Status cuDriverGetVersion(int *version) { return *version = 13000, SUCCESS; }
// Several cards, for ranks; memory is common to all.
static const int CARDS = 4;
Status cuDeviceGetCount(int *count) { return *count = CARDS, SUCCESS; }
Status cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0 <= ordinal && ordinal < CARDS ? SUCCESS : INVALID_DEVICE; }
// Compute capability 8.0, an A100's; of all else there is 1.
Status cuDeviceGetAttribute(int *value, int attribute, int) { return *value = attribute == 75 ? 8 : attribute != 76, SUCCESS; }
Status cuDeviceGetName(char *name, int length, int) { return snprintf(name, (size_t)length, "emulated"), SUCCESS; }
Status cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = (size_t)4 << 30, SUCCESS; }
Status cuDevicePrimaryCtxRetain(Handle *context, int) { return *context = (Handle)1, SUCCESS; }
Status cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
Status cuCtxGetCurrent(Handle *context) { return *context = (Handle)1, SUCCESS; }
Status cuCtxSynchronize() {
    const Lock lock(one_at_a_time);
    return finish_all(), SUCCESS;
}

Status cuStreamCreate(Handle *stream, unsigned int) {
    const Lock lock(one_at_a_time);
    *stream = *streams.insert(new Stream).first;
    return SUCCESS;
}
Status cuStreamDestroy_v2(Handle handle) {
    const Lock lock(one_at_a_time);
    Stream *stream = &stream_of(handle);
    finish(*stream);
    streams.erase(stream);
    return delete stream, SUCCESS;
}
Status cuStreamSynchronize(Handle stream) {
    const Lock lock(one_at_a_time);
    return finish(stream_of(stream)), SUCCESS;
}

Status cuEventCreate(Handle *event, unsigned int) { return *event = new Event, SUCCESS; }
Status cuEventDestroy_v2(Handle event) { return delete (Event *)event, SUCCESS; }
Status cuEventRecord(Handle event, Handle handle) {
    const Lock lock(one_at_a_time);
    Stream &stream = stream_of(handle);
    *(Event *)event = {&stream, stream.given};
    return SUCCESS;
}
Status cuEventSynchronize(Handle event) {
    const Lock lock(one_at_a_time);
    const Event until = *(Event *)event;
    if (streams.count(until.stream)) advance(*until.stream, until.until);
    return SUCCESS;
}
Status cuEventQuery(Handle event) {
    const Lock lock(one_at_a_time);
    const Event &until = *(Event *)event;
    const bool done = !streams.count(until.stream) || until.stream->given - until.stream->queue.size() >= until.until;
    return done ? SUCCESS : NOT_READY;
}
Status cuStreamWaitEvent(Handle stream, Handle event, unsigned int) {
    const Lock lock(one_at_a_time);
    const Event until = *(Event *)event;
    give(stream_of(stream), [until] {
        if (streams.count(until.stream)) advance(*until.stream, until.until);
    });
    return SUCCESS;
}

Status cuDeviceGetMemPool(Handle *pool, int) { return *pool = (Handle)3, SUCCESS; }
// What is free: 1 GiB, and another that the pool holds.
Status cuMemGetInfo_v2(size_t *free, size_t *total) {
    *free = (size_t)1 << 30, *total = (size_t)4 << 30;
    return SUCCESS;
}
Status cuMemPoolGetAttribute(Handle, int attribute, void *value) {
    *(unsigned long long *)value = attribute == 5 ? 3ull << 30 : 2ull << 30;
    return attribute == 5 || attribute == 7 ? SUCCESS : INVALID_VALUE;
}
// Of a pool's attributes only the release threshold can be set, to all that there is.
Status cuMemPoolSetAttribute(Handle, int attribute, void *value) {
    return attribute == 4 && *(unsigned long long *)value == ~0ull ? SUCCESS : INVALID_VALUE;
}

Status cuMemAllocAsync(char **pointer, size_t bytes, Handle) {
    if (bytes == 0) return INVALID_VALUE;
    const Lock lock(one_at_a_time);
    return *pointer = fresh(memory, bytes), SUCCESS;
}
Status cuMemAlloc_v2(char **pointer, size_t bytes) { return cuMemAllocAsync(pointer, bytes, nullptr); }
Status cuMemFreeAsync(char *pointer, Handle stream) {
    const Lock lock(one_at_a_time);
    const auto found = memory.find(pointer);
    if (found == memory.end()) return INVALID_VALUE;
    if (is_planted("early-release")) released.insert(*found);
    memory.erase(found);
    give(stream_of(stream), [pointer] {
        released.erase(pointer);
        free(pointer);
    });
    return SUCCESS;
}
Status cuMemFree_v2(char *pointer) {
    const Lock lock(one_at_a_time);
    finish_all();
    return cuMemFreeAsync(pointer, nullptr);
}

Status cuMemHostAlloc(char **pointer, size_t bytes, unsigned int) {
    if (bytes == 0) return INVALID_VALUE;
    const Lock lock(one_at_a_time);
    return *pointer = fresh(pinned, bytes), SUCCESS;
}
Status cuMemFreeHost(char *pointer) {
    const Lock lock(one_at_a_time);
    const auto found = pinned.find(pointer);
    if (found == pinned.end()) return INVALID_VALUE;
    // What is still to be copied from here is no longer what was put here.
    memset(pointer, 0xff, found->second);
    pinned.erase(found);
    for (Stream *stream : streams) {
        if (stream->queue.empty()) continue;
        give(*stream, [pointer] { free(pointer); });
        return SUCCESS;
    }
    return free(pointer), SUCCESS;
}

Status cuMemcpyHtoDAsync_v2(char *dst, const char *src, size_t bytes, Handle stream) {
    const Lock lock(one_at_a_time);
    if (!holds(memory, dst, bytes)) return INVALID_VALUE;
    if (holds(pinned, src, bytes)) {
        give(stream_of(stream), [=] { memcpy(dst, src, bytes); });
    } else {
        // What can be paged out is read before the call returns.
        give(stream_of(stream), [dst, staged = std::vector<char>(src, src + bytes)] { memcpy(dst, staged.data(), staged.size()); });
    }
    return SUCCESS;
}
Status cuMemcpyDtoHAsync_v2(char *dst, const char *src, size_t bytes, Handle stream) {
    const Lock lock(one_at_a_time);
    if (!holds(memory, src, bytes)) return INVALID_VALUE;
    give(stream_of(stream), [=] { memcpy(dst, src, bytes); });
    // What can be paged out is written before the call returns.
    if (!holds(pinned, dst, bytes)) finish(stream_of(stream));
    return SUCCESS;
}
Status cuMemcpyDtoDAsync_v2(char *dst, const char *src, size_t bytes, Handle stream) {
    const Lock lock(one_at_a_time);
    if (!holds(memory, dst, bytes) || !holds(memory, src, bytes)) return INVALID_VALUE;
    return give(stream_of(stream), [=] { memmove(dst, src, bytes); }), SUCCESS;
}
Status cuMemsetD8Async(char *dst, unsigned char value, size_t bytes, Handle stream) {
    const Lock lock(one_at_a_time);
    if (!holds(memory, dst, bytes)) return INVALID_VALUE;
    return give(stream_of(stream), [=] { memset(dst, value, bytes); }), SUCCESS;
}

Status cuModuleLoadData(Handle *module, const char *ptx) {
    char path[4096];
    if (sscanf(ptx, "emulated %4095s", path) != 1) return INVALID_VALUE;
    *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "emulated driver: %s\n", dlerror());
    return *module ? SUCCESS : NOT_FOUND;
}
Status cuModuleUnload(Handle module) {
    const Lock lock(one_at_a_time);
    finish_all();
    return dlclose(module) == 0 ? SUCCESS : INVALID_VALUE;
}
Status cuModuleGetFunction(Handle *function, Handle module, const char *name) {
    *function = nullptr;
    for (const Entry *entry = (const Entry *)dlsym(module, "entries"); entry->name; entry++) {
        if (strcmp(entry->name, name) != 0) continue;
        if (entry->fault ? is_planted(entry->fault) : !*function) *function = (Handle)entry;
    }
    if (!*function) fprintf(stderr, "emulated driver: no kernel %s\n", name);
    return *function ? SUCCESS : NOT_FOUND;
}
Status cuLaunchKernel(Handle function, unsigned int blocks, unsigned int blocks_y, unsigned int blocks_z, unsigned int threads,
                      unsigned int threads_y, unsigned int threads_z, unsigned int, Handle stream, void **arguments, void **) {
    // The kernels use one dimension.
    if (blocks_y * blocks_z * threads_y * threads_z != 1) return INVALID_VALUE;
    if (blocks == 0 || blocks > MOST_BLOCKS || threads == 0 || threads > MOST_THREADS) return INVALID_VALUE;
    const Lock lock(one_at_a_time);
    return give(stream_of(stream), ((const Entry *)function)->launch(blocks, threads, arguments)), SUCCESS;
}

// How the emulated cuBLAS gives its work to a stream.
void emulated_give(Handle stream, Work *work) {
    const Lock lock(one_at_a_time);
    give(stream_of(stream), *work);
}

Status cuGetErrorName(Status, const char **text) { return *text = "emulated driver", SUCCESS; }
Status cuGetErrorString(Status, const char **text) { return *text = "refused by the emulated driver", SUCCESS; }
}
