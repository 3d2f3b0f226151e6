//! `cargo xtask analyse STUDY`: a study whose private runs are taken apart, step by step.

use clap::{Args, Subcommand};
use dp_train::analysis::{AnalysisSettings, EigenvalueSearch};

use crate::reproduce::step_analysis::AnalysisSchedule;
use crate::reproduce::study::{Study, StudyArgs};
use crate::reproduce::{adult, dutch, mnist};

/// Options of `cargo xtask analyse`.
#[derive(Args)]
pub(crate) struct AnalyseArgs {
    #[command(subcommand)]
    study: Analysis,
}

#[derive(Subcommand)]
enum Analysis {
    /// Adult: Esipova 2023 Figures 4, 5, 7, 8 and 14; Xu 2020 Figures 2 and 6.
    Adult(AnalysisArgs),
    /// Dutch census: Esipova 2023 Figures 3, 11 and 15; Xu 2020 Figure 7.
    Dutch(AnalysisArgs),
    /// MNIST, groups are the classes: Esipova 2023 Figures 9, 12 and 16; Xu 2020 Figures 1 and 3 to 5, Xu 2021 Figures 1 and 2.
    Mnist(AnalysisArgs),
}

/// Options of one analysis.
#[derive(Args, Clone)]
struct AnalysisArgs {
    #[command(flatten)]
    study: StudyArgs,
    /// Steps from one evaluation to the next [default: the paper's, 50 for Adult, 100 for Dutch, 200 for MNIST].
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Poisson batches in an evaluation.
    #[arg(long, default_value_t = AnalysisSettings::default().batches, value_name = "N")]
    batches: usize,
    /// Random vectors for the trace of each group's Hessian.
    #[arg(long, default_value_t = AnalysisSettings::default().probes, value_name = "N")]
    probes: usize,
    /// Hessian-vector products in the search for each group's largest eigenvalue, which starts where the last one ended (0: none).
    #[arg(long, default_value_t = 4, value_name = "N")]
    eigenvalue_products: usize,
    /// Records of each group that the largest eigenvalue is about.
    #[arg(long, default_value_t = 256, value_name = "N")]
    eigenvalue_records: usize,
}

/// Runs of a method unless `--seeds` says otherwise: the paper's five.
const SEEDS: u32 = 5;

/// Trains, takes steps apart and writes the report.
///
/// # Errors
/// If a setting is out of range, or data, training or report fail.
pub(crate) fn run(args: AnalyseArgs) -> anyhow::Result<()> {
    match args.study {
        Analysis::Adult(args) => {
            analyse("analyse-adult", "Adult: why clipping is unfair", adult::study(&args.study)?, &args, 50)
        }
        Analysis::Dutch(args) => {
            analyse("analyse-dutch", "Dutch census: why clipping is unfair", dutch::study(&args.study)?, &args, 100)
        }
        Analysis::Mnist(args) => {
            // A quick run ends before the paper's second evaluation.
            let every = if args.study.options.quick { 20 } else { 200 };
            analyse("analyse-mnist", "MNIST: why clipping is unfair", mnist::study(&args.study)?, &args, every)
        }
    }
}

fn analyse(
    name: &'static str,
    title: &str,
    mut study: Study,
    args: &AnalysisArgs,
    published_interval: u64,
) -> anyhow::Result<()> {
    study.name = name;
    title.clone_into(&mut study.presentation.title);
    // Searches are left to `reproduce`: their runs are many, and say nothing that one setting does not.
    study.follow_up = None;
    study.experiments.retain(|experiment| experiment.methods.iter().all(|method| method.coordinates.is_empty()));
    for experiment in &mut study.experiments {
        experiment.seeds = SEEDS;
    }
    let eigenvalues = (args.eigenvalue_products > 0)
        .then_some(EigenvalueSearch { iterations: args.eigenvalue_products, records: args.eigenvalue_records });
    // Runs are side by side, one on each thread, so an evaluation has one thread.
    let settings =
        AnalysisSettings { batches: args.batches, probes: args.probes, eigenvalues, ..AnalysisSettings::default() };
    let every = args.every.unwrap_or(published_interval);
    study.run_analysed(&args.study, Some(AnalysisSchedule { every, settings }))
}
