//! The time of a training step.
//!
//! A step is all of it: drawing the Poisson batch, gathering its records, forward, backward, norms,
//! clipping, noise, update, ledger. The data are random. Shapes are those of the networks that
//! other systems are measured with. Under a launcher all processes share the step.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use candle_core::Tensor;
use dp_accounting::{Delta, NoiseMultiplier};
use dp_clipping::{PresetParams, registry};
use dp_train::ranks::Collective;
use dp_train::{
    Activation, BatchPlan, DType, Device, Execution, ImageShape, LearningRate, Loss, ModelConfig, Normalisation,
    Observer, Plan, PrivacyConfig, PublicFacts, Purpose, Randomness, Records, ResNetStem, StepView, TrainConfig,
    Trainer, Unobserved, ZhaoCnnLayout,
};
use rand::Rng;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::counted::Counted;

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Network.
    pub model: StepModel,
    /// Without or with privacy.
    pub mode: Mode,
    /// Expected batch size.
    pub batch: u32,
    /// Steps measured, after three that are not; the median is reported.
    pub steps: u32,
    /// Records in memory at once; as the execution has it if `None`.
    pub micro_batch: Option<u32>,
    /// Records of a block, which one process holds whole; the trainer's if `None`.
    pub block: Option<u32>,
    /// Seed of the run's randomness: with it, the parameters after the steps are the same bit for
    /// bit.
    pub seed: u64,
}

/// A network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepModel {
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

/// Whether a step is private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Without privacy.
    Plain,
    /// DP-SGD, hard clipping.
    Private,
}

impl Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Private];

    /// On the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Private => "private",
        }
    }
}

/// What was measured; the JSON output is this.
#[derive(Debug, Serialize)]
pub struct Measured {
    model: &'static str,
    mode: &'static str,
    batch: u32,
    /// The median.
    pub ms_per_step: f64,
    samples_per_s: f64,
    /// Of the process that needs the most.
    peak_rss_mb: f64,
    threads: usize,
    ranks: usize,
    /// What a process gives to the others, on average.
    bytes_per_step: f64,
    /// Of the network.
    #[serde(skip)]
    pub n_parameters: usize,
    seed: u64,
    /// Of the parameters after all steps, as little-endian `f32`.
    parameters_sha256: String,
}

impl Settings {
    /// A private step.
    pub fn private(model: StepModel, batch: u32, steps: u32) -> Self {
        Self { model, mode: Mode::Private, batch, steps, micro_batch: None, block: None, seed: 2 }
    }
}

impl StepModel {
    /// Every network.
    pub const ALL: [Self; 5] = [Self::Lr, Self::Mlp, Self::EsipovaCnn, Self::ZhaoCnn, Self::Resnet18];

    /// On the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lr => "lr",
            Self::Mlp => "mlp",
            Self::EsipovaCnn => "esipova-cnn",
            Self::ZhaoCnn => "zhao-cnn",
            Self::Resnet18 => "resnet18",
        }
    }

    fn config(self) -> ModelConfig {
        let image = ImageShape { height: 28, width: 28, channels: 1 };
        match self {
            Self::Lr => ModelConfig::LogisticRegression,
            Self::Mlp => ModelConfig::Mlp { hidden: vec![256, 256], activation: Activation::Tanh },
            Self::EsipovaCnn => ModelConfig::EsipovaCnn { image },
            Self::ZhaoCnn => ModelConfig::ZhaoCnn { image, layout: ZhaoCnnLayout::Text },
            Self::Resnet18 => ModelConfig::Resnet18 {
                image,
                stem: ResNetStem::Imagenet,
                normalisation: Normalisation::GroupNorm { groups: 32 },
            },
        }
    }

    /// Inputs of a record, classes, loss.
    fn task(self) -> (usize, usize, Loss) {
        match self {
            Self::Lr => (58, 2, Loss::BceWithLogits),
            Self::Mlp => (98, 2, Loss::BceWithLogits),
            Self::EsipovaCnn | Self::ZhaoCnn | Self::Resnet18 => (784, 10, Loss::SoftmaxCrossEntropy),
        }
    }

    /// Multiplications and additions of a record's three products (two in the first layer, whose
    /// input needs no gradient): positions times weights that meet a pixel, layer by layer.
    pub fn operations(self) -> f64 {
        let layers: &[(u32, u32)] = match self {
            Self::Lr => &[(1, 58)],
            Self::Mlp => &[(1, 98 * 256), (1, 256 * 256), (1, 256)],
            Self::EsipovaCnn => &[(26 * 26, 9 * 32), (24 * 24, 288 * 16), (1, 9_216 * 10)],
            Self::ZhaoCnn => &[(26 * 26, 9 * 64), (10 * 10, 576 * 64), (1, 1_024 * 500), (1, 500 * 500), (1, 500 * 10)],
            Self::Resnet18 => &[
                (14 * 14, 49 * 64),
                (7 * 7, 4 * 576 * 64),
                (4 * 4, 576 * 128 + 64 * 128 + 3 * 1_152 * 128),
                (2 * 2, 1_152 * 256 + 128 * 256 + 3 * 2_304 * 256),
                // Of 3 × 3 taps, 2 × 2 and then one meet a pixel.
                (1, 1_024 * 512 + 256 * 512 + 3 * 512 * 512),
                (1, 512 * 10),
            ],
        };
        let products = |i: usize| if i == 0 { 2.0 } else { 3.0 };
        let layers = layers.iter().enumerate();
        layers.map(|(i, &(positions, weights))| 2.0 * products(i) * f64::from(positions) * f64::from(weights)).sum()
    }
}

