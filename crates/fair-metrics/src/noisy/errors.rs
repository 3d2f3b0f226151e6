//! Errors of predicted numbers, from sums with noise.

use serde::{Deserialize, Serialize};

use super::contrast::USED;
use crate::MetricError;
use crate::interval::check_level;
use crate::special::normal_quantile;

/// Numbers that are summed over records.
pub const N_ERROR_SUMS: usize = 7;
/// Fewer records than this have no figures: their sums are not yet normal.
const FEWEST: f64 = 30.0;
/// A number of records is told from noise from this many of its standard deviations on.
const TOLD: f64 = 4.0;
/// Standard deviations of its noise that are added to a variance.
const CAUTION: f64 = 2.0;

/// What one record adds to the sums, of a label and its prediction: 1, the error, its magnitude, its
/// square and its fourth power, the label and its square.
///
/// **Units.** Both are places in a declared range, from −½ to ½; errors are prediction less label,
/// in `[-1, 1]`. Values outside are set to the nearer end.
pub fn error_terms(prediction: f64, label: f64) -> [f64; N_ERROR_SUMS] {
    let [prediction, label] = [prediction, label].map(|place| place.clamp(-0.5, 0.5));
    let error = prediction - label;
    let square = error * error;
    [1.0, error, error.abs(), square, square * square, label, label * label]
}

/// The largest magnitude of each term.
pub const LARGEST_ERROR_TERMS: [f64; N_ERROR_SUMS] = [1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.25];

/// Sums of [`error_terms`] over the records of a group, with independent noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoisyErrorSums {
    /// The sums.
    pub sums: [f64; N_ERROR_SUMS],
    /// Variances of their noise.
    pub variances: [f64; N_ERROR_SUMS],
}

impl NoisyErrorSums {
    /// Of the records of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            sums: std::array::from_fn(|k| self.sums[k] + other.sums[k]),
            variances: std::array::from_fn(|k| self.variances[k] + other.variances[k]),
        }
    }

    /// Of the same predictions with this share of the range taken off each.
    ///
    /// Fourth powers are bounded (Minkowski), magnitudes stay, and a noise that then is in several sums is taken
    /// for separate ones. The mean of the magnitudes is within that share of what is said here.
    #[must_use]
    pub fn less(&self, share: f64) -> Self {
        let [n, errors, magnitudes, squares, fourth, label, labels] = self.sums;
        let root = |value: f64| value.max(0.0).sqrt().sqrt();
        let fourth = (root(fourth) + share.abs() * root(n)).powi(4);
        let squares = squares - 2.0 * share * errors + share * share * n;
        let mut variances = self.variances;
        variances[3] += 4.0 * share * share * variances[1] + share.powi(4) * variances[0];
        variances[1] += share * share * variances[0];
        Self { sums: [n, errors - share * n, magnitudes, squares, fourth, label, labels], variances }
    }

    fn n(&self) -> f64 {
        self.sums[0]
    }

    fn is_known(&self) -> bool {
        self.n() >= FEWEST && self.n() >= TOLD * self.variances[0].sqrt()
    }

    /// An upper bound on a mean of squares.
    fn cautious(&self, place: usize) -> f64 {
        ((self.sums[place] + CAUTION * self.variances[place].sqrt()) / self.n()).clamp(0.0, 1.0)
    }

    /// The mean of a term with the bound on its variance: the means that `Σ f − mean·n` does not refuse
    /// (Fieller 1954).
    fn mean(&self, place: usize, variance: f64, z: f64, range: [f64; 2]) -> NoisyNumber {
        if !self.is_known() {
            return NoisyNumber::unknown(range.map(Some));
        }
        let (n, sum) = (self.n(), self.sums[place]);
        let within =
            [n * n - z * z * self.variances[0], n * sum, sum * sum - z * z * (self.variances[place] + n * variance)];
        NoisyNumber::of(sum / n, roots(within), range.map(Some))
    }

    fn mean_error(&self, z: f64) -> NoisyNumber {
        let mean = self.sums[1] / self.n();
        self.mean(1, (self.cautious(3) - mean * mean).max(0.0), z, [-1.0, 1.0])
    }

    fn mean_absolute_error(&self, z: f64) -> NoisyNumber {
        let mean = (self.sums[2] / self.n()).max(0.0);
        self.mean(2, (self.cautious(3) - mean * mean).max(0.0), z, [0.0, 1.0])
    }

    fn root_mean_squared_error(&self, z: f64) -> NoisyNumber {
        self.mean(3, self.fourth_powers(), z, [0.0, 1.0]).mapped(|square| square.max(0.0).sqrt())
    }

    /// An upper bound on the mean of the fourth powers of errors: they are at most their squares.
    fn fourth_powers(&self) -> f64 {
        self.cautious(4).min(self.cautious(3))
    }

    /// `1 − Σ e² / Σ (y − ȳ)²`, by the ratios that `Σ e² − ratio·Σ (y − ȳ)²` does not refuse. Its variance
    /// is at most that of both parts together, since squares are positive.
    fn r2(&self, z: f64) -> NoisyNumber {
        let unknown = NoisyNumber::unknown([None, Some(1.0)]);
        if !self.is_known() {
            return unknown;
        }
        let (n, errors) = (self.n(), self.sums[3]);
        let mean = (self.sums[5] / n).clamp(-0.5, 0.5);
        let spread = self.sums[6] - mean * mean * n;
        let noise = self.variances[6] + (2.0 * mean).powi(2) * self.variances[5] + mean.powi(4) * self.variances[0];
        let farthest = (0.5 + mean.abs()).powi(2);
        let fourth = (spread + CAUTION * noise.sqrt()).max(0.0) * farthest;
        let within = [
            spread * spread - z * z * (noise + fourth),
            errors * spread,
            errors * errors - z * z * (self.variances[3] + n * self.fourth_powers()),
        ];
        // Whether labels differ at all cannot be told.
        if within[0] <= 0.0 || spread <= 0.0 {
            return unknown;
        }
        NoisyNumber::of(errors / spread, roots(within), [Some(0.0), None]).mapped(|ratio| 1.0 - ratio).turned()
    }
}

