//! Which data sets count as neighbours.

use serde::{Deserialize, Serialize};

/// Which pairs of data sets the guarantee compares.
///
/// **Units.** A noise multiplier always divides the noise's standard deviation by the bound on *one
/// record's contribution* (the clipping threshold). Under [`AddRemove`](Self::AddRemove) and
/// [`ZeroOut`](Self::ZeroOut) that bound is the sensitivity; under [`ReplaceOne`](Self::ReplaceOne)
/// the sensitivity is twice as large, and accountants take that into account themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NeighbouringRelation {
    /// One record is present in one data set and absent from the other.
    AddRemove,
    /// One record is removed: what is released with it is compared with what is released without
    /// it, not the other way round.
    ///
    /// One half of [`AddRemove`](Self::AddRemove), mostly the worse one.
    Remove,
    /// One record is added: what is released without it is compared with what is released with it,
    /// not the other way round.
    Add,
    /// One record of one data set is replaced by any other record; the number of records is public.
    ReplaceOne,
    /// One record contributes nothing in one of the data sets; the number of records is public.
    ZeroOut,
}

impl NeighbouringRelation {
    /// Largest change of a sum, in units of the bound on one record's contribution.
    pub const fn contributions(self) -> f64 {
        match self {
            Self::AddRemove | Self::Remove | Self::Add | Self::ZeroOut => 1.0,
            Self::ReplaceOne => 2.0,
        }
    }

    /// Whether it has neighbours of which the first has the record, or its old value, and such of
    /// which the second has.
    pub(crate) const fn directions(self) -> [bool; 2] {
        [!matches!(self, Self::Add), !matches!(self, Self::Remove)]
    }

    /// The relation with the two data sets in the other order.
    #[must_use]
    pub const fn exchanged(self) -> Self {
        match self {
            Self::Remove => Self::Add,
            Self::Add => Self::Remove,
            symmetric => symmetric,
        }
    }

    /// Whether the number of records may be published with the result.
    pub(crate) const fn record_count_is_public(self) -> bool {
        matches!(self, Self::ReplaceOne | Self::ZeroOut)
    }
}

impl std::fmt::Display for NeighbouringRelation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AddRemove => "add-remove",
            Self::Remove => "remove",
            Self::Add => "add",
            Self::ReplaceOne => "replace-one",
            Self::ZeroOut => "zero-out",
        })
    }
}
