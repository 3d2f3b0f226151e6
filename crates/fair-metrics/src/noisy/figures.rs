//! Everything that is said of groups.

use super::counts::NoisyCounts;
use super::gap::{Gap, largest_difference, least_ratio};
use super::lowest::not_above_the_lowest;
use super::rate::{NoisyRate, mean_of_shares};
use super::share::Share;
use crate::MetricError;
use crate::interval::check_level;

/// More than this share of the answers is nearly all.
const NEARLY_ALL: f64 = 0.995;

/// Rates of one group, or of all.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GroupFigures {
    /// Its number of records, with noise.
    pub records: f64,
    /// Classes of which it has too few records to tell them from noise. What divides by them is
    /// unknown.
    pub too_few: Vec<usize>,
    /// Share of right answers.
    pub accuracy: NoisyRate,
    /// Mean of the classes' recalls.
    pub balanced_accuracy: NoisyRate,
    /// Share that is answered the positive class; where there is one, as the next two.
    pub selection_rate: Option<NoisyRate>,
    /// Share of the positive that is answered so.
    pub true_positive_rate: Option<NoisyRate>,
    /// Share of the others that is answered the positive class.
    pub false_positive_rate: Option<NoisyRate>,
    /// Recall of each class.
    pub recall: Vec<NoisyRate>,
}

/// Everything that is said of groups: one function makes it for `fairness.json`, for the pages that
/// are drawn from it, and for the audit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NoisyFigures {
    /// All records.
    pub overall: GroupFigures,
    /// Every group.
    pub groups: Vec<GroupFigures>,
    /// Groups whose balanced accuracy cannot be told from the lowest, see
    /// [`not_above_the_lowest`].
    pub lowest: Vec<usize>,
    /// Largest difference of accuracies, see [`largest_difference`].
    pub accuracy_difference: Gap,
    /// Largest difference of selection rates; where there is a positive class.
    pub demographic_parity_difference: Option<Gap>,
    /// Least ratio of selection rates, see [`least_ratio`]; where there is a positive class.
    pub demographic_parity_ratio: Option<Gap>,
    /// Largest difference of true-positive rates; where there is a positive class.
    pub equal_opportunity_difference: Option<Gap>,
    /// Largest difference of true-positive or false-positive rates; where there is a positive class.
    pub equalized_odds_difference: Option<Gap>,
    /// The class that nearly everyone is answered.
    pub answers_one_class: Option<usize>,
}

impl NoisyFigures {
    /// Every figure, with intervals at this level.
    ///
    /// **Guarantee.** Each interval holds the true rate of the population that the records are drawn
    /// from with probability `level`, whatever the rate, the number of records and the noise. That
    /// is so of each by itself and of the difference by itself. Records are taken for independent.
    ///
    /// # Errors
    /// [`MetricError::InvalidParameter`] unless `0 < level < 1`.
    pub fn of(counts: &NoisyCounts, level: f64) -> Result<Self, MetricError> {
        let all: Vec<usize> = (0..counts.n_groups()).collect();
        let groups: Vec<GroupShares> = all.iter().map(|&group| GroupShares::of(counts, &[group])).collect();
        Self::of_shares(&GroupShares::of(counts, &all), &groups, level)
    }

