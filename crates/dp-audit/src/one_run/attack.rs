//! Canaries in the sums of a run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::Rng;
use rand_chacha::ChaCha20Rng;

use super::bounds::Score;
use super::claim::Claim;
use super::pair::Pair;

/// How a run is attacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttackSettings {
    /// Canaries, if the model has as many weights.
    pub canaries: usize,
    /// Kinds of canaries, say groups times classes, which take turns; at least 1.
    pub kinds: usize,
    /// A fault that is put in, to see that it is found.
    pub fault: Option<Fault>,
}

/// A fault of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Half of the noise.
    Noise,
    /// Records of the first kind are drawn at twice the rate, or in full batches twice.
    Rate,
    /// Records of every kind reach the whole bound, whatever their part of it.
    Threshold,
}

/// How a record of a kind enters a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Participation {
    /// Probability with which it is drawn.
    pub rate: f64,
    /// The part of the bound that it can add.
    pub share: f64,
}

impl Fault {
    /// What is made of the standard deviation of the noise.
    pub fn std(fault: Option<Self>, std: f64) -> f64 {
        if fault == Some(Self::Noise) { 0.5 * std } else { std }
    }
}

/// An attack on a run: asked before the noise of every step and after it.
///
/// What it sees before the noise is **not private**, nor are the scores.
pub struct Attack {
    claim: Claim,
    settings: AttackSettings,
    state: Mutex<State>,
}

/// Without what it has seen.
impl std::fmt::Debug for Attack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attack").field("claim", &self.claim).field("settings", &self.settings).finish_non_exhaustive()
    }
}

struct State {
    rng: ChaCha20Rng,
    /// Drawn when the first sum says how many weights there are.
    canaries: Vec<Canary>,
}

struct Canary {
    kind: usize,
    present: bool,
    /// The weight that it moves, and to which side.
    weight: usize,
    sign: f64,
    /// The sum without it, in this step, and how it enters the step.
    known: f64,
    enters: Participation,
    score: f64,
}

impl Attack {
    /// An attack on what a claim is about, with its own randomness.
    pub fn new(claim: Claim, settings: AttackSettings, rng: ChaCha20Rng) -> Self {
        Self { claim, settings, state: Mutex::new(State { rng, canaries: Vec::new() }) }
    }

    /// The claim.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// The fault that was put in.
    pub fn fault(&self) -> Option<Fault> {
        self.settings.fault
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the canaries of a step add to the sum before its noise: weights and values.
    ///
    /// `length` is the largest norm that a record adds, in the unit of the sum, and `of_kind` says how a
    /// record of a kind is to enter the step.
    pub fn before_noise(
        &self,
        sum: &[f64],
        length: f64,
        of_kind: &dyn Fn(usize) -> Participation,
    ) -> Vec<(usize, f64)> {
        let State { rng, canaries } = &mut *self.state();
        if canaries.is_empty() {
            *canaries = draw(self.settings, sum.len(), rng);
        }
        let mut added = Vec::new();
        for canary in canaries {
            canary.known = sum[canary.weight];
            canary.enters = of_kind(canary.kind);
            let copies = copies(self.settings.fault, canary.kind, canary.enters.rate, rng);
            let share = if self.settings.fault == Some(Fault::Threshold) { 1.0 } else { canary.enters.share };
            if canary.present && copies > 0.0 {
                added.push((canary.weight, canary.sign * copies * share * length));
            }
        }
        added
    }

    /// What the attacker sees of the step: the sum with noise, whose standard deviation is to be `std`.
    pub fn after_noise(&self, noisy: &[f64], std: f64) {
        let pair = self.claim.pair();
        for canary in &mut self.state().canaries {
            let projection = canary.sign * (noisy[canary.weight] - canary.known) / std;
            let Participation { rate, share } = canary.enters;
            canary.score += Pair { rate, ..pair }.with_share(share).score(projection);
        }
    }

    /// The canaries with their scores so far.
    pub fn scores(&self) -> Vec<Score> {
        let score = |canary: &Canary| Score { score: canary.score, present: canary.present, kind: canary.kind };
        self.state().canaries.iter().map(score).collect()
    }
}

/// How often a record is in a step.
fn copies(fault: Option<Fault>, kind: usize, rate: f64, rng: &mut ChaCha20Rng) -> f64 {
    let rate = if fault == Some(Fault::Rate) && kind == 0 { 2.0 * rate } else { rate };
    rate.floor() + if rng.random_bool(rate.fract()) { 1.0 } else { 0.0 }
}

/// Canaries on weights that are drawn without repeats: at most as many as there are.
fn draw(settings: AttackSettings, n_weights: usize, rng: &mut ChaCha20Rng) -> Vec<Canary> {
    let n = settings.canaries.min(n_weights);
    let weights = rand::seq::index::sample(rng, n_weights, n);
    let mut coin = || rng.random_bool(0.5);
    let canary = |(number, weight): (usize, usize)| Canary {
        kind: number % settings.kinds.max(1),
        present: coin(),
        weight,
        sign: if coin() { 1.0 } else { -1.0 },
        known: 0.0,
        enters: Participation { rate: 0.0, share: 0.0 },
        score: 0.0,
    };
    weights.into_iter().enumerate().map(canary).collect()
}
