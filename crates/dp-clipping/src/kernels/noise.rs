//! Gaussian noise for a whole gradient.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{
    Element, Execution,
    execution::{run_all, split},
};
use crate::ClipError;

/// Values that share a random stream.
const STREAM: usize = 1024;

/// Adds `N(0, noise_std²)` to every value.
///
/// A 256-bit key is drawn from `rng`; every 1024 values then have a ChaCha12 stream of their own, so the noise does
/// not depend on the number of threads. Noise is computed in f64 and added before the one rounding to the values'
/// precision.
///
/// **Units.** `noise_std = noise_multiplier · bound`.
///
/// **Edge cases.** With `noise_std` 0 the values stay as they are; the key is drawn all the same, so that the random
/// stream advances alike.
///
/// **Guarantee.** As in every floating-point implementation, which sums can be reached depends on the data (Mironov
/// 2012); this is not corrected.
///
/// # Errors
/// [`ClipError::InvalidParameter`] if `noise_std` is negative or not finite.
///
/// ```
/// use dp_clipping::kernels::{Execution, add_noise};
/// use rand::SeedableRng;
/// let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(1);
/// let mut values = vec![0.0_f32; 10_000];
/// add_noise(&mut values, 2.0, &mut rng, &Execution::default())?;
/// let variance = values.iter().map(|v| v * v).sum::<f32>() / 10_000.0;
/// assert!((variance - 4.0).abs() < 0.3);
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
pub fn add_noise<T: Element>(
    values: &mut [T],
    noise_std: f64,
    rng: &mut dyn RngCore,
    execution: &Execution,
) -> Result<(), ClipError> {
    crate::error::check("noise_std", noise_std, 0.0.., "a finite number of at least 0")?;
    let mut key = <ChaCha12Rng as SeedableRng>::Seed::default();
    rng.fill_bytes(&mut key);
    if noise_std == 0.0 {
        return Ok(());
    }
    // A normal costs as much as reading some 64 bytes.
    let ranges = split(values.len(), execution.threads_for(values.len() * 64), STREAM);
    let mut rest = values;
    let mut jobs = Vec::new();
    for range in ranges {
        let (part, after) = rest.split_at_mut(range.len());
        rest = after;
        jobs.push((range.start / STREAM, part));
    }
    run_all(jobs, |(first_stream, values)| {
        for (index, values) in values.chunks_mut(STREAM).enumerate() {
            let mut stream = ChaCha12Rng::from_seed(key);
            stream.set_stream((first_stream + index) as u64);
            for value in values {
                let normal: f64 = StandardNormal.sample(&mut stream);
                *value = T::from_f64((*value).into() + noise_std * normal);
            }
        }
    });
    Ok(())
}
