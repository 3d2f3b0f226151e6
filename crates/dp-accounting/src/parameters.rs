//! Validated numbers: a value of one of these types needs no further check.

use serde::{Deserialize, Serialize};

use crate::AccountingError;

macro_rules! validated {
    ($(#[$doc:meta])* $name:ident, $parameter:literal, $accepted:literal, |$x:ident| $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// Checks a value.
            ///
            /// # Errors
            #[doc = concat!("[`AccountingError::InvalidParameter`] unless the value is ", $accepted, ".")]
            pub fn new(value: f64) -> Result<Self, AccountingError> {
                let $x = value;
                if $check {
                    Ok(Self(value))
                } else {
                    Err(AccountingError::invalid($parameter, value, $accepted))
                }
            }

            /// The number itself.
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = AccountingError;
            fn try_from(value: f64) -> Result<Self, AccountingError> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

validated!(
    /// Probability with which each record enters a batch, in (0, 1].
    SamplingRate, "sampling_rate", "a number in (0, 1]", |x| x > 0.0 && x <= 1.0
);
validated!(
    /// Noise standard deviation (or Laplace scale) divided by the bound on one record's
    /// contribution: positive and finite.
    NoiseMultiplier, "noise_multiplier", "a finite number of at least 1e-6", |x| x >= 1e-6 && x.is_finite()
);
validated!(
    /// Probability δ with which the ε bound may fail, in [0, 1]. At 0 the answer is the pure ε,
    /// which Gaussian noise never has; at 1 it is 0.
    Delta, "delta", "a number in [0, 1]", |x| (0.0..=1.0).contains(&x)
);

validated!(
    /// Pure ε of one local report: positive and finite.
    PositiveEpsilon, "epsilon", "a finite number above 0", |x| x > 0.0 && x.is_finite()
);
validated!(
    /// ρ of zero-concentrated differential privacy: at least 0 and finite.
    Rho, "rho", "a finite number of at least 0", |x| x >= 0.0 && x.is_finite()
);

validated!(
    /// Order α of a Rényi divergence: above 1 and finite.
    RenyiOrder, "order", "a finite number above 1", |x| x > 1.0 && x.is_finite()
);
validated!(
    /// A Rényi divergence, in nats: at least 0 and finite.
    Divergence, "divergence", "a finite number of at least 0", |x| x >= 0.0 && x.is_finite()
);

/// Number of values that a randomised response can take: at least 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct OutcomeCount(u32);

impl OutcomeCount {
    /// Checks a value.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for fewer than two outcomes.
    pub fn new(value: u32) -> Result<Self, AccountingError> {
        if value >= 2 { Ok(Self(value)) } else { Err(AccountingError::invalid("n_outcomes", value, "at least 2")) }
    }

    /// The number itself.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for OutcomeCount {
    type Error = AccountingError;
    fn try_from(value: u32) -> Result<Self, AccountingError> {
        Self::new(value)
    }
}

impl From<OutcomeCount> for u32 {
    fn from(value: OutcomeCount) -> u32 {
        value.0
    }
}

impl std::fmt::Display for OutcomeCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Privacy loss bound ε ≥ 0; infinite means no privacy.
///
/// It has no `Display`: an ε goes to text with its mark, as a
/// [`MarkedEpsilon`](crate::MarkedEpsilon).
///
/// **Edge cases.** JSON has no infinity: it is written as `null`.
///
/// ```
/// use dp_accounting::Epsilon;
/// assert_eq!(Epsilon::new(1.0)?.get(), 1.0);
/// assert!(!Epsilon::INFINITE.is_finite());
/// let error = Epsilon::new(-1.0).unwrap_err();
/// assert_eq!(error.to_string(), "epsilon = -1: expected a number of at least 0, or infinity");
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "Option<f64>", into = "Option<f64>")]
pub struct Epsilon(f64);

impl Epsilon {
    /// No privacy.
    pub const INFINITE: Self = Self(f64::INFINITY);

    /// Checks a value.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless the value is at least 0 (infinity included).
    pub fn new(value: f64) -> Result<Self, AccountingError> {
        if value >= 0.0 {
            Ok(Self(value))
        } else {
            Err(AccountingError::invalid("epsilon", value, "a number of at least 0, or infinity"))
        }
    }

    /// The number itself.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Whether this is a guarantee at all.
    pub const fn is_finite(self) -> bool {
        self.0.is_finite()
    }
}

impl TryFrom<Option<f64>> for Epsilon {
    type Error = AccountingError;
    fn try_from(value: Option<f64>) -> Result<Self, AccountingError> {
        value.map_or(Ok(Self::INFINITE), Self::new)
    }
}

impl From<Epsilon> for Option<f64> {
    fn from(value: Epsilon) -> Self {
        value.is_finite().then_some(value.0)
    }
}

impl From<Epsilon> for f64 {
    fn from(value: Epsilon) -> f64 {
        value.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_enforced_and_named() {
        for bad in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
            assert!(SamplingRate::new(bad).is_err());
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(NoiseMultiplier::new(bad).is_err());
        }
        for bad in [1.0 + 1e-15, -1e-9, f64::NAN] {
            assert!(Delta::new(bad).is_err());
        }
        assert!(Epsilon::new(-0.1).is_err());
        assert!(Epsilon::new(f64::NAN).is_err());
        insta::assert_snapshot!(SamplingRate::new(1.5).unwrap_err(), @"sampling_rate = 1.5: expected a number in (0, 1]");
        insta::assert_snapshot!(NoiseMultiplier::new(0.0).unwrap_err(), @"noise_multiplier = 0: expected a finite number of at least 1e-6");
        insta::assert_snapshot!(Delta::new(1.5).unwrap_err(), @"delta = 1.5: expected a number in [0, 1]");
        insta::assert_snapshot!(Epsilon::new(-1.0).unwrap_err(), @"epsilon = -1: expected a number of at least 0, or infinity");
    }

    #[test]
    fn deserialising_checks_too() {
        assert!(serde_json::from_str::<SamplingRate>("0.5").is_ok());
        assert!(serde_json::from_str::<SamplingRate>("2.0").is_err());
        let infinite: Epsilon = serde_json::from_str("null").unwrap();
        assert!(!infinite.is_finite());
        assert_eq!(serde_json::to_string(&infinite).unwrap(), "null");
    }
}
