//! Seven ways in which one record was found to move more than itself, before the sum was sound.
//!
//! Each has the steps that showed it. They are ordinary or crafted neighbours for which an engine
//! that takes norms and sums where they are cheapest breaks the bound by the factor in
//! [`PastBreach::before`].

use std::num::NonZeroUsize;

use dp_clipping::{MethodEntry, PresetParams, registry};
use dp_engine::ops::Activation;
use dp_engine::{DType, Device, ImageShape, InputShape, LayerConfig, Loss, Model, ModelConfig, Pooling};
use dp_train::Result;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::attack;
use super::case::Case;
use super::layer_kind::{Architecture, Task};
use super::measure::Comparison;
use crate::plant::Fault;

/// A step that broke the bound in an earlier version of the engine.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PastBreach {
    /// Number of its cause in [`CAUSES`], from 1.
    pub cause: u8,
    /// The step: model, method, records.
    pub name: &'static str,
    /// Change of the sum over its bound, or of a count over its sensitivity, when it was found;
    /// infinite where the sum was no number.
    pub before: f64,
    /// The fault that brings it back.
    pub plant: Option<Fault>,
    search: fn(Option<Fault>) -> Result<Comparison>,
}

/// The seven causes.
pub const CAUSES: [&str; 7] = [
    "a product takes another path with one more row, and all rows change their last bits",
    "counts follow norms that change with the number of rows",
    "the norm comes from Gram matrices, the sum from terms that cancel",
    "a record that is not a number changes the path of the others",
    "a record that is not a number is released",
    "a sum in single precision stagnates",
    "a scaled gradient is flushed to 0",
];

const ROWS: Option<Fault> = Some(Fault::RowsCouple);
const GRAM: Option<Fault> = Some(Fault::GramNorm);
const NAN: Option<Fault> = Some(Fault::NanZero);
const F32: Option<Fault> = Some(Fault::F32Stagnation);

/// Every step, by cause.
pub const PAST_BREACHES: [PastBreach; 24] = [
    PastBreach::new(1, "dpsgd, MLP 100-10-2, 26 copies at a kink", 28.7, ROWS, |fault| kink(100, 10, 26, fault)),
    PastBreach::new(1, "dpsgd, MLP 600-10-2, 65 copies at a kink", 84.0, ROWS, |fault| kink(600, 10, 65, fault)),
    PastBreach::new(1, "dpsgd, MLP 20-1-2, 257 copies at a kink", 170.0, ROWS, |fault| kink(20, 1, 257, fault)),
    PastBreach::new(1, "dpsgd-global, logistic, 257 copies at Z", 256.0, ROWS, |fault| at_bound(257, 0.7, fault)),
    PastBreach::new(1, "dpsgd-global, logistic, 257 copies at Z, inputs of 1e10", 256.0, ROWS, |fault| {
        at_bound(257, 1e10, fault)
    }),
    PastBreach::new(1, "dpsgd-global, logistic, 1,025 copies at Z, in two chunks", 1_024.0, ROWS, |fault| {
        at_bound(1_025, 0.7, fault)
    }),
    PastBreach::new(1, "dpsgd-global, MLP 98-256-256-1, 129 copies at Z", 128.0, ROWS, adult_at_bound),
    PastBreach::new(2, "adaptive, logistic, 513 copies at the threshold", 513.0, ROWS, |fault| {
        counted("adaptive", 513, fault)
    }),
    PastBreach::new(2, "dpsgd-global-adapt, logistic, 257 copies", 257.0, ROWS, |fault| {
        counted("dpsgd-global-adapt", 257, fault)
    }),
    PastBreach::new(2, "unbounded-adaptive, logistic, 257 copies", 257.0, ROWS, |fault| {
        counted("unbounded-adaptive", 257, fault)
    }),
    PastBreach::new(2, "dpsgd-f, logistic, 257 copies", 363.0, ROWS, |fault| counted("dpsgd-f", 257, fault)),
    PastBreach::new(3, "dpsgd, two positions that cancel at 1e8", 1.48, GRAM, |fault| cancelling(1e8, fault)),
    PastBreach::new(3, "dpsgd, two positions that cancel at 1e12", 9.5e3, GRAM, |fault| cancelling(1e12, fault)),
    PastBreach::new(3, "dpsgd, two positions that cancel at 1e20", 1e12, GRAM, |fault| cancelling(1e20, fault)),
    PastBreach::new(3, "dpsgd, convolution with average pooling at 1e6", 1.0018, None, averaged_convolution),
    PastBreach::new(3, "dpsgd-f, more records than a micro-batch", 1.062, None, |fault| {
        beyond_micro_batch("dpsgd-f", fault)
    }),
    PastBreach::new(3, "naive, more records than a micro-batch", 1.062, None, |fault| {
        beyond_micro_batch("naive", fault)
    }),
    PastBreach::new(4, "dpsgd, a NaN beside 50 copies that cancel", 50.9, None, |fault| beside_nan(51, fault)),
    PastBreach::new(4, "dpsgd, a NaN beside 908 copies that cancel", 645.0, None, |fault| beside_nan(909, fault)),
    PastBreach::new(5, "dpsgd, one infinite feature of a sequence", f64::INFINITY, NAN, |fault| {
        not_finite(f32::INFINITY, fault)
    }),
    PastBreach::new(5, "dpsgd, one feature of 3e38 of a sequence", f64::INFINITY, NAN, |fault| not_finite(3e38, fault)),
    PastBreach::new(6, "dpsgd, logistic, 20,000 records by their biases", 6.8, F32, |fault| stagnating(20_000, fault)),
    PastBreach::new(6, "dpsgd, logistic, 100,000 records by their biases", 132.0, F32, |fault| {
        stagnating(100_000, fault)
    }),
    PastBreach::new(7, "dpsgd, positions that cancel, scaled below normal numbers", 1.015, None, subnormal),
];

