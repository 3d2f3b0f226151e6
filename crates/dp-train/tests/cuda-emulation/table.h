// How the emulated driver starts a kernel: by name, with pointers to its arguments.
#pragma once
#include <string.h>

#include <utility>

template <class... A, size_t... I> void call(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
    kernel(*(A *)arguments[I]...);
}

template <class... A> void run(void (*kernel)(A...), unsigned int blocks, unsigned int threads, void **arguments) {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) call(kernel, arguments, std::index_sequence_for<A...>());
}

typedef void (*Launcher)(unsigned int blocks, unsigned int threads, void **arguments);

struct Entry {
    const char *name;
    Launcher launch;
};

#define ENTRY(kernel) \
    {#kernel, [](unsigned int blocks, unsigned int threads, void **arguments) { run(kernel, blocks, threads, arguments); }}
