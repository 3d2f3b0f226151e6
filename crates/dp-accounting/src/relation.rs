//! Which data sets count as neighbours.

use serde::{Deserialize, Serialize};

/// Which pairs of data sets the guarantee compares.
///
/// **Units.** A noise multiplier always divides the noise's standard deviation by the bound on *one record's contribution*
/// (the clipping threshold). Under [`AddRemove`](Self::AddRemove) and [`ZeroOut`](Self::ZeroOut) that bound is the sensitivity;
/// under [`ReplaceOne`](Self::ReplaceOne) the sensitivity is twice as large, and accountants take that into account themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NeighbouringRelation {
    /// One record is present in one data set and absent from the other.
    AddRemove,
    /// One record of one data set is replaced by any other record; the number of records is public.
    ReplaceOne,
    /// One record contributes nothing in one of the data sets; the number of records is public.
    ZeroOut,
}

impl NeighbouringRelation {
    /// Largest change of a sum, in units of the bound on one record's contribution.
    pub const fn contributions(self) -> f64 {
        match self {
            Self::AddRemove | Self::ZeroOut => 1.0,
            Self::ReplaceOne => 2.0,
        }
    }

    /// Whether the number of records may be published with the result.
    pub const fn record_count_is_public(self) -> bool {
        matches!(self, Self::ReplaceOne | Self::ZeroOut)
    }
}

impl std::fmt::Display for NeighbouringRelation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AddRemove => "add-remove",
            Self::ReplaceOne => "replace-one",
            Self::ZeroOut => "zero-out",
        })
    }
}
