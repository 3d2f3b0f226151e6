#![doc = include_str!("../README.md")]

mod accountant;
mod calibration;
mod composition;
mod error;
mod events;
mod ledger;
mod normal;
mod parameters;
mod rdp;
mod relation;
mod trials;

pub use accountant::{Accountant, Certainty, DeltaBound, EpsilonBound};
pub use calibration::Calibration;
pub use error::AccountingError;
pub use events::DpEvent;
pub use ledger::{Ledger, LedgerEntry};
pub use parameters::{Delta, Epsilon, NoiseMultiplier, OutcomeCount, PositiveEpsilon, Rho, SamplingRate};
pub use rdp::{Conversion, Orders, RdpAccountant};
pub use relation::NeighbouringRelation;
pub use trials::TrialCount;