impl PastBreach {
    const fn new(
        cause: u8,
        name: &'static str,
        before: f64,
        plant: Option<Fault>,
        search: fn(Option<Fault>) -> Result<Comparison>,
    ) -> Self {
        Self { cause, name, before, plant, search }
    }

    /// The worst of its steps on this engine, with a fault planted or with none.
    ///
    /// # Errors
    /// If a step cannot be set up.
    pub fn measure(&self, fault: Option<Fault>) -> Result<Comparison> {
        (self.search)(fault)
    }
}

/// A step on copies of one record, full batches, default initialisation.
fn copies(architecture: Architecture, method: &str, clip_norm: f64, n: usize, largest: f32) -> Result<Case> {
    let mut rng = ChaCha20Rng::seed_from_u64(14);
    let entry: &'static MethodEntry = registry::find(method)?;
    let mut case = Case::on(architecture, entry, n, &mut rng)?;
    // Without the extremes of an arbitrary case.
    let model = Model::new(&case.model, case.data.n_inputs, case.task.n_outputs, DType::F32, &Device::Cpu)?;
    model.initialise(&mut rng)?;
    case.parameters = model.parameters().to_vec()?;
    case.data.features.fill_with(|| rng.random_range(-largest..=largest));
    for to in 1..n {
        case.data.copy(0, to);
    }
    case.data.groups.fill(0);
    let params =
        PresetParams { clip_norm, upper_bound: Some(clip_norm), tolerance: Some(1.0), ..PresetParams::default() };
    case.clipping = (entry.preset)(&params);
    case.threshold = case.threshold.map(|_| clip_norm);
    case.batch = (0..n).collect();
    case.record = n - 1;
    (case.sampling_rate, case.dtype) = (1.0, DType::F32);
    (case.micro_batch, case.threads) = (1_024, NonZeroUsize::MIN);
    case.set_released(|| n as f64 / 2.0)?;
    Ok(case)
}

/// The worst of several steps.
fn worst(cases: impl IntoIterator<Item = Result<Case>>, fault: Option<Fault>) -> Result<Comparison> {
    let mut worst = Comparison::default();
    for case in cases {
        let comparison = case?.compare(&Device::Cpu, NonZeroUsize::MIN, fault.is_none(), fault)?;
        if comparison.severity() > worst.severity() {
            worst = comparison;
        }
    }
    Ok(worst)
}

fn two_classes() -> Task {
    Task { loss: Loss::SoftmaxCrossEntropy, n_classes: 2, n_outputs: 2 }
}

