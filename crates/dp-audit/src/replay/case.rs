//! A step, and the record that it is attacked with.

use std::num::NonZeroUsize;

use dp_accounting::{Delta, NoiseMultiplier, RenyiOrder, SamplingRate};
use dp_clipping::{ClipConfig, Controller, MethodEntry, MethodState, PresetParams, Weights};
use dp_engine::{DType, Device, DropoutKey, Model, ModelConfig, PublicFacts, Records};
use dp_train::{
    BatchPlan, Execution, FixedStep, GroupSampling, LearningRate, Plan, PrivacyConfig, RateLevel, RateLevels,
    RatesByLoss, Result, TrainConfig,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::layer_kind::{Architecture, Attacked, Task};
use super::measure::{Comparison, Neighbours};
use crate::plant::Fault;

/// Everything that decides a step up to its noise, and the number of the record that its neighbour
/// lacks.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) model: ModelConfig,
    pub(super) task: Task,
    /// Inputs of a position.
    pub(super) channels: usize,
    /// Inputs are ids below this.
    pub(super) vocabulary: Option<usize>,
    /// Inputs and outputs of a linear first layer.
    pub(super) first_linear: Option<(usize, usize)>,
    pub(super) parameters: Vec<f64>,
    pub(super) data: Data,
    /// Record numbers, ascending.
    pub(super) batch: Vec<usize>,
    /// The record that the neighbour lacks; it is in the batch.
    pub(super) record: usize,
    pub(super) clipping: ClipConfig,
    pub(super) threshold: Option<f64>,
    pub(super) weights: Option<Vec<f64>>,
    pub(super) released: Vec<Vec<f64>>,
    pub(super) sampling_rate: f64,
    /// Rates of the groups, or of the levels that losses choose from, over the largest, and shares of the bound.
    pub(super) by_group: Option<Vec<(f64, f64)>>,
    pub(super) dropout: u64,
    pub(super) dtype: DType,
    pub(super) micro_batch: usize,
    pub(super) threads: NonZeroUsize,
    pub(super) block_records: Option<usize>,
}

/// Records before they are tensors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Data {
    pub(super) n_inputs: usize,
    pub(super) n_groups: usize,
    pub(super) features: Vec<f32>,
    pub(super) labels: Vec<u32>,
    pub(super) groups: Vec<usize>,
}

impl Data {
    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    pub(super) fn row(&self, record: usize) -> &[f32] {
        &self.features[record * self.n_inputs..(record + 1) * self.n_inputs]
    }

    pub(super) fn row_mut(&mut self, record: usize) -> &mut [f32] {
        &mut self.features[record * self.n_inputs..(record + 1) * self.n_inputs]
    }

    /// Makes record `to` a copy of record `from`, but for its group.
    pub(super) fn copy(&mut self, from: usize, to: usize) {
        self.features.copy_within(from * self.n_inputs..(from + 1) * self.n_inputs, to * self.n_inputs);
        self.labels[to] = self.labels[from];
    }
}

/// Numbers of records at which products, pieces and vectors take other paths, small ones more
/// often.
const N_RECORDS: [usize; 18] = [1, 1, 2, 2, 3, 4, 5, 8, 9, 13, 17, 26, 32, 33, 52, 65, 129, 257];

impl Case {
    /// An ordinary step on a small model with such a layer.
    pub(super) fn ordinary(layer: Attacked<'_>, method: &'static MethodEntry, rng: &mut ChaCha20Rng) -> Result<Self> {
        let n_records = N_RECORDS[rng.random_range(0..N_RECORDS.len())];
        Self::on(layer.architecture(rng), method, n_records, rng)
    }

