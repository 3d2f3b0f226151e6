//! Figures of groups from cumulative scores: rates at any threshold, ROC curves, their areas and
//! calibration.

use dp_linear::sigmoid;
use dp_table::{Encoding, Group};
use fair_decisions::{CumulativeCounts, Mixture, N_CELLS, PrefixSums, ScoreGrid};
use fair_metrics::noisy::{GroupShares, NoisyFigures, PositiveShares, Share, mean_of_shares};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::fairness::{CONFIDENCE, ColumnRates, Difference, FairnessReport, GroupRates, Rate, at};
use crate::scores::{ScoresFile, class_order};

/// Ranges of probability of a calibration.
const RANGES: usize = 8;

/// Probabilities in a range, and how often they came true.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CalibrationRange {
    /// The least probability of the positive class.
    pub from: f64,
    /// The greatest.
    pub to: f64,
    /// Share of positive records among those with such a probability.
    pub positive_rate: Rate,
}

/// The released scores of some records, with the names of their groups.
pub(crate) struct GroupScores<'a> {
    scores: &'a ScoresFile,
    counts: &'a CumulativeCounts,
    encoding: &'a Encoding,
    sums: PrefixSums,
    /// Confidence of every interval.
    level: f64,
}

impl<'a> GroupScores<'a> {
    pub(crate) fn new(scores: &'a ScoresFile, counts: &'a CumulativeCounts, encoding: &'a Encoding) -> Self {
        Self { scores, counts, encoding, sums: PrefixSums::new(), level: CONFIDENCE }
    }

    /// With intervals at another level.
    pub(crate) fn at_level(self, level: f64) -> Self {
        Self { level, ..self }
    }

