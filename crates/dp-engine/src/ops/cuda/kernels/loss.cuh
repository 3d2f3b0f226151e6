// Losses and their gradients with respect to the logits, one record per thread. Labels are checked when the records are made; one out of
// range gives NaN, with which a record is left out.
#pragma once
#include "thread.cuh"

__device__ inline real largest_logit(u64 classes, const real *z) {
    real largest = z[0];
    for (u64 j = 1; j < classes; j++)
        if (z[j] > largest) largest = z[j];
    return largest;
}

KERNEL softmax_losses(u64 n, u64 classes, const real *logits, const u32 *labels, double *losses) {
    ITEM(i, n);
    const real *z = logits + i * classes;
    const real largest = largest_logit(classes, z);
    // The largest term is exp(0) = 1: the rest is summed apart so that ln(1 + rest) keeps its digits.
    real rest = 0;
    bool seen = false;
    for (u64 j = 0; j < classes; j++) {
        if (z[j] == largest && !seen) {
            seen = true;
        } else {
            rest += exp(z[j] - largest);
        }
    }
    losses[i] = labels[i] < classes ? (double)(log1p(rest) + (largest - z[labels[i]])) : (double)NAN;
}

KERNEL softmax_gradient(u64 n, u64 classes, real *logits, const u32 *labels) {
    ITEM(i, n);
    real *z = logits + i * classes;
    const u32 label = labels[i];
    const real largest = largest_logit(classes, z);
    real own = (real)NAN, others = 0;
    for (u64 j = 0; j < classes; j++) {
        z[j] = exp(z[j] - largest);
        if (j == label) {
            own = z[j];
        } else {
            others += z[j];
        }
    }
    const real sum = own + others;
    // 1 − p as the sum of the others: exact where p rounds to 1.
    for (u64 j = 0; j < classes; j++) z[j] = j == label ? -(others / sum) : z[j] / sum;
}

// −1 or +1 for label 0 or 1.
__device__ inline real sign_of(u32 label) {
    return label == 1 ? (real)1 : label == 0 ? (real)-1 : (real)NAN;
}

KERNEL bce_losses(u64 n, const real *logits, const u32 *labels, double *losses) {
    ITEM(i, n);
    const real margin = sign_of(labels[i]) * logits[i];
    // exp of a non-positive number never overflows. Two comparisons, so that NaN is passed on.
    const real decay = margin > (real)0 ? -margin : margin;
    const real linear = margin > (real)0 ? (real)0 : -margin;
    losses[i] = (double)(linear + log1p(exp(decay)));
}

KERNEL bce_gradient(u64 n, real *logits, const u32 *labels) {
    ITEM(i, n);
    const real sign = sign_of(labels[i]);
    // −s · sigmoid(−s z): no subtraction from 1, so nothing cancels.
    logits[i] = -sign * ((real)1 / ((real)1 + exp(sign * logits[i])));
}
