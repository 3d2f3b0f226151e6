// Adjacent values that one thread takes at once.
#pragma once
#include "thread.cuh"

template <u32 N> struct alignas(N * sizeof(real)) Adjacent {
    real value[N];
};

// As many as one instruction moves.
const u32 RUN = 16 / sizeof(real);
typedef Adjacent<RUN> Run;

__device__ inline Run operator+(Run a, Run b) {
    for (u32 i = 0; i < RUN; i++) a.value[i] += b.value[i];
    return a;
}
