// Division of numbers below 2³¹ by a number that the host knows beforehand: a product and a shift in place of dozens of instructions.
#pragma once
#include "thread.cuh"

// The host's `Divisor`.
struct Divisor {
    u32 by, factor, shift;
};

__device__ inline u32 quotient(u32 n, Divisor divisor) {
    return (u32)((u64)(2 * n) * divisor.factor >> 32) >> divisor.shift;
}

// n / divisor, and what remains of it into `rest`.
__device__ inline u32 divide(u32 n, Divisor divisor, u32 *rest) {
    const u32 whole = quotient(n, divisor);
    *rest = n - whole * divisor.by;
    return whole;
}
