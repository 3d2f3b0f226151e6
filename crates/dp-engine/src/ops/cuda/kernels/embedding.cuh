// Rows of a table, picked by ids that come as a record's input values. What is no id of the table (not finite, not whole, out of range)
// gives NaN, with which a record is left out.
#pragma once
#include "thread.cuh"

#define NO_ROW (~(u64)0)

__device__ inline u64 row_of(real id, u64 vocabulary) {
    return id >= (real)0 && id < (real)vocabulary && id == floor(id) ? (u64)id : NO_ROW;
}

// n = ids · channels.
KERNEL embedding_forward(u64 n, u64 vocabulary, u64 channels, real *dst, const real *ids, const real *table) {
    ITEM(i, n);
    const u64 row = row_of(ids[i / channels], vocabulary);
    dst[i] = row == NO_ROW ? (real)NAN : table[row * channels + i % channels];
}

// n = ids · lanes: the squared sum over all places of an id in its record, at the first of them; a lane takes every `lanes`-th channel.
KERNEL embedding_sq_norm_parts(u64 n, u64 records, u64 positions, u64 vocabulary, u64 channels, u64 lanes, const real *ids, const real *d,
                               double *parts) {
    ITEM(i, n);
    const u64 place = i / lanes, lane = i % lanes, record = place / positions, t = place % positions;
    const u64 row = row_of(ids[place], vocabulary);
    bool first = true;
    for (u64 u = record * positions; u < place; u++) first = first && row_of(ids[u], vocabulary) != row;
    double sum_of_squares = 0;
    for (u64 channel = lane; first && channel < channels; channel += lanes) {
        double sum = 0;
        for (u64 u = place; u < (record + 1) * positions; u++)
            if (row_of(ids[u], vocabulary) == row) sum += d[u * channels + channel];
        sum_of_squares += sum * sum;
    }
    parts[(t * lanes + lane) * records + record] = row == NO_ROW ? (double)NAN : sum_of_squares;
}

// n = ids of the batch, and places beyond them: what they are sorted by. The row of the table and then the place; what is in no sum comes last,
// that is records with weight 0 and what is no id.
KERNEL embedding_keys(u64 n, u64 n_ids, u64 positions, u64 vocabulary, const real *ids, const double *weights, u64 *keys) {
    ITEM(i, n);
    const u64 row = i < n_ids && weights[i / positions] != 0 ? row_of(ids[i], vocabulary) : NO_ROW;
    keys[i] = row == NO_ROW ? NO_ROW : row << 32 | i;
}

// n = pairs of keys. One step of a bitonic sort: keys that are `distance` apart, in runs of `run` keys that rise and fall in turn.
KERNEL sort_step(u64 n, u64 run, u64 distance, u64 *keys) {
    ITEM(i, n);
    const u64 low = 2 * i - i % distance, high = low + distance;
    const bool rises = (low & run) == 0;
    const u64 a = keys[low], b = keys[high];
    if ((a > b) == rises) {
        keys[low] = b;
        keys[high] = a;
    }
}

// n = ids of the batch · channels: where a row of the table begins among the sorted keys, the sum over its places goes to it, in their order.
KERNEL embedding_sum(u64 n, u64 n_ids, u64 positions, u64 channels, const real *d, const double *weights, const u64 *keys, real *dst) {
    ITEM(i, n);
    const u64 channel = i % channels, row = keys[i / channels] >> 32;
    u64 k = i / channels;
    if (keys[k] == NO_ROW || (k > 0 && keys[k - 1] >> 32 == row)) return;
    double sum = 0;
    for (; k < n_ids && keys[k] >> 32 == row; k++) {
        const u64 place = keys[k] & 0xffffffffu;
        sum += weights[place / positions] * d[place * channels + channel];
    }
    dst[row * channels + channel] += (real)sum;
}
