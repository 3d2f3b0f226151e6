// Pointwise activations and their derivatives. `kind` is the position in the host's `Activation`.
#pragma once
#include "thread.cuh"

enum { TANH = 0, RELU = 1, SIGMOID = 2, GELU = 3, GELU_TANH = 4 };

__device__ inline real sigmoid(real x) {
    return (real)1 / ((real)1 + exp(-x));
}

// The nearest number of magnitude at most 38; NaN stays. Beyond 38 the bell and the cubic no longer matter, and their powers could overflow.
__device__ inline real bounded(real x) {
    return x > (real)38 ? (real)38 : x < (real)-38 ? (real)-38 : x;
}

// `x Φ(x)` and its derivative.
__device__ inline void gelu(real x, real *value, real *slope) {
    const real size = x < (real)0 ? -x : x;
    // Φ(−|x|), to full relative precision: 1 − it is Φ(|x|).
    const real tail = (real)0.5 * erfc(size * (real)0.70710678118654752440);
    const real phi = x < (real)0 ? tail : (real)1 - tail;
    const real near = bounded(x);
    const real density = (real)0.39894228040143267794 * exp((real)-0.5 * near * near);
    *value = x * phi;
    *slope = phi + near * density;
}

// The tanh form by the logistic function, and its derivative: `1 + tanh(u) = 2 sigmoid(2u)`.
__device__ inline void gelu_tanh(real x, real *value, real *slope) {
    const real twice_root = (real)1.5957691216057307117, cubic = (real)0.044715;
    const real near = bounded(x);
    const real square = near * near;
    const real s = sigmoid(twice_root * near * ((real)1 + cubic * square));
    const real inner = twice_root * ((real)1 + (real)3 * cubic * square);
    *value = x * s;
    *slope = s + near * s * ((real)1 - s) * inner;
}

KERNEL activation_forward(u64 n, real *values, u32 kind) {
    ITEM(i, n);
    const real x = values[i];
    real value = x, slope;
    switch (kind) {
    case TANH: value = tanh(x); break;
    // A comparison and not `max`, which would turn NaN into 0 and hide it.
    case RELU: value = x < (real)0 ? (real)0 : x; break;
    case SIGMOID: value = sigmoid(x); break;
    case GELU: gelu(x, &value, &slope); break;
    case GELU_TANH: gelu_tanh(x, &value, &slope); break;
    }
    values[i] = value;
}

// For derivatives that are functions of the output.
KERNEL activation_backward(u64 n, real *gradient, const real *output, u32 kind) {
    ITEM(i, n);
    const real d = gradient[i], y = output[i];
    switch (kind) {
    case TANH: gradient[i] = d * ((real)1 - y * y); break;
    case RELU: gradient[i] = y > (real)0 ? d : (real)0; break;
    case SIGMOID: gradient[i] = d * y * ((real)1 - y); break;
    }
}

// For derivatives that are not.
KERNEL activation_slope(u64 n, real *slope, const real *input, u32 kind) {
    ITEM(i, n);
    real value;
    switch (kind) {
    case GELU: gelu(input[i], &value, &slope[i]); break;
    case GELU_TANH: gelu_tanh(input[i], &value, &slope[i]); break;
    }
}
