//! `cargo xtask analyse STUDY`: a study whose private runs are taken apart, step by step.

use anyhow::Context;
use clap::{Args, Subcommand};
use dp_train::analysis::{AnalysisSettings, EigenvalueSearch};

use crate::run::step_analysis::AnalysisSchedule;
use crate::studies::study::{Study, StudyArgs};
use crate::studies::{adult, celeba, dutch, mnist};

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
    /// CelebA: Esipova 2023 Figures 10, 13 and 17.
    Celeba(AnalysisArgs),
    /// Dutch census: Esipova 2023 Figures 3, 11 and 15; Xu 2020 Figures 2 and 7.
    Dutch(AnalysisArgs),
    /// MNIST, groups are the classes: Esipova 2023 Figures 9, 12 and 16; Xu 2020 Figures 1 and 3 to
    /// 5, Xu 2021 Figures 1 and 2.
    Mnist(AnalysisArgs),
}

/// Options of one analysis.
#[derive(Args, Clone)]
struct AnalysisArgs {
    #[command(flatten)]
    study: StudyArgs,
    /// Steps from one evaluation to the next [default: the paper's, 50 for Adult, 100 for Dutch,
    /// 200 for images].
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Epochs instead of the paper's. The report is then marked QUICK, and there are two seeds
    /// unless asked for otherwise.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    epochs: Option<u64>,
    /// Poisson batches in an evaluation [default: 8, in a quick run 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    batches: Option<u32>,
    /// Random vectors for the trace of each group's Hessian [default: the paper's 100, in a quick
    /// run 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    probes: Option<u32>,
    /// Hessian-vector products in the search for each group's largest eigenvalue, which starts
    /// where the last one ended (0: none) [default: 4, in a quick run 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    eigenvalue_products: Option<u32>,
    /// Records of each group that the largest eigenvalue is about [default: 256, in a quick run
    /// 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    eigenvalue_records: Option<u32>,
}

impl AnalysisArgs {
    /// Runs are side by side, one on each thread, so an evaluation has one thread.
    fn settings(&self) -> AnalysisSettings {
        let usual = AnalysisSettings::default();
        let quick = self.study.options.quick;
        let either = |asked: Option<u32>, usual, in_quick_run| {
            asked.map_or(if quick { in_quick_run } else { usual }, |asked| asked as usize)
        };
        let iterations = either(self.eigenvalue_products, 4, 2);
        let search = EigenvalueSearch { iterations, records: either(self.eigenvalue_records, 256, 16) };
        AnalysisSettings {
            batches: either(self.batches, usual.batches, 4),
            probes: either(self.probes, usual.probes, 10),
            eigenvalues: (iterations > 0).then_some(search),
            ..usual
        }
    }
}

/// Runs of a method unless `--seeds` says otherwise: the paper's five.
const SEEDS: u32 = 5;

/// Trains, takes steps apart and writes the report.
///
/// # Errors
/// If a setting is out of range, or data, training or report fail.
pub(crate) fn run(args: &AnalyseArgs) -> anyhow::Result<()> {
    let (name, args) = match &args.study {
        Analysis::Adult(args) => ("analyse-adult", args),
        Analysis::Dutch(args) => ("analyse-dutch", args),
        Analysis::Celeba(args) => ("analyse-celeba", args),
        Analysis::Mnist(args) => ("analyse-mnist", args),
    };
    let interval = match &name["analyse-".len()..] {
        "adult" => 50,
        "dutch" => 100,
        _ => image_interval(args),
    };
    analyse(study(name, &args.study)?.with_context(|| format!("{name} is an analysis"))?, args, interval)
}

/// The analysis with this name, before its schedule is known; `None` if there is none.
///
/// # Errors
/// If a setting is out of range.
pub(crate) fn study(name: &str, args: &StudyArgs) -> anyhow::Result<Option<Study>> {
    let (title, mut study) = match name {
        "analyse-adult" => ("Adult", adult::study(args)?),
        "analyse-dutch" => ("Dutch census", dutch::study(args)?),
        "analyse-celeba" => ("CelebA", celeba::study(args)?),
        "analyse-mnist" => ("MNIST", mnist::study(args)?),
        _ => return Ok(None),
    };
    study.name.insert_str(0, "analyse-");
    study.presentation.title = format!("{title}: why clipping is unfair");
    Ok(Some(study))
}

/// The paper's interval, but that a quick run would end before its second evaluation.
fn image_interval(args: &AnalysisArgs) -> u64 {
    if args.study.options.quick { 40 } else { 200 }
}

fn analyse(mut study: Study, args: &AnalysisArgs, published_interval: u64) -> anyhow::Result<()> {
    // Searches are left to `reproduce`: their runs are many, and say nothing that one setting does
    // not.
    study.follow_up = None;
    study.experiments.retain(|experiment| experiment.methods.iter().all(|method| method.coordinates.is_empty()));
    for experiment in &mut study.experiments {
        experiment.seeds = SEEDS;
    }
    let every = args.every.unwrap_or(published_interval);
    let schedule = AnalysisSchedule { every, settings: args.settings() };
    let epochs = args.epochs;
    let mut args = args.study.clone();
    if let Some(epochs) = epochs {
        for experiment in &mut study.experiments {
            experiment.epochs = epochs;
        }
        args.options.quick = true;
    }
    study.run_analysed(&args, Some(schedule))
}
