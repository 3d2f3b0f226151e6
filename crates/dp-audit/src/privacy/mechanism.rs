//! Runs of the real trainer on records among which there is a canary, or a blank in its place, and
//! what an attacker makes of them.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use dp_accounting::{Delta, DpEvent, NoiseMultiplier, SamplingRate};
use dp_clipping::{ClipBatch, Controller, MethodEntry, PresetParams, Weights};
use dp_engine::{DType, Device, Loss, ModelConfig, PublicFacts, Records};
use dp_train::ranks::on_threads;
use dp_train::{
    BatchPlan, Execution, GroupSampling, LearningRate, Observer, Plan, PrivacyConfig, RandomStreams, RateLevel,
    RateLevels, RatesByLoss, Result, StepState, StepView, TrainConfig, Trainer,
};
use rand::{CryptoRng, Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::plant::{Plant, Seen, Watched};
use crate::one_run::{Claim, Score};
use crate::plant::with_planted;

/// Others of group 0 whose gradients are within the base threshold.
const WITHIN: usize = 20;
/// Others with the canary's gradient and the opposite label, by group.
const ABOVE: [usize; 2] = [10, 20];
/// Groups.
pub(super) const N_GROUPS: usize = 2;
/// Base threshold.
const CLIP_NORM: f64 = 2.0;
/// So small that parameters stay at 0 as far as gradients go.
const RATE: f64 = 1e-9;
/// Steps of a run among many.
const STEPS: u64 = 2;
/// μ of the gradient queries of a run.
const MU: f64 = 1.0;
/// Rates of the groups of a method that draws them at rates of their own.
const RATES: [f64; N_GROUPS] = [0.3, 1.0];
/// Weights under which rates that follow losses are those, the limits.
const WEIGHTS: [f64; N_GROUPS] = [0.1, 1.9];
/// Steps and μ of its runs: so many and so much noise that the guarantee of a group which is rarely drawn
/// is far from that of a Gaussian of the same noise.
const STEPS_BY_RATE: u64 = 20;
const MU_BY_RATE: f64 = 2.0;

/// How a method draws groups.
#[derive(Clone, Copy, PartialEq)]
enum Drawn {
    Alike,
    /// At public rates.
    ByRate,
    /// At rates between these that follow losses.
    ByLoss,
}

impl Drawn {
    fn of(entry: &MethodEntry) -> Self {
        let config = entry.default_config();
        match (config.controller, config.weights) {
            (Controller::ByRate { .. }, Weights::RatesByLoss { .. }) => Self::ByLoss,
            (Controller::ByRate { .. }, _) => Self::ByRate,
            _ => Self::Alike,
        }
    }

    /// The weights that the method's state is to have, where rates follow them.
    fn weights(self) -> Option<&'static [f64]> {
        (self == Self::ByLoss).then_some(&WEIGHTS)
    }
}

/// Settings of the presets, the same for all methods.
pub(super) fn params() -> PresetParams {
    PresetParams { clip_norm: CLIP_NORM, ..PresetParams::default() }
}

/// A plan whose candidates are all records, and whose gradient queries together have μ = `mu` for a
/// record that stays in every batch.
fn plan(
    entry: &MethodEntry,
    facts: PublicFacts,
    (steps, mu): (u64, f64),
    drawn: Drawn,
    ranks: NonZeroUsize,
    delta: Delta,
) -> Result<Plan> {
    let sigma = NoiseMultiplier::new((steps as f64).sqrt() / mu)?;
    let privacy =
        PrivacyConfig { allow_large_delta: true, ..PrivacyConfig::new(entry.config(&params())?, sigma, delta) };
    let batches = BatchPlan::new(SamplingRate::new(1.0)?, steps, 1);
    let rates = RATES.map(SamplingRate::new).into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
    let config = TrainConfig {
        privacy: Some(privacy),
        rates_by_loss: (drawn == Drawn::ByLoss).then(|| RatesByLoss::new(rates[0], rates[1])),
        group_sampling: (drawn == Drawn::ByRate).then(|| GroupSampling::new(rates)),
        // Two blocks for each of several ranks.
        block_records: (ranks.get() > 1).then(|| facts.n_records.div_ceil(2 * ranks.get())),
        ..TrainConfig::new(ModelConfig::LogisticRegression, Loss::BceWithLogits, batches, LearningRate::Constant(RATE))
    };
    Plan::new(config, facts)
}

