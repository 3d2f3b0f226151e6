//! A method applied to gradients in memory.

use rand::CryptoRng;

use crate::{
    AdvanceScale, ClipBatch, ClipError, ClipMethod, Clipped,
    kernels::{GradientFloat, Gradients, KernelExecution, clip_and_sum, norms, scale_and_sum},
};

/// Clips per-sample gradients with a method and sums them: `sum = Σ s_i g_i`.
///
/// **Sensitivity.** A blanked record changes the sum by at most [`Clipped::bound`] in f64. In f32 the
/// bound holds up to rounding of the sum: for `n` records it may be exceeded by `n 2⁻²³` of itself,
/// 1.2e-3 for 10,000, and 9,999 records of 1,000 parameters that are all alike exceed it by 8e-4. If
/// you need the bound in f32, calibrate the noise to that much more, or sum in f64.
///
/// The bound is that of the method's answer, whatever its scales are: a scale that breaks it is
/// lowered, and [`Clipped::n_capped`] counts the record.
///
/// One pass over memory where the method knows its scales in advance
/// ([`ClipMethod::scale_in_advance`]), else two.
///
/// **Shapes.** `gradients`: `[batch, params]`, `groups`: `[batch]`, `sum`: `[params]`, overwritten.
///
/// **Edge cases.** An empty batch gives a sum of zeros, to which the noise is still added.
///
/// # Errors
/// [`ClipError::LengthMismatch`] and [`ClipError::GroupOutOfRange`] for inputs that do not fit
/// together; [`ClipError::InvalidParameter`] for a bound that is negative or not finite.
///
/// ```
/// use dp_clipping::{PresetParams, PublicContext, clip_gradients, kernels::{KernelExecution, Gradients}, registry};
/// use dp_clipping::rand::SeedableRng;
/// let context = PublicContext { n_groups: 1, expected_batch_size: 2.0, noise_multiplier: 1.0 };
/// let mut method = registry::find("dpsgd")?.default_config().build(&context)?;
/// let gradients = Gradients::from_slice(&[3.0_f32, 4.0, 0.3, 0.4], 2)?;
/// let mut rng = dp_clipping::rand_chacha::ChaCha20Rng::seed_from_u64(7);
/// let mut sum = [0.0; 2];
/// let clipped = clip_gradients(&mut *method, &gradients, &[0, 0], &mut rng, &mut sum, &KernelExecution::default())?;
/// assert_eq!(clipped.bound, 1.0);
/// // (3, 4)/5 + (0.3, 0.4)
/// assert!((sum[0] - 0.9).abs() < 1e-5 && (sum[1] - 1.2).abs() < 1e-5);
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
pub fn clip_gradients<T: GradientFloat>(
    method: &mut dyn ClipMethod,
    gradients: &Gradients<'_, T>,
    groups: &[usize],
    rng: &mut dyn CryptoRng,
    sum: &mut [T],
    execution: &KernelExecution,
) -> Result<Clipped, ClipError> {
    crate::error::check_lengths("gradients", gradients.n_records(), "groups", groups.len())?;
    // Checked before the method moves on to the next step.
    crate::error::check_lengths("sum", sum.len(), "parameters", gradients.n_params())?;

    let in_advance: Option<Vec<AdvanceScale>> = groups.iter().map(|&group| method.scale_in_advance(group)).collect();
    let Some(in_advance) = in_advance else {
        let norms = norms(gradients, execution);
        let clipped = bounded(method, &ClipBatch::new(&norms, groups), rng)?;
        scale_and_sum(gradients, &clipped.scales, sum, execution)?;
        return Ok(clipped);
    };
    let bound = in_advance.iter().map(AdvanceScale::bound).fold(0.0, f64::max);
    let scale = |record: usize, norm| in_advance[record].scale(norm);
    let (norms, scales) = clip_and_sum(gradients, scale, bound, sum, execution)?;
    let clipped = bounded(method, &ClipBatch::new(&norms, groups), rng)?;
    if clipped.scales != scales {
        // The method did not keep its word; its answer counts.
        scale_and_sum(gradients, &clipped.scales, sum, execution)?;
    }
    Ok(clipped)
}

/// The method's answer, held to its own bounds.
fn bounded(method: &mut dyn ClipMethod, batch: &ClipBatch<'_>, rng: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
    let mut clipped = method.clip(batch, rng)?;
    clipped.enforce(batch)?;
    Ok(clipped)
}
