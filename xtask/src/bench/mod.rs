//! `cargo xtask bench AREA`: tables of measured speed.

mod clipping;
mod step;

use clap::{Args, Subcommand};

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    area: Area,
}

#[derive(Subcommand)]
enum Area {
    /// Clipping kernels against the stream-read bandwidth, ndarray and candle.
    Clipping(clipping::ClippingArgs),
    /// One training step, with and without privacy.
    Step(step::StepArgs),
}

/// Runs a benchmark and prints its table.
///
/// # Errors
/// If a result is wrong, or a peer fails.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.area {
        Area::Clipping(args) => clipping::run(args),
        Area::Step(args) => step::run(args),
    }
}