/// The plan with a fault of its rates or shares, which it does not claim.
fn with_plant(plan: &Plan, plant: Option<Plant>) -> Result<Plan> {
    let mut config = plan.config().clone();
    let all = SamplingRate::new(1.0)?;
    if let Some(GroupSampling { rates, shares: Some(shares) }) = &mut config.group_sampling {
        match plant {
            Some(Plant::UnchargedRate) => rates.fill(all),
            Some(Plant::OtherThreshold) => shares.rotate_left(1),
            _ => {}
        }
    }
    if let Some(RateLevels { levels, .. }) = config.rates_by_loss.as_mut().and_then(|limits| limits.levels.as_mut()) {
        match plant {
            Some(Plant::UnchargedRate) => levels.iter_mut().map(|level| &mut level.rate).for_each(|rate| *rate = all),
            Some(Plant::OtherThreshold) => {
                let shares: Vec<f64> = levels.iter().rev().map(|level| level.share).collect();
                levels.iter_mut().zip(shares).for_each(|(level, share)| level.share = share);
            }
            _ => {}
        }
    }
    Plan::new(config, plan.facts())
}

/// The input of a canary whose gradient adds the most to the sum, in units of the bound: the
/// largest of those that add as much, which a missing cap then shows, but within a threshold beyond
/// which a method drops gradients.
fn canary_input(entry: &MethodEntry, plan: &Plan) -> Result<f32> {
    const INPUTS: [f32; 6] = [6.0, 20.0, 60.0, 98.0, 1_000.0, 30_000.0];
    // A hard cap leaves 1 of 2¹⁸ to rounding.
    const AS_MUCH: f64 = 1.0 - 1e-5;
    let mut best = (0.0, INPUTS[0]);
    for x in INPUTS {
        let norm = 0.5 * (f64::from(x).powi(2) + 1.0).sqrt();
        let mut method = entry.config(&params())?.build(plan.context())?;
        let mut rng = ChaCha20Rng::seed_from_u64(0);
        let losses = [std::f64::consts::LN_2];
        let clipped = method.clip(&ClipBatch::new(&[norm], &[0]).with_losses(&losses[..]), &mut rng)?;
        let share = clipped.scales[0] * norm / clipped.group_bounds[0];
        if share >= best.0 * AS_MUCH {
            best = (share.max(best.0), x);
        }
    }
    Ok(best.1)
}

/// The record of a step: the state before it, and the method's inputs and answers.
#[derive(Default)]
struct Transcript {
    parameters: Vec<Vec<f64>>,
    norms: Vec<Vec<f64>>,
    scales: Vec<Vec<f64>>,
}

impl Observer for Transcript {
    fn wants_state(&self, _step: u64) -> bool {
        true
    }

    fn before_step(&mut self, state: &StepState<'_>) -> Result<()> {
        self.parameters.push(state.parameters.to_vec());
        Ok(())
    }

    fn on_step(&mut self, view: &StepView<'_>) {
        self.norms.push(view.norms.to_vec());
        self.scales.push(view.scales.to_vec());
    }
}

/// One run: the noisy sums of its steps as they can be read off the parameters, and what the method
/// released.
struct Played {
    /// `[steps][params]`.
    sums: Vec<Vec<f64>>,
    transcript: Transcript,
    seen: Vec<Seen>,
}

