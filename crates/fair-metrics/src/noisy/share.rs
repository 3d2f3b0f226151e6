//! A rate as two counts with noise.

use serde::{Deserialize, Serialize};

use crate::special::normal_upper_tail;

/// A rate of fewer records than this is unknown.
const FEW_RECORDS: f64 = 2.0;
/// So is one whose number of records is this many standard deviations of its noise, or fewer.
const FEW_DEVIATIONS: f64 = 4.0;
/// By how many standard deviations noise may have made a number of records look larger.
const LUCK: f64 = 3.0;
/// Standard deviations of its noise by which a number of records is taken to be larger than it
/// looks where more records vary more.
const MARGIN: f64 = 2.0;

/// A rate as the records that have a property and those that have not, both with Gaussian noise of
/// known variances and covariance.
///
/// Counts may be fractional, as effective numbers of weighted records are, and negative, as noise
/// makes them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Records with the property.
    pub hits: f64,
    /// Records without it.
    pub others: f64,
    /// Variance of the noise in `hits`.
    pub noise_of_hits: f64,
    /// Variance of the noise in `others`.
    pub noise_of_others: f64,
    /// Covariance of the two: 0 for counts with independent noise.
    #[serde(default)]
    pub noise_covariance: f64,
}

impl Share {
    /// Counts without noise.
    pub const fn exact(hits: f64, others: f64) -> Self {
        Self::independent(hits, others, 0.0, 0.0)
    }

    /// Counts with independent noise of these variances.
    pub const fn independent(hits: f64, others: f64, noise_of_hits: f64, noise_of_others: f64) -> Self {
        Self { hits, others, noise_of_hits, noise_of_others, noise_covariance: 0.0 }
    }

    /// The records of two shares of disjoint records with independent noise.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            others: self.others + other.others,
            noise_of_hits: self.noise_of_hits + other.noise_of_hits,
            noise_of_others: self.noise_of_others + other.noise_of_others,
            noise_covariance: self.noise_covariance + other.noise_covariance,
        }
    }

    /// The share of the others.
    #[must_use]
    pub const fn opposite(self) -> Self {
        Self {
            hits: self.others,
            others: self.hits,
            noise_of_hits: self.noise_of_others,
            noise_of_others: self.noise_of_hits,
            noise_covariance: self.noise_covariance,
        }
    }

    /// Whether there is no noise.
    pub fn is_exact(&self) -> bool {
        self.noise_of_hits == 0.0 && self.noise_of_others == 0.0
    }

    /// Records that the rate divides by.
    pub const fn n(&self) -> f64 {
        self.hits + self.others
    }

    /// Whether the rate divides by records that can be told from noise: two at least, and more than
    /// four standard deviations.
    pub fn is_known(&self) -> bool {
        self.n() >= FEW_RECORDS && self.n() > FEW_DEVIATIONS * self.deviation()
    }

    /// Standard deviation of the noise in the number of records.
    fn deviation(&self) -> f64 {
        (self.noise_of_hits + self.noise_of_others + 2.0 * self.noise_covariance).max(0.0).sqrt()
    }

    /// The estimate, which noise may carry out of [0, 1].
    pub(super) fn estimate(&self) -> f64 {
        self.hits / self.n()
    }

    /// The most records that there may well be.
    pub(super) fn n_high(&self) -> f64 {
        self.n() + MARGIN * self.deviation()
    }

    /// How probable it is that a rate becomes known whose number of records is three standard
    /// deviations lower than it looks.
    ///
    /// A rate with too few records is known only if its noise is large, and that noise is in its
    /// hits too. The intervals of such rates would miss more often than others. A level times this
    /// probability holds among the rates that are printed, and not just among all.
    pub(super) fn chance_to_be_known(&self) -> f64 {
        if self.is_exact() {
            return 1.0;
        }
        1.0 - normal_upper_tail(self.n() / self.deviation() - FEW_DEVIATIONS - LUCK)
    }

    /// Variance of the estimate if this is the rate, regularised: half a record and the noise's
    /// standard deviation are added to either side, since a rate that looks like 0 need not be.
    pub(super) fn variance_at(&self, rate: f64) -> f64 {
        let n = self.n_high();
        let added = 0.5 + self.deviation();
        let rate = (n * rate + added) / (n + 2.0 * added);
        (n * rate * (1.0 - rate) + self.noise_at(rate)) / (n * n)
    }

    /// Variance of the noise in `(1 − rate)·hits − rate·others`.
    pub fn noise_at(&self, rate: f64) -> f64 {
        let (hits, others) = (1.0 - rate, rate);
        let variance = self.noise_of_hits * hits * hits + self.noise_of_others * others * others
            - 2.0 * self.noise_covariance * hits * others;
        variance.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_records_are_unknown() {
        assert!(!Share::exact(1.0, 0.0).is_known() && Share::exact(1.0, 1.0).is_known());
        // Noise of standard deviation √(2·12.5) = 5.
        let of = |n: f64| Share::independent(n, 0.0, 12.5, 12.5);
        assert!(!of(20.0).is_known() && of(20.1).is_known());
    }

    #[test]
    fn the_level_holds_among_what_is_printed() {
        let of = |n: f64| Share::independent(n, 0.0, 0.5, 0.5);
        // Seven deviations: three fewer are the border, and one in two is printed.
        assert!((of(7.0).chance_to_be_known() - 0.5).abs() < 1e-12);
        assert!((of(4.0).chance_to_be_known() - 0.001_35).abs() < 1e-5);
        assert!(of(11.0).chance_to_be_known() > 0.999);
        assert_eq!(Share::exact(3.0, 1.0).chance_to_be_known(), 1.0);
    }

    /// Noise that takes from the others what it adds to the hits does not touch the number of records.
    #[test]
    fn opposite_noise_leaves_the_number_of_records() {
        let share = Share { noise_covariance: -9.0, ..Share::independent(8.0, 2.0, 9.0, 9.0) };
        assert!(share.is_known() && share.deviation() == 0.0 && !share.is_exact());
        assert!((share.noise_at(0.3) - 9.0).abs() < 1e-12);
        let both = share.and(share.opposite());
        assert_eq!((both.hits, both.others, both.noise_at(0.5)), (10.0, 10.0, 18.0));
    }
}
