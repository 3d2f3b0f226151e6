//! `cargo xtask reproduce toy`: Zhao 2025, Figure 1 (left). A threshold that follows a quantile
//! vanishes, and a minority with it.
//!
//! 60 % of the points lie near 0, 40 % near 1; the mean is sought by gradient descent on ½(x − μ)².
//! Once μ is nearer to the majority, fewer than half of the gradients exceed the threshold, so it
//! falls, until every gradient has the same size and the majority wins.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use dp_clipping::{ClipBatch, CountNoise, PresetParams, PublicContext, registry};
use fair_report::plot::{LinePanel, Panel, Plot, Point, Series};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Normal};
use run_records::output::{Contents, ReportFolder};
use run_records::shell;
use serde::Serialize;
use study_report::PlainReport;

use crate::paths::reports_root;
use crate::terminal::say;

/// Options of `cargo xtask reproduce toy`.
#[derive(Args)]
pub(crate) struct ToyArgs {
    /// Lower bound of the bounded method. The minority's gradients have norm 0.6 at the mean.
    #[arg(long, default_value_t = LOWER_BOUND)]
    lower_bound: f64,
    /// Steps of gradient descent.
    #[arg(long, default_value_t = STEPS, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    steps: u32,
    /// Seed of the points.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Where the report goes [default: target/reproduce/toy].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl ToyArgs {
    /// The defaults of the command line, with the report in this directory.
    pub(crate) fn to(out: &Path) -> Self {
        Self { lower_bound: LOWER_BOUND, steps: STEPS, seed: SEED, out: Some(out.to_owned()) }
    }
}

/// Defaults of the options.
const LOWER_BOUND: f64 = 0.6;
const STEPS: u32 = 400;
const SEED: u64 = 1;

const N_POINTS: usize = 1000;
const N_MAJORITY: usize = 600;
/// Standard deviation of the points around 0 and 1.
const SPREAD: f64 = 0.001;
/// Of the descent on the normalised gradient.
const LEARNING_RATE: f64 = 0.05;
/// Its name on the command line.
const STUDY: &str = "toy";
const TITLE: &str = "A vanishing threshold and its repair";
/// The methods compared, by their names in the registry.
const METHODS: [&str; 2] = ["unbounded-adaptive", "bounded-adaptive"];

/// Everything behind the report.
#[derive(Debug, Serialize)]
struct ToyResults {
    study: &'static str,
    seed: u64,
    n_points: usize,
    true_mean: f64,
    lower_bound: f64,
    learning_rate: f64,
    runs: Vec<Run>,
}

/// One method.
#[derive(Debug, Serialize)]
struct Run {
    method: &'static str,
    label: &'static str,
    /// μ before each step, and after the last.
    estimates: Vec<f64>,
    /// Threshold of each step.
    thresholds: Vec<f64>,
}

impl Run {
    fn final_estimate(&self) -> f64 {
        self.estimates.last().copied().unwrap_or(f64::NAN)
    }

    fn final_threshold(&self) -> f64 {
        self.thresholds.last().copied().unwrap_or(f64::NAN)
    }
}

/// Runs the toy, prints its table and writes the report.
///
/// # Errors
/// If the lower bound is out of range, or files cannot be written.
pub(crate) fn run(args: &ToyArgs) -> anyhow::Result<()> {
    let out = args.out.clone().unwrap_or_else(|| reports_root().join("toy"));
    let out = ReportFolder::claim(&out, STUDY, TITLE, Contents::Report)?;
    let results = simulate(args.lower_bound, args.steps, args.seed)?;
    write(&results, &out)?;
    say!("{}", table(&results))?;
    say!("Report: {}", shell::path(&out.path().join("report.md")))
}

/// Points, and the descent under each method, without noise as in the paper.
fn simulate(lower_bound: f64, steps: u32, seed: u64) -> anyhow::Result<ToyResults> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let around = Normal::new(0.0, SPREAD).context("the spread of the points")?;
    let points: Vec<f64> =
        (0..N_POINTS).map(|i| f64::from(u8::from(i >= N_MAJORITY)) + around.sample(&mut rng)).collect();
    // The count is exact: the failure is not one of noise.
    let params = PresetParams {
        tolerance: Some(1.0),
        lower_bound: Some(lower_bound),
        count_noise: CountNoise::Multiplier(0.0),
        ..PresetParams::default()
    };
    let runs = METHODS
        .iter()
        .map(|method| descend(method, &params, &points, steps, &mut rng))
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(ToyResults {
        study: "toy",
        seed,
        n_points: N_POINTS,
        true_mean: points.iter().sum::<f64>() / N_POINTS as f64,
        lower_bound,
        learning_rate: LEARNING_RATE,
        runs,
    })
}

