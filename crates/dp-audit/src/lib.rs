#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod plant;
pub mod privacy;
pub mod replay;

pub use dp_train::{BeforeNoise, FixedStep};
pub use plant::Fault;
