//! The attack on one run: canaries in its gradients, and canaries among its records.

use std::sync::Arc;
use std::time::Instant;

use dp_accounting::{Delta, NoiseMultiplier, SamplingRate};
use dp_audit::one_run::{Attack, AttackSettings, Claim, Score};
use dp_linear::RowSource as _;
use dp_table::Encoding;
use rand::Rng as _;

use super::report::{AttackedRun, OfKind};
use super::rows::{MadeRows, Shape, WithCanaries};
use super::watch::OneRun;
use super::{AuditFault, AuditOptions};
use crate::config::Config;
use crate::error::{FairdpError, Result};
use crate::fit::FitPlan;
use crate::fit::journal::Journal;
use crate::fit::training::{Trained, Training};
use crate::key::NoiseKey;
use crate::recipe::Method;
use crate::subsets::{GroupedRows, features};

/// Canaries among the records, at most: more would hide each other.
const MOST_ROWS: usize = 200;

/// What is attacked.
pub(super) struct OneRunAttack<'a> {
    pub(super) config: &'a Config,
    pub(super) plan: &'a FitPlan,
    pub(super) encoding: &'a Encoding,
    pub(super) training: &'a Training<'a>,
    pub(super) key: &'a NoiseKey,
    pub(super) options: &'a AuditOptions,
}

