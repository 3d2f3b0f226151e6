//! Weights that follow noisy mean losses; see [`Weights::Multiplicative`](super::Weights::Multiplicative).

use super::{Weighting, clamp_weight, share_of_bound};
use crate::{ClipBatch, PublicContext, count::Release};

pub(super) struct Settings {
    pub(super) rate: f64,
    pub(super) loss_bound: f64,
    pub(super) noise_multiplier: f64,
}

pub(super) fn step(
    settings: &Settings,
    memory: Option<&[f64]>,
    batch: &ClipBatch<'_>,
    context: &PublicContext,
    release: &mut dyn Release,
) -> Weighting {
    let &Settings { loss_bound, noise_multiplier, .. } = settings;
    let (mut sizes, mut losses) = (vec![0.0; context.n_groups], vec![0.0; context.n_groups]);
    for (loss, group) in batch.valid_losses() {
        sizes[group] += 1.0;
        losses[group] += share_of_bound(loss, loss_bound);
    }
    let sizes = release.release("group sizes", &sizes, 1.0, noise_multiplier);
    let losses = release.release("losses over their bound, by group", &losses, 1.0, noise_multiplier);
    let weights = memory.map_or_else(|| vec![1.0; context.n_groups], <[f64]>::to_vec);
    let next = next(&weights, settings, &sizes.released, &losses.released);
    Weighting { weights, queries: vec![sizes, losses], next: Some(next) }
}

/// The weights of the next step from what this one released.
fn next(weights: &[f64], settings: &Settings, sizes: &[f64], losses: &[f64]) -> Vec<f64> {
    let means: Vec<f64> = sizes
        .iter()
        .zip(losses)
        .map(|(size, loss)| settings.loss_bound * (loss / size.max(1.0)).clamp(0.0, 1.0))
        .collect();
    // Less the largest, which changes no quotient: no exponential is then above 1.
    let largest = means.iter().copied().fold(0.0, f64::max);
    let raised: Vec<f64> =
        weights.iter().zip(&means).map(|(weight, mean)| weight * (settings.rate * (mean - largest)).exp()).collect();
    let mean = raised.iter().sum::<f64>() / raised.len() as f64;
    raised.iter().map(|weight| clamp_weight(weight / mean)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { rate: 0.5, loss_bound: 2.0, noise_multiplier: 0.0 };

    #[test]
    fn shares_by_hand() {
        let shares = [-1.0, 0.0, 0.5, 2.0, 1e300, f64::INFINITY, f64::NAN].map(|loss| share_of_bound(loss, 2.0));
        assert_eq!(shares, [0.0, 0.0, 0.25, 1.0, 1.0, 1.0, 0.0]);
        // Rounded down to a multiple of 2⁻²⁰ of the bound: 0.1·2²⁰ = 104,857.6.
        assert_eq!(share_of_bound(0.2, 2.0), 104_857.0 / 1_048_576.0);
    }

    #[test]
    fn updates_by_hand() {
        // Mean losses 2·(1/4) = ½ and 2·(3/4) = 3/2: factors e^(−½) and 1, divided by their mean.
        let (low, mean) = ((-0.5_f64).exp(), f64::midpoint(1.0, (-0.5_f64).exp()));
        let weights = next(&[1.0, 1.0], &SETTINGS, &[8.0, 4.0], &[2.0, 3.0]);
        assert!((weights[0] - low / mean).abs() < 1e-15 && (weights[1] - 1.0 / mean).abs() < 1e-15, "{weights:?}");
        assert!((weights.iter().sum::<f64>() - 2.0).abs() < 1e-15);
        // Noise: a negative sum is 0, a size below 1 is 1, and no mean exceeds the bound.
        let noisy = next(&[1.0, 1.0], &SETTINGS, &[-3.0, 4.0], &[9.0, -1.0]);
        let low = (-1.0_f64).exp();
        assert!((noisy[1] - 2.0 * low / (1.0 + low)).abs() < 1e-15, "{noisy:?}");
    }

    #[test]
    fn weights_stay_in_range() {
        let steep = Settings { rate: 1e300, loss_bound: 1e18, noise_multiplier: 0.0 };
        assert_eq!(next(&[1.0, 1.0], &steep, &[1.0, 1.0], &[0.0, 1.0]), [1.0 / 1_073_741_824.0, 2.0]);
        assert_eq!(next(&[1.0], &SETTINGS, &[5.0], &[1.0]), [1.0]);
    }
}
