// How the emulated driver starts a kernel: by name, with pointers to its arguments.
#pragma once
#include <stdlib.h>
#include <string.h>

#include <utility>

template <class... A, size_t... I> void call(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
    kernel(*(A *)arguments[I]...);
}

// The first thread first or, with EMULATE_BACKWARDS set, the last: what a kernel computes must not depend on it.
template <class... A> void run(void (*kernel)(A...), unsigned int blocks, unsigned int threads, void **arguments) {
    const bool backwards = getenv("EMULATE_BACKWARDS");
    blockDim.x = threads;
    for (unsigned int block = 0; block < blocks; block++) {
        blockIdx.x = backwards ? blocks - 1 - block : block;
        for (unsigned int thread = 0; thread < threads; thread++) {
            threadIdx.x = backwards ? threads - 1 - thread : thread;
            call(kernel, arguments, std::index_sequence_for<A...>());
        }
    }
}

typedef void (*Launcher)(unsigned int blocks, unsigned int threads, void **arguments);

struct Entry {
    const char *name;
    Launcher launch;
};

#define ENTRY(kernel) \
    {#kernel, [](unsigned int blocks, unsigned int threads, void **arguments) { run(kernel, blocks, threads, arguments); }}
