// Whole-vector updates.
#pragma once
#include "thread.cuh"

KERNEL fill(u64 n, real *dst, real value) {
    ITEM(i, n);
    dst[i] = value;
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
