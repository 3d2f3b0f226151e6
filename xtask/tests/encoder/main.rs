//! Text encoders and the study that uses one. They are tested here and not in `dp-train`, whose own
//! test dependencies would have candle and its models compiled once more.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod features;
mod reference;
mod study;
mod tiny;
