// Gaussian noise that is rounded to a public grid: what the host's `noise` says of the same bits, in double precision.
#pragma once
#include "thread.cuh"

// Grid steps in one standard deviation, and the most steps that are rounded: the host's `GRID` and `LARGEST`.
#define GRID 256.0
#define LARGEST 1125899906842624.0
// Blocks of keystream side by side in a group, and pairs of values that a group belongs to: the host's `LANES` and `PAIRS`.
#define LANES 16
#define PAIRS 128
// Streams of the first 32 bits of every coordinate, and of the bits that follow.
#define LEADING 0
#define FURTHER 1

struct ChaChaKey {
    u32 word[8];
};

__device__ inline u32 rotate(u32 x, int bits) {
    return x << bits | x >> (32 - bits);
}

__device__ inline void quarter_round(u32 *a, u32 *b, u32 *c, u32 *d) {
    *a += *b, *d = rotate(*d ^ *a, 16);
    *c += *d, *b = rotate(*b ^ *c, 12);
    *a += *b, *d = rotate(*d ^ *a, 8);
    *c += *d, *b = rotate(*b ^ *c, 7);
}

// Block `counter` of a stream of the ChaCha20 keystream under `key`.
__device__ inline void chacha20(const ChaChaKey &key, u32 stream, u64 counter, u32 *out) {
    // "expand 32-byte k"
    u32 input[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    for (int i = 0; i < 8; i++) input[4 + i] = key.word[i];
    input[12] = (u32)counter;
    input[13] = (u32)(counter >> 32);
    input[14] = stream;
    input[15] = 0;
    for (int i = 0; i < 16; i++) out[i] = input[i];
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 4; i++) quarter_round(&out[i], &out[4 + i], &out[8 + i], &out[12 + i]);
        for (int i = 0; i < 4; i++) quarter_round(&out[i], &out[4 + (i + 1) % 4], &out[8 + (i + 2) % 4], &out[12 + (i + 3) % 4]);
    }
    for (int i = 0; i < 16; i++) out[i] += input[i];
}

// Both variates of Box and Muller's point, and a bound on the error of either over all bits that may follow the 64 of each coordinate. The
// bound allows 8 ulp for each elementary function. NVIDIA states 1 for `log` and `log1p`, 2 for `sincospi` and none for `sqrt`, beside the
// correctly rounded result (CUDA C++ Programming Guide, "Mathematical Functions", double precision): found by tests, it says, and not guaranteed.
__device__ inline double gaussian_pair(u64 radius, u64 turn, double noise[2]) {
    const double step = 1.0 / 18446744073709551616.0;
    const bool upper = radius >> 63 != 0;
    const double steps = (double)(upper ? ~radius : radius);
    const double end = (steps + 0.5) * step;
    const double r = sqrt(-2.0 * (upper ? log1p(-end) : log(end)));
    // The nearest multiple of a quarter turn, and the rest as an angle in [−π/4, π/4).
    const u64 quarter = (turn + ((u64)1 << 61)) >> 62;
    const double rest = (double)(long long)(turn - (quarter << 62));
    double sin, cos;
    sincospi(rest * (2.0 * step), &sin, &cos);
    const double direction[4] = {cos, -sin, -cos, sin};
    noise[0] = r * direction[quarter % 4];
    noise[1] = r * direction[(quarter + 3) % 4];
    return r * (1.4210854715202004e-14 /* 2^-46 */ + 2.0 / steps);
}

// The nearest integer of factor · value + GRID · noise into `rounded`, and whether the interval around the sum leaves no doubt. The compiler
// may fuse the product with the sum: that rounds once less, and the margin is for both.
__device__ inline bool round_to_grid(double factor, double value, double noise, double error, double *rounded) {
    const double scaled = factor * value;
    const double sum = scaled + GRID * noise;
    *rounded = rint(sum);
    const double margin = GRID * error + (fabs(scaled) + fabs(sum)) * 8.8817841970012523e-16 /* 2^-50 */;
    return fabs(sum - *rounded) < 0.5 - margin || sum != sum || fabs(sum) > LARGEST;
}

