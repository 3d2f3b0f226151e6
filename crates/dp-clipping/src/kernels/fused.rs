//! Norms and weighted sum in one pass over memory.

use super::{
    GradientFloat, Gradients, KernelExecution, SumOrder, dispatch,
    execution::{run_all, split},
    lanes::Lanes,
    norm::{N_STREAMS, Streams, finish_squares, norm_of, square_into, streams, sum_of_squares_lanes},
};
use crate::{
    ClipError,
    bound::cap,
    error::{check, check_lengths},
};

/// Parts of a batch under [`SumOrder::Fixed`], whatever the number of threads.
const FIXED_PARTS: usize = 8;

/// Norms, scales and `out[j] = Σ_i s_i·gradients[i, j]` in one pass, for a scale that follows from
/// the record alone. A scale with `scale·norm` above `bound` is lowered.
///
/// While one row is added from the cache, the next one is read from memory and squared. It pays
/// where two rows and the totals fit in the second-level cache (about 100 000 parameters).
///
/// **Shapes.** `out`: `[params]`, overwritten. Returns norms and scales, `[batch]` each.
///
/// **Edge cases.** A norm that is not finite, and a scale that is negative or NaN, give scale 0. A
/// row with scale 0 is not added.
///
/// **Headroom.** The limit is `bound·(1 − 2⁻¹⁸)`: four millionths of the bound stay free, which covers
/// the rounding of the norm, of the scale and of each product three times over. A row's contribution
/// therefore stays within the bound in f32 too. Compared with exact clipping, sums are smaller by
/// that share.
///
/// # Errors
/// [`ClipError::LengthMismatch`] if a length does not fit; [`ClipError::InvalidParameter`] for a bound
/// that is negative or not finite.
///
/// ```
/// use dp_clipping::kernels::{KernelExecution, Gradients, clip_and_sum};
/// let gradients = Gradients::from_slice(&[3.0, 4.0, 0.3, 0.4], 2)?;
/// let mut sum = [0.0_f64; 2];
/// let (norms, scales) = clip_and_sum(&gradients, |_, _| 1.0, 1.0, &mut sum, &KernelExecution::default())?;
/// assert_eq!((norms[0], scales[1]), (5.0, 1.0));
/// assert!((sum[0] - 0.9).abs() < 1e-5 && (sum[1] - 1.2).abs() < 1e-5);
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
pub fn clip_and_sum<T: GradientFloat>(
    gradients: &Gradients<'_, T>,
    scale: impl Fn(usize, f64) -> f64 + Sync,
    bound: f64,
    out: &mut [T],
    execution: &KernelExecution,
) -> Result<(Vec<f64>, Vec<f64>), ClipError> {
    check_lengths("out", out.len(), "parameters", gradients.n_params())?;
    check("bound", bound, 0.0.., "a finite number of at least 0")?;
    let scale = |record: usize, norm: f64| cap(scale(record, norm), norm, bound);
    let rows = gradients.rows();
    let n_threads = execution.threads_for(size_of_val(out) * rows.len());
    let n_parts = match execution.sum_order {
        SumOrder::PerThreadCount => n_threads,
        SumOrder::Fixed => FIXED_PARTS,
    };
    let mut parts: Vec<PartialSum> = split(rows.len(), n_parts, 1)
        .into_iter()
        .map(|records| PartialSum {
            first: records.start,
            norms: vec![0.0; records.len()],
            scales: vec![],
            totals: vec![],
        })
        .collect();
    let parts_per_thread = parts.len().div_ceil(n_threads).max(1);
    run_all(parts.chunks_mut(parts_per_thread).collect(), |parts: &mut [PartialSum]| {
        for part in parts {
            part.run(&rows[part.first..part.first + part.norms.len()], gradients.n_params(), &scale, execution);
        }
    });

    let (mut norms, mut scales) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for part in &mut parts {
        norms.append(&mut part.norms);
        scales.append(&mut part.scales);
    }
    for (j, out) in out.iter_mut().enumerate() {
        *out = T::from_f64(parts.iter().map(|part| part.totals[j]).sum());
    }
    Ok((norms, scales))
}

