// Norms of a convolution's gradients from Gram matrices over positions, in double precision.
#pragma once
#include "divisor.cuh"
#include "sums.cuh"
#include "thread.cuh"

// n = rows · columns: some adjacent columns of a matrix.
KERNEL widen(u64 n, Divisor columns, u64 row_stride, const real *src, double *dst) {
    ITEM(i, n);
    u32 column;
    const u32 row = divide((u32)i, columns, &column);
    dst[i] = src[row * row_stride + column];
}

// n = values.
KERNEL narrow(u64 n, const double *src, u32 accumulate, real *dst) {
    ITEM(i, n);
    dst[i] = accumulate ? (real)(dst[i] + src[i]) : (real)src[i];
}

// n = records · positions, with the Gram matrices of patches x and output gradients d, [records, positions, positions]. For each position
// t: the sum over all positions u of (⟨x_t, x_u⟩ + bias) ⟨d_t, d_u⟩, the norm of the position's term, and |x_t|².
KERNEL gram_parts(u64 n, u64 records, u64 positions, double bias, const double *x, const double *d, double *parts) {
    ITEM(i, n);
    const u64 record = i / positions, t = i % positions;
    const double *x_t = x + i * positions, *d_t = d + i * positions;
    double sum = 0;
    for (u64 u = 0; u < positions; u++) sum += (x_t[u] + bias) * d_t[u];
    parts[t * records + record] = sum;
    parts[(positions + t) * records + record] = sqrt((x_t[t] + bias) * d_t[t]);
    parts[(2 * positions + t) * records + record] = x_t[t];
}

// n = records: the host's `guarded_sq_norm`, with the rounding of these sums instead of the host's.
KERNEL add_gram_sq_norms(u64 n, u64 positions, double rounding, double limit, double unit, const double *parts, double *norms) {
    ITEM(i, n);
    const double sq_norm = total(n, i, positions, parts), terms = total(n, i, positions, parts + positions * n);
    // NaN for what is not finite.
    bool usable = sq_norm * 0 == 0 && terms * 0 == 0;
    for (u64 t = 0; t < positions; t++) usable = usable && parts[(2 * positions + t) * n + i] <= 0x1p80;
    const double square = sq_norm > 0 ? sq_norm : 0;
    const double norm = sqrt(square + rounding * terms * terms) + 2 * unit * terms, least = terms / limit;
    const double bound = norm > least ? norm : least;
    norms[i] += usable ? bound * bound : (double)INFINITY;
}
