//! A threshold for each group after the training, chosen from noisy counts of the training records' scores.

use anyhow::ensure;
use dp_accounting::{Accountant as _, Delta, DpEvent, Epsilon, GdpAccountant, NoiseMultiplier};
use dp_linear::GaussianBudget;
use dp_train::{Engine, Execution, Plan, RandomStream, Records};
use fair_decisions::{Aim, CumulativeCounts, Mode, PrefixSums, ScoreCells, ScoreGrid, choose};
use serde::Serialize;

/// What the counts have of `μ²`: a constant that was written down before any run.
const SHARE: f64 = 0.1;
/// Every class counts alike in the accuracy that decides between thresholds.
const BALANCE: f64 = 1.0;

/// Thresholds that serve the worst group best, for two classes: [`fair_decisions::choose`].
///
/// **Guarantee.** A record is in one cell of the counts. They are one Gaussian mechanism; the thresholds
/// follow from them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct GroupThresholds {
    noise_multiplier: NoiseMultiplier,
    aim: Aim,
}

impl GroupThresholds {
    /// Within their share of a budget. Nothing caps what accuracy may fall by: methods are judged by the
    /// worst group, and a report shows the average beside it.
    ///
    /// # Errors
    /// For an infinite ε.
    pub(crate) fn within(epsilon: Epsilon, delta: Delta) -> anyhow::Result<Self> {
        let noise_multiplier = GaussianBudget::new(epsilon, delta)?.noise_multiplier(SHARE, 1)?;
        Ok(Self { noise_multiplier, aim: Aim::with_limits(Mode::WorstGroup, 1.0, 0.0)? })
    }

    /// The ε that Gaussian releases on all records may have beside the counts.
    ///
    /// # Errors
    /// For an infinite ε.
    pub(crate) fn epsilon_of_the_rest(epsilon: Epsilon, delta: Delta) -> anyhow::Result<Epsilon> {
        let rest = GaussianBudget::new(epsilon, delta)?.noise_multiplier(1.0 - SHARE, 1)?;
        let mut accountant = GdpAccountant::new(Plan::RELATION);
        accountant.compose(&DpEvent::gaussian(rest), 1)?;
        Ok(accountant.epsilon(delta)?.epsilon)
    }

    /// The release of the counts.
    pub(crate) fn event(&self) -> DpEvent {
        DpEvent::gaussian(self.noise_multiplier)
    }

    /// Releases the counts, and returns the log-odds above which each group has the second class.
    ///
    /// # Errors
    /// Unless there are two classes; if the device fails.
    pub(crate) fn fit(
        &self,
        engine: &mut Engine,
        train: &Records,
        execution: &Execution,
        rng: &mut RandomStream,
    ) -> anyhow::Result<Vec<f64>> {
        let facts = train.facts();
        ensure!(facts.n_classes == 2, "thresholds by group need two classes, and there are {}", facts.n_classes);
        let logits = engine.evaluate(train, execution.records_at_once())?.logits;
        let grid = ScoreGrid::around(0.0);
        let mut cells = ScoreCells::new(facts.n_groups);
        let scores = logits.chunks_exact(2).map(score);
        for ((score, &class), &group) in scores.zip(train.labels()).zip(train.groups()) {
            cells.add(group, class as usize, grid.cell(|edge| score > edge));
        }
        let sums = PrefixSums::new();
        let counts = CumulativeCounts::release(&sums, &cells, self.noise_multiplier.get(), 1, rng)?;
        let choice = choose(&sums, &counts, &self.aim, BALANCE);
        Ok(choice.thresholds.iter().map(|threshold| grid.edges()[threshold.likeliest()]).collect())
    }
}

/// The class of each record, by the threshold of its group.
pub(crate) fn decide(thresholds: &[f64], logits: &[f64], groups: &[usize]) -> Vec<u32> {
    logits.chunks_exact(2).zip(groups).map(|(logits, &group)| u32::from(score(logits) > thresholds[group])).collect()
}

/// Log-odds of the second class.
fn score(logits: &[f64]) -> f64 {
    logits[1] - logits[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_the_rest_are_the_whole() {
        let (epsilon, delta) = (Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap());
        let thresholds = GroupThresholds::within(epsilon, delta).unwrap();
        let rest = GroupThresholds::epsilon_of_the_rest(epsilon, delta).unwrap();
        let mut accountant = GdpAccountant::new(Plan::RELATION);
        let of_rest = GaussianBudget::new(rest, delta).unwrap().noise_multiplier(1.0, 1).unwrap();
        accountant.compose(&DpEvent::gaussian(of_rest), 1).unwrap();
        accountant.compose(&thresholds.event(), 1).unwrap();
        let spent = accountant.epsilon(delta).unwrap().epsilon.get();
        assert!(spent <= 1.0 + 1e-9 && spent > 1.0 - 1e-6, "{spent}");
    }

    /// Log-odds of 1, 1, −1 and −1 in groups with thresholds of 0.5 and 1.5, then −2 and 0.
    #[test]
    fn each_group_has_its_threshold() {
        let logits = [0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0];
        assert_eq!(decide(&[0.5, 1.5], &logits, &[0, 1, 0, 1]), [1, 0, 0, 0]);
        assert_eq!(decide(&[-2.0, 0.0], &logits, &[0, 1, 0, 1]), [1, 1, 1, 0]);
    }
}
