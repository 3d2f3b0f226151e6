//! Quality of a model by group, from noisy counts, under the names of groups and
//! classes.
//!
//! The statistics are [`fair_metrics::noisy`]'s, which `cargo xtask audit fairness` checks.

use dp_accounting::NoiseMultiplier;
use dp_engine::Grid;
use dp_table::Group;
use fair_decisions::Mixture;
use fair_metrics::noisy::{Gap, GroupFigures, NoisyCounts, NoisyFigures, NoisyRate};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::group_scores::{CalibrationRange, GroupScores};
use crate::numbers::NumberReport;
use crate::price::{Price, PricePoint};
use crate::thresholds::Thresholds;

/// Confidence of every interval.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// A rate with its 95 % interval, of sampling and of noise; undefined where its records cannot be
/// told from noise.
pub type Rate = NoisyRate;

/// Releases exact counts of records by group, class and answer.
///
/// **Guarantee.** A record is in one cell: a unit of `k` records changes the counts by at most `k`.
pub(crate) fn release_counts(
    exact: Vec<f64>,
    shape: (usize, usize),
    noise_multiplier: NoiseMultiplier,
    records_per_unit: u64,
    rng: &mut ChaCha20Rng,
) -> Result<NoisyCounts> {
    let (n_groups, n_classes) = shape;
    let (noisy, std) = noisy_counts(exact, noise_multiplier, records_per_unit, rng);
    Ok(NoisyCounts::new(noisy, n_groups, n_classes, std)?)
}

/// The counts with their noise, and its standard deviation.
pub(crate) fn noisy_counts(
    exact: Vec<f64>,
    noise_multiplier: NoiseMultiplier,
    records_per_unit: u64,
    rng: &mut ChaCha20Rng,
) -> (Vec<f64>, f64) {
    let std = noise_multiplier.get() * records_per_unit as f64;
    (Grid::for_counts().release(exact, std, rng), std)
}

/// Rates of one group, or of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GroupRates {
    /// Which.
    pub group: Group,
    /// Its number of test records, with noise.
    pub records: f64,
    /// Classes of which it has too few records to tell them from noise. Rates that divide by them
    /// are unknown.
    pub too_few: Vec<String>,
    /// Share of right answers.
    pub accuracy: Rate,
    /// Mean of the classes' recalls.
    pub balanced_accuracy: Rate,
    /// Share that is answered the positive class, where there is one: of two classes the last, of more the declared
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection_rate: Option<Rate>,
    /// Share of the positive that is answered so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub true_positive_rate: Option<Rate>,
    /// Share of the others that is answered the positive class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_positive_rate: Option<Rate>,
    /// Recall of each class.
    pub recall: Vec<Rate>,
    /// Area under the ROC curve of the positive class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auc: Option<Rate>,
    /// Points of the ROC curve, false-positive and true-positive rates, rising; of the positive class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roc: Vec<[f64; 2]>,
    /// Whether probabilities mean what they say, by range of probability; of two classes only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration: Vec<CalibrationRange>,
}

impl GroupRates {
    pub(crate) fn of(group: &Group, figures: GroupFigures, classes: &[String]) -> Self {
        Self {
            group: group.clone(),
            records: figures.records,
            too_few: at(&figures.too_few, classes),
            accuracy: figures.accuracy,
            balanced_accuracy: figures.balanced_accuracy,
            selection_rate: figures.selection_rate,
            true_positive_rate: figures.true_positive_rate,
            false_positive_rate: figures.false_positive_rate,
            recall: figures.recall,
            auc: None,
            roc: Vec::new(),
            calibration: Vec::new(),
        }
    }

    /// The classes of which it has too few records, in words.
    pub fn shortage(&self) -> Option<String> {
        match self.too_few.len() {
            0 => None,
            n if n == self.recall.len() => Some("too few records".into()),
            _ => Some(format!("too few records of class {}", self.too_few.join(", "))),
        }
    }
}