/// Rows that are summed in the gradients' own precision before they join the f64 totals.
const BLOCK_ROWS: usize = 32;

/// Consecutive records with their sum.
struct PartialSum {
    first: usize,
    norms: Vec<f64>,
    scales: Vec<f64>,
    totals: Vec<f64>,
}

impl PartialSum {
    fn run<T: GradientFloat>(
        &mut self,
        rows: &[&[T]],
        n_params: usize,
        scale: &(impl Fn(usize, f64) -> f64 + Sync),
        execution: &KernelExecution,
    ) {
        let set = execution.instruction_set;
        self.totals = vec![0.0; n_params];
        let mut block = vec![T::default(); n_params];
        let Some(first) = rows.first() else { return };
        let mut sum_of_squares = dispatch::sum_of_squares(set, first);
        for (i, row) in rows.iter().enumerate() {
            let norm = norm_of(row, sum_of_squares);
            let exact_scale = scale(self.first + i, norm);
            self.norms[i] = norm;
            self.scales.push(exact_scale);
            // After the last row there is nothing to square; squaring it again is harmless.
            let next = rows.get(i + 1).unwrap_or(row);
            sum_of_squares = if exact_scale == 0.0 {
                dispatch::sum_of_squares(set, next)
            } else {
                dispatch::add_and_square(set, row, T::from_f64(exact_scale), &mut block, next)
            };
            if (i + 1) % BLOCK_ROWS == 0 || i + 1 == rows.len() {
                for (total, value) in self.totals.iter_mut().zip(&mut block) {
                    *total += std::mem::take(value).into();
                }
            }
        }
    }
}

/// `totals += scale·row` and the sum of squares of `next`, which has the length of `row`.
#[inline(always)]
pub(super) fn add_and_square_lanes<V: Lanes, T: GradientFloat>(
    row: &[T],
    scale: T,
    totals: &mut [T],
    next: &[T],
) -> f64 {
    let (row_chunks, row_tail) = row.as_chunks::<8>();
    let (total_chunks, total_tail) = totals.as_chunks_mut::<8>();
    let squares = if V::MANY_REGISTERS {
        add_and_square_streams::<V, T>(row_chunks, scale, total_chunks, next)
    } else {
        for (totals, values) in total_chunks.iter_mut().zip(row_chunks) {
            T::add_scaled::<V>(totals, scale, values);
        }
        sum_of_squares_lanes::<V, T>(next)
    };
    for (total, &value) in total_tail.iter_mut().zip(row_tail) {
        *total = T::from_f64((*total).into() + T::from_f64(scale.into() * value.into()).into());
    }
    squares
}

/// Both at once, so that reading `next` from memory hides behind adding `row` from the cache.
#[inline(always)]
fn add_and_square_streams<V: Lanes, T: GradientFloat>(
    row: &[[T; 8]],
    scale: T,
    totals: &mut [[T; 8]],
    next: &[T],
) -> f64 {
    let Streams { segments, rest, tail } = streams(next);
    let length = segments[0].len();
    let mut squares = [V::splat(0.0); N_STREAMS];
    let (streamed, total_rest) = totals.split_at_mut(N_STREAMS * length);
    let row_segments: [&[[T; 8]]; N_STREAMS] = std::array::from_fn(|s| &row[s * length..][..length]);
    for j in 0..length {
        for s in 0..N_STREAMS {
            T::add_scaled::<V>(&mut streamed[s * length + j], scale, &row_segments[s][j]);
            squares[s] = square_into(squares[s], &segments[s][j]);
        }
    }
    for (totals, values) in total_rest.iter_mut().zip(&row[N_STREAMS * length..]) {
        T::add_scaled::<V>(totals, scale, values);
    }
    finish_squares(squares, rest, tail)
}
