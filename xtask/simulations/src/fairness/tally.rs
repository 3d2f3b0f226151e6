//! What was printed of many releases of one setting, beside the truth.

use fair_metrics::MetricError;
use fair_metrics::noisy::{GroupFigures, NoisyRate};
use rand::Rng;

use super::Seen;
use super::releases::{Method, Release};
use super::settings::{Setting, TrueGroup};
use crate::draws::Draws;

/// Two-sided normal quantile of Wald's interval.
const Z: f64 = 1.959_964;
/// Records of a denominator from which widths are compared.
const MANY: f64 = 1_000.0;

/// A figure with an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Share of right answers, of a group.
    Accuracy,
    /// Mean of the recalls, of a group.
    BalancedAccuracy,
    /// Share of positive answers, of a group.
    SelectionRate,
    /// Of a group.
    TruePositiveRate,
    /// Of a group.
    FalsePositiveRate,
    /// Largest between groups.
    AccuracyDifference,
    /// Largest between groups.
    SelectionRateDifference,
    /// Largest between groups of true- and false-positive rates.
    EqualizedOddsDifference,
    /// Least between groups.
    SelectionRateRatio,
}

/// Every figure: those of groups first.
pub const FIGURES: [Figure; 9] = [
    Figure::Accuracy,
    Figure::BalancedAccuracy,
    Figure::SelectionRate,
    Figure::TruePositiveRate,
    Figure::FalsePositiveRate,
    Figure::AccuracyDifference,
    Figure::SelectionRateDifference,
    Figure::EqualizedOddsDifference,
    Figure::SelectionRateRatio,
];
/// Figures of a group.
const OF_GROUP: usize = 5;

impl Figure {
    /// Its name in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::BalancedAccuracy => "balanced accuracy",
            Self::SelectionRate => "selection rate",
            Self::TruePositiveRate => "true-positive rate",
            Self::FalsePositiveRate => "false-positive rate",
            Self::AccuracyDifference => "difference of accuracy",
            Self::SelectionRateDifference => "difference of selection rates",
            Self::EqualizedOddsDifference => "equalised odds",
            Self::SelectionRateRatio => "ratio of selection rates",
        }
    }

    fn of_group(self, group: &GroupFigures) -> NoisyRate {
        match self {
            Self::Accuracy => group.accuracy,
            Self::SelectionRate => group.selection_rate.unwrap_or(NoisyRate::UNKNOWN),
            Self::TruePositiveRate => group.true_positive_rate.unwrap_or(NoisyRate::UNKNOWN),
            Self::FalsePositiveRate => group.false_positive_rate.unwrap_or(NoisyRate::UNKNOWN),
            _ => group.balanced_accuracy,
        }
    }

    fn of_release(self, release: &Release) -> NoisyRate {
        let figures = &release.figures;
        let gap = match self {
            Self::SelectionRateDifference => figures.demographic_parity_difference.as_ref(),
            Self::EqualizedOddsDifference => figures.equalized_odds_difference.as_ref(),
            Self::SelectionRateRatio => Some(&release.ratio),
            _ => Some(&figures.accuracy_difference),
        };
        gap.map_or(NoisyRate::UNKNOWN, |gap| gap.all)
    }

    /// The truth of a group.
    fn truth(self, group: &TrueGroup) -> f64 {
        let TrueGroup { base_rate, true_positive_rate, false_positive_rate, .. } = *group;
        match self {
            Self::Accuracy => base_rate * true_positive_rate + (1.0 - base_rate) * (1.0 - false_positive_rate),
            Self::SelectionRate => base_rate * true_positive_rate + (1.0 - base_rate) * false_positive_rate,
            Self::TruePositiveRate => true_positive_rate,
            Self::FalsePositiveRate => false_positive_rate,
            _ => f64::midpoint(true_positive_rate, 1.0 - false_positive_rate),
        }
    }

    /// The truth of all groups.
    fn truth_of_all(self, groups: &[TrueGroup]) -> f64 {
        let ends = |figure: Self| {
            let truths = groups.iter().map(|group| figure.truth(group));
            (truths.clone().fold(f64::INFINITY, f64::min), truths.fold(0.0, f64::max))
        };
        let apart = |figure: Self| ends(figure).1 - ends(figure).0;
        match self {
            Self::SelectionRateDifference => apart(Self::SelectionRate),
            Self::EqualizedOddsDifference => apart(Self::TruePositiveRate).max(apart(Self::FalsePositiveRate)),
            Self::SelectionRateRatio => ends(Self::SelectionRate).0 / ends(Self::SelectionRate).1,
            _ => apart(Self::Accuracy),
        }
    }

    /// The width of Wald's interval of a group's figure with the noise known; none where a
    /// denominator is small or a rate near 0 or 1.
    fn wald(self, group: &TrueGroup, noise_std: f64) -> Option<f64> {
        let n = group.records as f64;
        let (positive, negative) = (n * group.base_rate, n * (1.0 - group.base_rate));
        let variance = |rate: f64, n: f64, cells: f64| {
            let is_plain = n >= MANY && (0.1..=0.9).contains(&rate);
            let noise = cells * noise_std * noise_std * (rate * rate + (1.0 - rate) * (1.0 - rate));
            is_plain.then_some((n * rate * (1.0 - rate) + noise) / (n * n))
        };
        let truth = self.truth(group);
        let variance = match self {
            Self::TruePositiveRate => variance(truth, positive, 1.0)?,
            Self::FalsePositiveRate => variance(truth, negative, 1.0)?,
            Self::BalancedAccuracy => {
                let (positive, negative) = (
                    variance(group.true_positive_rate, positive, 1.0)?,
                    variance(group.false_positive_rate, negative, 1.0)?,
                );
                (positive + negative) / 4.0
            }
            _ => variance(truth, n, 2.0)?,
        };
        Some(2.0 * Z * variance.sqrt())
    }
}

