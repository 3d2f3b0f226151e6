// How the emulated driver starts a kernel: by name, with pointers to its arguments.
#pragma once
#include <stdlib.h>

#include <tuple>
#include <type_traits>
#include <utility>

#include "entry.h"

// The first thread first or, with EMULATE_BACKWARDS set, the last: what a kernel computes must not
// depend on it.
template <class... A> void run(void (*kernel)(A...), unsigned int blocks, unsigned int threads, const std::tuple<A...> &arguments) {
    const bool backwards = getenv("EMULATE_BACKWARDS");
    blockDim.x = threads;
    for (unsigned int block = 0; block < blocks; block++) {
        blockIdx.x = backwards ? blocks - 1 - block : block;
        for (unsigned int thread = 0; thread < threads; thread++) {
            threadIdx.x = backwards ? threads - 1 - thread : thread;
            std::apply(kernel, arguments);
        }
    }
}

template <class... A, size_t... I>
Work launch(void (*kernel)(A...), unsigned int blocks, unsigned int threads, void **arguments, std::index_sequence<I...>) {
    const std::tuple<A...> copies(*(A *)arguments[I]...);
    return [=] { run(kernel, blocks, threads, copies); };
}

template <class... A> Work launch(void (*kernel)(A...), unsigned int blocks, unsigned int threads, void **arguments) {
    return launch(kernel, blocks, threads, arguments, std::index_sequence_for<A...>());
}

#define LAUNCH(kernel) \
    [](unsigned int blocks, unsigned int threads, void **arguments) { return launch(kernel, blocks, threads, arguments); }
#define ENTRY(kernel) {#kernel, nullptr, LAUNCH(kernel)}

// `faulty` in the place of `kernel`, whose arguments it takes.
#define FAULTY(fault, kernel, faulty) {#kernel, fault, LAUNCH((std::enable_if_t<std::is_same_v<decltype(faulty), decltype(kernel)>, decltype(&kernel)>)faulty)}
