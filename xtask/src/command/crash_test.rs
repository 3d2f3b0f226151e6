//! `cargo xtask crash-test`: a run that is killed again and again, and ends as if it had not been.
//!
//! The program starts itself as a training run that writes a checkpoint after every step; the crate
//! `faults` kills it at random moments and starts it again until it has ended. The last checkpoint
//! must then be that of a run that was left alone: parameters, moments of the optimiser, threshold,
//! best epoch so far, keys and positions of the random streams, ledger and counters.
//!
//! With `--ranks` every start is on another number of processes under `mpirun`, of which one is
//! killed.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use dp_accounting::{Delta, NoiseMultiplier, SamplingRate};
use dp_clipping::registry;
use dp_train::{
    Activation, BatchPlan, CheckpointInterval, Checkpoints, DType, Device, EarlyStopping, Execution, LearningRate,
    Loss, ModelConfig, OptimiserConfig, Plan, PrivacyConfig, PublicFacts, Purpose, Randomness, Records,
    StoppingCriterion, TrainConfig, Trainer, Unobserved,
};
use faults::FaultsError;
use faults::crash::{CrashTest, Crashes};
use rand::Rng;
use serde::Serialize;

use crate::device::DeviceArgs;
use crate::ranks::{on_all, ranks};
use crate::terminal::say;

/// Options of `cargo xtask crash-test`.
#[derive(Args)]
pub(crate) struct CrashTestArgs {
    /// Kills in all, at least; the run that is then on its way is still brought to its end.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    kills: u32,
    /// Steps of the run.
    #[arg(long, default_value_t = 150, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    steps: u64,
    /// Start every run under `mpirun`, each time on another number of processes up to this one, and
    /// kill one of them; for a program with the feature `mpi`.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    ranks: u16,
    /// Seed of the moments at which runs are killed [default: from the operating system].
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print JSON instead of sentences.
    #[arg(long)]
    json: bool,
    /// Be the run, in this folder: continue its checkpoint if there is one.
    #[arg(long, hide = true, value_name = "DIR")]
    run_in: Option<PathBuf>,
}

/// What happened; the JSON output is this.
#[derive(Debug, Serialize)]
struct Told {
    #[serde(flatten)]
    crashes: Crashes,
    /// Steps of each run, with a checkpoint after each.
    steps: u64,
}

const CHECKPOINT: &str = "run.safetensors";
const HALF_WRITTEN: &str = ".run.safetensors.part";

/// Kills runs and compares how they end.
///
/// # Errors
/// If a run fails by itself, or ends differently from the one left alone.
pub(crate) fn run(args: &CrashTestArgs) -> anyhow::Result<()> {
    if let Some(folder) = &args.run_in {
        return on_all(|| train(folder, args));
    }
    let program = std::env::current_exe().context("path of this program")?;
    let test = CrashTest {
        command: &|folder, ranks| command(&program, folder, ranks, args),
        kept: CHECKPOINT,
        half_written: HALF_WRITTEN,
        kills: args.kills,
        ranks: args.ranks,
        seed: args.seed.unwrap_or_else(rand::random),
    };
    let steps = args.steps;
    let crashes = test.run().map_err(|error| match error {
        FaultsError::TooShort => {
            anyhow!("runs of --steps {steps} are too short to be killed and continued; expected more")
        }
        other => other.into(),
    })?;
    let told = Told { crashes, steps };
    let Crashes { runs, identical, kills, kills_during_a_write, kills_before_a_checkpoint, seed, .. } = told.crashes;
    if args.json {
        say!("{}", serde_json::to_string(&told)?)?;
    } else {
        say!(
            "{kills} kills in {runs} runs of {steps} steps, {kills_during_a_write} of them during the writing of a checkpoint and \
             {kills_before_a_checkpoint} before the first one; up to {} in one run (moments from seed {seed})",
            told.crashes.most_kills_of_a_run
        )?;
        say!("{identical} of {runs} runs ended byte for byte as the one that was left alone")?;
    }
    ensure!(identical == runs, "{} of {runs} runs ended differently", runs - identical);
    Ok(())
}

