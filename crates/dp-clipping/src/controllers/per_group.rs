//! Thresholds of the groups; see [`Controller::PerGroup`](super::Controller::PerGroup).

use serde::{Deserialize, Serialize};

use super::Control;
use crate::{ClipBatch, PublicContext, bound::clamp_threshold, count::Release};

/// The divisor of a group's noisy share of clipped gradients, `m̃_k/b̃_k`. Both are post-processing
/// of the same counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShareOf {
    /// The batch's share, `m̃/B` (Xu 2021, Algorithm 2).
    #[default]
    Batch,
    /// The mean of all groups' shares (Esipova's published code, which is said to follow Xu's). As
    /// there a group with `b̃_k = 0` has the share 1. `C_k ≤ C0·(1 + K)`.
    Groups,
}

pub(super) fn step(
    base: f64,
    share_of: ShareOf,
    noise_multiplier: f64,
    batch: &ClipBatch<'_>,
    context: &PublicContext,
    release: &mut dyn Release,
) -> Control {
    let n_groups = context.n_groups;
    // m_0..m_{K-1}, then o_0..o_{K-1}.
    let mut counts = vec![0.0; 2 * n_groups];
    for (norm, group) in batch.valid() {
        counts[if norm > base { group } else { n_groups + group }] += 1.0;
    }
    let query = release.release("norms above and within the base threshold, by group", &counts, 1.0, noise_multiplier);
    let thresholds = thresholds(base, share_of, &query.released, context.expected_batch_size);
    Control { thresholds, query: Some(query), next: None }
}

/// `C_k` from the released counts.
fn thresholds(base: f64, share_of: ShareOf, released: &[f64], expected_batch_size: f64) -> Vec<f64> {
    let clamped: Vec<f64> = released.iter().map(|count| count.floor().max(0.0)).collect();
    let (above, within) = clamped.split_at(clamped.len() / 2);
    let of_none = match share_of {
        ShareOf::Batch => 0.0,
        ShareOf::Groups => 1.0,
    };
    let share = |(&m, &o): (&f64, &f64)| if m + o == 0.0 { of_none } else { m / (m + o) };
    let shares: Vec<f64> = above.iter().zip(within).map(share).collect();
    let whole = match share_of {
        ShareOf::Batch => above.iter().sum::<f64>() / expected_batch_size,
        ShareOf::Groups => shares.iter().sum::<f64>() / shares.len() as f64,
    };
    // Without a clipped gradient every share is 0 as well.
    let raised = |share: &f64| if whole == 0.0 { base } else { clamp_threshold(base * (1.0 + share / whole)) };
    shares.iter().map(raised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_batch() {
        // B = 100, C0 = ½. Group 0: 20 of 80 above; group 1: 10 of 20 above. m̃ = 30, m̃/B = 0.3.
        // C_0 = ½(1 + 0.25/0.3) = 0.916 666…; C_1 = ½(1 + 0.5/0.3) = 1.333 333…
        let c = thresholds(0.5, ShareOf::Batch, &[20.0, 10.0, 60.0, 10.0], 100.0);
        assert!((c[0] - 11.0 / 12.0).abs() < 1e-15);
        assert!((c[1] - 4.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn negative_counts_and_empty_groups_fall_back() {
        // Group 1's counts are negative: b̃_1 = 0. Group 0: floor(3.7) = 3 above, floor(5.2) = 5
        // within.
        let c = thresholds(1.0, ShareOf::Batch, &[3.7, -2.0, 5.2, -0.1], 10.0);
        assert!((c[0] - (1.0 + (3.0 / 8.0) / (3.0 / 10.0))).abs() < 1e-15);
        assert_eq!(c[1], 1.0);
        // Nothing above at all: m̃ = 0.
        assert_eq!(thresholds(1.0, ShareOf::Batch, &[0.9, -4.0, 8.0, 3.0], 10.0), vec![1.0, 1.0]);
    }

    #[test]
    fn shares_of_the_groups_mean() {
        // As above: shares ¼ and ½, mean 3/8. C_0 = ½(1 + ⅔), C_1 = ½(1 + 4/3).
        let c = thresholds(0.5, ShareOf::Groups, &[20.0, 10.0, 60.0, 10.0], 100.0);
        assert!((c[0] - 5.0 / 6.0).abs() < 1e-15 && (c[1] - 7.0 / 6.0).abs() < 1e-15, "{c:?}");
        // Group 1 has no count and so the share 1: mean 11/16, C_0 = 1 + 6/11, C_1 = 1 + 16/11.
        let c = thresholds(1.0, ShareOf::Groups, &[3.7, -2.0, 5.2, -0.1], 10.0);
        assert!((c[0] - 17.0 / 11.0).abs() < 1e-15 && (c[1] - 27.0 / 11.0).abs() < 1e-15, "{c:?}");
        assert_eq!(thresholds(1.0, ShareOf::Groups, &[0.9, -4.0, 8.0, 3.0], 10.0), vec![1.0, 1.0]);
    }
}
