// The part of CUDA C++ that the kernels use, as plain C++: one thread after the other.
#pragma once
#include <math.h>

#define __device__
#define __global__

struct Index {
    unsigned int x;
};
static Index blockIdx, blockDim, threadIdx;

static inline void sincospi(double x, double *sin_x, double *cos_x) {
    *sin_x = sin(M_PI * x);
    *cos_x = cos(M_PI * x);
}

static inline float __double2float_rz(double x) {
    const float nearest = (float)x;
    return fabs((double)nearest) > fabs(x) ? nextafterf(nearest, 0) : nearest;
}

static inline unsigned int atomicAdd(unsigned int *place, unsigned int value) {
    const unsigned int before = *place;
    *place += value;
    return before;
}
