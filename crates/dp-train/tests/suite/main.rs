//! What a run must do, tested through the public interface. One program, so that the tensor library
//! is linked once.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounting;
mod audit;
mod bits;
mod by_group;
mod candle_nn;
mod checkpoints;
mod config_files;
mod convolution;
mod couplings;
mod cuda;
mod curvature;
mod decomposition;
mod early_stopping;
mod empty_and_bad_records;
mod examples;
mod layer_oracle;
mod learning;
mod micro_batches;
mod neighbours;
mod oracle;
mod own_parts;
mod ranks;
mod refusals;
mod reproducibility;
mod rounding;
mod support;
mod threads;
mod weights;
