//! `cargo xtask bench AREA`: tables of measured speed. The engines are the crate `benchmarks`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context;
use benchmarks::{clipping, scale, step};
use clap::{Args, Subcommand, ValueEnum};
use dp_train::Execution;
use run_records::output::Output;

use crate::device::DeviceArgs;
use crate::ranks::{on_all, ranks};
use crate::terminal::{self, say};

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    area: Area,
}

#[derive(Subcommand)]
enum Area {
    /// Clipping kernels against the stream-read bandwidth, ndarray and candle.
    Clipping(ClippingArgs),
    /// What a step on many processes would take, by a cost model that is fitted to measurements
    /// here.
    Scale(ScaleArgs),
    /// One training step, with and without privacy; under `mpirun`, shared by all processes.
    Step(StepArgs),
}

/// Options of `cargo xtask bench clipping`.
#[derive(Args)]
struct ClippingArgs {
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Records in the batch.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    batch: u32,
    /// Parameters of the model.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(16..=100_000_000))]
    params: u32,
    /// Threads of the kernels and of the yardstick [default: all cores]. ndarray and candle decide
    /// for themselves.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Turns; the median is reported.
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
}

/// Options of `cargo xtask bench scale`.
#[derive(Args)]
struct ScaleArgs {
    /// Steps measured of each network and batch size.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    steps: u32,
    /// Draw the curves into this file (SVG).
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Options of `cargo xtask bench step`.
#[derive(Args)]
struct StepArgs {
    /// Network.
    #[arg(long, value_enum)]
    model: ModelName,
    /// Without or with privacy (DP-SGD, hard clipping).
    #[arg(long, value_enum)]
    mode: ModeName,
    /// Expected batch size.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: u32,
    /// Steps measured, after three that are not; the median is reported.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    steps: u32,
    /// Threads [default: all cores; 1 on a CUDA device].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Records in memory at once [default: that of training].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    micro_batch: Option<u32>,
    /// Records of a block, which one process holds whole [default: the trainer's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    block: Option<u32>,
    /// Seed of the run's randomness: with it, the parameters after the steps are the same bit for
    /// bit.
    #[arg(long, default_value_t = 2)]
    seed: u64,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// A [`step::StepModel`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum ModelName {
    /// Logistic regression, 58 inputs, one logit.
    Lr,
    /// 98-256-256-1, tanh.
    Mlp,
    /// Convolutions of 32 and 16 filters, 3 × 3, tanh, one linear layer (MNIST).
    EsipovaCnn,
    /// Convolutions of 64 and 64 filters with max pools 3 × 3 at stride 2, hidden layers of 500 and
    /// 500, ReLU (MNIST).
    ZhaoCnn,
    /// ResNet-18 with GroupNorm of 32 groups and the stem for ImageNet, on one channel of 28 × 28
    /// (MNIST).
    Resnet18,
}

impl From<ModelName> for step::StepModel {
    fn from(name: ModelName) -> Self {
        match name {
            ModelName::Lr => Self::Lr,
            ModelName::Mlp => Self::Mlp,
            ModelName::EsipovaCnn => Self::EsipovaCnn,
            ModelName::ZhaoCnn => Self::ZhaoCnn,
            ModelName::Resnet18 => Self::Resnet18,
        }
    }
}

/// A [`step::Mode`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum ModeName {
    Plain,
    Private,
}

impl From<ModeName> for step::Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Plain => Self::Plain,
            ModeName::Private => Self::Private,
        }
    }
}

/// Runs a benchmark and prints its table.
///
/// # Errors
/// If a result is wrong, or a peer fails.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.area {
        Area::Clipping(args) => of_clipping(args),
        Area::Scale(args) => on_all(|| of_scale(args)),
        Area::Step(args) => on_all(|| of_step(args)),
    }
}

fn of_clipping(args: &ClippingArgs) -> anyhow::Result<()> {
    let measured = clipping::measure(&clipping::Settings {
        batch: args.batch as usize,
        params: args.params as usize,
        threads: args.threads.and_then(|threads| NonZeroUsize::new(threads.into())),
        rounds: args.rounds,
    })?;
    if args.json {
        say!("{}", serde_json::to_string(&measured).context("serialising the measurements")?)
    } else {
        terminal::write(format_args!("{}", measured.table()))
    }
}

fn of_scale(args: &ScaleArgs) -> anyhow::Result<()> {
    let ranks = ranks();
    let plot = args.plot.as_ref().filter(|_| ranks.rank() == 0).map(|path| Output::new(path, &[])).transpose()?;
    let scaling = scale::measure(args.steps, &*ranks)?;
    terminal::write(format_args!("{}", scaling.tables()))?;
    plot.map_or(Ok(()), |plot| plot.write_bytes(scaling.curves()?.as_bytes()))
}

fn of_step(args: &StepArgs) -> anyhow::Result<()> {
    let asked = args.threads.and_then(|threads| NonZeroUsize::new(threads.into()));
    let threads = asked.unwrap_or_else(|| args.device.default_threads());
    let execution = Execution { threads, ranks: ranks(), ..args.device.execution()? };
    let settings = step::Settings {
        model: args.model.into(),
        mode: args.mode.into(),
        batch: args.batch,
        steps: args.steps,
        micro_batch: args.micro_batch,
        block: args.block,
        seed: args.seed,
    };
    let measured = step::measure(&settings, &execution)?;
    if args.json {
        say!("{}", serde_json::to_string(&measured).context("serialising the measurement")?)
    } else {
        terminal::write(format_args!("{}", measured.in_words(settings.model, &execution)?))
    }
}