/// The roots of `a x² − 2 b x + c`, ascending; none where the parabola is not open upwards.
fn roots([a, b, c]: [f64; 3]) -> Option<[f64; 2]> {
    if a <= 0.0 {
        return None;
    }
    let root = (b * b - a * c).max(0.0).sqrt();
    Some([(b - root) / a, (b + root) / a])
}

/// A figure with its interval, of sampling and of noise. What is not known is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoisyNumber {
    /// The estimate.
    pub value: Option<f64>,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl NoisyNumber {
    /// Anything in a range.
    pub const fn unknown([low, high]: [Option<f64>; 2]) -> Self {
        Self { value: None, low, high }
    }

    fn of(value: f64, ends: Option<[f64; 2]>, [low, high]: [Option<f64>; 2]) -> Self {
        let Some(ends) = ends.filter(|ends| value.is_finite() && ends.iter().all(|end| end.is_finite())) else {
            return Self::unknown([low, high]);
        };
        let within = |value: f64| value.max(low.unwrap_or(f64::MIN)).min(high.unwrap_or(f64::MAX));
        let value = within(value);
        Self { value: Some(value), low: Some(within(ends[0]).min(value)), high: Some(within(ends[1]).max(value)) }
    }

    /// The same in another unit, by a map that ascends.
    #[must_use]
    pub fn mapped(self, map: impl Fn(f64) -> f64) -> Self {
        Self { value: self.value.map(&map), low: self.low.map(&map), high: self.high.map(&map) }
    }

    /// With its ends exchanged, after a map that descends.
    fn turned(self) -> Self {
        Self { low: self.high, high: self.low, ..self }
    }

    /// Whether the interval holds a value, but for rounding.
    pub fn contains(&self, value: f64) -> bool {
        self.low.is_none_or(|low| low - 1e-9 <= value) && self.high.is_none_or(|high| value <= high + 1e-9)
    }
}

/// Figures of one group, or of all records. Errors are shares of the range.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ErrorFigures {
    /// Its number of records, with noise.
    pub records: f64,
    /// Share of the label's variance that predictions explain.
    pub r2: NoisyNumber,
    /// Mean magnitude of the errors.
    pub mean_absolute_error: NoisyNumber,
    /// Root of the mean of their squares.
    pub root_mean_squared_error: NoisyNumber,
    /// Mean of prediction less label: above 0 where predictions are too high.
    pub mean_error: NoisyNumber,
}

/// Everything that is said of predicted numbers by group.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NoisyErrors {
    /// All records.
    pub overall: ErrorFigures,
    /// Every group.
    pub groups: Vec<ErrorFigures>,
    /// Groups whose mean absolute error cannot be told from the largest: the group with the largest is one
    /// of them. Groups without figures are among them.
    pub largest: Vec<usize>,
    /// The largest difference of mean errors between two groups; unknown if a group's is.
    pub mean_error_difference: NoisyNumber,
    /// The same without the groups that have too few records; `None` if all have enough, or all but one
    /// have not.
    pub known_difference: Option<NoisyNumber>,
    /// Groups with too few records for figures.
    pub unknown: Vec<usize>,
}

