//! How often a hyper-parameter search runs before it releases its best result.

use serde::{Deserialize, Serialize};

use crate::AccountingError;

/// Distribution of the number of trials, so that it hides how many were needed.
///
/// **Source.** Papernot & Steinke 2022, Definition 1 (truncated negative binomial) and Section 3.4
/// (Poisson).
///
/// ```
/// use dp_accounting::TrialCount;
/// // A random number of runs, ten on average.
/// assert!(TrialCount::poisson(10.0).is_ok());
/// assert_eq!(TrialCount::poisson(0.0).unwrap_err().to_string(), "mean = 0: expected a number above 0 and below 1e12");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedTrialCount", into = "UncheckedTrialCount")]
pub struct TrialCount(Family);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Family {
    NegativeBinomial { shape: f64, gamma: f64 },
    Poisson { mean: f64 },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum UncheckedTrialCount {
    NegativeBinomial { shape: f64, gamma: f64 },
    Poisson { mean: f64 },
}

/// Below this the shape is treated as 0: its multiples would lose digits.
const LOGARITHMIC: f64 = 1e-300;

impl TrialCount {
    /// Truncated negative binomial: `shape = 0` is the logarithmic distribution, `shape = 1` the
    /// geometric one.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless `shape > -1` is finite and `0 < gamma < 1`.
    pub fn negative_binomial(shape: f64, gamma: f64) -> Result<Self, AccountingError> {
        if !(shape > -1.0 && shape.is_finite()) {
            return Err(AccountingError::invalid("shape", shape, "a finite number above -1"));
        }
        if !(gamma > 0.0 && gamma < 1.0) {
            return Err(AccountingError::invalid("gamma", gamma, "a number in (0, 1)"));
        }
        Ok(Self(Family::NegativeBinomial { shape, gamma }))
    }

    /// Truncated negative binomial with a given mean.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless `shape > -1` is finite and `1 < mean < 1e12`.
    pub fn negative_binomial_with_mean(shape: f64, mean: f64) -> Result<Self, AccountingError> {
        if !(mean > 1.0 && mean < 1e12) {
            return Err(AccountingError::invalid("mean", mean, "a number above 1 and below 1e12"));
        }
        // The mean falls to 1 as gamma goes to 1. Bisection on log gamma, from the least gamma that
        // has all its digits: about gamma^-(1 + shape), the mean stays small for shapes near -1.
        let (mut low, mut high) = (-700.0_f64, -1e-16_f64);
        if Self::negative_binomial(shape, libm::exp(low))?.mean() < mean {
            return Err(AccountingError::invalid(
                "mean",
                mean,
                "at most that of gamma = 1e-304, which is small for a shape near -1",
            ));
        }
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if Self::negative_binomial(shape, libm::exp(middle))?.mean() > mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self::negative_binomial(shape, libm::exp(low))
    }

    /// Poisson; zero trials (nothing is released) is a possible outcome.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless the mean is positive and below 1e12.
    pub fn poisson(mean: f64) -> Result<Self, AccountingError> {
        if mean > 0.0 && mean < 1e12 {
            Ok(Self(Family::Poisson { mean }))
        } else {
            Err(AccountingError::invalid("mean", mean, "a number above 0 and below 1e12"))
        }
    }

    /// Number of the family and its parameters, for the canonical encoding of events.
    pub(crate) fn family(self) -> (u8, Vec<f64>) {
        match self.0 {
            Family::NegativeBinomial { shape, gamma } => (0, vec![shape, gamma]),
            Family::Poisson { mean } => (1, vec![mean]),
        }
    }

    /// `(shape, gamma)` of a truncated negative binomial.
    pub(crate) fn as_negative_binomial(self) -> Option<(f64, f64)> {
        match self.0 {
            Family::NegativeBinomial { shape, gamma } => Some((shape, gamma)),
            Family::Poisson { .. } => None,
        }
    }

    /// Pure ε of the search, of that of one run: `(2 + η)·ε` (Papernot & Steinke 2022, Corollary
    /// 3). For Poisson many runs the likelihood of a result is `m·E[e^(m(F - 1))]` with `F` its
    /// distribution function, and the functions of neighbours differ by `1 - e^-ε` at most.
    pub(crate) fn pure_epsilon(self, epsilon: f64) -> f64 {
        let bound = match self.0 {
            Family::NegativeBinomial { shape, .. } => (2.0 + shape) * epsilon,
            Family::Poisson { mean } => epsilon - mean * libm::expm1(-epsilon),
        };
        bound * (1.0 + 8.0 * f64::EPSILON)
    }

