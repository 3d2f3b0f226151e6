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

// n = ids of the batch. Links every id to the next place of the same row of the table, `n` where there is none; `linked` starts as 0 and
// becomes 1 where another place links to. Places of records with weight 0, and what is no id, are in no chain.
KERNEL embedding_links(u64 n, u64 positions, u64 vocabulary, const real *ids, const double *weights, u64 *next, u32 *linked) {
    ITEM(i, n);
    const u64 row = row_of(ids[i], vocabulary);
    next[i] = n;
    if (row == NO_ROW || weights[i / positions] == 0) {
        linked[i] = 1;
        return;
    }
    for (u64 j = i + 1; j < n; j++) {
        if (weights[j / positions] != 0 && row_of(ids[j], vocabulary) == row) {
            next[i] = j;
            linked[j] = 1;
            return;
        }
    }
}

// n = ids of the batch · channels: where a chain begins, the sum over it goes to the table's row.
KERNEL embedding_sum(u64 n, u64 n_ids, u64 positions, u64 vocabulary, u64 channels, const real *ids, const real *d, const double *weights,
                     const u64 *next, const u32 *linked, real *dst) {
    ITEM(i, n);
    const u64 channel = i % channels;
    u64 place = i / channels;
    if (linked[place]) return;
    const u64 row = row_of(ids[place], vocabulary);
    double sum = 0;
    for (; place < n_ids; place = next[place]) sum += weights[place / positions] * d[place * channels + channel];
    dst[row * channels + channel] += (real)sum;
}