/// Starts or continues the run, on so many processes under `mpirun` if a number is given.
fn command(program: &Path, folder: &Path, ranks: Option<u16>, args: &CrashTestArgs) -> Command {
    let mut command = if let Some(ranks) = ranks {
        // Of a killed run the launcher prints half a page.
        let mut launcher = Command::new("mpirun");
        launcher.args(["-n", &ranks.to_string()]).arg(program).stderr(Stdio::null());
        launcher
    } else {
        Command::new(program)
    };
    command.args(["crash-test", "--steps", &args.steps.to_string()]).args(args.device.arguments());
    command.arg("--run-in").arg(folder);
    command
}

/// The run: everything that a checkpoint must keep is in use.
fn train(folder: &Path, args: &CrashTestArgs) -> anyhow::Result<()> {
    let ranks = ranks();
    let (steps, execution) = (args.steps, Execution { ranks: ranks.clone(), ..args.device.execution()? });
    let clipping = registry::find("dpsgd-global-adapt")?.default_config();
    let model = ModelConfig::Mlp { hidden: vec![256, 256], activation: Activation::Tanh };
    let batches = BatchPlan::new(SamplingRate::new(50.0 / N_RECORDS as f64)?, steps, steps.div_ceil(10));
    let rate = LearningRate::Cosine { first: 1e-3, last: 0.0 };
    let config = TrainConfig {
        warm_up_steps: 5,
        optimiser: OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8 },
        early_stopping: Some(EarlyStopping {
            patience: steps,
            min_improvement: 0.0,
            criterion: StoppingCriterion::Loss,
        }),
        privacy: Some(PrivacyConfig::new(clipping, NoiseMultiplier::new(1.0)?, Delta::new(1e-5)?)),
        ..TrainConfig::new(model, Loss::SoftmaxCrossEntropy, batches, rate)
    };
    let plan = Plan::new(config, facts(N_RECORDS))?;
    let train = records(N_RECORDS, plan.held_by(ranks.rank(), ranks.size()), 0, &execution.device)?;
    let validation = records(N_VALIDATION, 0..N_VALIDATION, 1, &execution.device)?;
    let path = folder.join(CHECKPOINT);
    let mut trainer = Trainer::new(&plan, &train, Randomness::from_seed(1).streams(0, 0)?, execution)?
        .with_validation(&validation)?
        .with_checkpoints(Checkpoints::new(&path, CheckpointInterval::Steps(1)))?;
    if path.exists() {
        trainer.restore_checkpoint(&path)?;
    }
    trainer.run(&mut Unobserved)?;
    Ok(())
}

const N_RECORDS: usize = 1_000;
const N_VALIDATION: usize = 200;

fn facts(n_records: usize) -> PublicFacts {
    PublicFacts { n_records, n_inputs: 98, n_classes: 2, n_groups: 2 }
}

/// Of so many records in two classes and groups, those that a process holds.
fn records(n_records: usize, held: Range<usize>, run: u32, device: &Device) -> anyhow::Result<Records> {
    let facts = facts(n_records);
    let width = facts.n_inputs;
    let mut rng = Randomness::from_seed(1).stream(Purpose::Split, run, 0)?;
    let features: Vec<f32> = (0..n_records * width).map(|_| rng.random_range(-1.0..1.0)).collect();
    let labels: Vec<u32> = features.chunks_exact(width).map(|x| u32::from(x[0] + x[1] > 0.0)).collect();
    let groups: Vec<usize> = (0..n_records).map(|_| rng.random_range(0..2)).collect();
    let features = &features[held.start * width..held.end * width];
    let (labels, groups) = (&labels[held.clone()], &groups[held.clone()]);
    Ok(Records::part(features, labels, groups, held, facts, DType::F32, device)?)
}
