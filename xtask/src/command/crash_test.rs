//! `cargo xtask crash-test`: a run that is killed again and again, and ends as if it had not been.
//!
//! The program starts itself as a training run that writes a checkpoint after every step, kills it (SIGKILL) after a random time, starts it
//! again, and so on until it has ended. The last checkpoint must then be, byte for byte, that of a run that was left alone: parameters,
//! moments of the optimiser, threshold, best epoch so far, keys and positions of the random streams, ledger and counters.
//!
//! With `--ranks` every start is on another number of processes under `mpirun`, of which one is killed.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;
use dp_accounting::{Delta, NoiseMultiplier};
use dp_clipping::{PresetParams, registry};
use dp_train::{
    Activation, BatchPlan, CheckpointInterval, Checkpoints, DType, Device, EarlyStopping, Execution, LearningRate,
    Loss, ModelConfig, OptimiserConfig, Plan, PrivacyConfig, PublicFacts, Purpose, Randomness, Records,
    StoppingCriterion, TrainConfig, Trainer, Unobserved,
};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
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
    /// Start every run under `mpirun`, each time on another number of processes up to this one, and kill one of them; for a
    /// program with the feature `mpi`.
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

/// What happened.
#[derive(Debug, Default, Serialize)]
struct Tally {
    /// Runs that were killed and brought to their end.
    runs: u32,
    /// Of those, runs whose last checkpoint is that of the run left alone.
    identical: u32,
    /// Kills.
    kills: u32,
    /// Kills that left a checkpoint half written beside the last whole one.
    kills_during_a_write: u32,
    /// Kills before the first checkpoint of a run.
    kills_before_a_checkpoint: u32,
    /// Most kills that one run survived.
    most_kills_of_a_run: u32,
    /// Steps of each run, with a checkpoint after each.
    steps: u64,
    /// Size of a checkpoint in bytes.
    checkpoint_bytes: u64,
    /// Wall-clock time of the run left alone, in seconds.
    uninterrupted_seconds: f64,
    /// Seed of the moments.
    seed: u64,
}

const CHECKPOINT: &str = "run.safetensors";
const HALF_WRITTEN: &str = ".run.safetensors.part";
/// Kills come up to this share of an uninterrupted run apart: a run then takes several.
const LONGEST_WAIT: f64 = 0.3;
/// Starts in turn without a kill, or without a step, after which runs count as too short: they would be started for ever.
const MOST_FRUITLESS: u32 = 50;

/// Kills runs and compares how they end.
///
/// # Errors
/// If a run fails by itself, or ends differently from the one left alone.
pub(crate) fn run(args: &CrashTestArgs) -> anyhow::Result<()> {
    if let Some(folder) = &args.run_in {
        return on_all(|| train(folder, args));
    }
    let seed = args.seed.unwrap_or_else(rand::random);
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let alone = tempfile::tempdir()?;
    let started = Instant::now();
    ensure!(start(alone.path(), None, args)?.wait()?.success(), "the run that was left alone failed");
    let uninterrupted = started.elapsed();
    let expected = std::fs::read(alone.path().join(CHECKPOINT)).context("checkpoint of the run left alone")?;
    let mut tally = Tally {
        steps: args.steps,
        checkpoint_bytes: expected.len() as u64,
        uninterrupted_seconds: uninterrupted.as_secs_f64(),
        seed,
        ..Tally::default()
    };
    let mut without_kill = 0;
    while tally.kills < args.kills {
        ensure_killable(without_kill, args)?;
        let folder = tempfile::tempdir()?;
        let before = tally.kills;
        let (mut without_progress, mut last) = (0, None);
        while kill_once(uninterrupted.mul_f64(LONGEST_WAIT), folder.path(), args, &mut rng)? {
            tally.kills += 1;
            let now = std::fs::metadata(folder.path().join(CHECKPOINT)).and_then(|found| found.modified()).ok();
            (without_progress, last) = if now == last { (without_progress + 1, now) } else { (0, now) };
            ensure_killable(without_progress, args)?;
            tally.kills_during_a_write += u32::from(folder.path().join(HALF_WRITTEN).exists());
            tally.kills_before_a_checkpoint += u32::from(!folder.path().join(CHECKPOINT).exists());
        }
        without_kill = if tally.kills == before { without_kill + 1 } else { 0 };
        tally.runs += 1;
        tally.most_kills_of_a_run = tally.most_kills_of_a_run.max(tally.kills - before);
        tally.identical += u32::from(std::fs::read(folder.path().join(CHECKPOINT))? == expected);
    }
    if args.json {
        say!("{}", serde_json::to_string(&tally)?)?;
    } else {
        let Tally { runs, identical, kills, kills_during_a_write, kills_before_a_checkpoint, .. } = &tally;
        say!(
            "{kills} kills in {runs} runs of {} steps, {kills_during_a_write} of them during the writing of a checkpoint and \
             {kills_before_a_checkpoint} before the first one; up to {} in one run (moments from seed {seed})",
            args.steps,
            tally.most_kills_of_a_run
        )?;
        say!("{identical} of {runs} runs ended byte for byte as the one that was left alone")?;
    }
    ensure!(tally.identical == tally.runs, "{} of {} runs ended differently", tally.runs - tally.identical, tally.runs);
    Ok(())
}

