//! Gaussian noise for a whole gradient.

use rand::CryptoRng;

use super::{
    GradientFloat, KernelExecution,
    execution::{run_all, split},
};
use crate::{
    ClipError,
    noise::{BLOCK, StepNoise},
};

/// Releases every value with noise `N(0, noise_std²)`, rounded exactly to a public grid of about
/// `noise_std / 256`.
///
/// A 256-bit key is drawn from `rng`, which must be cryptographic; the noise of a value then
/// depends on that key and on its place, so neither on the number of threads nor on the processor.
///
/// **Units.** `noise_std = noise_multiplier · bound`.
///
/// **Edge cases.** With `noise_std` 0 the values stay as they are; the key is drawn all the same,
/// so that the random stream advances alike. A value that is not finite stays so.
///
/// **Guarantee.** The release is post-processing of the Gaussian mechanism on the values as they
/// are: which numbers can come out does not depend on the data. See [`crate::noise`].
///
/// # Errors
/// [`ClipError::InvalidParameter`] if `noise_std` is negative or not finite.
///
/// ```
/// use dp_clipping::kernels::{KernelExecution, add_noise};
/// use dp_clipping::rand::SeedableRng;
/// let mut rng = dp_clipping::rand_chacha::ChaCha20Rng::seed_from_u64(1);
/// let mut values = vec![0.0_f32; 10_000];
/// add_noise(&mut values, 2.0, &mut rng, &KernelExecution::default())?;
/// let variance = values.iter().map(|v| v * v).sum::<f32>() / 10_000.0;
/// assert!((variance - 4.0).abs() < 0.3);
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
pub fn add_noise<T: GradientFloat>(
    values: &mut [T],
    noise_std: f64,
    rng: &mut dyn CryptoRng,
    execution: &KernelExecution,
) -> Result<(), ClipError> {
    crate::error::check("noise_std", noise_std, 0.0.., "a finite number of at least 0")?;
    let noise = StepNoise::draw(rng, noise_std);
    if noise_std == 0.0 {
        return Ok(());
    }
    // A normal costs as much as reading some 64 bytes.
    let ranges = split(values.len(), execution.threads_for(values.len() * 64), BLOCK);
    let mut rest = values;
    let mut jobs = Vec::new();
    for range in ranges {
        let (part, after) = rest.split_at_mut(range.len());
        rest = after;
        jobs.push((range.start / BLOCK, part));
    }
    run_all(jobs, |(first_block, values)| T::add_step_noise(&noise, first_block as u64, values));
    Ok(())
}