fn on_vectors(config: ModelConfig, task: Task, n_inputs: usize, width: usize) -> Architecture {
    Architecture { config, task, n_inputs, channels: n_inputs, vocabulary: None, first_linear: Some((n_inputs, width)) }
}

fn logistic(n_inputs: usize) -> Architecture {
    on_vectors(ModelConfig::LogisticRegression, Task::binary(), n_inputs, 1)
}

/// Copies whose hidden units are at 0, up to the rounding of a product, for inputs up to 1.15.
fn kink(n_inputs: usize, width: usize, n: usize, fault: Option<Fault>) -> Result<Comparison> {
    let config = ModelConfig::Mlp { hidden: vec![width], activation: Activation::Relu };
    let case = copies(on_vectors(config, two_classes(), n_inputs, width), "dpsgd", 1e-3, n, 1.15)?;
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let shifted = (0..24).map(|_| {
        let mut case = case.clone();
        attack::to_kink(&mut case, &mut rng);
        Ok(case)
    });
    worst(shifted.collect::<Vec<_>>(), fault)
}

/// The same step with its threshold at the norm that was measured, and next to it.
fn at_norm(case: &Case, fault: Option<Fault>) -> Result<Comparison> {
    let norm = case.compare(&Device::Cpu, NonZeroUsize::MIN, false, fault)?.norms[0];
    let thresholds = [norm, norm.next_up(), norm.next_down(), norm * (1.0 + 1e-9), norm * (1.0 - 1e-9)];
    let cases = thresholds.map(|threshold| {
        let mut case = case.clone();
        case.set_threshold(threshold);
        Ok(case)
    });
    worst(cases, fault)
}

fn at_bound(n: usize, largest: f32, fault: Option<Fault>) -> Result<Comparison> {
    let mut case = copies(logistic(20), "dpsgd-global", 0.5, n, largest)?;
    // Logits of ordinary size, whatever the inputs.
    case.parameters.iter_mut().for_each(|p| *p /= f64::from(largest.max(1.0)));
    at_norm(&case, fault)
}

fn adult_at_bound(fault: Option<Fault>) -> Result<Comparison> {
    let config = ModelConfig::Mlp { hidden: vec![256, 256], activation: Activation::Relu };
    at_norm(&copies(on_vectors(config, Task::binary(), 98, 256), "dpsgd-global", 0.5, 129, 0.44)?, fault)
}

fn counted(method: &str, n: usize, fault: Option<Fault>) -> Result<Comparison> {
    at_norm(&copies(logistic(20), method, 0.5, n, 0.9)?, fault)
}

/// `Sequence{2, 8}` → Linear 8 → mean → Linear 2.
fn averaged_sequence() -> Architecture {
    let layers =
        vec![LayerConfig::Linear { outputs: 8 }, LayerConfig::GlobalAveragePool, LayerConfig::Linear { outputs: 2 }];
    Architecture {
        config: ModelConfig::Sequential { input: InputShape::Sequence { positions: 2, channels: 8 }, layers },
        task: two_classes(),
        n_inputs: 16,
        channels: 8,
        vocabulary: None,
        first_linear: Some((8, 8)),
    }
}

/// Makes the second half of every record the negative of its first.
fn negate(case: &mut Case) {
    let half = case.data.n_inputs / 2;
    for row in case.data.features.chunks_exact_mut(2 * half) {
        let (first, second) = row.split_at_mut(half);
        second.iter_mut().zip(first).for_each(|(b, a)| *b = -*a);
    }
}

fn cancelling(size: f32, fault: Option<Fault>) -> Result<Comparison> {
    let cases = [1e-3, 0.1, 1.0, 10.0].map(|clip_norm| {
        let mut case = copies(averaged_sequence(), "dpsgd", clip_norm, 1, size)?;
        negate(&mut case);
        Ok(case)
    });
    worst(cases, fault)
}

