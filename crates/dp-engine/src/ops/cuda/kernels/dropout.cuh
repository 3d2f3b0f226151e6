// Dropout by Philox 4x32-10: the same masks as on the CPU.
#pragma once
#include "thread.cuh"

struct Four {
    u32 word[4];
};

__device__ inline Four philox(Four counter, u32 key_0, u32 key_1) {
    for (int round = 0; round < 10; round++) {
        const u64 a = (u64)counter.word[0] * 0xd2511f53u, b = (u64)counter.word[2] * 0xcd9e8d57u;
        counter = {{(u32)(b >> 32) ^ counter.word[1] ^ key_0, (u32)b, (u32)(a >> 32) ^ counter.word[3] ^ key_1, (u32)a}};
        key_0 += 0x9e3779b9u;
        key_1 += 0xbb67ae85u;
    }
    return counter;
}

// n = rows · fours of a row. A unit whose word is below `threshold` is dropped.
KERNEL dropout(u64 n, u64 columns, u64 key, u32 layer, const u64 *records, u32 threshold, real scale, real *dst, const real *src) {
    ITEM(i, n);
    const u64 fours = (columns + 3) / 4, row = i / fours, four = i % fours;
    const u64 record = records[row];
    const Four words = philox({{(u32)four, layer, (u32)record, (u32)(record >> 32)}}, (u32)key, (u32)(key >> 32));
    for (u64 k = 0; k < 4 && 4 * four + k < columns; k++) {
        const u64 place = row * columns + 4 * four + k;
        dst[place] = words.word[k] < threshold ? (real)0 : src[place] * scale;
    }
}
