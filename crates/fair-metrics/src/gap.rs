//! Differences between every two groups.

use serde::{Deserialize, Serialize};

use crate::error::{check_defined_finite, check_len};
use crate::{Estimate, MetricError};

/// The difference between two groups.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PairGap {
    /// First group.
    pub a: usize,
    /// Second group, `a < b`.
    pub b: usize,
    /// `|v_a − v_b|`; `None` where either is undefined.
    pub gap: Option<f64>,
}

/// The absolute difference of every two groups, in the order (0,1), (0,2), …, (1,2), ….
///
/// # Shapes
/// `values` is `[groups]`; returns `groups·(groups−1)/2` pairs.
///
/// # Errors
/// [`MetricError::NotFinite`] names the group, or the pair whose gap overflows.
///
/// # Source
/// Esipova 2023, after Eq. 1 and 2 (two groups); the K-group form keeps every pair.
///
/// # Example
/// ```
/// use fair_metrics::{largest_gap, pairwise_gaps};
///
/// let gaps = pairwise_gaps(&[Some(0.5), Some(0.25), Some(1.0)])?;
/// assert_eq!(gaps.len(), 3);
/// let largest = largest_gap(&gaps).unwrap();
/// assert_eq!((largest.a, largest.b, largest.gap), (1, 2, Some(0.75)));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn pairwise_gaps(values: &[Option<f64>]) -> Result<Vec<PairGap>, MetricError> {
    check_defined_finite("values", values)?;
    let gaps: Vec<PairGap> = pairs(values.len())
        .map(|(a, b)| PairGap { a, b, gap: values[a].zip(values[b]).map(|(x, y)| (x - y).abs()) })
        .collect();
    check_defined_finite("gaps", &gaps.iter().map(|pair| pair.gap).collect::<Vec<_>>())?;
    Ok(gaps)
}

/// The pair with the largest gap; the first of them on a tie, `None` if no gap is defined.
pub fn largest_gap(gaps: &[PairGap]) -> Option<PairGap> {
    gaps.iter().filter(|pair| pair.gap.is_some()).copied().reduce(
        |best, pair| {
            if pair.gap > best.gap { pair } else { best }
        },
    )
}

/// The difference between two groups over seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PairGapEstimate {
    /// First group.
    pub a: usize,
    /// Second group, `a < b`.
    pub b: usize,
    /// The signed difference `v_a − v_b`: mean and standard error over seeds.
    pub difference: Estimate,
    /// The *gap of the means*, `|mean of v_a − v_b|`; its standard error is that of `difference`.
    pub gap: Option<f64>,
    /// The *mean of the gaps*, `mean of |v_a − v_b|`: another quantity, larger by up to 0.8
    /// standard deviations of a seed. Methods are compared by
    /// [`SeedValues::gap`](crate::SeedValues::gap), not by it.
    pub mean_of_gaps: Estimate,
}

/// The gap of every two groups over seeds: the gap *of the expectations*, as the papers define it,
/// not the mean of the seeds' gaps, which is biased upwards when groups differ by little.
///
/// # Shapes
/// `by_seed` is `[seeds][groups]`; returns `groups·(groups−1)/2` pairs.
///
/// # Edge cases
/// A seed in which either group is undefined is left out of the pair's mean and counted in its
/// `n_undefined`.
///
/// # Errors
/// [`MetricError::LengthMismatch`] if seeds differ in the number of groups;
/// [`MetricError::NotFinite`] names the group.
///
/// # Source
/// Esipova 2023, after Eq. 1 and 2: `π_{a,b} = |π_a − π_b|` with `π` an expectation.
///
/// # Example
/// ```
/// let gaps = fair_metrics::gaps_over_seeds(&[vec![Some(0.5), Some(0.25)], vec![Some(0.0), Some(0.25)]])?;
/// assert_eq!(gaps[0].gap, Some(0.0)); // (0.25 − 0.25) / 2
/// assert_eq!(gaps[0].mean_of_gaps.mean, Some(0.25)); // |0.25| and |−0.25|
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn gaps_over_seeds(by_seed: &[Vec<Option<f64>>]) -> Result<Vec<PairGapEstimate>, MetricError> {
    let n_groups = by_seed.first().map_or(0, Vec::len);
    for values in by_seed {
        check_len("by_seed", values.len(), "by_seed[0]", n_groups)?;
        check_defined_finite("by_seed", values)?;
    }
    pairs(n_groups)
        .map(|(a, b)| {
            let signed: Vec<Option<f64>> =
                by_seed.iter().map(|values| values[a].zip(values[b]).map(|(x, y)| x - y)).collect();
            let difference = Estimate::over_seeds(&signed)?;
            let gap = difference.mean.map(f64::abs);
            let per_seed: Vec<Option<f64>> = signed.iter().map(|d| d.map(f64::abs)).collect();
            Ok(PairGapEstimate { a, b, difference, gap, mean_of_gaps: Estimate::over_seeds(&per_seed)? })
        })
        .collect()
}

/// Every `(a, b)` with `a < b < n`.
fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |a| (a + 1..n).map(move |b| (a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_groups_give_undefined_pairs() {
        let gaps = pairwise_gaps(&[Some(0.5), None]).unwrap();
        assert_eq!(gaps, [PairGap { a: 0, b: 1, gap: None }]);
        assert_eq!(largest_gap(&gaps), None);
        assert_eq!(largest_gap(&[]), None);
    }

    #[test]
    fn a_seed_without_the_group_is_counted() {
        let gaps = gaps_over_seeds(&[vec![Some(1.0), None], vec![Some(1.0), Some(0.25)]]).unwrap();
        assert_eq!(gaps[0].gap, Some(0.75));
        assert_eq!((gaps[0].difference.n, gaps[0].difference.n_undefined), (1, 1));
    }

    #[test]
    fn a_gap_that_overflows_is_an_error() {
        assert!(matches!(
            pairwise_gaps(&[Some(f64::MAX), Some(f64::MIN)]),
            Err(MetricError::NotFinite { parameter: "gaps", index: 0, .. })
        ));
        assert!(gaps_over_seeds(&[vec![Some(f64::MAX), Some(f64::MIN)]]).is_err());
    }

    #[test]
    fn seeds_must_agree_on_the_number_of_groups() {
        assert!(gaps_over_seeds(&[vec![Some(1.0)], vec![]]).is_err());
    }
}