    pub(crate) fn groups(&self) -> &'a [Group] {
        self.encoding.groups()
    }

    /// Standard deviation of the noise of a number of records of one class in a group.
    pub(crate) fn noise_std(&self) -> f64 {
        self.counts.total_noise(&self.sums, 1)
    }

    /// False and true positives of a group.
    fn rates(&self, group: usize, threshold: &Mixture) -> [Share; 2] {
        [0, 1].map(|side| self.counts.share_above(&self.sums, group, side, threshold))
    }

    /// The shares of some groups together.
    fn shares(&self, groups: &[usize], thresholds: &[Mixture]) -> GroupShares {
        let exact = Share::exact(0.0, 0.0);
        let [false_positive, true_positive] = groups.iter().fold([exact; 2], |[f, t], &group| {
            let [of_f, of_t] = self.rates(group, &thresholds[group]);
            [f.and(of_f), t.and(of_t)]
        });
        if self.counts.n_classes() == 2 {
            return GroupShares::of_rates(false_positive, true_positive);
        }
        let mut recall = vec![exact; self.counts.n_classes()];
        for (place, class) in class_order(self.scores.class(), self.classes()).into_iter().enumerate() {
            let of = |&group: &usize| self.counts.recall(&self.sums, group, place, &thresholds[group]);
            recall[class] = groups.iter().map(of).fold(exact, Share::and);
        }
        GroupShares::of_recalls(recall, PositiveShares::of(false_positive, true_positive))
    }

    fn classes(&self) -> &'a [String] {
        &self.encoding.schema().label.classes
    }

    /// Every figure with a threshold of each group.
    pub(crate) fn figures(&self, thresholds: &[Mixture]) -> Result<NoisyFigures> {
        let all: Vec<usize> = (0..thresholds.len()).collect();
        let groups: Vec<GroupShares> = all.iter().map(|&group| self.shares(&[group], thresholds)).collect();
        Ok(NoisyFigures::of_shares(&self.shares(&all, thresholds), &groups, self.level)?)
    }

    /// The balanced accuracy of the group where it is least, of those where it is known.
    pub(crate) fn least_balanced(&self, thresholds: &[Mixture]) -> Rate {
        let recalls = (0..thresholds.len()).map(|group| self.shares(&[group], thresholds).recall);
        let known: Vec<Vec<Share>> = recalls.filter(|recall| recall.iter().all(Share::is_known)).collect();
        let level_of_all = 1.0 - (1.0 - self.level) / known.len().max(1) as f64;
        let of = |level: f64, end: fn(Rate) -> f64| {
            known.iter().map(|recall| end(mean_of_shares(recall, level))).fold(1.0, f64::min)
        };
        if known.is_empty() {
            return Rate::UNKNOWN;
        }
        // The lower end of the worst group alone has to hold, and the upper ends of all.
        Rate {
            value: Some(of(self.level, |rate| rate.value.unwrap_or(0.0))),
            low: of(self.level, |rate| rate.low),
            high: of(level_of_all, |rate| rate.high),
        }
    }

    /// Adds the area under the ROC curve and the calibration to every group.
    pub(crate) fn add_curves(&self, report: &mut FairnessReport) {
        for (group, rates) in report.groups.iter_mut().enumerate() {
            rates.auc = Some(self.counts.auc(&self.sums, group, self.level));
            rates.roc = self.roc(&[group]);
            rates.calibration = self.calibration(&[group]);
        }
        let all: Vec<usize> = (0..report.groups.len()).collect();
        if let Some(overall) = &mut report.overall {
            let together = self.counts.together(&all);
            overall.auc = Some(together.auc(&self.sums, 0, self.level));
            overall.roc = self.roc(&all);
            overall.calibration = self.calibration(&all);
        }
    }

    /// Of two classes: of more, scores are no probabilities.
    fn calibration(&self, groups: &[usize]) -> Vec<CalibrationRange> {
        if self.counts.n_classes() > 2 {
            return Vec::new();
        }
        let width = N_CELLS / RANGES;
        let edge = |place: usize| sigmoid(self.scores.threshold(place));
        let bin = |range: usize| {
            let cells = range * width..(range + 1) * width;
            let share = groups
                .iter()
                .map(|&group| self.counts.positives_between(&self.sums, group, cells.clone()))
                .fold(Share::exact(0.0, 0.0), Share::and);
            CalibrationRange {
                from: if range == 0 { 0.0 } else { edge(cells.start - 1) },
                to: if range + 1 == RANGES { 1.0 } else { edge(cells.end - 1) },
                positive_rate: mean_of_shares(&[share], self.level),
            }
        };
        (0..RANGES).map(bin).collect()
    }

    /// The groups of each column, if there are several columns.
    pub(crate) fn columns(&self, thresholds: &[Mixture], classes: &[String]) -> Result<Vec<ColumnRates>> {
        let columns = &self.encoding.schema().groups;
        if columns.len() < 2 {
            return Ok(Vec::new());
        }
        let of = |(place, column): (usize, &dp_table::GroupColumn)| -> Result<ColumnRates> {
            let mut groups: Vec<(Group, Vec<usize>)> = Vec::new();
            for (index, group) in self.groups().iter().enumerate() {
                let level = Group::new(group.levels()[place..=place].to_vec());
                match groups.iter_mut().find(|(known, _)| *known == level) {
                    Some((_, members)) => members.push(index),
                    None => groups.push((level, vec![index])),
                }
            }
            let all: Vec<usize> = (0..thresholds.len()).collect();
            let shares: Vec<GroupShares> = groups.iter().map(|(_, members)| self.shares(members, thresholds)).collect();
            let figures = NoisyFigures::of_shares(&self.shares(&all, thresholds), &shares, self.level)?;
            let names: Vec<Group> = groups.iter().map(|(name, _)| name.clone()).collect();
            let difference = |gap| Difference::of(&gap, &names);
            let rates = groups.iter().zip(figures.groups).map(|((name, members), figures)| {
                let mut rates = GroupRates::of(name, figures, classes);
                rates.auc = Some(self.counts.together(members).auc(&self.sums, 0, self.level));
                rates.roc = self.roc(members);
                rates.calibration = self.calibration(members);
                rates
            });
            Ok(ColumnRates {
                column: column.column.clone(),
                groups: rates.collect(),
                cannot_be_told_from_the_lowest: at(&figures.lowest, &names),
                demographic_parity_difference: figures.demographic_parity_difference.map(difference),
                demographic_parity_ratio: figures.demographic_parity_ratio.map(difference),
                equalized_odds_difference: figures.equalized_odds_difference.map(difference),
            })
        };
        columns.iter().enumerate().map(of).collect()
    }

    /// Points of the ROC curve of some groups together, false and true positives, rising.
    fn roc(&self, groups: &[usize]) -> Vec<[f64; 2]> {
        let together = self.counts.together(groups);
        let [f, t] = [0, 1].map(|class| together.monotone_shares(0, class));
        let rounded = |share: f64| (1e4 * share).round() / 1e4;
        let inner = f.into_iter().zip(t).rev().map(|(f, t)| [rounded(f), rounded(t)]);
        let mut points: Vec<[f64; 2]> = std::iter::once([0.0, 0.0]).chain(inner).chain([[1.0, 1.0]]).collect();
        points.dedup();
        points
    }

    /// The common threshold of all groups.
    pub(crate) fn common(&self) -> Vec<Mixture> {
        vec![Mixture::at(ScoreGrid::common()); self.groups().len()]
    }
}
