//! `cargo xtask bench AREA`: tables of measured speed.

mod clipping;
mod counted;
mod scale;
mod step;

use clap::{Args, Subcommand};

use crate::ranks::on_all;

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
    /// What a step on many processes would take, by a cost model that is fitted to measurements here.
    Scale(scale::ScaleArgs),
    /// One training step, with and without privacy; under `mpirun`, shared by all processes.
    Step(step::StepArgs),
}

/// Runs a benchmark and prints its table.
///
/// # Errors
/// If a result is wrong, or a peer fails.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.area {
        Area::Clipping(args) => clipping::run(args),
        Area::Scale(args) => on_all(|| scale::run(args)),
        Area::Step(args) => on_all(|| step::run(args)),
    }
}