/// A convolution without padding, then a mean over places that cancel.
fn averaged_convolution(fault: Option<Fault>) -> Result<Comparison> {
    let image = ImageShape { height: 4, width: 4, channels: 2 };
    let pool = LayerConfig::Pool { pooling: Pooling::Average, kernel: 2, stride: 2, padding: 0 };
    let features = vec![LayerConfig::conv(6, 1), pool, LayerConfig::GlobalAveragePool];
    let config = ModelConfig::Cnn { image, features, hidden: Vec::new(), activation: Activation::Tanh };
    let architecture = || Architecture {
        config: config.clone(),
        task: two_classes(),
        n_inputs: image.len(),
        channels: 2,
        vocabulary: None,
        first_linear: None,
    };
    let cases = [1e-3, 0.1, 1.0].map(|clip_norm| {
        let mut case = copies(architecture(), "dpsgd", clip_norm, 3, 1e6)?;
        negate(&mut case);
        Ok(case)
    });
    worst(cases, fault)
}

/// Scales that follow from the counts of the whole batch: norms are taken in one pass, the sum in
/// another.
fn beyond_micro_batch(method: &str, fault: Option<Fault>) -> Result<Comparison> {
    let cases = [1, 2, 3, 7].map(|micro_batch| {
        let mut case = copies(averaged_sequence(), method, 0.1, 29, 1e6)?;
        negate(&mut case);
        case.micro_batch = micro_batch;
        Ok(case)
    });
    worst(cases, fault)
}

/// One record is not a number, all others are copies whose positions cancel.
fn beside_nan(n: usize, fault: Option<Fault>) -> Result<Comparison> {
    let cases = [1e-2, 1.0].map(|clip_norm| {
        let mut case = copies(averaged_sequence(), "dpsgd", clip_norm, n, 1e7)?;
        negate(&mut case);
        case.data.row_mut(n - 1).fill(f32::NAN);
        Ok(case)
    });
    worst(cases, fault)
}

/// A value that leaves its units where a ReLU is flat: the loss is finite, the gradient `0 · ∞`.
fn not_finite(value: f32, fault: Option<Fault>) -> Result<Comparison> {
    let mut architecture = averaged_sequence();
    if let ModelConfig::Sequential { layers, .. } = &mut architecture.config {
        layers.insert(1, LayerConfig::Activation { function: Activation::Relu });
    }
    let mut case = copies(architecture, "dpsgd", 1.0, 4, 1.0)?;
    case.data.row_mut(3)[5] = value;
    attack::silence(&mut case);
    worst([Ok(case)], fault)
}

/// Half of the records lift the sum over a power of two, the others are just above half a unit in
/// the last place there.
fn stagnating(n: usize, fault: Option<Fault>) -> Result<Comparison> {
    let cases = (0..6).map(|seed| {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        attack::stagnation_of(registry::find("dpsgd")?, n, &mut rng)
    });
    worst(cases.collect::<Vec<_>>(), fault)
}

/// Inputs as large as they may be, a threshold as small as it may be: scaled output gradients are
/// subnormal.
fn subnormal(fault: Option<Fault>) -> Result<Comparison> {
    let thresholds = [-60, -50, -40].into_iter().flat_map(|c| [1e5_f32, 1e9, 3e11].map(|size| (c, size)));
    let cases = thresholds.map(|(exponent, size)| {
        let mut case = copies(averaged_sequence(), "dpsgd", 2_f64.powi(exponent), 2, size)?;
        negate(&mut case);
        Ok(case)
    });
    worst(cases.collect::<Vec<_>>(), fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_known_step_moves_more_than_its_record() {
        for past in PAST_BREACHES {
            let now = past.measure(None).unwrap();
            assert!(now.breach.is_none() && now.severity() <= 1.0, "{}: {now:?}", past.name);
            assert!(past.before > 1.0);
        }
    }

    /// A step that cannot fail shows nothing: with the fault back, each cause breaks the bound
    /// again.
    #[test]
    fn with_its_fault_planted_a_known_step_breaks_the_bound() {
        for cause in 1..=7 {
            let planted: Vec<_> =
                PAST_BREACHES.iter().filter(|past| past.cause == cause && past.plant.is_some()).collect();
            let broken = planted.iter().filter(|past| past.measure(past.plant).unwrap().breach.is_some()).count();
            assert!(planted.is_empty() || broken > 0, "{}", CAUSES[usize::from(cause) - 1]);
        }
    }
}
