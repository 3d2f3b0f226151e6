// Pooling of images with channels last.
#pragma once
#include "divisor.cuh"
#include "run.cuh"
#include "thread.cuh"

// The host's `PoolShape`. Channels are counted in units: of one value, or of as many as are read and written at once.
struct PoolShape {
    u32 kernel_height, kernel_width, padding;
    Divisor channels, height, width, stride, out_height, out_width;
};

// The part of a window that is inside of the image.
struct Window {
    u32 top, bottom, left, right;
};

__device__ inline u32 window_start(u32 position, u32 stride, u32 padding) {
    return position * stride > padding ? position * stride - padding : 0;
}

__device__ inline u32 window_end(u32 position, u32 stride, u32 kernel, u32 padding, u32 size) {
    const u32 end = position * stride + kernel;
    const u32 inside = end > padding ? end - padding : 0;
    return inside < size ? inside : size;
}

__device__ inline Window window_of(PoolShape shape, u32 y, u32 x) {
    Window window;
    window.top = window_start(y, shape.stride.by, shape.padding);
    window.bottom = window_end(y, shape.stride.by, shape.kernel_height, shape.padding, shape.height.by);
    window.left = window_start(x, shape.stride.by, shape.padding);
    window.right = window_end(x, shape.stride.by, shape.kernel_width, shape.padding, shape.width.by);
    return window;
}

// Image, row, column and channel of value `i` of images with these sizes.
struct Place {
    u32 image, row, column, channel;
};

__device__ inline Place place(u32 i, Divisor height, Divisor width, Divisor channels) {
    Place place;
    place.image = divide(divide(divide(i, channels, &place.channel), width, &place.column), height, &place.row);
    return place;
}

// The first and the last window that contain a pixel: `first` where there is one with `first <= last`.
__device__ inline void windows_around(u32 pixel, u32 kernel, Divisor stride, u32 padding, u32 n, u32 *first, u32 *end) {
    const u32 place = pixel + padding, last = quotient(place, stride) + 1;
    *first = place + 1 > kernel ? quotient(place + 1 - kernel + stride.by - 1, stride) : 0;
    *end = last < n ? last : n;
}

// The number in its window, padding included, of a pixel of window (y, x).
__device__ inline u16 number_in_window(PoolShape shape, u32 y, u32 x, u32 row, u32 column) {
    return (u16)((row + shape.padding - y * shape.stride.by) * shape.kernel_width + column + shape.padding - x * shape.stride.by);
}

// A number for each of some adjacent values.
template <u32 N> struct alignas(N * sizeof(u16)) Numbers {
    u16 value[N];
};

// The pixel whose value a window passes on, its winner, is the first that is NaN, else the first of the largest. Channels are counted in units
// of N.
template <u32 N>
__device__ inline void pool_largest(u32 i, PoolShape shape, Adjacent<N> *out, Numbers<N> *winners, const Adjacent<N> *images) {
    const u32 channels = shape.channels.by;
    const Place at = place(i, shape.out_height, shape.out_width, shape.channels);
    const Adjacent<N> *image = images + (u64)at.image * shape.height.by * shape.width.by * channels + at.channel;
    const Window window = window_of(shape, at.row, at.column);
    Adjacent<N> largest = image[(window.top * shape.width.by + window.left) * channels];
    const u16 first = number_in_window(shape, at.row, at.column, window.top, window.left);
    Numbers<N> winner;
    for (u32 j = 0; j < N; j++) winner.value[j] = first;
    for (u32 row = window.top; row < window.bottom; row++) {
        for (u32 column = window.left; column < window.right; column++) {
            const Adjacent<N> values = image[(row * shape.width.by + column) * channels];
            const u16 number = number_in_window(shape, at.row, at.column, row, column);
            for (u32 j = 0; j < N; j++) {
                const bool stays = largest.value[j] >= values.value[j] || largest.value[j] != largest.value[j];
                winner.value[j] = stays ? winner.value[j] : number;
                largest.value[j] = stays ? largest.value[j] : values.value[j];
            }
        }
    }
    out[i] = largest;
    winners[i] = winner;
}

