//! How often the rules of the reports are wrong, by simulation.
//!
//! A rule that names a winner, a payer or a contradiction promises to be wrong in at most 5 % of
//! cases. [`error_rates`] draws studies in which the truth is known, on the border where the rule
//! is most easily wrong, and counts. It is what `docs/statistics.md` prints.
//!
//! ```
//! use rand::SeedableRng;
//!
//! let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
//! for row in simulations::verdicts::error_rates(20, &mut rng)? {
//!     println!("{} | {} | {} | {}", row.rule, row.truth, row.nominal, row.simulated);
//! }
//! # Ok::<(), fair_metrics::MetricError>(())
//! ```

mod claims;
mod costs;
mod intervals;
mod published;

use fair_metrics::MetricError;
use rand::Rng;
use study_report::statistics::SIGNIFICANCE;

use crate::draws::Draws;

/// How often a rule is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorRate {
    /// The rule, and what it says wrongly.
    pub rule: &'static str,
    /// What is true in the simulated studies.
    pub truth: &'static str,
    /// The share of studies in which it may be wrong.
    pub nominal: f64,
    /// The share in which it was.
    pub simulated: f64,
    /// Studies drawn.
    pub repetitions: u32,
}

impl ErrorRate {
    /// The standard error of the simulated share, were the rule exactly at its nominal rate.
    pub fn standard_error(&self) -> f64 {
        (self.nominal * (1.0 - self.nominal) / f64::from(self.repetitions)).sqrt()
    }
}

/// Whether a rule was wrong in one simulated study.
type Trial<'a> = &'a dyn Fn(&mut Draws<'_>) -> Result<bool, MetricError>;

/// One rule under one truth.
struct Scenario<'a> {
    rule: &'static str,
    truth: &'static str,
    trial: Trial<'a>,
}

/// The error rates of every rule, each from this many studies.
///
/// # Errors
/// [`MetricError::InvalidParameter`] for zero repetitions.
pub fn error_rates(repetitions: u32, rng: &mut impl Rng) -> Result<Vec<ErrorRate>, MetricError> {
    if repetitions == 0 {
        return Err(MetricError::invalid("repetitions", 0, "at least 1"));
    }
    let mut draws = Draws::new(rng);
    let mut rates = Vec::new();
    let parts: [fn(Sink<'_>) -> Result<(), MetricError>; 4] =
        [claims::simulate, published::simulate, costs::simulate, intervals::simulate];
    for simulate in parts {
        simulate(&mut |scenario: Scenario<'_>| {
            let mut n_wrong = 0_u32;
            for _ in 0..repetitions {
                n_wrong += u32::from((scenario.trial)(&mut draws)?);
            }
            rates.push(ErrorRate {
                rule: scenario.rule,
                truth: scenario.truth,
                nominal: SIGNIFICANCE,
                simulated: f64::from(n_wrong) / f64::from(repetitions),
                repetitions,
            });
            Ok(())
        })?;
    }
    Ok(rates)
}

/// Takes scenarios one by one.
type Sink<'a> = &'a mut dyn FnMut(Scenario<'_>) -> Result<(), MetricError>;

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// 1,000 studies each. Four standard errors above one point over nominal: over some forty rules
    /// a false alarm below 1e-2 if every rule were at that bound, far below at the nominal rate;
    /// the seed is fixed.
    #[test]
    fn no_rule_is_wrong_more_often_than_it_promises() {
        let mut rng = ChaCha8Rng::seed_from_u64(19);
        let rates = error_rates(1_000, &mut rng).unwrap();
        assert!(rates.len() >= 30, "{}", rates.len());
        for rate in &rates {
            assert!(rate.simulated <= rate.nominal + 0.01 + 4.0 * rate.standard_error(), "{rate:?}");
        }
    }

    #[test]
    fn nothing_is_not_simulated() {
        assert!(error_rates(0, &mut ChaCha8Rng::seed_from_u64(1)).is_err());
    }
}