fn play(
    entry: &MethodEntry,
    plan: &Plan,
    records: &Records,
    streams: RandomStreams,
    plant: Option<Plant>,
    ranks: NonZeroUsize,
) -> Result<Played> {
    if ranks == NonZeroUsize::MIN {
        return play_rank(entry, plan, records, streams, plant, Execution::default());
    }
    let played = on_threads(ranks.get(), |ranks| {
        let held = records.held_part(plan.held_by(ranks.rank(), ranks.size()))?;
        let execution = Execution { ranks, ..Execution::default() };
        let fault = plant.and_then(Plant::of_ranks);
        with_planted(fault, || play_rank(entry, plan, &held, streams.duplicate(), plant, execution))
    });
    Ok(played?.swap_remove(0))
}

/// The run as one of its ranks plays it.
fn play_rank(
    entry: &MethodEntry,
    plan: &Plan,
    records: &Records,
    streams: RandomStreams,
    plant: Option<Plant>,
    execution: Execution,
) -> Result<Played> {
    let mut trainer = Trainer::new(plan, records, streams, execution)?;
    let parameters = trainer.model().parameters();
    let n_parameters = parameters.to_vec()?.len();
    parameters.set(&vec![0.0; n_parameters])?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    trainer.replace_method(Box::new(Watched::new(
        entry,
        &params(),
        plan.context(),
        (plant, plan.config().rates_by_loss.is_some().then_some(&WEIGHTS)),
        Arc::clone(&seen),
    )?));
    let mut transcript = Transcript::default();
    trainer.run(&mut transcript)?;
    transcript.parameters.push(trainer.model().parameters().to_vec()?);
    let sums = transcript
        .parameters
        .windows(2)
        .zip(&transcript.norms)
        .map(|(pair, norms)| {
            let mut factor = plan.expected_batch_size() / RATE;
            if plant == Some(Plant::PrivateDivisor) {
                let n = norms.iter().filter(|norm| norm.is_finite()).count().max(1);
                factor *= plan.expected_batch_size() / n as f64;
            }
            pair[0].iter().zip(&pair[1]).map(|(before, after)| (before - after) * factor).collect()
        })
        .collect();
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Played { sums, transcript, seen })
}

/// Many small runs against one canary: 50 others, of which the attacker knows everything.
pub(super) struct OneCanary<'a> {
    entry: &'a MethodEntry,
    pub(super) plan: Plan,
    /// What is run in its place, with a fault of the rates or without.
    played: Plan,
    /// The same with twice the noise: the second release where streams are used again.
    pub(super) second: Plan,
    facts: PublicFacts,
    input: f32,
    group: usize,
    /// Rate and share of its group, where groups have rates of their own.
    level: Option<RateLevel>,
    plant: Option<Plant>,
    ranks: NonZeroUsize,
}

/// The statistics that an attacker computes from one run. Each grows, or falls, with the
/// probability that the canary was there; the attacker learns which.
pub(super) type Statistics = [f64; 4];

impl<'a> OneCanary<'a> {
    pub(super) fn new(
        entry: &'a MethodEntry,
        group: usize,
        plant: Option<Plant>,
        ranks: NonZeroUsize,
        delta: Delta,
    ) -> Result<Self> {
        let n_records = WITHIN + ABOVE.iter().sum::<usize>() + 1;
        let facts = PublicFacts { n_records, n_inputs: 1, n_classes: 2, n_groups: N_GROUPS };
        let drawn = Drawn::of(entry);
        let (steps, mu) = if drawn == Drawn::Alike { (STEPS, MU) } else { (STEPS_BY_RATE, MU_BY_RATE) };
        let plan_with = |mu| plan(entry, facts, (steps, mu), drawn, ranks, delta);
        let (plan, second) = (plan_with(mu)?, plan_with(mu / 2.0)?);
        let input = canary_input(entry, &plan)?;
        let played = with_plant(&plan, plant)?;
        let level = plan.rates_at(drawn.weights()).map(|rates| rates[group]);
        Ok(Self { entry, plan, played, second, facts, input, group, level, plant, ranks })
    }

