//! What is asked of thresholds.

use serde::{Deserialize, Serialize};

/// The notion of fairness that thresholds by group follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mode {
    /// Groups are measured and not acted on.
    #[default]
    None,
    /// The balanced accuracy of the group where it is least is raised.
    WorstGroup,
    /// True-positive and false-positive rates of the groups are brought together.
    EqualizedOdds,
    /// True-positive rates are brought together.
    EqualOpportunity,
    /// Rates of positive answers are brought together.
    DemographicParity,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::None, Self::WorstGroup, Self::EqualizedOdds, Self::EqualOpportunity, Self::DemographicParity];

    /// As a configuration has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::WorstGroup => "worst-group",
            Self::EqualizedOdds => "equalized-odds",
            Self::EqualOpportunity => "equal-opportunity",
            Self::DemographicParity => "demographic-parity",
        }
    }

    /// The mode of a name.
    ///
    /// # Errors
    /// [`DecisionError::InvalidParameter`](crate::DecisionError::InvalidParameter) with the names that there are.
    pub fn find(name: &str) -> Result<Self, crate::DecisionError> {
        let names: Vec<&str> = Self::ALL.iter().map(|mode| mode.name()).collect();
        let found = Self::ALL.into_iter().find(|mode| mode.name() == name);
        found.ok_or_else(|| crate::DecisionError::invalid("mode", name, format!("one of {}", names.join(", "))))
    }
}

/// A mode with its limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Aim {
    /// The notion of fairness.
    pub mode: Mode,
    /// The most that accuracy, accuracy as the decision weighs classes, and balanced accuracy may each fall by.
    pub max_loss: f64,
    /// A gap that is small enough: no accuracy is given up to go below it.
    pub max_gap: f64,
    /// One threshold for all groups, where a decision may not depend on the group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_threshold: bool,
    /// Whether a coin may decide between thresholds of a group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coins: bool,
}

impl Aim {
    /// The mode with a cap of 0.02, towards no gap at all.
    pub const fn of(mode: Mode) -> Self {
        Self { mode, max_loss: 0.02, max_gap: 0.0, one_threshold: false, coins: false }
    }

    /// With limits.
    ///
    /// # Errors
    /// [`DecisionError::InvalidParameter`](crate::DecisionError::InvalidParameter) for limits outside [0, 1].
    pub fn with_limits(mode: Mode, max_loss: f64, max_gap: f64) -> Result<Self, crate::DecisionError> {
        for (name, value) in [("max_loss", max_loss), ("max_gap", max_gap)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(crate::DecisionError::invalid(name, value, "0 to 1"));
            }
        }
        Ok(Self { max_loss, max_gap, ..Self::of(mode) })
    }

    /// The same with one threshold for all groups, which no coin moves.
    #[must_use]
    pub const fn with_one_threshold(self, one_threshold: bool) -> Self {
        Self { one_threshold, coins: self.coins && !one_threshold, ..self }
    }

    /// The same where a coin may decide between thresholds of a group, unless all groups have one.
    #[must_use]
    pub const fn with_coins(self, coins: bool) -> Self {
        Self { coins: coins && !self.one_threshold, ..self }
    }
}
