//! `cargo xtask audit privacy`: lower bounds on ε from attacks on the trainer, beside the claims.

use std::io::Write;
use std::num::NonZeroU16;

use anyhow::{Context, bail};
use clap::Args;
use dp_accounting::{Rounding, decimal};
use dp_audit::privacy::{AuditOutcome, AuditSettings, Plant, audit};
use dp_clipping::registry;
use dp_train::Randomness;

/// Options of `cargo xtask audit privacy`.
#[derive(Args)]
#[command(
    after_help = "An audit attacks the trainer with canaries and bounds ε from below, with confidence. A bound above the claim refutes it:
the command then fails. With --plant it audits a trainer with a fault, and is expected to fail.

Examples:
  cargo xtask audit privacy --method dpsgd-f --quick
  cargo xtask audit privacy --method all --json
  cargo xtask audit privacy --method dpsgd-f --quick --plant small-noise"
)]
pub(crate) struct PrivacyArgs {
    /// A method by its registry name, or `all` certified ones.
    #[arg(long, value_name = "NAME")]
    method: String,
    /// Fewer runs and canaries: seconds a method.
    #[arg(long)]
    quick: bool,
    /// A fault that the audit must find: no-cap, private-divisor, silent-count, data-scaling,
    /// small-noise or seed-reuse; rank-noise or rank-stream of several ranks.
    #[arg(long, value_name = "FAULT")]
    plant: Option<String>,
    /// Ranks that share every run, as threads of this process.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    ranks: u16,
    /// One JSON object per method and line.
    #[arg(long)]
    json: bool,
    /// Makes the audit reproducible; without, its randomness is the operating system's.
    #[arg(long)]
    seed: Option<u64>,
}

/// Audits, and prints each method as it is done.
///
/// # Errors
/// If a claim is refuted; the message says so. If a method is unknown or not certified, or the
/// fault does not apply to it.
pub(crate) fn run(args: &PrivacyArgs) -> anyhow::Result<()> {
    let plant = args.plant.as_deref().map(Plant::find).transpose()?;
    let settings = if args.quick { AuditSettings::quick() } else { AuditSettings::full() };
    let settings = AuditSettings { ranks: NonZeroU16::new(args.ranks).context("ranks")?.into(), ..settings };
    let randomness = match args.seed {
        Some(seed) => Randomness::from_seed(seed),
        None => Randomness::from_os().context("--seed was not given")?,
    };
    let methods: Vec<&str> = if args.method == "all" {
        // Those that claim something, and can have the fault.
        let takes_part =
            |config: &dp_clipping::ClipConfig| config.certified() && plant.is_none_or(|plant| plant.applies_to(config));
        registry::all()
            .into_iter()
            .filter(|entry| takes_part(&entry.default_config()))
            .map(|entry| entry.name)
            .collect()
    } else {
        vec![&args.method]
    };
    let mut out = std::io::stdout().lock();
    if !args.json {
        writeln!(out, "{}", header())?;
    }
    let mut refuted = Vec::new();
    for method in methods {
        let outcome = audit(method, &settings, plant, &randomness)?;
        if args.json {
            let mut object = serde_json::to_value(&outcome)?;
            object["mark"] = "certified".into();
            object["verdict"] = verdict(&outcome).into();
            writeln!(out, "{object}")?;
        } else {
            writeln!(out, "{}", row(&outcome))?;
        }
        out.flush()?;
        if outcome.refuted() {
            refuted.push(method);
        }
    }
    if !refuted.is_empty() {
        bail!("refuted: the audited lower bound exceeds the claimed ε of {}", refuted.join(", "));
    }
    if let Some(plant) = plant {
        bail!("the fault {} was not found", plant.name());
    }
    Ok(())
}

fn header() -> String {
    format!(
        "| {:<26} | claimed ε | true ε ≥ | audited ε ≥ | group 0 | group 1 | one run | one run, f-DP | one run, normal | verdict |\n|---|---|---|---|---|---|---|---|---|---|",
        "method"
    )
}

/// A row of the table: the claim rounded up, lower bounds down.
fn row(outcome: &AuditOutcome) -> String {
    let lower = |value| decimal(value, 2, Rounding::Down);
    let groups: Vec<String> = outcome.groups.iter().map(|group| lower(group.audited_lower)).collect();
    format!(
        "| {:<26} | {} (certified) | {} | {} | {} | {} | {} | {} | {} |",
        outcome.method,
        decimal(outcome.claimed_epsilon, 2, Rounding::Up),
        lower(outcome.true_epsilon),
        lower(outcome.audited_lower),
        groups.join(" | "),
        lower(outcome.one_run.one_run),
        lower(outcome.one_run.f_dp),
        lower(outcome.one_run.gaussian),
        verdict(outcome)
    )
}

fn verdict(outcome: &AuditOutcome) -> &'static str {
    if outcome.refuted() { "refuted" } else { "stands" }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: PrivacyArgs,
    }

    #[test]
    fn what_cannot_be_audited_is_said() {
        let error = |line: &str| {
            let args = Cli::try_parse_from(line.split_whitespace()).unwrap().args;
            run(&args).unwrap_err().to_string()
        };
        insta::assert_snapshot!(error("privacy --method dpsgd --quick --plant silent-count"), @"plant = silent-count: expected a fault that dpsgd can have: `silent-count` does not apply to it");
        insta::assert_snapshot!(error("privacy --method dpsgd --plant none"), @"plant = none: expected one of no-cap, private-divisor, silent-count, data-scaling, small-noise, uncharged-rate, other-threshold, seed-reuse, rank-noise, rank-stream");
        insta::assert_snapshot!(error("privacy --method fairlens"), @"method = fairlens: expected a certified method: this one claims nothing");
        assert!(error("privacy --method none").contains("method = none: expected one of"));
    }
}
