// GroupNorm and LayerNorm. Cells of all records follow each other; each has `2 · groups` statistics: means, then inverse deviations.
#pragma once
#include "divisor.cuh"
#include "sums.cuh"
#include "thread.cuh"

// The host's `DeviceShape`, of a cell; `width` is that of a group. Values of a launch are numbered below 2³¹.
struct NormShape {
    Divisor positions, channels, groups, width;
};

__device__ inline u32 group_size(NormShape shape) {
    return shape.positions.by * shape.width.by;
}

// Value number `k` of group `group` (counted over all cells).
__device__ inline u32 group_value(NormShape shape, u32 group, u32 k) {
    u32 in_cell, in_group;
    const u32 cell = divide(group, shape.groups, &in_cell), row = divide(k, shape.width, &in_group);
    return (cell * shape.positions.by + row) * shape.channels.by + in_cell * shape.width.by + in_group;
}

// Where a group's mean is; its inverse deviation is `groups` further.
__device__ inline u64 mean_of(NormShape shape, u32 group) {
    u32 in_cell;
    const u64 cell = divide(group, shape.groups, &in_cell);
    return cell * 2 * shape.groups.by + in_cell;
}

// n = groups of all cells · lanes: partial sums of x, or of (x − mean)² where the means are known.
KERNEL norm_parts(u64 n, NormShape shape, u64 groups, Divisor lanes, const real *x, u32 centred, const real *statistics, double *parts) {
    ITEM(i, n);
    u32 lane;
    const u32 group = divide((u32)i, lanes, &lane), size = group_size(shape);
    const real mean = centred ? statistics[mean_of(shape, group)] : (real)0;
    double sum = 0;
    for (u32 k = lane; k < size; k += lanes.by) {
        const double rest = x[group_value(shape, group, k)] - mean;
        sum += centred ? rest * rest : rest;
    }
    parts[lane * groups + group] = sum;
}

// n = groups of all cells: the mean or, once it is there, the inverse deviation.
KERNEL norm_statistics(u64 n, NormShape shape, u64 lanes, const double *parts, u32 centred, double epsilon, real *statistics) {
    ITEM(i, n);
    const double mean = total(n, i, lanes, parts) / (double)group_size(shape);
    const u64 place = mean_of(shape, (u32)i);
    if (centred) {
        statistics[place + shape.groups.by] = (real)(1 / sqrt(mean + epsilon));
    } else {
        statistics[place] = (real)mean;
    }
}

// The group of value `i`, over all cells, and the value's channel.
__device__ inline u32 group_of(NormShape shape, u32 i, u32 *channel) {
    const u32 cell = quotient(divide(i, shape.channels, channel), shape.positions);
    return cell * shape.groups.by + quotient(*channel, shape.width);
}

__device__ inline real normalised(NormShape shape, u32 group, real x, const real *statistics) {
    const real *mean = statistics + mean_of(shape, group);
    return (x - mean[0]) * mean[shape.groups.by];
}

// n = values.
KERNEL norm_forward(u64 n, NormShape shape, real *dst, const real *x, const real *statistics, const real *scale, const real *shift) {
    ITEM(i, n);
    u32 channel;
    const real *mean = statistics + mean_of(shape, group_of(shape, (u32)i, &channel));
    dst[i] = (x[i] - mean[0]) * (scale[channel] * mean[shape.groups.by]) + shift[channel];
}

// n = records · channels: Σ d x̂ and Σ d over all positions of a record, which are `rows` of `channels` values.
KERNEL norm_parameter_gradients(u64 n, NormShape shape, u32 rows, real *dst, const real *d, const real *x, const real *statistics) {
    ITEM(i, n);
    u32 channel;
    const u32 record = divide((u32)i, shape.channels, &channel), in_cell = quotient(channel, shape.width);
    double products = 0, sum = 0;
    for (u32 row = record * rows; row < (record + 1) * rows; row++) {
        const u32 k = row * shape.channels.by + channel;
        const u32 group = quotient(row, shape.positions) * shape.groups.by + in_cell;
        products += d[k] * normalised(shape, group, x[k], statistics);
        sum += d[k];
    }
    const u64 to = (u64)record * 2 * shape.channels.by + channel;
    dst[to] = (real)products;
    dst[to + shape.channels.by] = (real)sum;
}

// n = groups of all cells · lanes: partial sums of e = d · scale for all lanes, then of e x̂ for all lanes.
KERNEL norm_backward_parts(u64 n, NormShape shape, u64 groups, Divisor lanes, const real *d, const real *x, const real *statistics,
                           const real *scale, double *parts) {
    ITEM(i, n);
    u32 lane, in_cell, in_group;
    const u32 group = divide((u32)i, lanes, &lane), size = group_size(shape);
    divide(group, shape.groups, &in_cell);
    double sum = 0, products = 0;
    for (u32 k = lane; k < size; k += lanes.by) {
        const u32 value = group_value(shape, group, k);
        divide(k, shape.width, &in_group);
        const double e = d[value] * scale[in_cell * shape.width.by + in_group];
        sum += e;
        products += e * normalised(shape, group, x[value], statistics);
    }
    parts[lane * groups + group] = sum;
    parts[(lanes.by + lane) * groups + group] = products;
}

// n = groups of all cells: both means of a group, next to each other.
KERNEL norm_backward_means(u64 n, NormShape shape, u64 lanes, const double *parts, real *means) {
    ITEM(i, n);
    const double size = (double)group_size(shape);
    means[2 * i] = (real)(total(n, i, lanes, parts) / size);
    means[2 * i + 1] = (real)(total(n, i, lanes, parts + lanes * n) / size);
}

// n = values: inverse · (e − mean(e) − x̂ · mean(e x̂)).
KERNEL norm_backward(u64 n, NormShape shape, real *d, const real *x, const real *statistics, const real *scale, const real *means) {
    ITEM(i, n);
    u32 channel;
    const u64 group = group_of(shape, (u32)i, &channel);
    const real inverse = statistics[mean_of(shape, (u32)group) + shape.groups.by];
    const real e = d[i] * scale[channel];
    d[i] = inverse * (e - means[2 * group] - normalised(shape, (u32)group, x[i], statistics) * means[2 * group + 1]);
}