    /// A step of this model on `n` ordinary records.
    pub(super) fn on(
        architecture: Architecture,
        method: &'static MethodEntry,
        n_records: usize,
        rng: &mut ChaCha20Rng,
    ) -> Result<Self> {
        let Architecture { config: model, task, n_inputs, channels, vocabulary, first_linear } = architecture;
        let dtype = if rng.random_bool(0.04) { DType::F64 } else { DType::F32 };
        let n_groups = rng.random_range(1..=4);
        let input = |rng: &mut ChaCha20Rng| match vocabulary {
            Some(vocabulary) => rng.random_range(0..vocabulary) as f32,
            None => rng.random_range(-1.5..1.5),
        };
        let data = Data {
            n_inputs,
            n_groups,
            features: (0..n_records * n_inputs).map(|_| input(rng)).collect(),
            labels: (0..n_records).map(|_| rng.random_range(0..task.n_classes as u32)).collect(),
            groups: (0..n_records).map(|_| rng.random_range(0..n_groups)).collect(),
        };
        let mut batch: Vec<usize> = (0..n_records).collect();
        if rng.random_bool(0.3) {
            batch.retain(|_| rng.random_bool(0.7));
        }
        if batch.is_empty() {
            batch.push(0);
        }
        let record = batch[rng.random_range(0..batch.len())];
        let clip_norm = 10_f64.powf(rng.random_range(-3.0..1.5));
        let upper_bound = Some(clip_norm * 10_f64.powf(rng.random_range(-1.0..2.0)));
        let clipping = (method.preset)(&PresetParams { clip_norm, upper_bound, ..PresetParams::default() });
        let by_rate = matches!(clipping.controller, Controller::ByRate { .. });
        let mut case = Self {
            channels,
            vocabulary,
            first_linear,
            parameters: initial_parameters(&model, n_inputs, &task, rng)?,
            model,
            task,
            data,
            batch,
            record,
            clipping,
            threshold: initial_threshold(&clipping),
            // Far apart, as after many steps.
            weights: clipping
                .weights
                .have_memory()
                .then(|| (0..n_groups).map(|_| 10_f64.powf(rng.random_range(-2.0..1.0))).collect()),
            released: Vec::new(),
            sampling_rate: [1.0, 1.0, 0.5, 0.1][rng.random_range(0..4)],
            by_group: by_rate.then(|| {
                let mut of_groups: Vec<(f64, f64)> = (0..n_groups)
                    .map(|_| (rng.random_range(0.01..1.0), 10_f64.powf(rng.random_range(-2.0..0.0))))
                    .collect();
                // The largest rate is that of the candidates, and some group has the whole bound.
                of_groups[rng.random_range(0..n_groups)].0 = 1.0;
                of_groups[rng.random_range(0..n_groups)].1 = 1.0;
                of_groups
            }),
            dropout: rng.random(),
            dtype,
            micro_batch: [1_024, 1_024, 1_024, 64, 32, 7, 3, 1][rng.random_range(0..8)],
            threads: if rng.random_bool(0.05) { NonZeroUsize::MIN.saturating_add(1) } else { NonZeroUsize::MIN },
            block_records: None,
        };
        case.draw_released(rng)?;
        Ok(case)
    }

    /// Counts as they might have been released.
    pub(super) fn draw_released(&mut self, rng: &mut ChaCha20Rng) -> Result<()> {
        let expected = self.expected_batch_size();
        let value = |rng: &mut ChaCha20Rng| match rng.random_range(0..8) {
            0 => 0.0,
            1 => -rng.random_range(0.0..10.0) * expected,
            2 => rng.random_range(1.0..1e9),
            3 => rng.random_range(0.0..1e-3),
            _ => rng.random_range(0.0..1.5) * expected,
        };
        self.set_released(|| value(rng))
    }

    /// Sets every count as it was released.
    pub(super) fn set_released(&mut self, value: impl FnMut() -> f64) -> Result<()> {
        let (config, threshold, weights) = (self.clipping, self.threshold, self.weights.clone());
        let state = MethodState { config, steps: 0, threshold, weights };
        self.released = FixedStep::at(&self.plan()?, &state, self.dropout, value)?.released;
        Ok(())
    }

    /// The threshold that norms are compared with, where scales or counts jump or bend.
    pub(super) fn set_threshold(&mut self, value: f64) {
        let value = value.clamp(2_f64.powi(-60), 2_f64.powi(60));
        match &mut self.clipping.controller {
            Controller::Constant { threshold } | Controller::ByRate { threshold } => *threshold = value,
            Controller::PerGroup { base, .. } => *base = value,
            // A controller with a memory.
            _ => self.threshold = Some(value),
        }
    }

    /// Norms are compared with this times the threshold where they are counted.
    pub(super) fn tolerance(&self) -> f64 {
        match self.clipping.controller {
            Controller::Geometric { tolerance, .. } => tolerance,
            _ => 1.0,
        }
    }

    fn facts(&self) -> PublicFacts {
        PublicFacts {
            n_records: self.data.len(),
            n_inputs: self.data.n_inputs,
            n_classes: self.task.n_classes,
            n_groups: self.data.n_groups,
        }
    }

    fn expected_batch_size(&self) -> f64 {
        self.sampling_rate * self.data.len() as f64
    }

    /// The plan of a run that may come to this step.
    pub(super) fn plan(&self) -> Result<Plan> {
        let batches = BatchPlan::new(SamplingRate::new(self.sampling_rate)?, 1, 1);
        let privacy = PrivacyConfig::new(self.clipping, NoiseMultiplier::new(1.0)?, Delta::new(1e-9)?);
        let rate = LearningRate::Constant(0.1);
        let follow_losses = matches!(self.clipping.weights, Weights::RatesByLoss { .. });
        let (by_loss, by_group) =
            if follow_losses { (self.by_group.as_deref(), None) } else { (None, self.by_group.as_deref()) };
        let config = TrainConfig {
            privacy: Some(privacy),
            block_records: self.block_records,
            group_sampling: by_group.map(|of_groups| self.group_sampling(of_groups)).transpose()?,
            rates_by_loss: by_loss.map(|of_levels| self.rates_by_loss(of_levels)).transpose()?,
            ..TrainConfig::new(self.model.clone(), self.task.loss.clone(), batches, rate)
        };
        Plan::new(config, self.facts())
    }