fn descend(
    method: &'static str,
    params: &PresetParams,
    points: &[f64],
    steps: u32,
    rng: &mut ChaCha20Rng,
) -> anyhow::Result<Run> {
    let entry = registry::find(method)?;
    let context = PublicContext { n_groups: 1, expected_batch_size: points.len() as f64, noise_multiplier: 0.0 };
    let mut clip = (entry.preset)(params).build(&context)?;
    let groups = vec![0; points.len()];
    let mut estimate = 0.5;
    let mut run = Run { method, label: entry.label, estimates: vec![estimate], thresholds: Vec::new() };
    for _ in 0..steps {
        let gradients: Vec<f64> = points.iter().map(|x| estimate - x).collect();
        let norms: Vec<f64> = gradients.iter().map(|gradient| gradient.abs()).collect();
        let clipped = clip.clip(&ClipBatch::new(&norms, &groups), rng)?;
        let sum: f64 = clipped.scales.iter().zip(&gradients).map(|(scale, gradient)| scale * gradient).sum();
        estimate -= LEARNING_RATE * sum / context.expected_batch_size;
        run.estimates.push(estimate);
        run.thresholds.extend(clipped.thresholds);
    }
    Ok(run)
}

fn write(results: &ToyResults, out: &ReportFolder) -> anyhow::Result<()> {
    let alt = "Line charts of the estimate and of the threshold over steps, for both methods.";
    let report = PlainReport {
        title: TITLE,
        text: &markdown(results),
        agreeing: (0, 0),
        plot: Some(("toy", alt, &figure(results))),
    };
    study_report::write_plain(&report, results, out)
}

fn figure(results: &ToyResults) -> Plot {
    let panel = |title: &str, y_label: &str, values: fn(&Run) -> &[f64]| {
        let series = results.runs.iter().map(|run| Series {
            name: run.label.to_owned(),
            points: values(run)
                .iter()
                .enumerate()
                .map(|(step, &value)| Point { x: step as f64, mean: value, low: value, high: value })
                .collect(),
        });
        Panel::Lines(LinePanel {
            title: title.to_owned(),
            x_label: "step".to_owned(),
            y_label: y_label.to_owned(),
            series: series.collect(),
            y_range: None,
            log2_x: false,
        })
    };
    Plot {
        title: "Mean of 60 % zeros and 40 % ones under adaptive clipping (Zhao 2025, Figure 1 left)".to_owned(),
        panels: vec![
            panel("Estimate of the mean (true: 0.4)", "estimate", |run| &run.estimates),
            panel("Threshold", "threshold C", |run| &run.thresholds),
        ],
        n_columns: 2,
    }
}

fn table(results: &ToyResults) -> String {
    let mut lines = vec![
        format!("| method | estimate (true mean {:.3}) | final threshold |", results.true_mean),
        "|---|---|---|".to_owned(),
    ];
    for run in &results.runs {
        lines.push(format!("| {} | {:.3} | {:.3} |", run.label, run.final_estimate(), run.final_threshold()));
    }
    lines.join("\n") + "\n"
}

fn markdown(results: &ToyResults) -> String {
    format!(
        "# {TITLE}\n\n\
         Zhao 2025, Figure 1 (left): {} points, 60 % near 0 and 40 % near 1, loss ½(x − μ)², full batches, no noise; \
         τ = 1, γ = 0.5, η_C = 0.2, first threshold 1, learning rate {}. The paper states neither the lower bound nor the \
         learning rate; here C_LB = {}.\n\n{}\n\
         ![Estimate and threshold over steps](plots/toy.svg)\n\n\
         The unbounded threshold follows the majority's shrinking gradients: all gradients end up clipped to one size, and \
         the estimate is the majority's value. The lower bound keeps the minority's gradients larger than the \
         majority's, and the estimate near the mean.\n",
        results.n_points,
        results.learning_rate,
        results.lower_bound,
        table(results),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_vanishes_and_the_lower_bound_repairs_it() {
        let results = simulate(0.6, 300, 1).unwrap();
        let [unbounded, bounded] = &results.runs[..] else { panic!("two methods") };
        assert!(unbounded.final_estimate().abs() < 0.05, "{}", unbounded.final_estimate());
        assert!(unbounded.final_threshold() < 0.05, "{}", unbounded.final_threshold());
        assert!((bounded.final_estimate() - results.true_mean).abs() < 0.01, "{}", bounded.final_estimate());
        assert!((bounded.final_threshold() - 0.6).abs() < 0.05);
    }

    #[test]
    fn the_report_is_written_whole() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("toy");
        let folder = ReportFolder::claim(&out, STUDY, TITLE, Contents::Report).unwrap();
        write(&simulate(0.6, 50, 1).unwrap(), &folder).unwrap();
        for file in ["report.md", "results.json", "plots/toy.svg", "plots/toy.png"] {
            assert!(out.join(file).metadata().unwrap().len() > 500, "{file}");
        }
        assert!(std::fs::read_to_string(out.join("summary.json")).unwrap().contains(TITLE));
    }

    #[test]
    fn table_of_a_fixed_result() {
        let run = |label, estimate, threshold| Run {
            method: "x",
            label,
            estimates: vec![0.5, estimate],
            thresholds: vec![1.0, threshold],
        };
        let results = ToyResults {
            study: "toy",
            seed: 1,
            n_points: 1000,
            true_mean: 0.4,
            lower_bound: 0.6,
            learning_rate: 0.05,
            runs: vec![run("Unbounded adaptive", 0.0012, 0.0131), run("Bounded adaptive", 0.4, 0.6)],
        };
        insta::assert_snapshot!(table(&results), @r"
        | method | estimate (true mean 0.400) | final threshold |
        |---|---|---|
        | Unbounded adaptive | 0.001 | 0.013 |
        | Bounded adaptive | 0.400 | 0.600 |
        ");
    }
}
