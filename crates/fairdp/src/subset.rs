//! The subsets that the records of a run are divided into.

use serde::{Deserialize, Serialize};

/// A subset of the records of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subset {
    /// Records that the model learns from.
    Training,
    /// Records that the model is tested on.
    Test,
    /// Records that the trials of a search are compared on.
    Validation,
}

impl Subset {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Training, Self::Test, Self::Validation];

    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Test => "test",
            Self::Validation => "validation",
        }
    }
}
