// Patches of images with channels last, and back.
#pragma once
#include "divisor.cuh"
#include "run.cuh"
#include "thread.cuh"

// The host's `ConvShape`, of one group. Channels are counted in units: of one value, or of as many as are read and written at once. A patch is
// the beginning of a row.
struct ConvShape {
    u32 height, width, pixel, first, padding, patch, row;
    Divisor channels, kernel, stride, out_height, out_width, image_height, image_width;
};

// One unit of the patches of a group, zeros outside of the image. Image, position, tap and channel follow from its number.
template <class Unit> __device__ inline void gather(u32 i, ConvShape shape, const Unit *images, Unit *rows) {
    u32 channel, kx, ky, x, y;
    const u32 tap_of_all = divide(i, shape.channels, &channel);
    const u32 position = divide(divide(tap_of_all, shape.kernel, &kx), shape.kernel, &ky);
    const u32 image = divide(divide(position, shape.out_width, &x), shape.out_height, &y);
    // Below the padding these wrap around to numbers beyond any image.
    const u32 row = y * shape.stride.by + ky - shape.padding, column = x * shape.stride.by + kx - shape.padding;
    const bool inside = row < shape.height && column < shape.width;
    const u64 pixel = ((u64)image * shape.height + row) * shape.width + column;
    const u64 to = (u64)position * shape.row + (i - position * shape.patch);
    rows[to] = inside ? images[pixel * shape.pixel + shape.first + channel] : Unit{};
}

// n = images · positions · units of a patch.
KERNEL gather_patches(u64 n, ConvShape shape, const real *images, real *rows) {
    ITEM(i, n);
    gather((u32)i, shape, images, rows);
}

KERNEL gather_patches_in_runs(u64 n, ConvShape shape, const Run *images, Run *rows) {
    ITEM(i, n);
    gather((u32)i, shape, images, rows);
}

// One unit of the images: the sum of its places in the patches, in the kernel's order.
template <class Unit> __device__ inline void scatter(u32 i, ConvShape shape, const Unit *rows, Unit *images) {
    u32 channel, column, row;
    const u32 pixel = divide(i, shape.channels, &channel);
    const u32 image = divide(divide(pixel, shape.image_width, &column), shape.image_height, &row);
    Unit sum = {};
    for (u32 ky = 0; ky < shape.kernel.by && ky <= row + shape.padding; ky++) {
        u32 skipped;
        const u32 y = divide(row + shape.padding - ky, shape.stride, &skipped);
        if (skipped != 0 || y >= shape.out_height.by) continue;
        for (u32 kx = 0; kx < shape.kernel.by && kx <= column + shape.padding; kx++) {
            const u32 x = divide(column + shape.padding - kx, shape.stride, &skipped);
            if (skipped != 0 || x >= shape.out_width.by) continue;
            const u64 position = ((u64)image * shape.out_height.by + y) * shape.out_width.by + x;
            sum = sum + rows[position * shape.row + (ky * shape.kernel.by + kx) * shape.channels.by + channel];
        }
    }
    images[(u64)pixel * shape.pixel + shape.first + channel] = sum;
}

// n = images · pixels · units of a pixel in the group.
KERNEL scatter_patches(u64 n, ConvShape shape, const real *rows, real *images) {
    ITEM(i, n);
    scatter((u32)i, shape, rows, images);
}

KERNEL scatter_patches_in_runs(u64 n, ConvShape shape, const Run *rows, Run *images) {
    ITEM(i, n);
    scatter((u32)i, shape, rows, images);
}

// n = rows · columns behind a patch: an input that is always 1, and zeros.
KERNEL append_one(u64 n, Divisor columns, u64 row, u64 patch, real *rows) {
    ITEM(i, n);
    u32 column;
    const u32 position = divide((u32)i, columns, &column);
    rows[position * row + patch + column] = column == 0 ? (real)1 : (real)0;
}

// n = filters · row: the weights of a filter, its bias, and zeros.
KERNEL append_bias(u64 n, Divisor row, u64 patch, const real *weight, const real *bias, real *rows) {
    ITEM(i, n);
    u32 column;
    const u32 filter = divide((u32)i, row, &column);
    rows[i] = column < patch ? weight[filter * patch + column] : column == patch ? bias[filter] : (real)0;
}

// n = filters · patch. Groups of [patch, group's filters] or, with `filters_first`, of [filters, patch] become the weight's gradient.
KERNEL unpack_weight(u64 n, u64 patch, u64 group_filters, u32 filters_first, real *weight, const real *sum, u32 accumulate) {
    ITEM(i, n);
    const u64 k = i % patch, filter = i / patch, group = filter / group_filters;
    const real value = filters_first ? sum[i] : sum[(group * patch + k) * group_filters + filter % group_filters];
    weight[i] = accumulate ? weight[i] + value : value;
}
