//! Data sets, plans and runs that several tests share.

use std::num::NonZeroUsize;

use candle_core::{Tensor, Var};
use dp_accounting::{Delta, NoiseMultiplier, SamplingRate};
use dp_clipping::{PresetParams, registry};
use dp_train::{
    Activation, BatchPlan, DType, Device, Engine, Execution, KernelCrop, LearningRate, Loss, Model, ModelConfig,
    Observer, ParameterSpec, Plan, PrivacyConfig, PublicFacts, Purpose, RandomStream, RandomStreams, Randomness,
    Records, RunCounts, StepView, TrainConfig, Trainer,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// A data set before it is made into records.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    pub(crate) features: Vec<f32>,
    pub(crate) labels: Vec<u32>,
    pub(crate) groups: Vec<usize>,
    pub(crate) facts: PublicFacts,
}

impl Data {
    /// Features in ±1, labels and groups without relation to them.
    pub(crate) fn random(n_records: usize, n_inputs: usize, n_classes: usize, n_groups: usize, seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        Self {
            features: (0..n_records * n_inputs).map(|_| rng.random_range(-1.0..1.0)).collect(),
            labels: (0..n_records).map(|_| rng.random_range(0..n_classes as u32)).collect(),
            groups: (0..n_records).map(|_| rng.random_range(0..n_groups)).collect(),
            facts: PublicFacts { n_records, n_inputs, n_classes, n_groups },
        }
    }

    /// Two classes on either side of a plane, with a gap between them.
    pub(crate) fn separable(n_records: usize, seed: u64) -> Self {
        let mut data = Self::random(n_records, 2, 2, 2, seed);
        for (x, label) in data.features.chunks_exact_mut(2).zip(&mut data.labels) {
            *label = u32::from(x[0] + 2.0 * x[1] > 0.0);
            let side = if *label == 1 { 0.2 } else { -0.2 };
            x[0] += side;
            x[1] += 2.0 * side;
        }
        data
    }

    pub(crate) fn features_of(&mut self, record: usize) -> &mut [f32] {
        let width = self.facts.n_inputs;
        &mut self.features[record * width..(record + 1) * width]
    }

    pub(crate) fn records(&self, dtype: DType) -> Records {
        self.records_on(&Device::Cpu, dtype)
    }

    pub(crate) fn records_on(&self, device: &Device, dtype: DType) -> Records {
        Records::new(&self.features, &self.labels, &self.groups, self.facts, dtype, device).unwrap()
    }
}

pub(crate) fn mlp(hidden: &[usize], activation: Activation) -> ModelConfig {
    ModelConfig::Mlp { hidden: hidden.to_vec(), activation }
}

/// A registered method with noise multiplier 1 and clipping norm 0.5.
pub(crate) fn privacy(method: &str) -> PrivacyConfig {
    privacy_with(method, 1.0, &PresetParams { clip_norm: 0.5, ..PresetParams::default() })
}

pub(crate) fn privacy_with(method: &str, noise_multiplier: f64, params: &PresetParams) -> PrivacyConfig {
    let clipping = (registry::find(method).unwrap().preset)(params);
    PrivacyConfig::new(clipping, NoiseMultiplier::new(noise_multiplier).unwrap(), Delta::new(1e-9).unwrap())
}

/// Batches of this rate, all in one epoch.
pub(crate) fn batches(sampling_rate: f64, steps: u64) -> BatchPlan {
    BatchPlan::new(SamplingRate::new(sampling_rate).unwrap(), steps, 1)
}

/// Softmax cross-entropy at learning rate 0.1 without regularisation.
pub(crate) fn config(model: ModelConfig, batches: BatchPlan, privacy: Option<PrivacyConfig>) -> TrainConfig {
    let learning_rate = LearningRate::Constant(0.1);
    TrainConfig { privacy, ..TrainConfig::new(model, Loss::SoftmaxCrossEntropy, batches, learning_rate) }
}

pub(crate) fn streams(seed: u64) -> RandomStreams {
    Randomness::from_seed(seed).streams(0, 0).unwrap()
}

/// The stream of initial parameters.
pub(crate) fn initial(seed: u64) -> RandomStream {
    Randomness::from_seed(seed).stream(Purpose::Initialisation, 0, 0).unwrap()
}

/// What a run leaves behind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) initial: Vec<f64>,
    pub(crate) parameters: Vec<f64>,
    pub(crate) counts: RunCounts,
    pub(crate) thresholds: Vec<Vec<f64>>,
    pub(crate) bounds: Vec<f64>,
    pub(crate) group_gradient_norms: Vec<Vec<Option<f64>>>,
    pub(crate) ledger: String,
}

