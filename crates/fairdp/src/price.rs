//! The price list: what every notion of fairness would change, from counts that were released anyway.

use fair_decisions::{Aim, Mode};
use serde::{Deserialize, Serialize};

use crate::config::Decision;
use crate::error::Result;
use crate::fairness::{Difference, Rate};
use crate::group_scores::GroupScores;
use crate::scores::ScoresFile;
use crate::thresholds::{Thresholds, chosen};
use dp_table::Group;
use fair_decisions::{CumulativeCounts, Mixture};

/// Losses of the curve of accuracy over gap.
const LOSSES: [f64; 6] = [0.0, 0.005, 0.01, 0.02, 0.04, 0.08];

/// One line of the price list: a mode, with the figures of its thresholds on test records. That of
/// `none` is before, all others are after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Price {
    /// The notion of fairness.
    pub mode: Mode,
    /// Its thresholds, with the reason where none moved.
    pub thresholds: Thresholds,
    /// Figures on test records; none without a test part.
    pub figures: Option<PriceFigures>,
}

/// Figures of one set of thresholds, each with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PriceFigures {
    /// Share of right answers.
    pub accuracy: Rate,
    /// Mean of the classes' recalls.
    pub balanced_accuracy: Rate,
    /// Balanced accuracy of the group where it is least, of those where it is known.
    pub least_balanced_accuracy: Rate,
    /// Groups that may have the lowest balanced accuracy.
    pub cannot_be_told_from_the_lowest: Vec<Group>,
    /// The larger of the differences of true-positive and false-positive rates.
    pub equalized_odds_difference: Difference,
    /// Largest difference of true-positive rates.
    pub equal_opportunity_difference: Difference,
    /// Largest difference of selection rates.
    pub demographic_parity_difference: Difference,
    /// Least ratio of selection rates.
    pub demographic_parity_ratio: Difference,
}

impl Price {
    /// Whether test records bear out what moved, before any regard to its interval: the gap that the mode makes
    /// small is smaller, or the least balanced accuracy larger. Nothing to bear out where nothing moved.
    pub fn is_borne_out(&self, before: &PriceFigures) -> bool {
        let Some(after) = &self.figures else { return true };
        let (before, after) = match self.mode {
            Mode::WorstGroup => (after.least_balanced_accuracy, before.least_balanced_accuracy),
            mode => (before.gap(mode).known(), after.gap(mode).known()),
        };
        let is_better = before.value.zip(after.value).is_none_or(|(before, after)| before > after);
        self.thresholds.kept.is_some() || is_better
    }
}

impl PriceFigures {
    /// The gap that a mode makes small; for the worst group and for none that of equalised odds.
    pub fn gap(&self, mode: Mode) -> &Difference {
        match mode {
            Mode::EqualOpportunity => &self.equal_opportunity_difference,
            Mode::DemographicParity => &self.demographic_parity_difference,
            _ => &self.equalized_odds_difference,
        }
    }
}

/// A point of the curve of accuracy over the gap of equalised odds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PricePoint {
    /// The loss that is allowed.
    pub max_loss: f64,
    /// Share of right answers.
    pub accuracy: Rate,
    /// The gap.
    pub equalized_odds_difference: Difference,
}

/// What prices are computed from.
pub(crate) struct Pricing<'a> {
    pub(crate) scores: &'a ScoresFile,
    /// Of training records.
    pub(crate) counts: &'a CumulativeCounts,
    /// Of test records, if there are any.
    pub(crate) measured: Option<&'a GroupScores<'a>>,
    pub(crate) decision: Decision,
    pub(crate) groups: &'a [Group],
    pub(crate) classes: &'a [String],
}

impl Pricing<'_> {
    /// Thresholds for an aim.
    pub(crate) fn chosen(&self, aim: &Aim) -> (Vec<Mixture>, Thresholds) {
        chosen(self.scores, self.counts, aim, self.decision, self.groups, self.classes)
    }

    /// The price of every mode under these limits.
    pub(crate) fn list(&self, limits: &Aim) -> Result<Vec<Price>> {
        let price = |mode: Mode| {
            let max_gap = if mode == Mode::WorstGroup { 0.0 } else { limits.max_gap };
            let aim = Aim::with_limits(mode, limits.max_loss, max_gap)?.with_one_threshold(limits.one_threshold);
            let aim = aim.with_coins(limits.coins);
            let (mixtures, thresholds) = self.chosen(&aim);
            let figures = self.measured.map(|measured| self.figures(measured, &mixtures)).transpose()?;
            Ok(Price { mode, thresholds, figures })
        };
        Mode::ALL.into_iter().map(price).collect()
    }

    /// Accuracy over the gap of equalised odds.
    pub(crate) fn curve(&self, limits: &Aim) -> Result<Vec<PricePoint>> {
        let Some(measured) = self.measured else { return Ok(Vec::new()) };
        let point = |max_loss: f64| {
            let aim = Aim::with_limits(Mode::EqualizedOdds, max_loss, 0.0)?;
            let (mixtures, _) = self.chosen(&aim.with_one_threshold(limits.one_threshold).with_coins(limits.coins));
            let PriceFigures { accuracy, equalized_odds_difference, .. } = self.figures(measured, &mixtures)?;
            Ok(PricePoint { max_loss, accuracy, equalized_odds_difference })
        };
        LOSSES.into_iter().map(point).collect()
    }

    fn figures(&self, measured: &GroupScores<'_>, mixtures: &[Mixture]) -> Result<PriceFigures> {
        let figures = measured.figures(mixtures)?;
        let unknown = || fair_metrics::noisy::Gap::unknown(self.groups.len());
        let difference = |gap: Option<_>| Difference::of(&gap.unwrap_or_else(unknown), self.groups);
        Ok(PriceFigures {
            accuracy: figures.overall.accuracy,
            balanced_accuracy: figures.overall.balanced_accuracy,
            least_balanced_accuracy: measured.least_balanced(mixtures),
            cannot_be_told_from_the_lowest: crate::fairness::at(&figures.lowest, self.groups),
            equalized_odds_difference: difference(figures.equalized_odds_difference),
            equal_opportunity_difference: difference(figures.equal_opportunity_difference),
            demographic_parity_difference: difference(figures.demographic_parity_difference),
            demographic_parity_ratio: difference(figures.demographic_parity_ratio),
        })
    }
}