// Each value of the input asks the windows around it whether it is their winner.
template <u32 N>
__device__ inline void pool_largest_backward(u32 i, PoolShape shape, Adjacent<N> *out, const Adjacent<N> *gradients, const Numbers<N> *winners) {
    const Place at = place(i, shape.height, shape.width, shape.channels);
    u32 first_y, end_y, first_x, end_x;
    windows_around(at.row, shape.kernel_height, shape.stride, shape.padding, shape.out_height.by, &first_y, &end_y);
    windows_around(at.column, shape.kernel_width, shape.stride, shape.padding, shape.out_width.by, &first_x, &end_x);
    Adjacent<N> sum = {};
    for (u32 y = first_y; y < end_y; y++) {
        for (u32 x = first_x; x < end_x; x++) {
            const u64 window = (((u64)at.image * shape.out_height.by + y) * shape.out_width.by + x) * shape.channels.by + at.channel;
            const u16 number = number_in_window(shape, y, x, at.row, at.column);
            const Numbers<N> winner = winners[window];
            const Adjacent<N> gradient = gradients[window];
            for (u32 j = 0; j < N; j++)
                if (winner.value[j] == number) sum.value[j] += gradient.value[j];
        }
    }
    out[i] = sum;
}

// n = units of the output.
KERNEL max_pool(u64 n, PoolShape shape, Adjacent<1> *out, Numbers<1> *winners, const Adjacent<1> *images) {
    ITEM(i, n);
    pool_largest((u32)i, shape, out, winners, images);
}

KERNEL max_pool_in_runs(u64 n, PoolShape shape, Run *out, Numbers<RUN> *winners, const Run *images) {
    ITEM(i, n);
    pool_largest((u32)i, shape, out, winners, images);
}

// n = units of the input.
KERNEL max_pool_backward(u64 n, PoolShape shape, Adjacent<1> *out, const Adjacent<1> *gradients, const Numbers<1> *winners) {
    ITEM(i, n);
    pool_largest_backward((u32)i, shape, out, gradients, winners);
}

KERNEL max_pool_backward_in_runs(u64 n, PoolShape shape, Run *out, const Run *gradients, const Numbers<RUN> *winners) {
    ITEM(i, n);
    pool_largest_backward((u32)i, shape, out, gradients, winners);
}

KERNEL average_pool(u64 n, PoolShape shape, real share, real *out, const real *images) {
    ITEM(i, n);
    const Place at = place((u32)i, shape.out_height, shape.out_width, shape.channels);
    const Window window = window_of(shape, at.row, at.column);
    real sum = 0;
    for (u32 row = window.top; row < window.bottom; row++)
        for (u32 column = window.left; column < window.right; column++)
            sum += images[(((u64)at.image * shape.height.by + row) * shape.width.by + column) * shape.channels.by + at.channel];
    out[i] = sum * share;
}

KERNEL average_pool_backward(u64 n, PoolShape shape, real share, real *out, const real *gradients) {
    ITEM(i, n);
    const Place at = place((u32)i, shape.height, shape.width, shape.channels);
    u32 first_y, end_y, first_x, end_x;
    windows_around(at.row, shape.kernel_height, shape.stride, shape.padding, shape.out_height.by, &first_y, &end_y);
    windows_around(at.column, shape.kernel_width, shape.stride, shape.padding, shape.out_width.by, &first_x, &end_x);
    real sum = 0;
    for (u32 y = first_y; y < end_y; y++)
        for (u32 x = first_x; x < end_x; x++)
            sum += share * gradients[(((u64)at.image * shape.out_height.by + y) * shape.out_width.by + x) * shape.channels.by + at.channel];
    out[i] = sum;
}
