//! Figures of groups from counts with noise: rates, balanced accuracy, gaps, and who may be worst.
//!
//! A program that publishes how well a model serves each group publishes counts of records, often
//! with noise of a known variance. Two errors are then in every rate: the records are a sample, and
//! the counts are not exact. The intervals of this module hold for both together, also at rates of
//! 0 and 1, for few records, and where the noise is larger than the counts.
//!
//! ```
//! use fair_metrics::noisy::{NoisyCounts, NoisyFigures};
//!
//! // Two groups; records by class and answer, with noise of standard deviation 3.7.
//! let counts = vec![899.0, 104.0, 96.0, 905.0, 594.0, 403.0, 405.0, 601.0];
//! let figures = NoisyFigures::of(&NoisyCounts::new(counts, 2, 2, 3.7)?, 0.95)?;
//! assert_eq!(figures.lowest, [1]);
//! let balanced = figures.groups[1].balanced_accuracy;
//! assert!((balanced.value.unwrap() - 0.5966).abs() < 1e-4);
//! assert!(balanced.low > 0.57 && balanced.high < 0.62);
//! # Ok::<(), fair_metrics::MetricError>(())
//! ```
//!
//! **Method.** Each figure is a weighted sum of independent rates ([`Share`]): one rate, the mean of
//! a group's recalls, a difference between groups. A hypothesis about the sum is tested with
//! `Σ w_j ((1 − r_j)·hits_j − r_j·others_j)/n_j`. Its mean is 0 where the rates are `r_j`, so nothing
//! is divided by a random denominator but the common scale, and nothing is clamped before it is
//! added. Its distribution under the hypothesis is that of binomial counts plus Gaussian noise,
//! whose tail a saddlepoint approximation gives, with half a record for the steps between whole
//! numbers. The rates under the hypothesis are those that agree with it and are nearest to the
//! estimates. An interval is the set of values that are not refused. The half-widths of clamped
//! rates, added in quadrature, would cover 75 % where every answer is right.
//!
//! **Sources.** Score intervals with the variance of the hypothesis: Wilson 1927, Miettinen and
//! Nurminen 1985. Ratios without division: Fieller 1954. Tails: Lugannani and Rice 1980,
//! Barndorff-Nielsen 1986. The set that holds the lowest: Gupta 1965, Hsu 1984.

mod change;
mod contrast;
mod counts;
mod errors;
mod figures;
mod gap;
mod lowest;
mod rate;
mod saddlepoint;
mod share;

pub use change::Change;
pub use counts::NoisyCounts;
pub use errors::{
    ErrorFigures, LARGEST_ERROR_TERMS, N_ERROR_SUMS, NoisyErrorSums, NoisyErrors, NoisyNumber, error_terms,
};
pub use figures::{GroupFigures, GroupShares, NoisyFigures, PositiveShares};
pub use gap::{Gap, largest_difference, least_ratio};
pub use lowest::not_above_the_lowest;
pub use rate::{NoisyRate, interval_of_estimate, mean_of_shares};
pub use share::Share;

pub(crate) use gap::unknown_groups;