// A number of grid steps as a value, in the arithmetic of the host.
__device__ inline float value_of(float, double steps, double factor) {
    return (float)steps * (1.0f / (float)factor);
}
__device__ inline double value_of(double, double steps, double factor) {
    return steps / factor;
}

// Read by the host after a step: the number of pairs in doubt, and whether a value is not finite.
struct Notes {
    u32 n_doubtful, not_finite;
};

__device__ inline void note_if_not_finite(real value, Notes *notes) {
    // NaN for NaN and both infinities. Threads that write it all write 1.
    if (!(value * (real)0 == (real)0)) notes->not_finite = 1;
}

// The noise of block `i` of the leading stream, which has the first bits of eight pairs, on the values that `before` says. Pairs in doubt are
// left as they are and listed in `doubtful` (as many as fit); the host settles them with more bits.
template <class Before>
__device__ inline void add_noise(u64 i, u64 len, const ChaChaKey &key, double factor, real share, Before before, real *values, Notes *notes,
                                 u64 *doubtful, u32 capacity) {
    const u64 group = i / LANES, lane = i % LANES;
    u32 leading[16];
    chacha20(key, LEADING, i, leading);
    for (u64 w = 0; w < 8; w++) {
        // The first half of a group's values takes the cosines, the second the sines.
        const u64 pair = group * PAIRS + LANES * w + lane;
        const u64 first = group * PAIRS + pair, second = first + PAIRS;
        if (first >= len) return;
        u32 further[16];
        chacha20(key, FURTHER, pair, further);
        const u64 radius = (u64)leading[w] << 32 | further[0], turn = (u64)leading[8 + w] << 32 | further[5];
        double noise[2], rounded[2];
        const double error = gaussian_pair(radius, turn, noise);
        bool sure = round_to_grid(factor, before.at(first), noise[0], error, &rounded[0]);
        if (second < len) sure = round_to_grid(factor, before.at(second), noise[1], error, &rounded[1]) && sure;
        if (!sure) {
            const u32 place = atomicAdd(&notes->n_doubtful, 1u);
            if (place < capacity) doubtful[place] = pair;
            continue;
        }
        values[first] = value_of((real)0, rounded[0], factor) * share;
        note_if_not_finite(values[first], notes);
        if (second >= len) continue;
        values[second] = value_of((real)0, rounded[1], factor) * share;
        note_if_not_finite(values[second], notes);
    }
}

struct Values {
    const real *values;
    __device__ double at(u64 i) const { return values[i]; }
};

struct Integers {
    const i64 *steps;
    double grid;
    // Exact: the steps are below 2⁵¹ and the grid is a power of two.
    __device__ double at(u64 i) const { return (double)steps[i] * grid; }
};

// n = blocks of the leading stream.
KERNEL privatise(u64 n, u64 len, ChaChaKey key, double factor, real share, real *values, Notes *notes, u64 *doubtful, u32 capacity) {
    ITEM(i, n);
    add_noise(i, len, key, factor, share, Values{values}, values, notes, doubtful, capacity);
}

// The same for sums in integers; `beyond` says whether one of their values was not finite or too large.
KERNEL privatise_integers(u64 n, u64 len, ChaChaKey key, double factor, real share, const i64 *steps, double grid, const u32 *beyond,
                          real *values, Notes *notes, u64 *doubtful, u32 capacity) {
    ITEM(i, n);
    if (*beyond) notes->not_finite = 1;
    add_noise(i, len, key, factor, share, Integers{steps, grid}, values, notes, doubtful, capacity);
}

// n = values that get no noise: `(values) · share`.
KERNEL share_out(u64 n, real share, real *values, Notes *notes) {
    ITEM(i, n);
    values[i] *= share;
    note_if_not_finite(values[i], notes);
}
