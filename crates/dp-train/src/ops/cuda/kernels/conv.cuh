// Patches of images with channels last, and back.
#pragma once
#include "thread.cuh"

// The host's `ConvShape`.
struct ConvShape {
    u64 height, width, channels, filters, kernel, stride, padding, groups, out_height, out_width;
};

// n = images · positions · patch: the patches of one group, zeros outside of the image.
KERNEL gather_patches(u64 n, ConvShape shape, u64 group, const real *images, real *rows) {
    ITEM(i, n);
    const u64 channels = shape.channels / shape.groups;
    const u64 channel = i % channels;
    const u64 kx = i / channels % shape.kernel, ky = i / channels / shape.kernel % shape.kernel;
    const u64 position = i / (channels * shape.kernel * shape.kernel);
    const u64 x = position % shape.out_width, y = position / shape.out_width % shape.out_height;
    const u64 image = position / (shape.out_width * shape.out_height);
    // Below the padding these wrap around to numbers beyond any image.
    const u64 row = y * shape.stride + ky - shape.padding, column = x * shape.stride + kx - shape.padding;
    const bool inside = row < shape.height && column < shape.width;
    const u64 pixel = (image * shape.height + row) * shape.width + column;
    rows[i] = inside ? images[pixel * shape.channels + group * channels + channel] : (real)0;
}

// n = images · height · width · channels of the group: each value is the sum of its places in the patches, in the kernel's order.
KERNEL scatter_patches(u64 n, ConvShape shape, u64 group, const real *rows, real *images) {
    ITEM(i, n);
    const u64 channels = shape.channels / shape.groups;
    const u64 channel = i % channels, pixel = i / channels;
    const u64 column = pixel % shape.width, row = pixel / shape.width % shape.height;
    const u64 image = pixel / (shape.width * shape.height);
    real sum = 0;
    for (u64 ky = 0; ky < shape.kernel; ky++) {
        const u64 y = row + shape.padding - ky;
        if (row + shape.padding < ky || y % shape.stride != 0 || y / shape.stride >= shape.out_height) continue;
        for (u64 kx = 0; kx < shape.kernel; kx++) {
            const u64 x = column + shape.padding - kx;
            if (column + shape.padding < kx || x % shape.stride != 0 || x / shape.stride >= shape.out_width) continue;
            const u64 position = (image * shape.out_height + y / shape.stride) * shape.out_width + x / shape.stride;
            sum += rows[((position * shape.kernel + ky) * shape.kernel + kx) * channels + channel];
        }
    }
    images[pixel * shape.channels + group * channels + channel] = sum;
}

// n = filters · patch. Groups of [patch, group's filters] or, with `filters_first`, of [filters, patch] become the weight's gradient.
KERNEL unpack_weight(u64 n, u64 patch, u64 group_filters, u32 filters_first, real *weight, const real *sum, u32 accumulate) {
    ITEM(i, n);
    const u64 k = i % patch, filter = i / patch, group = filter / group_filters;
    const real value = filters_first ? sum[i] : sum[(group * patch + k) * group_filters + filter % group_filters];
    weight[i] = accumulate ? weight[i] + value : value;
}
