// Sums of pieces as multiples of a public step.
#pragma once
#include "thread.cuh"

// A magnitude that no sum of clipped gradients reaches, in steps: the host's `CAPACITY`, 2⁵¹.
#define CAPACITY 2251799813685248.0

// n = values of a piece's sum. `per_step` is a power of two. `replaces` for the first piece; `beyond` becomes 1 where a value is no number or
// beyond the capacity.
KERNEL add_to_integers(u64 n, const real *values, double per_step, u32 replaces, i64 *steps, u32 *beyond) {
    ITEM(i, n);
    const double scaled = (double)values[i] * per_step;
    // NaN fails the comparison.
    const bool fits = fabs(scaled) < CAPACITY;
    const i64 whole = fits ? (i64)rint(scaled) : 0;
    steps[i] = replaces ? whole : steps[i] + whole;
    if (!fits) *beyond = 1;
}
