#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod errors;
mod linear;
pub mod one_run;
mod plant;
pub mod privacy;
pub mod replay;
mod scores;
mod two_worlds;

pub use dp_train::{BeforeNoise, FixedStep};
pub use errors::{ErrorsOutcome, ErrorsPlant, audit_errors};
pub use linear::{LinearOutcome, LinearRelease, replay_linear};
pub use plant::Fault;
pub use replay::replay_layer;
pub use scores::{ScoresOutcome, ScoresPlant, audit_scores};