    fn group_sampling(&self, of_groups: &[(f64, f64)]) -> Result<GroupSampling> {
        let rates = of_groups.iter().map(|(rate, _)| SamplingRate::new(rate * self.sampling_rate));
        let shares = Some(of_groups.iter().map(|(_, share)| *share).collect());
        Ok(GroupSampling { rates: rates.collect::<Result<_, _>>()?, shares })
    }

    /// The same rates and shares as levels, of which the weights of a group choose one.
    fn rates_by_loss(&self, of_levels: &[(f64, f64)]) -> Result<RatesByLoss> {
        let rate = |of_largest: f64| SamplingRate::new(of_largest * self.sampling_rate);
        let level = |&(of_largest, share): &(f64, f64)| Ok(RateLevel { rate: rate(of_largest)?, share });
        let mut levels = of_levels.iter().map(level).collect::<Result<Vec<_>>>()?;
        levels.sort_by(|a, b| a.rate.get().total_cmp(&b.rate.get()));
        let levels = Some(RateLevels { order: RenyiOrder::new(2.0)?, levels });
        Ok(RatesByLoss { least: rate(0.01)?, largest: rate(1.0)?, levels })
    }

    /// In one line, for people.
    pub(super) fn describe(&self) -> String {
        let Self {
            model, task, data, batch, record, clipping, threshold, by_group, micro_batch, threads, dtype, ..
        } = self;
        format!(
            "{model:?}, {loss:?}, record {record} of {n}, {drawn} drawn, {dtype:?}, {clipping:?}, threshold {threshold:?}, \
             groups {by_group:?}, micro-batch {micro_batch}, threads {threads}",
            loss = task.loss,
            n = data.len(),
            drawn = batch.len()
        )
    }

    /// The public and released values of the step.
    pub(super) fn fixed(&self) -> FixedStep {
        let dropout = DropoutKey::draw(&mut ChaCha20Rng::seed_from_u64(self.dropout));
        FixedStep { threshold: self.threshold, weights: self.weights.clone(), released: self.released.clone(), dropout }
    }

    /// Cuts the records into blocks, so that each of `ranks` ranks holds some: two blocks if there
    /// are enough records.
    pub(super) fn in_blocks_for(&mut self, ranks: NonZeroUsize) {
        self.block_records = (ranks.get() > 1).then(|| self.data.len().div_ceil(2 * ranks.get()));
    }

    /// Compares the step, on a device and on several ranks, with its neighbours; on request also
    /// with the same step on one rank under other micro-batches and threads.
    ///
    /// # Errors
    /// If the case cannot be set up.
    pub(super) fn compare(
        &self,
        device: &Device,
        ranks: NonZeroUsize,
        otherwise: bool,
        fault: Option<Fault>,
    ) -> Result<Comparison> {
        let Data { features, labels, groups, .. } = &self.data;
        let records = Records::new(features, labels, groups, self.facts(), self.dtype, device)?;
        // A planted fault is known to its own thread alone, and a GPU takes one.
        let one = fault.is_some() || !device.is_cpu();
        let threads = |threads: NonZeroUsize| if one { NonZeroUsize::MIN } else { threads };
        let execution = |micro_batch, n| {
            let device = device.clone();
            Execution { micro_batch: Some(micro_batch), threads: threads(n), device, ..Execution::default() }
        };
        let other_size = if self.micro_batch > 5 { 5 } else { 1_024 };
        let neighbours = Neighbours {
            plan: &self.plan()?,
            records: &records,
            blanked: &records.blanked(&[self.record])?,
            parameters: &self.parameters,
            fixed: &self.fixed(),
            batch: &self.batch,
            record: self.record,
            execution: execution(self.micro_batch, self.threads),
            otherwise: otherwise.then(|| execution(other_size, self.threads.saturating_add(1))),
            ranks,
        };
        neighbours.compare_with(fault)
    }
}

/// The threshold that a method carries into its first step.
fn initial_threshold(config: &ClipConfig) -> Option<f64> {
    match config.controller {
        Controller::Geometric { initial, .. } | Controller::Own { initial, .. } => Some(initial),
        _ => None,
    }
}

/// Default initial parameters, stretched or shrunk.
fn initial_parameters(config: &ModelConfig, n_inputs: usize, task: &Task, rng: &mut ChaCha20Rng) -> Result<Vec<f64>> {
    let model = Model::new(config, n_inputs, task.n_outputs, DType::F32, &Device::Cpu)?;
    model.initialise(rng)?;
    let gain = if rng.random_bool(0.5) { 1.0 } else { 10_f64.powf(rng.random_range(-1.0..1.5)) };
    Ok(model.parameters().to_vec()?.into_iter().map(|value| value * gain).collect())
}
