//! Norms of rows.

use super::{
    GradientFloat, Gradients, KernelExecution, dispatch,
    execution::{run_all, split},
    lanes::Lanes,
};

/// L2 norm of every row, `[batch]`.
///
/// **Accuracy.** Relative error below 1e-13: squares are summed in f64 over 64 lanes.
///
/// **Edge cases.** A row with NaN gives NaN; one with ∞ (and no NaN) gives ∞. Finite f64 values
/// whose squares overflow or vanish are rescaled first.
///
/// ```
/// use dp_clipping::kernels::{KernelExecution, Gradients, norms};
/// let gradients = Gradients::from_slice(&[3.0_f32, 4.0, 0.0, f32::NAN], 2)?;
/// let norms = norms(&gradients, &KernelExecution::default());
/// assert_eq!(norms[0], 5.0);
/// assert!(norms[1].is_nan());
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
pub fn norms<T: GradientFloat>(gradients: &Gradients<'_, T>, execution: &KernelExecution) -> Vec<f64> {
    let rows = gradients.rows();
    let mut norms = vec![0.0; rows.len()];
    let n_bytes = size_of::<T>() * rows.len() * gradients.n_params();
    let ranges = split(rows.len(), execution.threads_for(n_bytes), 1);
    let mut rest = norms.as_mut_slice();
    let mut jobs = Vec::new();
    for range in ranges {
        let (part, after) = rest.split_at_mut(range.len());
        rest = after;
        jobs.push((&rows[range], part));
    }
    run_all(jobs, |(rows, norms)| {
        for (row, norm) in rows.iter().zip(norms) {
            *norm = norm_of(row, dispatch::sum_of_squares(execution.instruction_set, row));
        }
    });
    norms
}

/// The norm from a sum of squares, repeated with care where the sum left the range in which it is
/// accurate.
pub(super) fn norm_of<T: GradientFloat>(row: &[T], sum_of_squares: f64) -> f64 {
    // Squares of f32 stay within 1e-90 and 1e77. In f64, below 1e-280 some squares may have lost
    // bits, above f64::MAX is ∞.
    if (1e-280..=f64::MAX).contains(&sum_of_squares) || sum_of_squares.is_nan() {
        sum_of_squares.sqrt()
    } else {
        T::rescaled_norm(row)
    }
}

/// Segments of a row that are read side by side. Each is a separate stream for the memory (a single
/// one leaves the bus idle at every page) and a separate chain for the adder.
pub(super) const N_STREAMS: usize = 8;

/// Sum of squares of a row.
#[inline(always)]
pub(super) fn sum_of_squares_lanes<V: Lanes, T: GradientFloat>(row: &[T]) -> f64 {
    let Streams { segments, rest, tail } = streams(row);
    let mut totals = [V::splat(0.0); N_STREAMS];
    for j in 0..segments[0].len() {
        for (total, segment) in totals.iter_mut().zip(&segments) {
            *total = square_into(*total, &segment[j]);
        }
    }
    finish_squares(totals, rest, tail)
}

/// A row in pieces for side-by-side reading.
pub(super) struct Streams<'a, T> {
    /// Segments of equal length.
    pub(super) segments: [&'a [[T; 8]]; N_STREAMS],
    /// Chunks that are left over, fewer than segments.
    pub(super) rest: &'a [[T; 8]],
    /// Values that fill no chunk.
    pub(super) tail: &'a [T],
}

/// Cuts a row into pieces.
#[inline(always)]
pub(super) fn streams<T>(row: &[T]) -> Streams<'_, T> {
    let (chunks, tail) = row.as_chunks::<8>();
    let length = chunks.len() / N_STREAMS;
    // Equal lengths, stated once, let the compiler drop the checks in the loops over them.
    let segments = std::array::from_fn(|s| &chunks[s * length..][..length]);
    Streams { segments, rest: &chunks[N_STREAMS * length..], tail }
}

/// Adds what the streams left over and sums the lanes in a fixed order.
#[inline(always)]
pub(super) fn finish_squares<V: Lanes, T: GradientFloat>(
    mut totals: [V; N_STREAMS],
    rest: &[[T; 8]],
    tail: &[T],
) -> f64 {
    for (total, values) in totals.iter_mut().zip(rest) {
        *total = square_into(*total, values);
    }
    if !tail.is_empty() {
        let mut filled = [T::default(); 8];
        filled[..tail.len()].copy_from_slice(tail);
        totals[N_STREAMS - 1] = square_into(totals[N_STREAMS - 1], &filled);
    }
    sum_lanes(totals)
}

/// Sum over all lanes, in a fixed order.
#[inline(always)]
pub(super) fn sum_lanes<V: Lanes>(totals: [V; N_STREAMS]) -> f64 {
    let [a, b, c, d, e, f, g, h] = totals;
    let mut lanes = [0.0; 8];
    a.add(b).add(c.add(d)).add(e.add(f).add(g.add(h))).store(&mut lanes);
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

/// `total + values²`.
#[inline(always)]
pub(super) fn square_into<V: Lanes, T: GradientFloat>(total: V, values: &[T; 8]) -> V {
    let values: V = T::load(values);
    total.add(values.mul(values))
}
