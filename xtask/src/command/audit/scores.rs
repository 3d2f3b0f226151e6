//! `cargo xtask audit scores`: the release of cumulative scores of groups.

use anyhow::{Context, bail};
use clap::Args;
use dp_accounting::{Delta, Rounding, decimal};
use dp_audit::{ScoresPlant, audit_scores};
use dp_train::Randomness;

use crate::terminal;

const DELTA: f64 = 1e-5;

/// Options of `cargo xtask audit scores`.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask audit scores
  cargo xtask audit scores --plant column-norm")]
pub(crate) struct ScoresArgs {
    /// A fault that the audit must find: column-norm.
    #[arg(long, value_name = "FAULT")]
    plant: Option<String>,
    /// Makes the audit reproducible; without, its randomness is the operating system's.
    #[arg(long)]
    seed: Option<u64>,
}

/// Audits units of one record and of three.
///
/// # Errors
/// If the claim is refuted; the message says so.
pub(crate) fn run(args: &ScoresArgs) -> anyhow::Result<()> {
    let plant = args.plant.as_deref().map(ScoresPlant::find).transpose()?;
    let randomness = match args.seed {
        Some(seed) => Randomness::from_seed(seed),
        None => Randomness::from_os().context("--seed was not given")?,
    };
    terminal::write(format_args!(
        "| records of a unit | moved / sensitivity | claimed ε | audited ε ≥ |\n|---|---|---|---|\n"
    ))?;
    let mut is_refuted = false;
    for records_per_unit in [1, 3] {
        let randomness = randomness.derived(&format!("units of {records_per_unit}"));
        let outcome = audit_scores(records_per_unit, plant, Delta::new(DELTA)?, &randomness)?;
        is_refuted |= outcome.refuted();
        terminal::write(format_args!(
            "| {records_per_unit} | {} | {} (certified) | {} |\n",
            decimal(outcome.moved, 6, Rounding::Up),
            decimal(outcome.claimed_epsilon, 2, Rounding::Up),
            decimal(outcome.audited_lower, 2, Rounding::Down),
        ))?;
    }
    match (is_refuted, args.plant.as_deref()) {
        (true, _) => bail!("refuted: a unit moves the counts by more than the noise is set by"),
        (false, Some(plant)) => bail!("the fault {plant} was not found"),
        (false, None) => Ok(()),
    }
}