    /// Expected number of trials.
    pub fn mean(self) -> f64 {
        libm::exp(self.log_mean())
    }

    /// Its natural logarithm, where the mean itself would overflow too.
    pub(crate) fn log_mean(self) -> f64 {
        match self.0 {
            // η(1 - γ)/(γ(1 - γ^η)), and for η = 0 its limit.
            Family::NegativeBinomial { shape, gamma } => {
                let log_gamma = libm::log(gamma);
                let odds = libm::log1p(-gamma) - log_gamma;
                if shape.abs() < LOGARITHMIC {
                    return odds - libm::log(-log_gamma);
                }
                // |1 - e^t| = max(1, e^t)·(1 - e^-|t|).
                let t = shape * log_gamma;
                odds + libm::log(shape.abs()) - t.max(0.0) - libm::log(-libm::expm1(-t.abs()))
            }
            Family::Poisson { mean } => libm::log(mean),
        }
    }

    /// Natural logarithm of the probability of `count` trials.
    pub fn log_probability(self, count: u64) -> f64 {
        let k = count as f64;
        match self.0 {
            Family::NegativeBinomial { .. } if count == 0 => f64::NEG_INFINITY,
            Family::NegativeBinomial { shape, gamma } if shape.abs() < LOGARITHMIC => {
                k * libm::log1p(-gamma) - libm::log(k) - libm::log(-libm::log(gamma))
            }
            Family::NegativeBinomial { shape, gamma } => {
                // (1-γ)^k / (γ^-η - 1) · Γ(k+η) / (Γ(η) k!); numerator and denominator change sign
                // together at η = 0.
                let log_binomial = libm::lgamma(k + shape) - libm::lgamma(shape) - libm::lgamma(k + 1.0);
                k * libm::log1p(-gamma) + log_binomial - libm::log(libm::expm1(-shape * libm::log(gamma)).abs())
            }
            Family::Poisson { mean } => k * libm::log(mean) - mean - libm::lgamma(k + 1.0),
        }
    }

    /// The number of trials at a quantile: with `uniform` drawn uniformly from [0, 1), a sample.
    ///
    /// The caller brings the randomness, so that this crate needs none. It must be cryptographic:
    /// who knows `uniform` knows the number of trials.
    ///
    /// It takes `n` steps to return `n`. The tail beyond 1 - 2⁻⁵² is cut off.
    ///
    /// **Edge cases.** Values outside [0, 1) are clamped into it.
    pub fn quantile(self, uniform: f64) -> u64 {
        let target = uniform.clamp(0.0, 1.0 - f64::EPSILON);
        let mut count = u64::from(matches!(self.0, Family::NegativeBinomial { .. }));
        let mut cumulative = libm::exp(self.log_probability(count));
        let mut log_probability = self.log_probability(count);
        // Terms by their ratio: one multiplication each.
        while cumulative <= target {
            let k = count as f64;
            let ratio = match self.0 {
                Family::NegativeBinomial { shape, gamma } => (1.0 - gamma) * (k + shape) / (k + 1.0),
                Family::Poisson { mean } => mean / (k + 1.0),
            };
            log_probability += libm::log(ratio);
            count += 1;
            let probability = libm::exp(log_probability);
            cumulative += probability;
            if probability < f64::EPSILON * cumulative && ratio < 1.0 && cumulative > 0.5 {
                break;
            }
        }
        count
    }
}

impl std::fmt::Display for TrialCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Family::NegativeBinomial { shape, gamma } => {
                write!(f, "negative-binomially many (shape {shape}, gamma {gamma}, mean {:.4})", self.mean())
            }
            Family::Poisson { mean } => write!(f, "Poisson many (mean {mean})"),
        }
    }
}

impl TryFrom<UncheckedTrialCount> for TrialCount {
    type Error = AccountingError;
    fn try_from(value: UncheckedTrialCount) -> Result<Self, AccountingError> {
        match value {
            UncheckedTrialCount::NegativeBinomial { shape, gamma } => Self::negative_binomial(shape, gamma),
            UncheckedTrialCount::Poisson { mean } => Self::poisson(mean),
        }
    }
}