    /// The same of shares that were counted in another way.
    ///
    /// **Guarantee.** As [`of`](Self::of), if the shares of one group's classes and those of different groups
    /// are independent.
    ///
    /// # Errors
    /// [`MetricError::InvalidParameter`] unless `0 < level < 1`.
    pub fn of_shares(overall: &GroupShares, groups: &[GroupShares], level: f64) -> Result<Self, MetricError> {
        check_level(level)?;
        let recalls: Vec<Vec<Share>> = groups.iter().map(|group| group.recall.clone()).collect();
        let accuracies: Vec<Vec<Share>> = groups.iter().map(|group| vec![group.accuracy]).collect();
        let positive: Option<Vec<PositiveShares>> = groups.iter().map(|group| group.positive).collect();
        let rates = |rate: fn(&PositiveShares) -> Share| {
            let of = |all: &Vec<PositiveShares>| all.iter().map(|one| vec![rate(one)]).collect::<Vec<_>>();
            positive.as_ref().map(of)
        };
        let selection = rates(|one| one.selection);
        let true_positive = rates(|one| one.true_positive);
        let odds = true_positive.clone().zip(rates(|one| one.false_positive)).map(|(t, f)| [t, f]);
        let is_nearly_all = |share: &Share| share.is_known() && share.estimate() > NEARLY_ALL;
        let answers_one_class = if overall.answers.is_empty() {
            // Its records are right and those of every other class wrong.
            let is_answered =
                |class: &usize| {
                    overall.recall.iter().enumerate().all(|(other, recall)| {
                        is_nearly_all(&if other == *class { *recall } else { recall.opposite() })
                    })
                };
            (0..overall.recall.len()).find(is_answered)
        } else {
            overall.answers.iter().position(is_nearly_all)
        };
        Ok(Self {
            overall: overall.figures(level),
            groups: groups.iter().map(|group| group.figures(level)).collect(),
            lowest: not_above_the_lowest(&recalls, level),
            accuracy_difference: largest_difference(&[accuracies], level),
            demographic_parity_difference: selection
                .as_ref()
                .map(|all| largest_difference(std::slice::from_ref(all), level)),
            demographic_parity_ratio: selection.map(|all| least_ratio(&all, level)),
            equal_opportunity_difference: true_positive.map(|all| largest_difference(&[all], level)),
            equalized_odds_difference: odds.map(|odds| largest_difference(&odds, level)),
            answers_one_class,
        })
    }
}

/// The shares from which the figures of a group, or of all records, are computed.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupShares {
    /// Right answers.
    pub accuracy: Share,
    /// Right answers for the records of each class.
    pub recall: Vec<Share>,
    /// Answers of each class, where they are known.
    pub answers: Vec<Share>,
    /// Rates of the positive class, where there is one.
    pub positive: Option<PositiveShares>,
}

/// The shares behind the rates of the positive class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PositiveShares {
    /// Records that are answered the positive class.
    pub selection: Share,
    /// The same among the positive.
    pub true_positive: Share,
    /// The same among the others.
    pub false_positive: Share,
}

impl PositiveShares {
    /// Of the two rates.
    pub fn of(false_positive: Share, true_positive: Share) -> Self {
        Self { selection: false_positive.and(true_positive), true_positive, false_positive }
    }
}

impl GroupShares {
    fn of(counts: &NoisyCounts, groups: &[usize]) -> Self {
        let recall = |class: usize| counts.share(groups, |c, _| c == class, |_, answer| answer == class);
        let answers = |class: usize| counts.share(groups, |_, _| true, |_, answer| answer == class);
        let recall: Vec<Share> = (0..counts.n_classes()).map(recall).collect();
        let positive = match recall[..] {
            [negative, positive] => {
                Some(PositiveShares { selection: answers(1), ..PositiveShares::of(negative.opposite(), positive) })
            }
            _ => None,
        };
        Self {
            accuracy: counts.share(groups, |_, _| true, |class, answer| class == answer),
            recall,
            answers: (0..counts.n_classes()).map(answers).collect(),
            positive,
        }
    }

    /// Of two classes: the negative and the positive records that are answered the positive class.
    pub fn of_rates(false_positive: Share, true_positive: Share) -> Self {
        let positive = PositiveShares::of(false_positive, true_positive);
        Self {
            accuracy: false_positive.opposite().and(true_positive),
            recall: vec![false_positive.opposite(), true_positive],
            answers: vec![positive.selection.opposite(), positive.selection],
            positive: Some(positive),
        }
    }

    /// Of more classes, one of which is the positive one: the right answers of each, and the rates of that one.
    /// Which of the other classes is answered is not known.
    pub fn of_recalls(recall: Vec<Share>, positive: PositiveShares) -> Self {
        let accuracy = recall.iter().copied().fold(Share::exact(0.0, 0.0), Share::and);
        Self { accuracy, recall, answers: Vec::new(), positive: Some(positive) }
    }

