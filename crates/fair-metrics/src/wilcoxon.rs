//! The Wilcoxon signed-rank test for paired values.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::error::{check_finite, check_len};

/// Up to this many non-zero differences the null distribution is enumerated exactly.
///
/// The recursion costs `n·n(n+1)` additions: 8 million at the limit.
const EXACT_LIMIT: usize = 200;

/// Share of the largest value below which differences are equal: far above rounding errors, far
/// below what an experiment resolves.
const RESOLUTION: f64 = 1e-9;

/// The alternative hypothesis about the differences `x − y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alternative {
    /// `x` tends to be smaller than `y`.
    Less,
    /// `x` tends to be larger than `y`.
    Greater,
    /// `x` and `y` differ in either direction.
    TwoSided,
}

/// How the p-value was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WilcoxonMethod {
    /// All `2ⁿ` sign patterns of the ranks at hand, ties included.
    Exact,
    /// Normal approximation with the variance corrected for ties and a continuity correction of ½.
    NormalApproximation,
}

/// Outcome of a Wilcoxon signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Wilcoxon {
    /// Sum of the ranks of the positive differences, W⁺.
    pub rank_sum_positive: f64,
    /// Sum of the ranks of the negative differences, W⁻.
    pub rank_sum_negative: f64,
    /// Non-zero differences, the ones that are ranked.
    pub n: usize,
    /// Differences of zero, left out as Wilcoxon did.
    pub n_zero: usize,
    /// The alternative that was tested.
    pub alternative: Alternative,
    /// How `p_value` was computed.
    pub method: WilcoxonMethod,
    /// Probability, under symmetry of the differences around zero, of rank sums at least as
    /// extreme.
    pub p_value: f64,
    /// The least p-value that `n` non-zero differences can give: `2⁻ⁿ` one-sided, twice that
    /// two-sided.
    pub smallest_p_value: f64,
}

/// Tests whether paired values differ: the differences `x − y` are ranked by size, ties sharing the
/// mean rank.
///
/// # Shapes
/// Both `[pairs]`.
///
/// # Edge cases
/// Zero differences are left out and counted. Without any non-zero difference there is no evidence
/// and the p-value is 1. Differences tie, or are zero, when they are equal to nine digits of the
/// largest value: `0.3 − 0.2` and `0.2 − 0.1` are equal in decimals and not as floating-point
/// numbers, and a rank must not hang on that. With ties the exact distribution is that of the ranks
/// at hand, where some packages switch to the normal approximation. Above 200 non-zero
/// differences the normal approximation is used; [`Wilcoxon::method`] says which.
///
/// # Errors
/// [`MetricError::LengthMismatch`]; [`MetricError::NotFinite`] names the value;
/// [`MetricError::TooFew`] without pairs.
///
/// # Source
/// Wilcoxon 1945; used one-sided by Esipova 2023, section 6, and pairwise by Soleymani 2025.
///
/// # Example
/// ```
/// use fair_metrics::{Alternative, wilcoxon_signed_rank};
///
/// // Five seeds, all better: the least p-value that five seeds can give is 1/32.
/// let ours = [0.1, 0.2, 0.1, 0.3, 0.2];
/// let theirs = [0.5, 0.7, 0.7, 1.0, 1.0];
/// let test = wilcoxon_signed_rank(&ours, &theirs, Alternative::Less)?;
/// assert_eq!(test.p_value, 1.0 / 32.0);
/// assert_eq!(test.smallest_p_value, 1.0 / 32.0);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn wilcoxon_signed_rank(x: &[f64], y: &[f64], alternative: Alternative) -> Result<Wilcoxon, MetricError> {
    check_len("y", y.len(), "x", x.len())?;
    if x.is_empty() {
        return Err(MetricError::TooFew { parameter: "x", length: 0, needed: 1 });
    }
    check_finite("x", x)?;
    check_finite("y", y)?;
    let differences: Vec<f64> = x.iter().zip(y).map(|(x, y)| x - y).collect();
    check_finite("x - y", &differences)?;
    let scale = x.iter().chain(y).fold(0.0_f64, |largest, value| largest.max(value.abs()));
    Ok(signed_rank(&differences, scale * RESOLUTION, alternative))
}