/// The largest difference between groups, with an interval that holds for all pairs together. If a
/// group's figure is unknown, so is the difference, and it may be as large as 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Difference {
    /// The estimate.
    pub value: Option<f64>,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Groups whose figure is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Group>,
    /// The difference without them, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_unknown: Option<Rate>,
}

impl Difference {
    pub(crate) fn of(gap: &Gap, groups: &[Group]) -> Self {
        let without_unknown = gap.known.filter(|_| !gap.unknown.is_empty());
        let NoisyRate { value, low, high } = gap.all;
        Self { value, low, high, unknown: at(&gap.unknown, groups), without_unknown }
    }

    /// The value and its interval.
    pub const fn rate(&self) -> Rate {
        Rate { value: self.value, low: self.low, high: self.high }
    }

    /// The figure of all groups, or else of those whose figures are known.
    pub fn known(&self) -> Rate {
        self.without_unknown.unwrap_or_else(|| self.rate())
    }

    /// The difference in words, numbers as `number` writes them: those that are known, and the
    /// groups that are not.
    pub fn in_words(&self, number: impl Fn(Rate) -> String) -> String {
        if self.unknown.is_empty() {
            return number(self.rate());
        }
        let unknown = listed(&self.unknown);
        match self.without_unknown {
            Some(known) => format!("unknown; without {unknown}: {}", number(known)),
            None => format!("unknown: too few records of {unknown}"),
        }
    }
}

/// `fairness.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FairnessReport {
    /// Whether anything was measured: not without a test part.
    pub measured: bool,
    /// Standard deviation of the noise of every count behind these rates.
    pub noise_std: f64,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Classes, in order.
    pub classes: Vec<String>,
    /// The positive class of more than two, if one is declared: rates, gaps and areas are about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// All test records.
    pub overall: Option<GroupRates>,
    /// Every group, however small.
    pub groups: Vec<GroupRates>,
    /// Groups whose balanced accuracy cannot be told from the lowest: with the stated confidence
    /// the group that is served worst is one of them. All groups, where nothing can be told; groups
    /// with too few records are among them.
    pub cannot_be_told_from_the_lowest: Vec<Group>,
    /// Largest difference of accuracy between groups.
    pub accuracy_difference: Option<Difference>,
    /// Largest difference of selection rates.
    pub demographic_parity_difference: Option<Difference>,
    /// Least ratio of selection rates; the four-fifths rule asks for 0.8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demographic_parity_ratio: Option<Difference>,
    /// Largest difference of true-positive rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal_opportunity_difference: Option<Difference>,
    /// The larger of the differences of true-positive and false-positive rates.
    pub equalized_odds_difference: Option<Difference>,
    /// The model answers one class for nearly everyone.
    pub answers_one_class: Option<String>,
    /// Thresholds by group, if the configuration asks for them.
    pub thresholds: Option<Thresholds>,
    /// The groups of each column, where several columns make the groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnRates>,
    /// What every notion of fairness would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub price_list: Vec<Price>,
    /// The same with one threshold for all groups, for decisions that may not depend on the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub price_list_of_one_threshold: Vec<Price>,
    /// Accuracy over the gap of equalised odds, by the loss that is allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub price_curve: Vec<PricePoint>,
    /// Errors of predicted numbers; then there are no classes and none of their figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<NumberReport>,
}

/// The groups of one of several columns, each with all records of its intersections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ColumnRates {
    /// The column.
    pub column: String,
    /// Its groups.
    pub groups: Vec<GroupRates>,
    /// Groups that may have the lowest balanced accuracy.
    pub cannot_be_told_from_the_lowest: Vec<Group>,
    /// Largest difference of selection rates.
    pub demographic_parity_difference: Option<Difference>,
    /// Least ratio of selection rates.
    pub demographic_parity_ratio: Option<Difference>,
    /// The larger of the differences of true-positive and false-positive rates.
    pub equalized_odds_difference: Option<Difference>,
}

