// Pooling of images with channels last.
#pragma once
#include "thread.cuh"

// The host's `PoolShape`.
struct PoolShape {
    u64 height, width, channels, kernel_height, kernel_width, stride, padding, out_height, out_width;
};

// The part of a window that is inside of the image.
struct Window {
    u64 top, bottom, left, right;
};

__device__ inline u64 window_start(u64 position, u64 stride, u64 padding) {
    return position * stride > padding ? position * stride - padding : 0;
}

__device__ inline u64 window_end(u64 position, u64 stride, u64 kernel, u64 padding, u64 size) {
    const u64 end = position * stride + kernel;
    const u64 inside = end > padding ? end - padding : 0;
    return inside < size ? inside : size;
}

__device__ inline Window window_of(PoolShape shape, u64 y, u64 x) {
    Window window;
    window.top = window_start(y, shape.stride, shape.padding);
    window.bottom = window_end(y, shape.stride, shape.kernel_height, shape.padding, shape.height);
    window.left = window_start(x, shape.stride, shape.padding);
    window.right = window_end(x, shape.stride, shape.kernel_width, shape.padding, shape.width);
    return window;
}

// The pixel (row · width + column) whose value a window passes on: the first that is NaN, else the first of the largest.
__device__ inline u64 winner(PoolShape shape, Window window, const real *image, u64 channel) {
    u64 best = window.top * shape.width + window.left;
    for (u64 row = window.top; row < window.bottom; row++) {
        for (u64 column = window.left; column < window.right; column++) {
            const u64 pixel = row * shape.width + column;
            const real value = image[pixel * shape.channels + channel], so_far = image[best * shape.channels + channel];
            if (so_far != so_far) return best;
            if (value > so_far || value != value) best = pixel;
        }
    }
    return best;
}

// Image, row, column and channel of value `i` of images with these sizes.
struct Place {
    u64 image, row, column, channel;
};

__device__ inline Place place(u64 i, u64 height, u64 width, u64 channels) {
    Place place;
    place.channel = i % channels;
    place.column = i / channels % width;
    place.row = i / channels / width % height;
    place.image = i / channels / width / height;
    return place;
}

// The first and the last window that contain a pixel: `first` where there is one with `first <= last`.
__device__ inline void windows_around(u64 pixel, u64 kernel, u64 stride, u64 padding, u64 n, u64 *first, u64 *end) {
    const u64 place = pixel + padding;
    *first = place + 1 > kernel ? (place + 1 - kernel + stride - 1) / stride : 0;
    *end = place / stride + 1 < n ? place / stride + 1 : n;
}

// n = values of the output.
KERNEL max_pool(u64 n, PoolShape shape, real *out, const real *images) {
    ITEM(i, n);
    const Place at = place(i, shape.out_height, shape.out_width, shape.channels);
    const real *image = images + at.image * shape.height * shape.width * shape.channels;
    out[i] = image[winner(shape, window_of(shape, at.row, at.column), image, at.channel) * shape.channels + at.channel];
}

// n = values of the input: each asks the windows around it whether it is their winner.
KERNEL max_pool_backward(u64 n, PoolShape shape, real *out, const real *gradients, const real *images) {
    ITEM(i, n);
    const Place at = place(i, shape.height, shape.width, shape.channels);
    const real *image = images + at.image * shape.height * shape.width * shape.channels;
    u64 first_y, end_y, first_x, end_x;
    windows_around(at.row, shape.kernel_height, shape.stride, shape.padding, shape.out_height, &first_y, &end_y);
    windows_around(at.column, shape.kernel_width, shape.stride, shape.padding, shape.out_width, &first_x, &end_x);
    real sum = 0;
    for (u64 y = first_y; y < end_y; y++) {
        for (u64 x = first_x; x < end_x; x++) {
            if (winner(shape, window_of(shape, y, x), image, at.channel) != at.row * shape.width + at.column) continue;
            sum += gradients[((at.image * shape.out_height + y) * shape.out_width + x) * shape.channels + at.channel];
        }
    }
    out[i] = sum;
}

KERNEL average_pool(u64 n, PoolShape shape, real share, real *out, const real *images) {
    ITEM(i, n);
    const Place at = place(i, shape.out_height, shape.out_width, shape.channels);
    const Window window = window_of(shape, at.row, at.column);
    real sum = 0;
    for (u64 row = window.top; row < window.bottom; row++)
        for (u64 column = window.left; column < window.right; column++)
            sum += images[((at.image * shape.height + row) * shape.width + column) * shape.channels + at.channel];
    out[i] = sum * share;
}

KERNEL average_pool_backward(u64 n, PoolShape shape, real share, real *out, const real *gradients) {
    ITEM(i, n);
    const Place at = place(i, shape.height, shape.width, shape.channels);
    u64 first_y, end_y, first_x, end_x;
    windows_around(at.row, shape.kernel_height, shape.stride, shape.padding, shape.out_height, &first_y, &end_y);
    windows_around(at.column, shape.kernel_width, shape.stride, shape.padding, shape.out_width, &first_x, &end_x);
    real sum = 0;
    for (u64 y = first_y; y < end_y; y++)
        for (u64 x = first_x; x < end_x; x++)
            sum += share * gradients[((at.image * shape.out_height + y) * shape.out_width + x) * shape.channels + at.channel];
    out[i] = sum;
}
