//! Norms and weighted sum in one pass over memory.

use super::{
    GradientFloat, Gradients, KernelExecution, SumOrder, dispatch,
    execution::{run_all, split},
    norm::norm_of,
    weighted_sum::N_ROWS,
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
/// A few rows at a time: the squares bring them from memory into the cache, from which they are added
/// side by side. It pays where eight rows for each thread fit in the last-level cache.
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
        let mut active: Vec<(&[T], f64)> = Vec::with_capacity(N_ROWS);
        for (rows, norms) in rows.chunks(N_ROWS).zip(self.norms.chunks_mut(N_ROWS)) {
            active.clear();
            for (row, norm) in rows.iter().zip(norms) {
                *norm = norm_of(row, dispatch::sum_of_squares(set, row));
                let scale = scale(self.first + self.scales.len(), *norm);
                self.scales.push(scale);
                if scale != 0.0 {
                    active.push((row, T::round_scale(scale)));
                }
            }
            dispatch::add_scaled_rows(set, &active, &mut self.totals);
        }
    }
}