/// Releases that print a figure, those whose interval holds it, and the sum of the widths.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    printed: u32,
    covered: u32,
    width: f64,
}

impl Count {
    fn add(&mut self, rate: NoisyRate, truth: f64) {
        self.printed += 1;
        self.covered += u32::from(rate.contains(truth));
        self.width += rate.high - rate.low;
    }
}

/// Counts of one setting.
pub(super) struct Tally {
    setting: Setting,
    pub(super) releases: u32,
    /// By figure of a group, and group.
    of_groups: Vec<Vec<Count>>,
    /// By figure of all groups.
    of_all: Vec<Count>,
    /// Releases whose set lacks a group that is truly lowest.
    false_names: u32,
    /// Releases whose set is the truly lowest group alone.
    alone: u32,
}

impl Tally {
    pub(super) fn of(
        setting: &Setting,
        method: Method,
        releases: u32,
        rng: &mut impl Rng,
    ) -> Result<Self, MetricError> {
        let (of_group, of_all) = FIGURES.split_at(OF_GROUP);
        let mut tally = Self {
            setting: setting.clone(),
            releases,
            of_groups: vec![vec![Count::default(); setting.groups.len()]; of_group.len()],
            of_all: vec![Count::default(); of_all.len()],
            false_names: 0,
            alone: 0,
        };
        let balanced: Vec<f64> = setting.groups.iter().map(|group| Figure::BalancedAccuracy.truth(group)).collect();
        let least = balanced.iter().copied().fold(f64::INFINITY, f64::min);
        let lowest: Vec<usize> = (0..balanced.len()).filter(|&group| balanced[group] <= least + 1e-12).collect();
        let mut draws = Draws::new(rng);
        for _ in 0..releases {
            let release = Release::draw(setting, method, &mut draws)?;
            for (figure, counts) in of_group.iter().zip(&mut tally.of_groups) {
                let groups = release.figures.groups.iter().zip(&setting.groups);
                for ((found, group), count) in groups.zip(counts) {
                    let rate = figure.of_group(found);
                    if rate.value.is_some() {
                        count.add(rate, figure.truth(group));
                    }
                }
            }
            for (figure, count) in of_all.iter().zip(&mut tally.of_all) {
                let truth = figure.truth_of_all(&setting.groups);
                if !truth.is_nan() {
                    count.add(figure.of_release(&release), truth);
                }
            }
            let named = &release.figures.lowest;
            tally.false_names += u32::from(!lowest.iter().all(|group| named.contains(group)));
            tally.alone += u32::from(*named == lowest);
        }
        Ok(tally)
    }

    fn seen(&self, share: f64, releases: u32) -> Seen {
        Seen { share, releases, setting: self.setting.name.clone() }
    }

    /// Coverage among the releases that print the figure, of each group or of all.
    pub(super) fn coverage(&self, figure: Figure) -> Vec<Seen> {
        let counts = self.counts(figure);
        counts
            .iter()
            .map(|count| self.seen(f64::from(count.covered) / f64::from(count.printed), count.printed))
            .collect()
    }

    fn counts(&self, figure: Figure) -> &[Count] {
        let place = FIGURES.iter().position(|other| *other == figure).unwrap_or(0);
        if place < OF_GROUP { &self.of_groups[place] } else { &self.of_all[place - OF_GROUP..=place - OF_GROUP] }
    }

    pub(super) fn false_names(&self) -> Seen {
        self.seen(f64::from(self.false_names) / f64::from(self.releases), self.releases)
    }

    /// How often the lowest group is named alone, where it must be.
    pub(super) fn named_alone(&self) -> Option<Seen> {
        self.setting.names_one.then(|| self.seen(f64::from(self.alone) / f64::from(self.releases), self.releases))
    }

    /// Mean widths over Wald's of each group to which that applies.
    pub(super) fn widths(&self, figure: Figure) -> Vec<Seen> {
        let groups = self.counts(figure).iter().zip(&self.setting.groups);
        let is_of_group = FIGURES[..OF_GROUP].contains(&figure);
        groups
            .filter(|(count, _)| is_of_group && count.printed > 0)
            .filter_map(|(count, group)| {
                let wald = figure.wald(group, self.setting.noise_std)?;
                Some(self.seen(count.width / f64::from(count.printed) / wald, count.printed))
            })
            .collect()
    }
}
