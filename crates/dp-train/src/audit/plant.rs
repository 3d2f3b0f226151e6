//! Faults that can be planted, to see that the replay finds them.

use std::cell::Cell;

use strum::IntoStaticStr;

use crate::error::{Result, TrainError};

/// A fault of an engine whose sums move by more than is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Fault {
    /// Scales do not follow from norms: every gradient is scaled as a small one.
    NoCap,
    /// A matrix product rounds otherwise where it has one more row: with an odd number of rows it
    /// comes out larger by 2⁻¹⁶. Which numbers of rows a library tells apart, and by how much,
    /// depends on the processor.
    RowsCouple,
    /// Norms of records with several positions come from Gram matrices, without what rounding
    /// leaves of terms that cancel.
    GramNorm,
    /// A norm that is not a number is 0.
    NanZero,
    /// Sums of pieces are added in single precision.
    F32Stagnation,
    /// Of several ranks, one of which no record was drawn does not take part in the step.
    SkippedPart,
    /// Each of several ranks adds noise of its own, its share of the standard deviation in place of
    /// the variance.
    RankNoise,
    /// Each of several ranks makes the noise of its range of parameters, all from the beginning of
    /// one stream.
    RankStream,
}

impl Fault {
    /// Every fault that shows before the noise.
    pub const ALL: &'static [Self] =
        &[Self::NoCap, Self::RowsCouple, Self::GramNorm, Self::NanZero, Self::F32Stagnation, Self::SkippedPart];

    /// Whether it takes several ranks to have it.
    pub fn needs_ranks(self) -> bool {
        matches!(self, Self::SkippedPart | Self::RankNoise | Self::RankStream)
    }

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl std::str::FromStr for Fault {
    type Err = TrainError;

    fn from_str(name: &str) -> Result<Self> {
        let faults = Self::ALL.iter().copied();
        let names: Vec<&str> = faults.clone().map(Self::name).collect();
        let known = faults.into_iter().find(|fault| fault.name() == name);
        known.ok_or_else(|| TrainError::invalid("plant", name, format!("one of {}", names.join(", "))))
    }
}

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Whether this fault is planted on this thread.
pub(crate) fn planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Does the work with a fault planted on this thread, or with none.
pub fn with_planted<R>(fault: Option<Fault>, work: impl FnOnce() -> R) -> R {
    let before = PLANTED.replace(fault);
    let result = work();
    PLANTED.set(before);
    result
}