impl FairnessReport {
    /// Without a test part nothing is known.
    pub(crate) fn unmeasured(classes: &[String]) -> Self {
        Self {
            measured: false,
            noise_std: 0.0,
            confidence: CONFIDENCE,
            classes: classes.to_vec(),
            class: None,
            overall: None,
            groups: Vec::new(),
            cannot_be_told_from_the_lowest: Vec::new(),
            accuracy_difference: None,
            demographic_parity_difference: None,
            demographic_parity_ratio: None,
            equal_opportunity_difference: None,
            equalized_odds_difference: None,
            answers_one_class: None,
            thresholds: None,
            columns: Vec::new(),
            price_list: Vec::new(),
            price_list_of_one_threshold: Vec::new(),
            price_curve: Vec::new(),
            numbers: None,
        }
    }

    /// Of a model that predicts numbers; `noise_std` is that of the number of records.
    pub(crate) fn of_numbers(numbers: NumberReport, noise_std: f64) -> Self {
        Self { measured: true, noise_std, numbers: Some(numbers), ..Self::unmeasured(&[]) }
    }

    pub(crate) fn of(counts: &NoisyCounts, groups: &[Group], classes: &[String]) -> Result<Self> {
        Ok(Self::of_figures(NoisyFigures::of(counts, CONFIDENCE)?, counts.noise_std(), groups, classes))
    }

    /// From cumulative scores, with these thresholds of the groups.
    pub(crate) fn of_scores(scores: &GroupScores<'_>, thresholds: &[Mixture], classes: &[String]) -> Result<Self> {
        let mut report = Self::of_figures(scores.figures(thresholds)?, scores.noise_std(), scores.groups(), classes);
        scores.add_curves(&mut report);
        report.columns = scores.columns(thresholds, classes)?;
        Ok(report)
    }

    fn of_figures(figures: NoisyFigures, noise_std: f64, groups: &[Group], classes: &[String]) -> Self {
        // One group is all records.
        let has_groups = groups.len() > 1;
        let difference = |gap: Gap| has_groups.then(|| Difference::of(&gap, groups));
        Self {
            measured: true,
            noise_std,
            confidence: CONFIDENCE,
            classes: classes.to_vec(),
            class: None,
            overall: Some(GroupRates::of(&Group::all(), figures.overall, classes)),
            cannot_be_told_from_the_lowest: if has_groups { at(&figures.lowest, groups) } else { Vec::new() },
            groups: groups
                .iter()
                .zip(figures.groups)
                .map(|(group, figures)| GroupRates::of(group, figures, classes))
                .collect(),
            accuracy_difference: difference(figures.accuracy_difference),
            demographic_parity_difference: figures.demographic_parity_difference.and_then(difference),
            demographic_parity_ratio: figures.demographic_parity_ratio.and_then(difference),
            equal_opportunity_difference: figures.equal_opportunity_difference.and_then(difference),
            equalized_odds_difference: figures.equalized_odds_difference.and_then(difference),
            answers_one_class: figures.answers_one_class.map(|class| classes[class].clone()),
            thresholds: None,
            columns: Vec::new(),
            price_list: Vec::new(),
            price_list_of_one_threshold: Vec::new(),
            price_curve: Vec::new(),
            numbers: None,
        }
    }

    /// The price list of the kind of thresholds that was asked for.
    pub fn prices(&self) -> &[Price] {
        if self.has_one_threshold() { &self.price_list_of_one_threshold } else { &self.price_list }
    }

    /// Whether thresholds were asked for that are the same for all groups.
    pub fn has_one_threshold(&self) -> bool {
        self.thresholds.as_ref().and_then(|thresholds| thresholds.aim).is_some_and(|aim| aim.one_threshold)
    }

    /// A sentence on the groups that may be served worst; `None` without groups.
    pub fn lowest(&self) -> Option<String> {
        let named = &self.cannot_be_told_from_the_lowest;
        if named.is_empty() {
            return None;
        }
        Some(if named.len() == self.groups.len() {
            "balanced accuracy: no group can be told from the lowest".into()
        } else {
            format!("balanced accuracy: cannot be told from the lowest: {}", listed(named))
        })
    }
}

