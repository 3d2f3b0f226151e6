// Whole-vector updates.
#pragma once
#include "thread.cuh"

KERNEL fill(u64 n, real *dst, real value) {
    ITEM(i, n);
    dst[i] = value;
}

// `not_finite` starts as 0. Threads that write it all write 1.
KERNEL note_not_finite(u64 n, const real *values, u32 *not_finite) {
    ITEM(i, n);
    // NaN for NaN and both infinities.
    if (!(values[i] * (real)0 == (real)0)) *not_finite = 1;
}

KERNEL axpy(u64 n, real *dst, real alpha, const real *src) {
    ITEM(i, n);
    dst[i] += alpha * src[i];
}

KERNEL add_slice(u64 n, real *dst, double alpha, const double *values) {
    ITEM(i, n);
    dst[i] += (real)(alpha * values[i]);
}

KERNEL multiply(u64 n, real *dst, const real *src) {
    ITEM(i, n);
    dst[i] *= src[i];
}
