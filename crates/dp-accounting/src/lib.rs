#![doc = include_str!("../README.md")]

mod accountant;
mod calibration;
mod composition;
mod error;
mod events;
mod gaussian;
mod gdp;
mod group;
mod ledger;
mod log_sum;
mod normal;
mod parameters;
mod pld;
mod rdp;
mod relation;
mod statement;
mod trials;

pub use accountant::{Accountant, Certainty, DeltaBound, EpsilonBound, Method};
pub use calibration::Calibration;
pub use error::AccountingError;
pub use events::DpEvent;
pub use gaussian::analytic_gaussian_noise_multiplier;
pub use gdp::GdpAccountant;
pub use group::GroupAccounting;
pub use ledger::{Ledger, LedgerEntry};
pub use parameters::{Delta, Epsilon, NoiseMultiplier, OutcomeCount, PositiveEpsilon, Rho, SamplingRate};
pub use pld::PldAccountant;
pub use rdp::{Conversion, Orders, RdpAccountant};
pub use relation::NeighbouringRelation;
pub use statement::{Scope, Statement};
pub use trials::TrialCount;
