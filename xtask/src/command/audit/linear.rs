//! `cargo xtask audit linear`: every release of a training on all records.

use anyhow::{Context, bail};
use clap::Args;
use dp_accounting::{Rounding, decimal};
use dp_audit::{LinearOutcome, LinearRelease, replay_linear};
use dp_train::Randomness;

use crate::terminal;

/// Options of `cargo xtask audit linear`.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask audit linear
  cargo xtask audit linear --plant block-covariance")]
pub(crate) struct LinearArgs {
    /// Tables that are trained on, with a unit and without.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    cases: u64,
    /// A kind of release that has half of its noise, which the audit must find.
    #[arg(long, value_name = "RELEASE")]
    plant: Option<String>,
    /// Makes the audit reproducible; without, its randomness is the operating system's.
    #[arg(long)]
    seed: Option<u64>,
}

/// Replays every kind of release.
///
/// # Errors
/// If the claim is refuted; the message says so.
pub(crate) fn run(args: &LinearArgs) -> anyhow::Result<()> {
    let plant = args.plant.as_deref().map(LinearRelease::find).transpose()?;
    let randomness = match args.seed {
        Some(seed) => Randomness::from_seed(seed),
        None => Randomness::from_os().context("--seed was not given")?,
    };
    let found = replay_linear(args.cases, plant, &randomness)?;
    terminal::write(format_args!("| release | pairs | moved / sensitivity |\n|---|---|---|\n"))?;
    for outcome in &found {
        let moved = decimal(outcome.moved, 6, Rounding::Up);
        terminal::write(format_args!("| {} | {} | {moved} |\n", outcome.release.name(), outcome.replayed))?;
    }
    match (found.iter().any(LinearOutcome::refuted), plant) {
        (true, _) => bail!("refuted: a unit moves a sum by more than the noise is made for"),
        (false, Some(plant)) => bail!("the fault in {} was not found", plant.name()),
        (false, None) => Ok(()),
    }
}
