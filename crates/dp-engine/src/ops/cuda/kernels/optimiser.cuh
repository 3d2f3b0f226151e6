// The optimisers' updates of moments and parameters.
#pragma once
#include "thread.cuh"

KERNEL scale(u64 n, real *dst, real factor) {
    ITEM(i, n);
    dst[i] *= factor;
}

KERNEL scale_add(u64 n, real *dst, real scale, real alpha, const real *src) {
    ITEM(i, n);
    dst[i] = scale * dst[i] + alpha * src[i];
}

KERNEL scale_add_square(u64 n, real *dst, real scale, real alpha, const real *src) {
    ITEM(i, n);
    dst[i] = scale * dst[i] + alpha * (src[i] * src[i]);
}

// `root` is the inverse square root of the second moment's bias correction.
KERNEL adam_update(u64 n, real *parameters, const real *first, const real *second, real rate, real root, real epsilon) {
    ITEM(i, n);
    parameters[i] -= rate * first[i] / (sqrt(second[i]) * root + epsilon);
}