    fn records(&self, present: bool) -> Result<Records> {
        let mut features = vec![1.0; WITHIN];
        let mut groups = vec![0; WITHIN];
        for (group, n) in ABOVE.into_iter().enumerate() {
            features.extend(vec![self.input; n]);
            groups.extend(vec![group; n]);
        }
        let mut labels = vec![0; features.len()];
        let scaled = self.plant == Some(Plant::DataScaling);
        // A canary far from all others where constants follow the records.
        let canary = if scaled { 1_000.0 * self.input } else { self.input };
        features.push(if present { canary } else { f32::NAN });
        groups.push(self.group);
        labels.push(1);
        if scaled {
            let largest = features.iter().copied().filter(|x| x.is_finite()).fold(0.0, f32::max);
            for x in &mut features {
                *x *= self.input / largest;
            }
        }
        Ok(Records::new(&features, &labels, &groups, self.facts, DType::F32, &Device::Cpu)?)
    }

    /// Runs once and looks.
    pub(super) fn attack(&self, present: bool, streams: RandomStreams) -> Result<Statistics> {
        let records = self.records(present)?;
        let reuse = self.plant == Some(Plant::SeedReuse);
        let again = reuse.then(|| streams.duplicate());
        let first = play(self.entry, &self.played, &records, streams, self.plant, self.ranks)?;
        let mut statistics = self.look(&first, &self.plan);
        if let Some(streams) = again {
            // The same noise in two releases of different scale: their difference has none.
            let second = play(self.entry, &self.second, &records, streams, self.plant, self.ranks)?;
            let residue = |played, plan| self.residue(played, plan, self.direction());
            statistics[3] = residue(&first, &self.plan) - residue(&second, &self.second);
        } else if self.plant == Some(Plant::RankStream) {
            // The same noise in the weight and in the constant: their difference has none.
            statistics[3] = self.residue(&first, &self.plan, [1.0, -1.0]);
        }
        Ok(statistics)
    }

    /// The claim about the canary with this factor on the noise of a method that draws groups at rates of
    /// their own; `None` of others, whose claim is a Gaussian's.
    pub(super) fn claim_with_noise(&self, factor: f64) -> Result<Option<DpEvent>> {
        let Some(RateLevel { rate, share }) = self.level else { return Ok(None) };
        let mut multipliers = self.plan.count_noise_multipliers();
        multipliers.push(self.plan.context().noise_multiplier / share);
        let multipliers = multipliers.into_iter().map(|sigma| NoiseMultiplier::new(factor * sigma));
        let multipliers = multipliers.collect::<std::result::Result<Vec<_>, _>>()?;
        let step = match multipliers[..] {
            [gradient] => DpEvent::gaussian(gradient),
            _ => DpEvent::joint_gaussian(multipliers),
        };
        let step = step.poisson_sampled(rate);
        Ok(Some(step.repeated(self.plan.config().batches.steps)))
    }

    /// Where the canary's gradient points, but for its sign.
    fn direction(&self) -> [f64; 2] {
        let length = f64::from(self.input).hypot(1.0);
        [f64::from(self.input) / length, 1.0 / length]
    }

    /// The sum of a step along a vector, less what the others are known to add.
    fn without_others(&self, played: &Played, step: usize, u: [f64; 2]) -> f64 {
        let along = |sum: &[f64]| sum.iter().zip(u).map(|(sum, u)| sum * u).sum::<f64>();
        let (norms, scales) = (&played.transcript.norms[step], &played.transcript.scales[step]);
        // A record within points to (1, 1).
        let (within, above) = (along(&[std::f64::consts::FRAC_1_SQRT_2; 2]), along(&self.direction()));
        let others: f64 =
            (0..self.facts.n_records - 1).map(|i| norms[i] * scales[i] * if i < WITHIN { within } else { above }).sum();
        along(&played.sums[step]) - others
    }

    /// In units of the noise, over all steps.
    fn residue(&self, played: &Played, plan: &Plan, u: [f64; 2]) -> f64 {
        let sigma = plan.context().noise_multiplier;
        (0..played.sums.len())
            .map(|step| -self.without_others(played, step, u) / (sigma * played.seen[step].bound))
            .sum()
    }

