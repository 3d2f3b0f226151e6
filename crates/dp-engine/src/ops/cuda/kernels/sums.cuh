// Totals of partial sums. Partial sum `part` of item `i` is at `part · n + i`, so that neighbouring threads read neighbouring values.
#pragma once
#include "thread.cuh"

__device__ inline double total(u64 n, u64 i, u64 n_parts, const double *parts) {
    double sum = 0;
    for (u64 part = 0; part < n_parts; part++) sum += parts[part * n + i];
    return sum;
}

KERNEL add_total(u64 n, u64 n_parts, const double *parts, double *dst) {
    ITEM(i, n);
    dst[i] += total(n, i, n_parts, parts);
}

// n = folded · items. Partial sum `p` of the fewer ones is that of every `folded`-th from `p` on.
KERNEL fold_parts(u64 n, u64 n_items, u64 n_parts, u64 folded, const double *parts, double *fewer) {
    ITEM(i, n);
    const u64 item = i % n_items;
    double sum = 0;
    for (u64 part = i / n_items; part < n_parts; part += folded) sum += parts[part * n_items + item];
    fewer[i] = sum;
}

KERNEL write_total(u64 n, u64 n_parts, const double *parts, real *dst, u32 accumulate) {
    ITEM(i, n);
    const double sum = total(n, i, n_parts, parts);
    dst[i] = accumulate ? (real)(dst[i] + sum) : (real)sum;
}

// The squared norm of a linear layer's gradient at one position: dst += (|x|² + 1) |d|², and infinite for an input that is
// not finite or beyond 2⁴⁰.
KERNEL add_outer_sq_norm(u64 n, u64 x_parts, const double *x, u64 d_parts, const double *d, double *dst) {
    ITEM(i, n);
    const double input = total(n, i, x_parts, x);
    dst[i] += input <= 0x1p80 ? (input + 1) * total(n, i, d_parts, d) : (double)INFINITY;
}
