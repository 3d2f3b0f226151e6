#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod accountant;
#[cfg(feature = "audit")]
pub mod audit;
mod calibration;
mod canonical;
pub mod case;
#[cfg(feature = "command")]
pub mod command;
mod composition;
mod decimal;
mod error;
mod events;
mod gauss_legendre;
mod gaussian;
mod gdp;
mod group;
mod group_events;
#[cfg(feature = "audit")]
#[doc(hidden)]
pub mod hook;
mod ledger;
mod limits;
mod log_sum;
mod mark;
mod matrix_mechanisms;
mod mixture_of_gaussians;
mod nesting;
mod normal;
mod pair;
mod parameters;
mod pld;
mod rdp;
mod relation;
mod simd;
mod statement;
mod trade_off;
mod trials;

pub use accountant::{Accountant, Certainty, DeltaBound, EpsilonBound, Method};
pub use calibration::{Calibration, LEAST_NOISE_MULTIPLIER, MOST_STEPS};
pub use decimal::{Rounding, decimal, scientific};
pub use error::AccountingError;
pub use events::DpEvent;
pub use gaussian::analytic_gaussian_noise_multiplier;
pub use gdp::GdpAccountant;
pub use group::GroupAccounting;
pub use ledger::{Ledger, LedgerEntry};
pub use mark::{Mark, MarkedEpsilon};
pub use matrix_mechanisms::{BandedMatrixFactorisation, TreeAggregation};
pub use mixture_of_gaussians::MixtureOfGaussians;
pub use normal::normal_quantile;
pub use parameters::{
    Delta, Divergence, Epsilon, NoiseMultiplier, OutcomeCount, PositiveEpsilon, RenyiOrder, Rho, SamplingRate,
};
pub use pld::PldAccountant;
pub use rdp::{Conversion, Orders, RdpAccountant};
pub use relation::NeighbouringRelation;
pub use statement::{Scope, Statement};
pub use trade_off::{AttackBound, TradeOff};
pub use trials::TrialCount;

/// Pages of the book, whose examples are tests of this crate.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/epsilon.md")]
    mod epsilon {}
}