impl Measured {
    /// For a terminal. One process alone also measures one large product, as a yardstick.
    ///
    /// # Errors
    /// If the product fails.
    pub fn in_words(&self, model: StepModel, execution: &Execution) -> anyhow::Result<String> {
        let Self { model: name, mode, batch, ms_per_step, samples_per_s, peak_rss_mb, threads, ranks, .. } = self;
        let step = format!(
            "{name}, {mode}, batch {batch}, {threads} threads: {ms_per_step:.3} ms per step, {samples_per_s:.0} records/s, peak memory {peak_rss_mb:.0} MiB\n"
        );
        if *ranks > 1 {
            return Ok(format!(
                "{ranks} processes; each gives {:.0} bytes a step to the others\n{step}",
                self.bytes_per_step
            ));
        }
        let (reached, peak) = (model.operations() * samples_per_s * 1e-9, product_rate(execution)?);
        let share = 100.0 * reached / peak;
        Ok(format!("{step}products {reached:.0} GFLOP/s, {share:.0} % of the {peak:.0} GFLOP/s of one large product\n"))
    }
}

/// Steps before the stopwatch, which begins at the end of the next.
const WARM_UP: u64 = 3;

/// The time from the end of a step to that of the next.
struct Stopwatch {
    last: Option<Instant>,
    seconds: Vec<f64>,
}

impl Observer for Stopwatch {
    fn on_step(&mut self, _view: &StepView<'_>) {
        let now = Instant::now();
        self.seconds.extend(self.last.replace(now).map(|last| (now - last).as_secs_f64()));
    }
}

/// Measures steps on a device, as a run takes them. Processes of a launcher share them.
///
/// # Errors
/// If a step fails.
pub fn measure(settings: &Settings, execution: &Execution) -> anyhow::Result<Measured> {
    let plan = plan(settings)?;
    let ranks = Arc::new(Counted::new(execution.ranks.clone()));
    let records = records(settings, &plan, &*ranks, &execution.device)?;
    let micro_batch = settings.micro_batch.map_or(execution.micro_batch, |records| Some(records as usize));
    let execution = Execution { micro_batch, ranks: ranks.clone(), ..execution.clone() };
    let threads = execution.threads.get();
    let mut trainer = Trainer::new(&plan, &records, Randomness::from_seed(settings.seed).streams(0, 0)?, execution)?;
    trainer.run_until(WARM_UP, &mut Unobserved)?;
    let bytes = ranks.bytes();
    let mut stopwatch = Stopwatch { last: None, seconds: Vec::with_capacity(settings.steps as usize) };
    trainer.run(&mut stopwatch)?;
    let mut seconds = stopwatch.seconds;
    // The stopwatch begins after the first step.
    let bytes_per_step = (ranks.bytes() - bytes) as f64 / (f64::from(settings.steps) + 1.0);
    let parameters = trainer.model().parameters().to_vec()?;
    let peaks = ranks.gather(peak_rss_mb()?.to_le_bytes().to_vec())?;
    let peaks = peaks.iter().filter_map(|bytes| Some(f64::from_le_bytes(bytes[..].try_into().ok()?)));
    ensure!(parameters.iter().all(|p| p.is_finite()), "the parameters are not finite after {} steps", settings.steps);
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    Ok(Measured {
        model: settings.model.name(),
        mode: settings.mode.name(),
        batch: settings.batch,
        ms_per_step: median * 1e3,
        samples_per_s: f64::from(settings.batch) / median,
        peak_rss_mb: peaks.fold(0.0, f64::max),
        threads,
        ranks: ranks.size(),
        bytes_per_step,
        n_parameters: parameters.len(),
        seed: settings.seed,
        parameters_sha256: hex::encode(
            parameters
                .iter()
                .fold(Sha256::new(), |hasher, &p| hasher.chain_update((p as f32).to_le_bytes()))
                .finalize(),
        ),
    })
}

