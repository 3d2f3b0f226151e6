// Operations on the rows of a matrix.
#pragma once
#include "divisor.cuh"
#include "thread.cuh"

// n = rows · columns.
KERNEL gather_rows(u64 n, Divisor columns, real *dst, const real *table, const u64 *rows) {
    ITEM(i, n);
    u32 column;
    const u32 row = divide((u32)i, columns, &column);
    dst[i] = table[rows[row] * columns.by + column];
}

KERNEL repeat_row(u64 n, Divisor columns, real *dst, const real *row) {
    ITEM(i, n);
    u32 column;
    divide((u32)i, columns, &column);
    dst[i] = row[column];
}

// A weight as a number of the sum, rounded towards zero: a scale must not grow.
__device__ inline float towards_zero(float, double weight) {
    return __double2float_rz(weight);
}
__device__ inline double towards_zero(double, double weight) {
    return weight;
}

// A weight of 0 gives 0 even where the row is not finite.
KERNEL scale_rows(u64 n, Divisor columns, real *dst, const real *src, const double *weights) {
    ITEM(i, n);
    const double weight = weights[quotient((u32)i, columns)];
    dst[i] = weight == 0 ? (real)0 : towards_zero((real)0, weight) * src[i];
}

// A class without a factor, which labels that were checked do not name, makes the row NaN.
KERNEL scale_by_label(u64 n, u64 columns, real *dst, const u32 *labels, const double *factors, u64 n_factors) {
    ITEM(i, n);
    const u32 label = labels[i / columns];
    dst[i] = label < n_factors ? dst[i] * (real)factors[label] : (real)NAN;
}

// n = rows · lanes; a lane takes every `lanes`-th column. Partial sum `lane` of each row.
KERNEL row_sq_norm_parts(u64 n, u64 rows, u64 columns, u64 lanes, const real *src, double *parts) {
    ITEM(i, n);
    const u64 row = i / lanes, lane = i % lanes;
    double sum = 0;
    for (u64 j = lane; j < columns; j += lanes) {
        const double v = src[row * columns + j];
        sum += v * v;
    }
    parts[lane * rows + row] = sum;
}

// n = n_parts · columns; part `p` has every `n_parts`-th row. `weights` may be null for weights of 1; a row of weight 0 is not read.
KERNEL column_sum_parts(u64 n, u64 rows, u64 row_stride, u64 first_column, u64 columns, u64 n_parts, const real *src, u32 weighted,
                        const double *weights, double *parts) {
    ITEM(i, n);
    const u64 part = i / columns, column = first_column + i % columns;
    double sum = 0;
    for (u64 row = part; row < rows; row += n_parts) {
        const double weight = weighted ? weights[row] : 1;
        if (weight != 0) sum += weight * src[row * row_stride + column];
    }
    parts[i] = sum;
}
