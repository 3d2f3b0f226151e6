//! `Σ s_i g_i` when the scales are known.

use std::ops::Range;

use super::{
    GradientFloat, Gradients, KernelExecution, dispatch,
    execution::{run_all, split},
    lanes::Lanes,
};
use crate::{ClipError, error::check_lengths};

/// Columns that are summed before the next ones: their f64 totals stay in the first-level cache.
const BLOCK: usize = 8192;

/// Rows that are read side by side, so that a total is loaded and stored once for all of them.
pub(super) const N_ROWS: usize = 8;

/// `out[j] = Σ_i scales[i]·gradients[i, j]`.
///
/// **Shapes.** `scales`: `[batch]`, `out`: `[params]`, overwritten.
///
/// **Sensitivity.** A record adds `|scales[i]|` times its norm: the caller's scales bound it, and nothing
/// here does. [`Clipped::enforce`](crate::Clipped::enforce) lowers scales to a bound.
///
/// **Edge cases.** A row with scale 0 is not read, so its NaN or ∞ reaches nothing. No rows give
/// zeros.
///
/// **Accuracy.** Products and sums in f64, each column in row order; one rounding at the end. For
/// f32 the scale is rounded to f32 first, so that the result does not depend on the processor.
///
/// # Errors
/// [`ClipError::LengthMismatch`] if a length does not fit.
///
/// ```
/// use dp_clipping::kernels::{KernelExecution, Gradients, scale_and_sum};
/// let gradients = Gradients::from_slice(&[3.0, 4.0, f64::NAN, 1.0], 2)?;
/// let mut sum = [9.0, 9.0];
/// scale_and_sum(&gradients, &[0.5, 0.0], &mut sum, &KernelExecution::default())?;
/// assert_eq!(sum, [1.5, 2.0]);
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
pub fn scale_and_sum<T: GradientFloat>(
    gradients: &Gradients<'_, T>,
    scales: &[f64],
    out: &mut [T],
    execution: &KernelExecution,
) -> Result<(), ClipError> {
    check_lengths("scales", scales.len(), "records", gradients.n_records())?;
    check_lengths("out", out.len(), "parameters", gradients.n_params())?;
    let active: Vec<(&[T], f64)> = gradients
        .rows()
        .iter()
        .zip(scales)
        .filter(|&(_, &scale)| scale != 0.0)
        .map(|(&row, &scale)| (row, T::round_scale(scale)))
        .collect();

    let n_bytes = size_of::<T>() * active.len() * out.len();
    // A cache line holds 16 f32: threads do not write to the same one.
    let ranges = split(out.len(), execution.threads_for(n_bytes), 16);
    let mut rest = out;
    let mut jobs = Vec::new();
    for range in ranges {
        let (part, after) = rest.split_at_mut(range.len());
        rest = after;
        jobs.push((range, part));
    }
    run_all(jobs, |(columns, out)| sum_columns(&active, columns, out, execution));
    Ok(())
}

/// The weighted sum of some columns, block by block.
fn sum_columns<T: GradientFloat>(
    rows: &[(&[T], f64)],
    columns: Range<usize>,
    out: &mut [T],
    execution: &KernelExecution,
) {
    let mut totals = vec![0.0; BLOCK.min(out.len())];
    let mut group: Vec<(&[T], f64)> = Vec::with_capacity(N_ROWS);
    for (index, out) in out.chunks_mut(BLOCK).enumerate() {
        let start = columns.start + index * BLOCK;
        let totals = &mut totals[..out.len()];
        totals.fill(0.0);
        for rows in rows.chunks(N_ROWS) {
            group.clear();
            group.extend(rows.iter().map(|&(row, scale)| (&row[start..start + out.len()], scale)));
            dispatch::add_scaled_rows(execution.instruction_set, &group, totals);
        }
        for (out, &total) in out.iter_mut().zip(totals.iter()) {
            *out = T::from_f64(total);
        }
    }
}

/// `totals[j] += Σ_r s_r·rows[r][j]`, each column in row order. All rows have the length of
/// `totals`.
#[inline(always)]
pub(super) fn add_scaled_rows_lanes<V: Lanes, T: GradientFloat>(rows: &[(&[T], f64)], totals: &mut [f64]) {
    let mut rest = rows;
    while let Some((first, after)) = rest.split_first_chunk::<N_ROWS>() {
        add_rows::<V, T, N_ROWS>(first, totals);
        rest = after;
    }
    for row in rest {
        add_rows::<V, T, 1>(&[*row], totals);
    }
}

#[inline(always)]
fn add_rows<V: Lanes, T: GradientFloat, const N: usize>(rows: &[(&[T], f64); N], totals: &mut [f64]) {
    let n_chunks = totals.len() / 8;
    let (chunks, tail) = totals.as_chunks_mut::<8>();
    // Equal lengths, stated once, let the compiler drop the checks in the loop.
    let row_chunks: [&[[T; 8]]; N] = std::array::from_fn(|r| &rows[r].0.as_chunks::<8>().0[..n_chunks]);
    let scales: [V; N] = std::array::from_fn(|r| V::splat(rows[r].1));
    for (j, chunk) in chunks.iter_mut().enumerate() {
        let mut total = V::load_f64(chunk);
        for r in 0..N {
            let values: V = T::load(&row_chunks[r][j]);
            total = total.add(values.mul(scales[r]));
        }
        total.store(chunk);
    }
    for &(row, scale) in rows {
        for (total, &value) in tail.iter_mut().zip(&row[n_chunks * 8..]) {
            *total += value.into() * scale;
        }
    }
}