fn facts(settings: &Settings) -> PublicFacts {
    /// As many as MNIST has, where that is enough for batches to differ.
    const N_RECORDS: usize = 60_000;
    let (n_inputs, n_classes, _) = settings.model.task();
    let batch = settings.batch as usize;
    PublicFacts { n_records: (20 * batch).min(N_RECORDS).max(4 * batch), n_inputs, n_classes, n_groups: 1 }
}

/// The records that this process holds.
fn records(settings: &Settings, plan: &Plan, ranks: &dyn Collective, device: &Device) -> anyhow::Result<Records> {
    let (facts, held) = (facts(settings), plan.held_by(ranks.rank(), ranks.size()));
    let mut rng = Randomness::from_seed(1).stream(Purpose::Split, 0, 0)?;
    let mut features = Vec::with_capacity(held.len() * facts.n_inputs);
    for row in 0..facts.n_records {
        let values = std::iter::repeat_with(|| rng.random_range(-1.0..1.0)).take(facts.n_inputs);
        if held.contains(&row) { features.extend(values) } else { values.for_each(drop) }
    }
    let labels: Vec<u32> = (0..facts.n_records).map(|_| rng.random_range(0..facts.n_classes as u32)).collect();
    let (labels, groups) = (&labels[held.clone()], vec![0; held.len()]);
    Ok(Records::part(&features, labels, &groups, held, facts, DType::F32, device)?)
}

fn plan(settings: &Settings) -> anyhow::Result<Plan> {
    let facts = facts(settings);
    let steps = WARM_UP + u64::from(settings.steps) + 1;
    let batches = BatchPlan::new(BatchPlan::exact(facts, settings.batch as usize, 1)?.sampling_rate, steps, 1);
    let mut config =
        TrainConfig::new(settings.model.config(), settings.model.task().2, batches, LearningRate::Constant(0.01));
    config.block_records = settings.block.map(|block| block as usize);
    if settings.mode == Mode::Private {
        let clipping = registry::find("dpsgd")?.config(&PresetParams { clip_norm: 1.0, ..PresetParams::default() })?;
        config.privacy = Some(PrivacyConfig::new(clipping, NoiseMultiplier::new(1.0)?, Delta::new(1e-7)?));
    }
    Ok(Plan::new(config, facts)?)
}

/// The most memory this process has held, in MiB, as the system counts it.
fn peak_rss_mb() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM in /proc/self/status")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().context("VmHWM of /proc/self/status")?;
    Ok(kib / 1_024.0)
}

/// GFLOP/s of one large matrix product on the same device and threads, candle's: the best of
/// several turns.
fn product_rate(execution: &Execution) -> anyhow::Result<f64> {
    const SIZE: usize = 2_048;
    const TURNS: usize = 7;
    // From the host, so that a GPU needs no kernel of candle's.
    let factor = Tensor::rand(-1.0_f32, 1.0, (SIZE, SIZE), &Device::Cpu)?.to_device(&execution.device)?;
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(execution.threads.get()).build().context("starting threads")?;
    let mut best = f64::INFINITY;
    for _ in 0..TURNS {
        // A device works on after it was asked.
        execution.device.synchronize()?;
        let started = Instant::now();
        std::hint::black_box(pool.install(|| factor.matmul(&factor))?);
        execution.device.synchronize()?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok(2.0 * (SIZE as f64).powi(3) / best * 1e-9)
}
