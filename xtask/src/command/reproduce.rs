//! `cargo xtask reproduce STUDY`.

use clap::{Args, Subcommand};

use crate::ranks::ensure_alone;
use crate::studies::chosen::Chosen;
use crate::studies::study::StudyArgs;
use crate::studies::{accounting, all, toy};

/// Options of `cargo xtask reproduce`.
#[derive(Args)]
pub(crate) struct ReproduceArgs {
    #[command(subcommand)]
    study: Study,
}

#[derive(Subcommand)]
enum Study {
    #[command(flatten)]
    Training(Chosen<StudyArgs>),
    /// Every study in turn, those that fail left behind, and one index of all reports. Options that
    /// choose a part of a study are refused.
    All(StudyArgs),
    /// Every published ε beside ours, under each conversion.
    Accounting(accounting::AccountingArgs),
    /// Zhao 2025 Figure 1, left: a threshold vanishes, and its repair.
    Toy(toy::ToyArgs),
}

/// Runs a study and writes its report.
///
/// # Errors
/// If data, training or report fail.
pub(crate) fn run(args: ReproduceArgs) -> anyhow::Result<()> {
    if !matches!(args.study, Study::Training(_)) {
        ensure_alone("all, accounting and toy")?;
    }
    match args.study {
        Study::Training(Chosen { study, args }) => (study.make)(&args)?.run(&args),
        Study::All(args) => all::run(&args),
        Study::Accounting(args) => accounting::run(&args),
        Study::Toy(args) => toy::run(&args),
    }
}
