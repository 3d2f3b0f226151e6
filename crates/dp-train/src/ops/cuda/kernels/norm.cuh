// GroupNorm and LayerNorm. Cells of all records follow each other; each has `2 · groups` statistics: means, then inverse deviations.
#pragma once
#include "sums.cuh"
#include "thread.cuh"

// The host's `NormGeometry`, of a cell.
struct NormShape {
    u64 positions, channels, groups;
};

__device__ inline u64 group_width(NormShape shape) {
    return shape.channels / shape.groups;
}

// Value number `k` of group `group` (counted over all cells).
__device__ inline u64 group_value(NormShape shape, u64 group, u64 k) {
    const u64 width = group_width(shape), cell = group / shape.groups;
    return (cell * shape.positions + k / width) * shape.channels + group % shape.groups * width + k % width;
}

__device__ inline const real *group_mean(NormShape shape, u64 group, const real *statistics) {
    return statistics + group / shape.groups * 2 * shape.groups + group % shape.groups;
}

// n = groups of all cells · lanes: partial sums of x, or of (x − mean)² where the means are known.
KERNEL norm_parts(u64 n, NormShape shape, u64 groups, u64 lanes, const real *x, u32 centred, const real *statistics, double *parts) {
    ITEM(i, n);
    const u64 group = i / lanes, lane = i % lanes;
    const u64 size = shape.positions * group_width(shape);
    const real mean = centred ? *group_mean(shape, group, statistics) : (real)0;
    double sum = 0;
    for (u64 k = lane; k < size; k += lanes) {
        const double rest = x[group_value(shape, group, k)] - mean;
        sum += centred ? rest * rest : rest;
    }
    parts[lane * groups + group] = sum;
}

// n = groups of all cells: the mean or, once it is there, the inverse deviation.
KERNEL norm_statistics(u64 n, NormShape shape, u64 lanes, const double *parts, u32 centred, double epsilon, real *statistics) {
    ITEM(i, n);
    const double mean = total(n, i, lanes, parts) / (double)(shape.positions * group_width(shape));
    const u64 place = i / shape.groups * 2 * shape.groups + i % shape.groups;
    if (centred) {
        statistics[place + shape.groups] = (real)(1 / sqrt(mean + epsilon));
    } else {
        statistics[place] = (real)mean;
    }
}

// The group of value `i`, over all cells.
__device__ inline u64 group_of(NormShape shape, u64 i) {
    return i / shape.channels / shape.positions * shape.groups + i % shape.channels / group_width(shape);
}

__device__ inline real normalised(NormShape shape, u64 i, const real *x, const real *statistics) {
    const real *mean = group_mean(shape, group_of(shape, i), statistics);
    return (x[i] - mean[0]) * mean[shape.groups];
}

// n = values.
KERNEL norm_forward(u64 n, NormShape shape, real *dst, const real *x, const real *statistics, const real *scale, const real *shift) {
    ITEM(i, n);
    const real *mean = group_mean(shape, group_of(shape, i), statistics);
    const u64 channel = i % shape.channels;
    dst[i] = (x[i] - mean[0]) * (scale[channel] * mean[shape.groups]) + shift[channel];
}

// n = records · channels: Σ d x̂ and Σ d over all positions of a record, which are `rows` of `channels` values.
KERNEL norm_parameter_gradients(u64 n, NormShape shape, u64 rows, real *dst, const real *d, const real *x, const real *statistics) {
    ITEM(i, n);
    const u64 record = i / shape.channels, channel = i % shape.channels;
    double products = 0, sum = 0;
    for (u64 row = 0; row < rows; row++) {
        const u64 k = (record * rows + row) * shape.channels + channel;
        products += d[k] * normalised(shape, k, x, statistics);
        sum += d[k];
    }
    dst[record * 2 * shape.channels + channel] = (real)products;
    dst[(record * 2 + 1) * shape.channels + channel] = (real)sum;
}

// n = groups of all cells · lanes: partial sums of e = d · scale, and after those of all lanes, of e x̂.
KERNEL norm_backward_parts(u64 n, NormShape shape, u64 groups, u64 lanes, const real *d, const real *x, const real *statistics,
                           const real *scale, double *parts) {
    ITEM(i, n);
    const u64 group = i / lanes, lane = i % lanes;
    const u64 size = shape.positions * group_width(shape);
    double sum = 0, products = 0;
    for (u64 k = lane; k < size; k += lanes) {
        const u64 value = group_value(shape, group, k);
        const double e = d[value] * scale[value % shape.channels];
        sum += e;
        products += e * normalised(shape, value, x, statistics);
    }
    parts[lane * groups + group] = sum;
    parts[(lanes + lane) * groups + group] = products;
}

// n = groups of all cells: both means of a group, next to each other.
KERNEL norm_backward_means(u64 n, NormShape shape, u64 lanes, const double *parts, real *means) {
    ITEM(i, n);
    const double size = (double)(shape.positions * group_width(shape));
    means[2 * i] = (real)(total(n, i, lanes, parts) / size);
    means[2 * i + 1] = (real)(total(n, i, lanes, parts + lanes * n) / size);
}

// n = values: inverse · (e − mean(e) − x̂ · mean(e x̂)).
KERNEL norm_backward(u64 n, NormShape shape, real *d, const real *x, const real *statistics, const real *scale, const real *means) {
    ITEM(i, n);
    const u64 group = group_of(shape, i);
    const real inverse = group_mean(shape, group, statistics)[shape.groups];
    const real e = d[i] * scale[i % shape.channels];
    d[i] = inverse * (e - means[2 * group] - normalised(shape, i, x, statistics) * means[2 * group + 1]);
}
