//! `cargo xtask audit`: attacks on the workspace's own claims.

mod accounting;
mod fairness;
mod linear;
mod privacy;
mod scores;
mod verdicts;

use clap::{Args, Subcommand};

/// Options of `cargo xtask audit`.
#[derive(Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    target: Target,
}

#[derive(Subcommand)]
enum Target {
    /// The accountants' bounds against a second implementation in multiple precision.
    Accounting(accounting::AccountingArgs),
    /// Intervals of groups' figures and names of the worst ones against known populations.
    Fairness(fairness::FairnessArgs),
    /// Every release of a training on all records: how far one unit moves its sum.
    Linear(linear::LinearArgs),
    /// Lower bounds on ε from attacks on the trainer, beside the claims
    Privacy(privacy::PrivacyArgs),
    /// The release of cumulative scores: its sensitivity, and an attack on it.
    Scores(scores::ScoresArgs),
    /// The error rates of every rule that gives a verdict, by simulation.
    Verdicts(verdicts::VerdictsArgs),
}

/// Runs one audit.
///
/// # Errors
/// If a claim does not hold.
pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<()> {
    match &args.target {
        Target::Accounting(args) => accounting::run(args),
        Target::Fairness(args) => fairness::run(args),
        Target::Linear(args) => linear::run(args),
        Target::Privacy(args) => privacy::run(args),
        Target::Scores(args) => scores::run(args),
        Target::Verdicts(args) => verdicts::run(args),
    }
}