/// Refuses runs that end before they can be killed, or are killed before they have begun.
fn ensure_killable(fruitless: u32, args: &CrashTestArgs) -> anyhow::Result<()> {
    let steps = args.steps;
    ensure!(
        fruitless < MOST_FRUITLESS,
        "runs of --steps {steps} are too short to be killed and continued; expected more"
    );
    Ok(())
}

/// Starts or continues the run in `folder` and kills it after a random time; false if it came to its end before.
fn kill_once(
    longest_wait: Duration,
    folder: &Path,
    args: &CrashTestArgs,
    rng: &mut ChaCha20Rng,
) -> anyhow::Result<bool> {
    let ranks = rng.random_range(1..=args.ranks);
    let mut child = start(folder, (args.ranks > 1).then_some(ranks), args)?;
    if args.ranks > 1 {
        // A launcher takes longer to start processes than they take to end.
        while child.try_wait()?.is_none() && processes_of(&child).len() < ranks.into() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    std::thread::sleep(longest_wait.mul_f64(rng.random()));
    if let Some(status) = child.try_wait()? {
        if !status.success() {
            bail!("a continued run failed with {status}");
        }
        return Ok(false);
    }
    match processes_of(&child).choose(rng) {
        // The launcher ends the others.
        Some(process) if args.ranks > 1 => {
            Command::new("kill").args(["-KILL", process]).stderr(Stdio::null()).status().context("kill")?;
        }
        _ => child.kill()?,
    }
    // It may have ended between the look and the kill.
    Ok(!child.wait()?.success())
}

/// Numbers of the processes that this one has started.
fn processes_of(child: &Child) -> Vec<String> {
    let id = child.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    children.split_whitespace().map(str::to_owned).collect()
}

/// Starts the run, on so many processes under `mpirun` if a number is given.
fn start(folder: &Path, ranks: Option<u16>, args: &CrashTestArgs) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("path of this program")?;
    let mut command = if let Some(ranks) = ranks {
        // Of a killed run the launcher prints half a page.
        let mut launcher = Command::new("mpirun");
        launcher.args(["-n", &ranks.to_string()]).arg(program).stderr(Stdio::null());
        launcher
    } else {
        Command::new(program)
    };
    command
        .args(["crash-test", "--steps", &args.steps.to_string()])
        .args(args.device.arguments())
        .arg("--run-in")
        .arg(folder)
        .stdin(Stdio::null())
        .spawn()
        .context("cannot start the run")
}

/// The run: everything that a checkpoint must keep is in use.
fn train(folder: &Path, args: &CrashTestArgs) -> anyhow::Result<()> {
    let ranks = ranks();
    let (steps, execution) = (args.steps, Execution { ranks: ranks.clone(), ..args.device.execution()? });
    let clipping = registry::find("dpsgd-global-adapt")?.config(&PresetParams::default());
    let model = ModelConfig::Mlp { hidden: vec![256, 256], activation: Activation::Tanh };
    let batches = BatchPlan { steps, epochs: steps.div_ceil(10), ..BatchPlan::exact(N_RECORDS, 50, 1)? };
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
    let mut trainer = Trainer::new(&plan, &train, Randomness::from_seed(1).streams(0, 0), execution)?
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
    let mut rng = Randomness::from_seed(1).stream(Purpose::Split, run, 0);
    let features: Vec<f32> = (0..n_records * width).map(|_| rng.random_range(-1.0..1.0)).collect();
    let labels: Vec<u32> = features.chunks_exact(width).map(|x| u32::from(x[0] + x[1] > 0.0)).collect();
    let groups: Vec<usize> = (0..n_records).map(|_| rng.random_range(0..2)).collect();
    let features = &features[held.start * width..held.end * width];
    let (labels, groups) = (&labels[held.clone()], &groups[held.clone()]);
    Ok(Records::part(features, labels, groups, held, facts, DType::F32, device)?)
}