impl From<TrialCount> for UncheckedTrialCount {
    fn from(value: TrialCount) -> Self {
        match value.0 {
            Family::NegativeBinomial { shape, gamma } => Self::NegativeBinomial { shape, gamma },
            Family::Poisson { mean } => Self::Poisson { mean },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometric_has_mean_one_over_gamma() {
        // Shape 1: P(K = k) = γ(1-γ)^(k-1), so E K = 1/γ and P(K = 3) = 0.2·0.64.
        let trials = TrialCount::negative_binomial(1.0, 0.2).unwrap();
        assert!((trials.mean() - 5.0).abs() < 1e-12);
        assert!((trials.log_probability(3).exp() - 0.128).abs() < 1e-12);
    }

    #[test]
    fn probabilities_sum_to_one_and_give_the_mean() {
        for (shape, gamma) in [(-0.9, 0.3), (-0.5, 0.05), (0.0, 0.1), (1e-6, 0.1), (0.5, 0.2), (1.0, 0.1), (3.0, 0.3)] {
            let trials = TrialCount::negative_binomial(shape, gamma).unwrap();
            let (mut total, mut mean) = (0.0, 0.0);
            for k in 0..5_000 {
                let p = trials.log_probability(k).exp();
                total += p;
                mean += p * k as f64;
            }
            assert!((total - 1.0).abs() < 1e-9, "shape {shape}: {total}");
            assert!((mean / trials.mean() - 1.0).abs() < 1e-6, "shape {shape}: {mean} {}", trials.mean());
        }
    }

    #[test]
    fn mean_determines_gamma() {
        // Golden: dp_accounting 0.6, shape 0.5 and mean 20 have gamma 0.029277680476661766.
        let trials = TrialCount::negative_binomial_with_mean(0.5, 20.0).unwrap();
        let (_, gamma) = trials.as_negative_binomial().unwrap();
        assert!((gamma - 0.029_277_680_476_661_766).abs() < 1e-9);
        for shape in [-0.9, 0.0, 1.0, 4.0] {
            let trials = TrialCount::negative_binomial_with_mean(shape, 12.0).unwrap();
            assert!((trials.mean() - 12.0).abs() < 1e-6, "shape {shape}");
        }
    }

    /// By hand: for γ → 0 the mean is |η|·γ^-(1 + η) for η < 0, whatever overflows on the way.
    #[test]
    fn the_mean_of_nearly_endless_searches() {
        for (shape, gamma) in [(-0.96, 1e-300), (-0.999, 1e-300), (-0.5, 1e-200)] {
            let expected = f64::ln(-shape) - (1.0 + shape) * f64::ln(gamma);
            let found = TrialCount::negative_binomial(shape, gamma).unwrap().log_mean();
            assert!((found / expected - 1.0).abs() < 1e-10, "{shape} {gamma}: {found} {expected}");
        }
        // Continuous in the shape at 0.
        let log_mean = |shape| TrialCount::negative_binomial(shape, 1e-300).unwrap().log_mean();
        assert!((log_mean(1e-12) - log_mean(0.0)).abs() < 1e-9 && (log_mean(9.99e-10) - log_mean(0.0)) > 1e-7);
        insta::assert_snapshot!(
            TrialCount::negative_binomial_with_mean(-0.999, 1000.0).unwrap_err(),
            @"mean = 1000: expected at most that of gamma = 1e-304, which is small for a shape near -1"
        );
    }

    #[test]
    fn quantiles_reproduce_the_distribution() {
        // A stratified sample of 2^14 quantiles is deterministic: its mean is within a part in a
        // thousand.
        for trials in [TrialCount::negative_binomial(0.5, 0.2).unwrap(), TrialCount::poisson(7.0).unwrap()] {
            let n = 1 << 14;
            let mean =
                (0..n).map(|i| trials.quantile((f64::from(i) + 0.5) / f64::from(n)) as f64).sum::<f64>() / f64::from(n);
            assert!((mean / trials.mean() - 1.0).abs() < 1e-3, "{mean} {}", trials.mean());
        }
    }

    #[test]
    fn invalid_shapes_are_refused_also_by_serde() {
        insta::assert_snapshot!(TrialCount::negative_binomial(-1.0, 0.5).unwrap_err(), @"shape = -1: expected a finite number above -1");
        insta::assert_snapshot!(TrialCount::negative_binomial(1.0, 0.0).unwrap_err(), @"gamma = 0: expected a number in (0, 1)");
        assert!(serde_json::from_str::<TrialCount>(r#"{"poisson":{"mean":-1.0}}"#).is_err());
    }
}