/// Sizes that differ by no more than `resolution` are equal.
fn signed_rank(differences: &[f64], resolution: f64, alternative: Alternative) -> Wilcoxon {
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|d| d.abs() > resolution).collect();
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let n = sorted.len();
    let ranks = Ranks::of(&sorted, resolution);
    let positive: u64 = sorted.iter().zip(&ranks.doubled).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank).sum();
    let negative = ranks.total() - positive;
    let (method, tail) = if n <= EXACT_LIMIT {
        (WilcoxonMethod::Exact, ranks.exact_upper_tail())
    } else {
        (WilcoxonMethod::NormalApproximation, ranks.normal_upper_tail())
    };
    // The distribution is symmetric, so P(W⁺ ≤ w) = P(W⁻ ≥ total − w): one tail function serves
    // both directions.
    let (greater, less) = (tail(positive), tail(negative));
    let p_value = match alternative {
        Alternative::Greater => greater,
        Alternative::Less => less,
        Alternative::TwoSided => (2.0 * greater.min(less)).min(1.0),
    };
    let one_sided = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let smallest_p_value = if alternative == Alternative::TwoSided { (2.0 * one_sided).min(1.0) } else { one_sided };
    Wilcoxon {
        rank_sum_positive: positive as f64 / 2.0,
        rank_sum_negative: negative as f64 / 2.0,
        n,
        n_zero: differences.len() - n,
        alternative,
        method,
        p_value,
        smallest_p_value,
    }
}

/// Midranks of the sorted sizes. They are kept doubled, so that they are whole numbers even when
/// values tie.
struct Ranks {
    doubled: Vec<u64>,
    /// Σ (t³ − t) over runs of t equal sizes.
    tie_term: f64,
}

type Tail = Box<dyn Fn(u64) -> f64>;

impl Ranks {
    fn of(sorted: &[f64], resolution: f64) -> Self {
        let mut doubled = Vec::with_capacity(sorted.len());
        let mut tie_term = 0.0;
        for run in sorted.chunk_by(|a, b| b.abs() - a.abs() <= resolution) {
            // Ranks first..=last (1-based) share their mean; doubled that is first + last.
            let first = doubled.len() as u64 + 1;
            let last = doubled.len() as u64 + run.len() as u64;
            doubled.extend(std::iter::repeat_n(first + last, run.len()));
            let t = run.len() as f64;
            tie_term += t.powi(3) - t;
        }
        Self { doubled, tie_term }
    }

    fn total(&self) -> u64 {
        self.doubled.iter().sum()
    }

    /// `P(W ≥ w)` over all sign patterns, by adding one rank at a time. Sums of non-negative terms:
    /// no cancellation, so even the far tail has full relative accuracy.
    fn exact_upper_tail(&self) -> Tail {
        let total = self.total() as usize;
        let mut probability = vec![0.0_f64; total + 1];
        probability[0] = 1.0;
        let mut reach = 0;
        for &rank in &self.doubled {
            let rank = rank as usize;
            for sum in (0..=reach).rev() {
                let half = probability[sum] / 2.0;
                probability[sum] = half;
                probability[sum + rank] += half;
            }
            reach += rank;
        }
        // Downwards cumulative sums: the small terms of the far tail are added first.
        for sum in (0..total).rev() {
            probability[sum] += probability[sum + 1];
        }
        Box::new(move |w| probability[w as usize].min(1.0))
    }

