//! What bounds the error of a group's clipped and noisy mean gradient, and the bound that clips best.

use serde::{Deserialize, Serialize};

use super::sampled::Sampled;

/// The two terms that bound how far a group's mean gradient is from the mean of its clipped gradients
/// plus noise, in expectation, and the clipping bound for which their sum is least.
///
/// `E‖G̃_k − G_k‖ ≤ (1/b_k) Σ ‖g_i − ḡ_i‖ + (1/b_k) E‖noise‖` over the `b_k` records of group `k` in a
/// batch.
///
/// **Units.** Those of a gradient's norm.
///
/// **Source.** Xu 2020, 4.2, Eq. 1 (after Amin 2019), for one coordinate with Laplace noise; here for
/// all `d` coordinates with Gaussian noise, whose expected length is at most `σS√d`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorBound {
    /// Mean over the group's records of the length of what clipping takes away.
    pub bias: Sampled,
    /// `σS√d / b_k`, with the expected `b_k`.
    pub noise: Sampled,
    /// [`best_bound`] of the group's gradients in a batch.
    pub best: Sampled,
}

/// The clipping bound `C` for which `(1/b) Σ max(0, ‖g_i‖ − C) + (1/b) w C` is least, the bias of
/// clipping `b` gradients and a noise of length `wC`.
///
/// The slope is `w` minus the number of longer gradients, so it is the `⌈w⌉`-th largest norm: the
/// `1 − w/b` quantile. `w` is `1/ε` for the paper's Laplace noise in one coordinate, and `σ√d` at most
/// for Gaussian noise in `d`.
///
/// **Edge cases.** Without noise (`w = 0`) the largest norm; 0 where the noise outweighs all gradients
/// (`⌈w⌉ > b`) and for an empty batch; norms that are not finite count as the largest ones.
///
/// **Source.** Xu 2020, 4.2 (after Amin 2019).
///
/// ```
/// use dp_train::analysis::best_bound;
///
/// // Two gradients clipped: the third largest of five.
/// assert_eq!(best_bound(&[1.0, 5.0, 2.0, 4.0, 3.0], 2.5), 3.0);
/// assert_eq!(best_bound(&[1.0, 5.0], 2.5), 0.0);
/// ```
pub fn best_bound(norms: &[f64], w: f64) -> f64 {
    let mut norms = norms.to_vec();
    norms.sort_by(|a, b| b.total_cmp(a));
    let position = w.ceil().max(1.0) - 1.0;
    // A NaN sorts first, as an infinite norm does.
    if position < norms.len() as f64 { norms[position as usize] } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Norms 1, 2, 4: without noise nothing is clipped; for w = 1 the slope is 0 between 2 and 4, and
    /// at 1.5 one gradient is clipped; three cannot pay for w = 3.2.
    #[test]
    fn by_hand() {
        let of = |w| best_bound(&[2.0, 4.0, 1.0], w);
        assert_eq!([0.0, 0.3, 1.0, 1.5, 3.0, 3.2].map(of), [4.0, 4.0, 4.0, 2.0, 1.0, 0.0]);
        assert_eq!(best_bound(&[], 1.0), 0.0);
        assert_eq!(best_bound(&[1.0, f64::INFINITY], 2.0), 1.0);
    }

    proptest! {
        /// No other bound has a smaller sum.
        #[test]
        fn it_is_the_least(norms in prop::collection::vec(0.0..10.0_f64, 0..30), w in 0.0..40.0_f64, other in 0.0..12.0_f64) {
            let sum = |c: f64| norms.iter().map(|norm| (norm - c).max(0.0)).sum::<f64>() + w * c;
            let best = best_bound(&norms, w);
            prop_assert!(sum(best) <= sum(other) + 1e-9, "{best}: {} > {}", sum(best), sum(other));
        }
    }
}
