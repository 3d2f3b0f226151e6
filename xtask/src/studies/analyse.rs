//! `cargo xtask analyse STUDY`: a study whose private runs are taken apart, step by step.

use anyhow::bail;
use clap::Args;
use dp_train::analysis::{AnalysisSettings, EigenvalueSearch};

use super::chosen::{Chosen, OfStudies};
use super::esipova;
use super::study::{Study, StudyArgs};
use super::table::{self, Analysis, TRAINING, TrainingStudy};
use crate::run::step_analysis::AnalysisSchedule;

/// Options of `cargo xtask analyse`.
#[derive(Args)]
pub(crate) struct AnalyseArgs {
    #[command(subcommand)]
    study: Chosen<AnalysisArgs>,
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

impl OfStudies for AnalysisArgs {
    fn studies() -> impl Iterator<Item = (&'static TrainingStudy, &'static str)> {
        TRAINING.iter().filter_map(|study| Some((study, study.analysis?.about)))
    }
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

/// What names of analyses, and of their records, begin with.
const PREFIX: &str = "analyse-";

/// Trains, takes steps apart and writes the report.
///
/// # Errors
/// If a setting is out of range, or data, training or report fail.
pub(crate) fn run(args: &AnalyseArgs) -> anyhow::Result<()> {
    let Chosen { study, args } = &args.study;
    match &study.analysis {
        Some(analysis) => analyse(of(study, analysis, &args.study)?, args, analysis),
        None => bail!("{}: no analysis", study.name),
    }
}

/// The analysis with this name, before its schedule is known; `None` if there is none.
///
/// # Errors
/// If a setting is out of range.
pub(crate) fn study(name: &str, args: &StudyArgs) -> anyhow::Result<Option<Study>> {
    let known = name.strip_prefix(PREFIX).and_then(table::find);
    let analysed = known.and_then(|study| Some((study, study.analysis.as_ref()?)));
    analysed.map(|(study, analysis)| of(study, analysis, args)).transpose()
}

fn of(study: &TrainingStudy, analysis: &Analysis, args: &StudyArgs) -> anyhow::Result<Study> {
    let mut made = (study.make)(args)?;
    made.name.insert_str(0, PREFIX);
    made.presentation.title = format!("{}: why clipping is unfair", analysis.data);
    let experiments: Vec<&str> = made.experiments.iter().map(|experiment| experiment.id.as_str()).collect();
    made.presentation.claims.extend(esipova::claims_of_steps(&experiments)?);
    Ok(without_searches(made))
}

/// Searches are left to `reproduce`: their runs are many, and say nothing that one setting does
/// not.
fn without_searches(mut study: Study) -> Study {
    study.follow_up = None;
    study.experiments.retain(|experiment| experiment.methods.iter().all(|method| method.coordinates.is_empty()));
    let is_trained = |id: &str| study.experiments.iter().any(|experiment| experiment.id == id);
    study.presentation.tables.retain(|table| is_trained(&table.experiment));
    study.presentation.claims.retain(|claim| claim.names().all(|(experiment, _)| is_trained(experiment)));
    study.presentation.ranked.retain(|ranked| is_trained(ranked.experiment));
    study
}

fn analyse(mut study: Study, args: &AnalysisArgs, analysis: &Analysis) -> anyhow::Result<()> {
    for experiment in &mut study.experiments {
        experiment.seeds = SEEDS;
    }
    let published = if args.study.options.quick { analysis.quick_every } else { analysis.every };
    let every = args.every.unwrap_or(published);
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
