#![doc = include_str!("../README.md")]

mod plant;
pub mod privacy;
pub mod replay;

pub use dp_train::{BeforeNoise, FixedStep};
pub use plant::Fault;