impl NoisyErrors {
    /// Every figure, with intervals at this level.
    ///
    /// **Guarantee.** Each interval holds the figure of the population that the records are drawn from with
    /// probability `level` at least, as far as sums of 30 records and more are normal: each by itself, the
    /// difference for all pairs of groups together, and `largest` as a set. Records are taken for
    /// independent. Variances of squares are bounds, so intervals of R² and of the root mean squared error are
    /// wide rather than narrow.
    ///
    /// # Errors
    /// [`MetricError::InvalidParameter`] unless `0 < level < 1`.
    pub fn of(groups: &[NoisyErrorSums], level: f64) -> Result<Self, MetricError> {
        check_level(level)?;
        let z = normal_quantile(USED * 0.5 * (1.0 - level));
        let none = NoisyErrorSums { sums: [0.0; N_ERROR_SUMS], variances: [0.0; N_ERROR_SUMS] };
        let all = groups.iter().fold(none, |all, group| all.and(group));
        // Of all groups together: each has its part of the tails (Bonferroni).
        let together = normal_quantile(USED * 0.5 * (1.0 - level) / groups.len().max(1) as f64);
        let unknown: Vec<usize> = (0..groups.len()).filter(|&group| !groups[group].is_known()).collect();
        let known: Vec<&NoisyErrorSums> = groups.iter().filter(|group| group.is_known()).collect();
        let absolute: Vec<NoisyNumber> = groups.iter().map(|group| group.mean_absolute_error(together)).collect();
        let least = absolute.iter().filter(|figure| figure.value.is_some()).filter_map(|figure| figure.low);
        let least = least.fold(f64::MIN, f64::max);
        let may_be_largest = |&group: &usize| absolute[group].high.is_none_or(|high| high >= least);
        let means: Vec<NoisyNumber> = known.iter().map(|group| group.mean_error(together)).collect();
        let difference = (means.len() > 1).then(|| difference(&means));
        let (mean_error_difference, known_difference) = match difference {
            Some(known) if unknown.is_empty() => (known, None),
            known => (NoisyNumber::unknown([known.and_then(|known| known.low).or(Some(0.0)), Some(2.0)]), known),
        };
        Ok(Self {
            overall: figures(&all, z),
            groups: groups.iter().map(|group| figures(group, z)).collect(),
            largest: (0..groups.len()).filter(may_be_largest).collect(),
            mean_error_difference,
            known_difference,
            unknown,
        })
    }
}

fn figures(sums: &NoisyErrorSums, z: f64) -> ErrorFigures {
    ErrorFigures {
        records: sums.n(),
        r2: sums.r2(z),
        mean_absolute_error: sums.mean_absolute_error(z),
        root_mean_squared_error: sums.root_mean_squared_error(z),
        mean_error: sums.mean_error(z),
    }
}