/// The items at some positions.
pub(crate) fn at<T: Clone>(places: &[usize], of: &[T]) -> Vec<T> {
    places.iter().filter_map(|&place| of.get(place)).cloned().collect()
}

pub(crate) fn listed(groups: &[Group]) -> String {
    let names: Vec<String> = groups.iter().map(Group::to_string).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use dp_table::Level;

    use super::*;

    fn report(values: Vec<f64>, names: &[&str], std: f64) -> FairnessReport {
        let groups: Vec<Group> = names.iter().map(|&name| Group::new(vec![Level::Value(name.into())])).collect();
        let counts = NoisyCounts::new(values, groups.len(), 2, std).unwrap();
        FairnessReport::of(&counts, &groups, &["no".to_owned(), "yes".to_owned()]).unwrap()
    }

    fn symmetric(n: f64, right: f64) -> [f64; 4] {
        [n * right, n * (1.0 - right), n * (1.0 - right), n * right]
    }

    #[test]
    fn groups_and_classes_have_their_names() {
        let values = [symmetric(1_000.0, 0.9), symmetric(1_000.0, 0.8), symmetric(1_000.0, 0.6)].concat();
        let report = report(values, &["a", "b", "c"], 3.73);
        assert_eq!(listed(&report.cannot_be_told_from_the_lowest), "c");
        assert_eq!(report.lowest().unwrap(), "balanced accuracy: cannot be told from the lowest: c");
        assert_eq!(report.groups[1].accuracy.value, Some(0.8));
        let odds = report.equalized_odds_difference.unwrap();
        assert_eq!((odds.unknown.len(), odds.without_unknown), (0, None));
        assert!((odds.value.unwrap() - 0.3).abs() < 1e-12);
    }

    #[test]
    fn too_few_records_are_named_and_leave_the_difference_unknown() {
        let values = [vec![2_900.0, 103.0, -2.0, 3.0], symmetric(1_000.0, 0.9).to_vec(), vec![3.0; 4]].concat();
        let report = report(values, &["a", "b", "c"], 3.7);
        assert_eq!(report.groups[0].shortage().unwrap(), "too few records of class yes");
        assert_eq!(report.groups[1].shortage(), None);
        assert_eq!(report.groups[2].shortage().unwrap(), "too few records");
        let odds = report.equalized_odds_difference.as_ref().unwrap();
        assert_eq!((odds.value, odds.high, odds.without_unknown), (None, 1.0, None));
        let number = |rate: Rate| format!("{:.2}", rate.value.unwrap());
        assert_eq!(odds.in_words(number), "unknown: too few records of a, c");
        let accuracy = report.accuracy_difference.as_ref().unwrap();
        assert_eq!(accuracy.in_words(number), "unknown; without c: 0.07");
        assert_eq!(report.lowest().unwrap(), "balanced accuracy: no group can be told from the lowest");
    }

    /// Releases of 0.1.0 have no ratios, curves or prices.
    #[test]
    fn reports_of_earlier_releases_are_read() {
        let report = report([symmetric(900.0, 0.9), symmetric(900.0, 0.6)].concat(), &["a", "b"], 3.7);
        let mut early = serde_json::to_value(&report).unwrap();
        for new in ["demographic_parity_ratio", "equal_opportunity_difference"] {
            assert!(early.as_object_mut().unwrap().remove(new).is_some(), "{new}");
        }
        for new in ["columns", "price_list", "price_curve"] {
            assert!(early.get(new).is_none(), "{new}");
        }
        let found: FairnessReport = serde_json::from_value(early).unwrap();
        assert_eq!(found.groups, report.groups);
        assert_eq!((found.demographic_parity_ratio, found.price_list.len()), (None, 0));
    }

    #[test]
    fn one_group_is_compared_with_none() {
        let report = report(symmetric(1_000.0, 0.9).to_vec(), &["a"], 1.0);
        assert_eq!((report.lowest(), report.accuracy_difference), (None, None));
    }
}
