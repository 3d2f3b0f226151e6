//! The geometric update; see [`Controller::Geometric`](super::Controller::Geometric).

use serde::{Deserialize, Serialize};

use crate::{ClipBatch, CountQuery, bound::clamp_threshold, count::Release};

/// Which norms are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Norms above `τC`: a fraction above the target raises the threshold.
    Above,
    /// Norms of at most `τC`: a fraction above the target lowers the threshold.
    Within,
}

/// How one record enters the count.
///
/// At the same noise multiplier a centred count gets half the noise of a raw one. But centred bits
/// see the random size of a Poisson batch as `(½ − b/|B|)` of its deviation, raw ones as `b/|B|`.
/// Centring pays where the fraction is near ½ and the batch is small against the noise (Andrew's
/// median), and harms where the fraction is near 0 (Esipova's upper bound).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bits {
    /// 0 or 1: sensitivity 1.
    Raw,
    /// −½ or ½: sensitivity ½; the released fraction gets the constant ½ back.
    Centred,
}

/// The noisy fraction `b̃` of norms on the counted side of `limit`.
pub(super) fn release_fraction(
    limit: f64,
    (counted, bits): (Counted, Bits),
    noise_multiplier: f64,
    batch: &ClipBatch<'_>,
    expected_batch_size: f64,
    release: &mut dyn Release,
) -> (f64, CountQuery) {
    let is_counted = |norm: f64| match counted {
        Counted::Above => norm > limit,
        Counted::Within => norm <= limit,
    };
    let (centre, sensitivity) = match bits {
        Bits::Raw => (0.0, 1.0),
        Bits::Centred => (0.5, 0.5),
    };
    let exact: f64 = batch.valid().map(|(norm, _)| f64::from(u8::from(is_counted(norm))) - centre).sum();
    let name = match counted {
        Counted::Above => "norms above the threshold",
        Counted::Within => "norms within the threshold",
    };
    let query = release.release(name, &[exact], sensitivity, noise_multiplier);
    (query.released[0] / expected_batch_size + centre, query)
}

/// The threshold after a released fraction.
pub(super) fn next_threshold(
    current: f64,
    fraction: f64,
    counted: Counted,
    target: f64,
    rate: f64,
    lower_bound: f64,
) -> f64 {
    let exponent = match counted {
        Counted::Above => rate * (fraction - target),
        Counted::Within => -rate * (fraction - target),
    };
    clamp_threshold((current * exponent.exp()).max(lower_bound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Fresh;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    fn noiseless(norms: &[f64], limit: f64, counted: Counted, bits: Bits) -> f64 {
        let groups = vec![0; norms.len()];
        let batch = ClipBatch::new(norms, &groups);
        let mut rng = ChaCha20Rng::seed_from_u64(0);
        release_fraction(limit, (counted, bits), 0.0, &batch, 4.0, &mut Fresh(&mut rng)).0
    }

    #[test]
    fn fractions_by_hand() {
        // B = 4; norms above 1: {2, 3}; at 1 exactly: within.
        let norms = [0.5, 1.0, 2.0, 3.0];
        assert_eq!(noiseless(&norms, 1.0, Counted::Above, Bits::Raw), 0.5);
        assert_eq!(noiseless(&norms, 1.0, Counted::Within, Bits::Raw), 0.5);
        // A batch of 3 where 4 were expected: raw 1/4; centred (½ − ½ − ½)/4 + ½ = 0.375.
        assert_eq!(noiseless(&norms[..3], 1.0, Counted::Above, Bits::Raw), 0.25);
        assert_eq!(noiseless(&norms[..3], 1.0, Counted::Above, Bits::Centred), 0.375);
        // A NaN is absent, not "above" and not "within".
        assert_eq!(noiseless(&[f64::NAN, 2.0], 1.0, Counted::Above, Bits::Raw), 0.25);
        assert_eq!(noiseless(&[f64::NAN, 2.0], 1.0, Counted::Within, Bits::Raw), 0.0);
    }

    /// Zero-out: a blanked record, whose norm is not a number, adds 0 to the count, not −½; so
    /// either count moves by ½ at most.
    #[test]
    fn a_blanked_record_adds_nothing_to_a_centred_count() {
        for counted in [Counted::Above, Counted::Within] {
            let fraction = |norm| noiseless(&[0.5, 2.0, norm], 1.0, counted, Bits::Centred);
            let blanked = fraction(f64::NAN);
            // The other two add ½ and −½, over B = 4, and the constant ½.
            assert_eq!(blanked, 0.5);
            for norm in [0.5, 2.0] {
                assert_eq!((4.0 * (fraction(norm) - blanked)).abs(), 0.5);
            }
        }
    }

    #[test]
    fn updates_by_hand() {
        // Esipova: nothing above, η_Z = 0.1: Z·e^(−0.1).
        let next = next_threshold(50.0, 0.0, Counted::Above, 0.1, 1.0, 0.0);
        assert!((next - 50.0 * (-0.1_f64).exp()).abs() < 1e-12);
        // Zhao: fraction 0, γ = ½, η = 0.2: C·e^(−0.1), stopped by the lower bound.
        assert_eq!(next_threshold(1.0, 0.0, Counted::Above, 0.5, 0.2, 0.95), 0.95);
        // Andrew: everything within, γ = ½, η = 0.2: C·e^(−0.1).
        let next = next_threshold(1.0, 1.0, Counted::Within, 0.5, 0.2, 0.0);
        assert!((next - (-0.1_f64).exp()).abs() < 1e-15);
    }

    #[test]
    fn thresholds_cannot_run_away() {
        assert_eq!(next_threshold(1.0, 1e6, Counted::Above, 0.5, 1.0, 0.0), *crate::bound::THRESHOLD_RANGE.end());
        assert_eq!(next_threshold(1.0, -1e6, Counted::Above, 0.5, 1.0, 0.0), *crate::bound::THRESHOLD_RANGE.start());
    }
}