/// Of the largest and the smallest of means whose intervals hold together.
fn difference(means: &[NoisyNumber]) -> NoisyNumber {
    let largest = |end: fn(&NoisyNumber) -> Option<f64>| means.iter().filter_map(end).fold(f64::MIN, f64::max);
    let smallest = |end: fn(&NoisyNumber) -> Option<f64>| means.iter().filter_map(end).fold(f64::MAX, f64::min);
    let value = largest(|mean| mean.value) - smallest(|mean| mean.value);
    let low = largest(|mean| mean.low) - smallest(|mean| mean.high);
    let high = largest(|mean| mean.high) - smallest(|mean| mean.low);
    NoisyNumber::of(value, Some([low, high]), [Some(0.0), Some(2.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels at both ends of the range in turn, all predicted with an error of 0.1 towards the middle, and a
    /// tenth of them with 0.3.
    fn sums(n: usize, shift: f64, std: f64) -> NoisyErrorSums {
        let mut sums = [0.0; N_ERROR_SUMS];
        for i in 0..n {
            let label: f64 = [-0.5, 0.5][i % 2];
            let error = if i % 10 == 0 { 0.3 } else { 0.1 } + shift;
            let terms = error_terms(label - error * label.signum(), label);
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
        NoisyErrorSums { sums, variances: [std * std; N_ERROR_SUMS] }
    }

    #[test]
    fn figures_by_hand() {
        let found = NoisyErrors::of(&[sums(10_000, 0.0, 0.0)], 0.95).unwrap().overall;
        // Every tenth record has a label of −½, so its error is 0.3 upwards: (0.1·0.3 + 0.4·0.1) − 0.5·0.1.
        let expected = [
            (found.mean_error, 0.02),
            (found.mean_absolute_error, 0.12),
            (found.root_mean_squared_error, 0.018_f64.sqrt()),
            (found.r2, 1.0 - 0.018 / 0.25),
        ];
        for (figure, value) in expected {
            assert!((figure.value.unwrap() - value).abs() < 1e-9 && figure.contains(value), "{found:?}");
        }
        // Without noise the half-width of a mean is 1.96 (here 2.005) standard errors: of errors 0.1327.
        let half = 2.005 * (0.018_f64 - 0.02 * 0.02).sqrt() / 100.0;
        assert!((found.mean_error.high.unwrap() - 0.02 - half).abs() < 0.01 * half, "{found:?}");
    }

    /// Sums after a share is taken off are those of shifted predictions, and fourth powers are no smaller.
    #[test]
    fn what_is_taken_off_moves_the_sums() {
        let (before, after) = (sums(1_000, 0.0, 0.0), sums(1_000, 0.0, 0.0).less(0.02));
        let of = |sums: &NoisyErrorSums| NoisyErrors::of(&[*sums], 0.95).unwrap().overall;
        assert!(of(&after).mean_error.value.unwrap().abs() < 1e-9);
        // 0.018 − 0.02².
        let square = of(&after).root_mean_squared_error.value.unwrap().powi(2);
        assert!((square - 0.0176).abs() < 1e-9, "{square}");
        // Errors of 0.1 and −0.1, and every tenth of 0.3, less 0.02.
        let exact: f64 = [(100.0, 0.28), (400.0, 0.08), (500.0, -0.12)].iter().map(|(n, e)| n * f64::powi(*e, 4)).sum();
        assert!(after.sums[4] >= exact, "{} {exact}", after.sums[4]);
        assert_eq!(before.less(0.0).sums[..4], before.sums[..4]);
    }

    #[test]
    fn what_noise_hides_is_unknown() {
        let found = NoisyErrors::of(&[sums(1_000, 0.0, 5.0), sums(18, 0.0, 5.0), sums(20, 0.0, 0.0)], 0.95).unwrap();
        assert_eq!(found.unknown, [1, 2]);
        assert_eq!(found.groups[1].mean_error, NoisyNumber::unknown([Some(-1.0), Some(1.0)]));
        assert_eq!(found.groups[1].r2, NoisyNumber { value: None, low: None, high: Some(1.0) });
        assert_eq!((found.mean_error_difference.value, found.mean_error_difference.high), (None, Some(2.0)));
        assert_eq!(found.known_difference, None);
        assert_eq!(found.largest, [0, 1, 2]);
        // Labels that do not differ have no R², however many they are.
        let mut flat = sums(1_000, 0.0, 0.0);
        (flat.sums[5], flat.sums[6]) = (500.0, 250.0);
        let flat = NoisyErrors::of(&[flat], 0.95).unwrap().overall;
        assert_eq!(flat.r2.value, None);
        assert!(flat.mean_absolute_error.value.is_some());
        assert!(NoisyErrors::of(&[], 1.0).is_err());
        assert_eq!(NoisyErrors::of(&[], 0.95).unwrap().overall.mean_error.value, None);
    }

    #[test]
    fn the_group_that_is_served_worst_is_told_apart() {
        let found = NoisyErrors::of(&[sums(4_000, 0.0, 4.0), sums(4_000, 0.2, 4.0)], 0.95).unwrap();
        assert_eq!(found.largest, [1]);
        // All errors are 0.2 larger; every second one downwards.
        assert_eq!(found.known_difference, None);
        assert!(found.mean_error_difference.contains(0.0), "{found:?}");
    }

    #[test]
    fn no_term_is_beyond_its_largest() {
        for prediction in [-7.0, -0.5, -0.1, 0.0, 0.4, 0.5, f64::INFINITY] {
            for label in [-1.0, -0.5, 0.3, 0.5] {
                let terms = error_terms(prediction, label);
                assert!(terms.iter().zip(LARGEST_ERROR_TERMS).all(|(term, most)| term.abs() <= most), "{terms:?}");
            }
        }
    }
}
