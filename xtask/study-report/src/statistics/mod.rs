//! The rules behind the answers of a report: who pays for privacy, whether a claim holds, whether a
//! figure agrees with a published one. `cargo xtask audit verdicts` simulates how often they are
//! wrong.

mod agreement;
mod cause;
mod statement;
mod tested_claim;

pub use self::agreement::{EffectAnswer, PublishedDifference, PublishedFigure, SIZE_MARGIN, Size};
pub use self::cause::{RiskCause, RiskTerm};
pub use self::statement::{FairnessStatement, GroupCost, PairedRuns, Payer, WidestGap};
pub use self::tested_claim::{Direction, TestedClaim};

/// The level of every test in a report.
pub const SIGNIFICANCE: f64 = 0.05;

/// The difference of privacy costs up to which Xu calls groups' costs equal (Xu 2021, 6.1.4).
pub const XU_TOLERANCE: f64 = 0.05;