    fn look(&self, played: &Played, plan: &Plan) -> Statistics {
        let sigma = plan.context().noise_multiplier;
        // One of the others of the canary's group has its norm, hence its scale.
        let twin = WITHIN + if self.group == 0 { 0 } else { ABOVE[0] };
        let by_rate = self.level.map(|level| (level.rate.get(), level.share));
        let (mut likelihood, mut plain, mut counts) = (0.0, 0.0, 0.0);
        for (step, seen) in played.seen.iter().enumerate() {
            let (norms, scales) = (&played.transcript.norms[step], &played.transcript.scales[step]);
            let share = by_rate.map_or(norms[twin] * scales[twin] / seen.bound, |(_, share)| share);
            let x = -self.without_others(played, step, self.direction()) / seen.bound;
            let log_ratio = (share * x - 0.5 * share * share) / (sigma * sigma);
            likelihood += by_rate.map_or(log_ratio, |(rate, _)| (1.0 - rate + rate * log_ratio.exp()).ln());
            let sum: f64 = played.sums[step].iter().zip(self.direction()).map(|(sum, u)| sum * u).sum();
            plain += sum / (sigma * CLIP_NORM);
            counts += seen.counts;
        }
        [likelihood, plain, counts, 0.0]
    }
}

/// One run with many canaries. Each has a separate input and is there with probability ½.
pub(super) struct ManyCanaries<'a> {
    entry: &'a MethodEntry,
    /// What the gradients claim.
    pub(super) claim: Claim,
    plan: Plan,
    facts: PublicFacts,
    input: f32,
    plant: Option<Plant>,
    ranks: NonZeroUsize,
}

impl<'a> ManyCanaries<'a> {
    pub(super) fn new(
        entry: &'a MethodEntry,
        n: usize,
        plant: Option<Plant>,
        ranks: NonZeroUsize,
        delta: Delta,
    ) -> Result<Self> {
        let facts = PublicFacts { n_records: n, n_inputs: n, n_classes: 2, n_groups: N_GROUPS };
        let plan = plan(entry, facts, (1, MU), Drawn::Alike, ranks, delta)?;
        let noise = NoiseMultiplier::new(plan.context().noise_multiplier)?;
        let claim = Claim::new(noise, SamplingRate::new(1.0)?, 1, delta)?;
        let input = canary_input(entry, &plan)?;
        Ok(Self { entry, claim, plan, facts, input, plant, ranks })
    }

    /// Runs once and scores every canary.
    pub(super) fn attack(&self, coins: &mut impl CryptoRng, streams: RandomStreams) -> Result<Vec<Score>> {
        let n = self.facts.n_records;
        let present: Vec<bool> = (0..n).map(|_| coins.random()).collect();
        let mut features = vec![0.0; n * n];
        for (i, present) in present.iter().enumerate() {
            features[i * n + i] = if *present { self.input } else { f32::NAN };
        }
        let groups: Vec<usize> = (0..n).map(|i| i % N_GROUPS).collect();
        let records = Records::new(&features, &vec![1; n], &groups, self.facts, DType::F32, &Device::Cpu)?;
        let played = play(self.entry, &self.plan, &records, streams, self.plant, self.ranks)?;
        let (norms, scales) = (&played.transcript.norms[0], &played.transcript.scales[0]);
        let bound = played.seen[0].bound;
        // All canaries of a group add the same.
        let share = |group: usize| {
            let twin = (0..n).find(|&i| present[i] && groups[i] == group);
            twin.map_or(0.0, |i| norms[i] * scales[i] / bound)
        };
        let shares: Vec<f64> = (0..N_GROUPS).map(share).collect();
        let score = |i: usize| {
            let pair = self.claim.pair().with_share(shares[groups[i]]);
            pair.score(-played.sums[0][i] / (self.claim.noise_multiplier * bound))
        };
        Ok((0..n).map(|i| Score { score: score(i), present: present[i], kind: groups[i] }).collect())
    }
}