impl OneRunAttack<'_> {
    /// Trains on the records with canaries, and once without: the white box, and the black box. The
    /// bounds that refute are together wrong with probability `failure` at most.
    pub(super) fn run(
        &self,
        records: &impl GroupedRows,
        failure: f64,
        journal: &mut Journal<'_>,
    ) -> Result<(AttackedRun, AttackedRun)> {
        let claims = self.claims()?;
        let n_groups = self.encoding.groups().len().max(1);
        let settings = AttackSettings {
            canaries: self.options.canaries,
            kinds: n_groups,
            fault: self.options.fault.and_then(AuditFault::of_run),
        };
        let whole =
            Claim::with_least_noise(&claims).ok_or_else(|| FairdpError::Internal("an attack on no claim".into()))?;
        let attack = Arc::new(Attack::new(whole.clone(), settings, self.key.draws("canaries", 0)));
        let (canaries, present) = self.canary_rows();
        let rows = WithCanaries { records, canaries: &canaries };
        journal.stage("training with canaries")?;
        let began = Instant::now();
        let attacked = self.train(&rows, &self.key.watched(Arc::new(OneRun(Arc::clone(&attack)))), journal)?;
        let seconds = began.elapsed().as_secs_f64();
        journal.stage("training without canaries")?;
        let began = Instant::now();
        let plain = self.train(records, &self.key.derived("without canaries", 0), journal)?;
        let plain_seconds = began.elapsed().as_secs_f64();

        let groups = self.encoding.groups();
        let group = |kind: usize| OfKind { group: groups.get(kind).map(ToString::to_string), class: String::new() };
        let kinds: Vec<OfKind> = (0..n_groups).map(group).collect();
        // Of both attacks: all canaries, and each kind.
        let n_tests = (1 + n_groups) + 1;
        let failure = failure / n_tests as f64;
        let mut white_box = AttackedRun::new(&claims, &attack.scores(), &kinds, failure)?;
        white_box.weights = Some(plain.layers.iter().map(|layer| layer.weights.len() + layer.biases.len()).sum());
        (white_box.seconds, white_box.plain_seconds) = (Some(seconds), Some(plain_seconds));
        // As they are where they are there.
        let canaries = MadeRows::of_all_kinds(self.shape(), present.len());
        let scores = self.losses([attacked, plain], &canaries, &present)?;
        let black_box = AttackedRun::new(&claims, &scores, &[], failure)?;
        Ok((white_box, black_box))
    }

    fn shape(&self) -> Shape<'_> {
        Shape { encoding: self.encoding }
    }

    /// The gradients, as the ledger has them, for all groups; where groups have rates of their own, for
    /// each. Of a method by name a canary is one record.
    fn claims(&self) -> Result<Vec<Claim>> {
        let planned = self.plan.release("gradients")?;
        let (sigma, delta) = (planned.noise_multiplier.get(), Delta::new(self.plan.delta)?);
        let claim = |noise: f64, rate, steps| Ok(Claim::new(NoiseMultiplier::new(noise)?, rate, steps, delta)?);
        let Method::Sgd(named) = &self.plan.candidates[0].recipe.method else {
            return Ok(vec![claim(sigma, SamplingRate::new(1.0)?, planned.count)?]);
        };
        if let Some(limits) = &named.rates_by_loss {
            let levels = limits.levels.as_ref().map_or(&[][..], |found| &found.levels);
            let noise = NoiseMultiplier::new(sigma)?;
            let claim = Claim::of_any_level(noise, levels, &planned.event, planned.count, delta)?;
            return Ok(claim.into_iter().collect());
        }
        let Some(sampling) = &named.group_sampling else {
            let units = self.training.records_per_unit as f64;
            return Ok(vec![claim(sigma * units, named.sampling_rate, planned.count)?]);
        };
        let of_group = |(rate, share): (&SamplingRate, f64)| claim(sigma / share, *rate, named.steps);
        sampling.rates.iter().zip(sampling.all_shares()).map(of_group).collect()
    }

    fn train(&self, rows: &impl GroupedRows, key: &NoiseKey, journal: &mut Journal<'_>) -> Result<Trained> {
        let candidate = &self.plan.candidates[0];
        let before = self.training.prepare(candidate, rows, key)?;
        self.training.run(candidate, rows, &before, key, None, journal)
    }

    /// Extreme records of all kinds, each there by a fair coin or blank.
    fn canary_rows(&self) -> (MadeRows, Vec<bool>) {
        let (shape, mut coins) = (self.shape(), self.key.draws("canaries among the records", 0));
        let kinds = shape.kinds();
        let n = self.options.canaries.min(MOST_ROWS);
        let present: Vec<bool> = (0..n).map(|_| coins.random_bool(0.5)).collect();
        let mut rows = MadeRows::new(shape);
        for (number, present) in present.iter().enumerate() {
            rows.push(shape, kinds[number % kinds.len()], present.then_some(number));
        }
        (rows, present)
    }

    /// By how much each canary's loss is smaller than under a run without canaries, less the middle of
    /// all: the attacker knows all other records.
    fn losses(&self, trained: [Trained; 2], canaries: &MadeRows, present: &[bool]) -> Result<Vec<Score>> {
        let schema = self.encoding.schema();
        let decision = self.config.decision(&self.plan.candidates[0].recipe);
        let groups = canaries.groups(0..canaries.len());
        let mut losses = Vec::new();
        for trained in trained {
            let model = trained.into_model(schema.clone(), decision)?;
            let mut of_model = Vec::new();
            let mut probabilities = vec![0.0; model.classes().len()];
            canaries.visit(0..canaries.len(), &mut |index, row| {
                if let Some(range) = model.number() {
                    let label = range.middle() + f64::from(row.target) * range.half();
                    of_model.push((model.predicted_number(features(row), groups[index], range) - label).abs());
                    return;
                }
                model.probabilities(features(row), &mut probabilities);
                // In log-odds, which are not squeezed where the model is sure.
                let right = probabilities[row.label].clamp(1e-12, 1.0 - 1e-12);
                of_model.push(((1.0 - right) / right).ln());
            });
            losses.push(of_model);
        }
        let gains: Vec<f64> = losses[1].iter().zip(&losses[0]).map(|(plain, attacked)| plain - attacked).collect();
        let mut sorted = gains.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        let score = |(gain, &present): (&f64, &bool)| Score { score: gain - middle, present, kind: 0 };
        Ok(gains.iter().zip(present).map(score).collect())
    }
}