/// Keeps what the outcome needs of each step.
#[derive(Default)]
struct Recorder {
    wants_groups: bool,
    thresholds: Vec<Vec<f64>>,
    bounds: Vec<f64>,
    group_gradient_norms: Vec<Vec<Option<f64>>>,
}

impl Observer for Recorder {
    fn wants_group_gradients(&self, _: u64) -> bool {
        self.wants_groups
    }

    fn on_step(&mut self, view: &StepView<'_>) {
        assert_eq!(view.losses.len(), view.groups.len());
        self.thresholds.push(view.thresholds.to_vec());
        self.bounds.push(view.group_bounds.iter().copied().fold(0.0, f64::max));
        self.group_gradient_norms.extend(view.group_gradient_norms.map(<[_]>::to_vec));
    }
}

/// A run to its end.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) config: TrainConfig,
    pub(crate) dtype: DType,
    /// Source, run and variant.
    pub(crate) streams: (Randomness, u32, u16),
    pub(crate) micro_batch: usize,
    pub(crate) threads: NonZeroUsize,
    pub(crate) wants_groups: bool,
}

impl Run {
    pub(crate) fn new(config: TrainConfig, dtype: DType) -> Self {
        let streams = (Randomness::from_seed(1), 0, 0);
        Self { config, dtype, streams, micro_batch: 1_024, threads: NonZeroUsize::MIN, wants_groups: false }
    }

    pub(crate) fn on(&self, data: &Data) -> Outcome {
        let records = data.records(self.dtype);
        let plan = Plan::new(self.config.clone(), records.facts()).unwrap();
        let execution =
            Execution { micro_batch: Some(self.micro_batch), threads: self.threads, ..Execution::default() };
        let (randomness, run, variant) = &self.streams;
        let streams = randomness.streams(*run, *variant).unwrap();
        let mut trainer = Trainer::new(&plan, &records, streams, execution).unwrap();
        let initial = parameters(&mut trainer);
        let mut recorder = Recorder { wants_groups: self.wants_groups, ..Recorder::default() };
        let counts = trainer.run(&mut recorder).unwrap();
        Outcome {
            initial,
            parameters: parameters(&mut trainer),
            counts,
            thresholds: recorder.thresholds,
            bounds: recorder.bounds,
            group_gradient_norms: recorder.group_gradient_norms,
            ledger: trainer.ledger().digest(),
        }
    }
}

pub(crate) fn parameters(trainer: &mut Trainer<'_>) -> Vec<f64> {
    trainer.model().parameters().to_vec().unwrap()
}

/// Seeded parameters for an engine's model.
pub(crate) fn parameters_of(engine: &Engine, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..engine.model().parameters().len()).map(|_| rng.random_range(-0.2..0.2)).collect()
}

pub(crate) fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

pub(crate) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// `‖a − b‖ / ‖b‖`, and `‖a‖` where `b` is 0.
pub(crate) fn relative_error(a: &[f64], b: &[f64]) -> f64 {
    let scale = if norm(b) > 0.0 { norm(b) } else { 1.0 };
    norm(&difference(a, b)) / scale
}

/// The parameters in order, in `f64`, as variables of candle's, convolutions with their whole
/// kernels and channels last.
///
/// Weights that meet no pixel are not among the engine's parameters. Here they are 3: no output may
/// depend on them.
pub(crate) fn whole_variables(model: &Model) -> Vec<Var> {
    let whole = |spec: &ParameterSpec, view: &Tensor| {
        let view = view.to_dtype(DType::F64)?;
        let Some(KernelCrop { kernel, first }) = spec.crop else { return Var::from_tensor(&view.copy()?) };
        let pad = |x: &Tensor| {
            let after = kernel - first - x.dim(1)?;
            x.pad_with_zeros(1, first, after)?.pad_with_zeros(2, first, after)
        };
        Var::from_tensor(&(pad(&view)? + (1.0 - pad(&view.ones_like()?)?)? * 3.0)?)
    };
    let parameters = model.parameters();
    parameters.specs().iter().zip(parameters.views()).map(|(spec, view)| whole(spec, view).unwrap()).collect()
}

/// What the engine has of a gradient with respect to such a variable. It must be 0 elsewhere.
pub(crate) fn trained_part(spec: &ParameterSpec, gradient: &Tensor) -> Vec<f64> {
    let values = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f64>().unwrap();
    let Some(KernelCrop { first, .. }) = spec.crop else { return values(gradient) };
    let part = gradient.narrow(1, first, spec.shape[1]).unwrap().narrow(2, first, spec.shape[2]).unwrap();
    let part = values(&part.contiguous().unwrap());
    let n_nonzero = |values: &[f64]| values.iter().filter(|&&value| value != 0.0).count();
    assert_eq!(n_nonzero(&values(gradient)), n_nonzero(&part), "{}", spec.name);
    part
}
