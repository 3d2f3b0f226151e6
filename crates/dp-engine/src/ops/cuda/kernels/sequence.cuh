// Records of several positions.
#pragma once
#include "sums.cuh"
#include "thread.cuh"

// [positions, columns] of every record becomes [columns, positions].
KERNEL swap_axes(u64 n, u64 positions, u64 columns, real *dst, const real *src) {
    ITEM(i, n);
    const u64 record = i / (positions * columns), rest = i % (positions * columns);
    const u64 position = rest % positions, column = rest / positions;
    dst[i] = src[(record * positions + position) * columns + column];
}

// n = records · lanes · columns: partial sum `lane` of every `lanes`-th position of a record, of `items` = records · columns sums.
KERNEL position_parts(u64 n, u64 items, u64 positions, u64 columns, u64 lanes, const real *src, double *parts) {
    ITEM(i, n);
    const u64 column = i % columns, lane = i / columns % lanes, record = i / columns / lanes;
    double sum = 0;
    for (u64 t = lane; t < positions; t += lanes) sum += src[(record * positions + t) * columns + column];
    parts[lane * items + record * columns + column] = sum;
}

// n = records · columns: dst[record · dst_stride + column] = the total over the record's positions.
KERNEL write_position_totals(u64 n, u64 n_parts, const double *parts, u64 columns, u64 dst_stride, real *dst) {
    ITEM(i, n);
    dst[i / columns * dst_stride + i % columns] = (real)total(n, i, n_parts, parts);
}