    fn figures(&self, level: f64) -> GroupFigures {
        let rate = |share: &Share| mean_of_shares(std::slice::from_ref(share), level);
        let positive = self.positive.as_ref();
        GroupFigures {
            records: self.accuracy.n(),
            too_few: (0..self.recall.len()).filter(|&class| !self.recall[class].is_known()).collect(),
            accuracy: rate(&self.accuracy),
            balanced_accuracy: mean_of_shares(&self.recall, level),
            selection_rate: positive.map(|shares| rate(&shares.selection)),
            true_positive_rate: positive.map(|shares| rate(&shares.true_positive)),
            false_positive_rate: positive.map(|shares| rate(&shares.false_positive)),
            recall: self.recall.iter().map(rate).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(values: Vec<f64>, n_groups: usize, n_classes: usize, std: f64) -> NoisyFigures {
        NoisyFigures::of(&NoisyCounts::new(values, n_groups, n_classes, std).unwrap(), 0.95).unwrap()
    }

    #[test]
    fn rates_are_those_of_the_counts() {
        let found = figures(vec![700.0, 100.0, 50.0, 150.0, 600.0, 200.0, 40.0, 160.0], 2, 2, 3.0);
        let first = &found.groups[0];
        assert_eq!((first.records, first.too_few.len()), (1_000.0, 0));
        assert_eq!(first.accuracy.value, Some(0.85));
        assert_eq!(first.true_positive_rate.unwrap().value, Some(0.75));
        assert_eq!(first.false_positive_rate.unwrap().value, Some(0.125));
        assert_eq!(first.selection_rate.unwrap().value, Some(0.25));
        assert_eq!(first.balanced_accuracy.value, Some(0.8125));
        assert_eq!(found.overall.accuracy.value, Some(0.805));
        let odds = found.equalized_odds_difference.unwrap().all;
        assert_eq!((odds.value, odds.low > 0.0), (Some(0.125), true));
    }

    /// 3,000 records and none of class 1: what divides by it is unknown, and so is the difference
    /// of odds; the accuracy is not.
    #[test]
    fn a_group_without_positives_has_no_true_positive_rate() {
        let found = figures(vec![2_900.0, 103.0, -2.0, 3.0, 1_400.0, 100.0, 300.0, 1_200.0], 2, 2, 3.7);
        let (first, odds) = (&found.groups[0], found.equalized_odds_difference.unwrap());
        assert_eq!(first.too_few, [1]);
        assert_eq!(first.true_positive_rate, Some(NoisyRate::UNKNOWN));
        assert_eq!(first.balanced_accuracy, NoisyRate::UNKNOWN);
        assert!(first.accuracy.value.is_some() && first.false_positive_rate.unwrap().value.is_some());
        assert_eq!((odds.all.value, odds.all.high, odds.unknown), (None, 1.0, vec![0]));
        assert_eq!(found.lowest, [0, 1]);
        assert_eq!(found.accuracy_difference.unknown, [0; 0]);
    }

    #[test]
    fn three_classes_have_no_binary_rates() {
        let found = figures(vec![90.0, 5.0, 5.0, 10.0, 80.0, 10.0, 0.0, 0.0, 100.0], 1, 3, 1.0);
        let group = &found.groups[0];
        assert_eq!(group.selection_rate.or(group.true_positive_rate).or(group.false_positive_rate), None);
        assert!((group.balanced_accuracy.value.unwrap() - 0.9).abs() < 1e-12);
        assert_eq!(found.equalized_odds_difference, None);
        assert_eq!(found.lowest, [0]);
    }

    #[test]
    fn one_answer_for_nearly_everyone_is_noticed() {
        assert_eq!(figures(vec![900.0, 1.0, 99.0, 0.0], 1, 2, 0.5).answers_one_class, Some(0));
        assert_eq!(figures(vec![900.0, 1.0, 59.0, 40.0], 1, 2, 0.5).answers_one_class, None);
        let counts = NoisyCounts::new(vec![1.0; 4], 1, 2, 1.0).unwrap();
        assert!(NoisyFigures::of(&counts, 1.0).is_err());
    }
}