    fn normal_upper_tail(&self) -> Tail {
        let n = self.doubled.len() as f64;
        let mean = n * (n + 1.0) / 4.0;
        let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - self.tie_term / 48.0;
        let deviation = variance.sqrt();
        Box::new(move |w| {
            let z = (w as f64 / 2.0 - mean - 0.5) / deviation;
            0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn test(differences: &[f64], alternative: Alternative) -> Wilcoxon {
        wilcoxon_signed_rank(differences, &vec![0.0; differences.len()], alternative).unwrap()
    }

    #[test]
    fn three_differences_by_hand() {
        // Ranks 1, 2, 3 with signs +, −, +: W⁺ = 4, W⁻ = 2. Of the 8 patterns, W⁺ is
        // 0 1 2 3 3 4 5 6, so P(W⁺ ≥ 4) = 3/8 and P(W⁺ ≤ 4) = P(W⁻ ≥ 2) = 6/8.
        let differences = [1.0, -2.0, 3.0];
        let greater = test(&differences, Alternative::Greater);
        assert_eq!((greater.rank_sum_positive, greater.rank_sum_negative), (4.0, 2.0));
        assert_eq!(greater.p_value, 3.0 / 8.0);
        assert_eq!(test(&differences, Alternative::Less).p_value, 6.0 / 8.0);
        assert_eq!(test(&differences, Alternative::TwoSided).p_value, 6.0 / 8.0);
        assert_eq!(greater.method, WilcoxonMethod::Exact);
    }

    #[test]
    fn ties_share_ranks_and_zeros_are_left_out() {
        // Sizes 1, 1, 2 after the zero: ranks 1.5, 1.5, 3. W⁺ over the patterns: 0, 1.5, 1.5, 3, 3,
        // 4.5, 4.5, 6. Signs +, −, +: W⁺ = 4.5, so P(W⁺ ≥ 4.5) = 3/8.
        let result = test(&[0.0, 1.0, -1.0, 2.0], Alternative::Greater);
        assert_eq!((result.rank_sum_positive, result.rank_sum_negative), (4.5, 1.5));
        assert_eq!((result.n, result.n_zero), (3, 1));
        assert_eq!(result.p_value, 3.0 / 8.0);
    }

    /// Accuracies of a thousand records: seven differences of 0.001 and one of −0.001 tie in
    /// decimals, so that all ranks are 4.5, and P(W⁻ ≤ 4.5) = (1 + 8)/2⁸. As floating-point numbers
    /// they have five sizes.
    #[test]
    fn what_ties_in_decimals_ties() {
        let x = [0.801, 0.702, 0.903, 0.654, 0.755, 0.806, 0.607, 0.700];
        let y = [0.800, 0.701, 0.902, 0.653, 0.754, 0.805, 0.606, 0.701];
        let result = wilcoxon_signed_rank(&x, &y, Alternative::Greater).unwrap();
        assert_eq!((result.rank_sum_negative, result.p_value), (4.5, 9.0 / 256.0));
        let equal = wilcoxon_signed_rank(&[0.1 + 0.2], &[0.3], Alternative::Greater).unwrap();
        assert_eq!((equal.n_zero, equal.p_value), (1, 1.0));
    }

    #[test]
    fn no_difference_is_no_evidence() {
        let result = test(&[0.0, 0.0], Alternative::TwoSided);
        assert_eq!((result.p_value, result.smallest_p_value, result.n, result.n_zero), (1.0, 1.0, 0, 2));
    }

    #[test]
    fn errors_name_the_value() {
        let error = wilcoxon_signed_rank(&[0.0, f64::NAN], &[0.0, 0.0], Alternative::Less).unwrap_err();
        assert!(matches!(error, MetricError::NotFinite { parameter: "x", index: 1, .. }));
        assert!(wilcoxon_signed_rank(&[], &[], Alternative::Less).is_err());
        assert!(wilcoxon_signed_rank(&[0.0], &[], Alternative::Less).is_err());
        let overflow = wilcoxon_signed_rank(&[f64::MAX], &[f64::MIN], Alternative::Less).unwrap_err();
        assert!(matches!(overflow, MetricError::NotFinite { parameter: "x - y", index: 0, .. }));
    }

    #[test]
    fn large_samples_say_that_they_are_approximate() {
        let differences: Vec<f64> =
            (0..=EXACT_LIMIT).map(|i| (i as f64 + 1.0) * if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
        let approximate = test(&differences, Alternative::Greater);
        assert_eq!(approximate.method, WilcoxonMethod::NormalApproximation);
        let exact = test(&differences[..EXACT_LIMIT], Alternative::Greater);
        assert_eq!(exact.method, WilcoxonMethod::Exact);
        assert!((approximate.p_value / exact.p_value - 1.0).abs() < 0.3, "{approximate:?} {exact:?}");
    }

    /// Every sign pattern, one by one.
    fn brute_force(differences: &[f64], alternative: Alternative) -> f64 {
        let mut sorted: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
        sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let ranks = Ranks::of(&sorted, 0.0).doubled;
        let observed: u64 = sorted.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, r)| r).sum();
        let (mut greater, mut less) = (0_u32, 0_u32);
        for pattern in 0..1_u32 << ranks.len() {
            let sum: u64 = ranks.iter().enumerate().filter(|(bit, _)| pattern >> bit & 1 == 1).map(|(_, r)| r).sum();
            greater += u32::from(sum >= observed);
            less += u32::from(sum <= observed);
        }
        let n_patterns = f64::from(1_u32 << ranks.len());
        match alternative {
            Alternative::Greater => f64::from(greater) / n_patterns,
            Alternative::Less => f64::from(less) / n_patterns,
            Alternative::TwoSided => (2.0 * f64::from(greater.min(less)) / n_patterns).min(1.0),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_enumeration(differences in prop::collection::vec(-4_i8..=4, 1..10)) {
            let differences: Vec<f64> = differences.into_iter().map(f64::from).collect();
            for alternative in [Alternative::Less, Alternative::Greater, Alternative::TwoSided] {
                prop_assert_eq!(test(&differences, alternative).p_value, brute_force(&differences, alternative));
            }
        }

        #[test]
        fn swapping_the_arguments_swaps_the_sides(differences in prop::collection::vec(-9.0..9.0_f64, 1..30)) {
            let swapped: Vec<f64> = differences.iter().map(|d| -d).collect();
            prop_assert_eq!(test(&differences, Alternative::Less).p_value, test(&swapped, Alternative::Greater).p_value);
            let result = test(&differences, Alternative::Less);
            prop_assert!(result.p_value >= result.smallest_p_value && result.p_value <= 1.0);
        }
    }
}
