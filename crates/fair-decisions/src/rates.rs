//! Rates of groups at every edge, and what a choice of edges does to all of them.

use crate::choice::Quality;
use crate::cumulative::CumulativeCounts;
use crate::grid::N_EDGES;
use crate::mixture::Mixture;
use crate::mode::Mode;
use crate::prefix_sums::PrefixSums;

/// A group at every edge.
#[derive(Debug)]
struct GroupRates {
    /// Records of each side, at least 0.
    n: [f64; 2],
    /// Shares of each side above each edge.
    above: [Vec<f64>; 2],
    /// Mean of the classes' recalls at each edge.
    balanced: Vec<f64>,
    /// What it adds to the accuracy as the decision weighs classes, to the balanced and to the plain accuracy.
    adds: [Vec<f64>; 3],
}

/// All groups at every edge.
#[derive(Debug)]
pub(crate) struct Rates {
    groups: Vec<GroupRates>,
    /// Groups with enough records of both sides; for the worst group, of every class.
    pub(crate) large: Vec<usize>,
    /// Records that are enough.
    pub(crate) needed: f64,
}

impl Rates {
    /// `balance` is 0 where every record counts in the accuracy, 1 where every class does. The mode says which records
    /// a group has to have enough of.
    pub(crate) fn of(sums: &PrefixSums, counts: &CumulativeCounts, balance: f64, mode: Mode) -> Self {
        let (n_groups, n_classes) = (counts.n_groups(), counts.n_classes());
        let needed = counts.enough_records(sums);
        let n_of = |group: usize, class: usize| counts.total_of_class(group, class).max(0.0);
        let is_large = |group: &usize| {
            let has_sides = (0..2).all(|side| counts.total(*group, side) >= needed);
            has_sides && (mode != Mode::WorstGroup || (0..n_classes).all(|class| n_of(*group, class) >= needed))
        };
        let of_class = |class: usize| (0..n_groups).map(|group| n_of(group, class)).sum::<f64>().max(1.0);
        let all: Vec<f64> = (0..n_classes).map(of_class).collect();
        let weights = [balance, 1.0, 0.0].map(|balance| {
            let of: Vec<f64> = all.iter().map(|n| n.powf(1.0 - balance)).collect();
            let sum: f64 = of.iter().sum();
            of.into_iter().map(|weight| weight / sum).collect::<Vec<f64>>()
        });
        let of_group = |group: usize| {
            let n = [0, 1].map(|side| counts.total(group, side).max(0.0));
            let above = [0, 1].map(|side| counts.monotone_shares(group, side));
            let recall: Vec<Vec<f64>> = (0..n_classes).map(|class| counts.monotone_recall(group, class)).collect();
            let share: Vec<f64> = (0..n_classes).map(|class| n_of(group, class) / all[class]).collect();
            let sum = |of: &dyn Fn(usize) -> f64, edge: usize| -> f64 {
                recall.iter().enumerate().map(|(class, recall)| of(class) * recall[edge]).sum()
            };
            let adds = weights.each_ref().map(|weight| {
                (0..N_EDGES).map(|edge| sum(&|class| weight[class] * share[class], edge)).collect::<Vec<f64>>()
            });
            let balanced = (0..N_EDGES).map(|edge| sum(&|_| 1.0 / n_classes as f64, edge)).collect();
            GroupRates { n, above, balanced, adds }
        };
        let large = (0..n_groups).filter(is_large).collect();
        Self { groups: (0..n_groups).map(of_group).collect(), large, needed }
    }

    /// What one group adds to the accuracy as the decision weighs classes.
    pub(crate) fn adds(&self, group: usize, edge: usize) -> f64 {
        self.groups[group].adds[0][edge]
    }

    /// Mean of the recalls of a group.
    pub(crate) fn balanced(&self, group: usize, edge: usize) -> f64 {
        self.groups[group].balanced[edge]
    }

    /// The rates that a mode compares.
    pub(crate) fn compared(&self, mode: Mode, group: usize, edge: usize) -> [f64; 2] {
        let GroupRates { n, above, .. } = &self.groups[group];
        let [false_positive, true_positive] = [above[0][edge], above[1][edge]];
        match mode {
            Mode::None | Mode::WorstGroup | Mode::EqualizedOdds => [false_positive, true_positive],
            Mode::EqualOpportunity => [true_positive; 2],
            Mode::DemographicParity => {
                [(n[0] * false_positive + n[1] * true_positive) / (n[0] + n[1]).max(f64::MIN_POSITIVE); 2]
            }
        }
    }

    /// What thresholds of all groups amount to. Groups of few records count for accuracy alone.
    pub(crate) fn quality<T: Threshold>(&self, mode: Mode, thresholds: &[T]) -> Quality {
        let sum = |of: usize| {
            let adds = |(group, threshold): (&GroupRates, &T)| threshold.mean_of(|edge| group.adds[of][edge]);
            self.groups.iter().zip(thresholds).map(adds).sum()
        };
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        let mut worst = 1.0_f64;
        for &group in &self.large {
            let threshold = &thresholds[group];
            for i in 0..2 {
                let rate = threshold.mean_of(|edge| self.compared(mode, group, edge)[i]);
                (low[i], high[i]) = (low[i].min(rate), high[i].max(rate));
            }
            worst = worst.min(threshold.mean_of(|edge| self.balanced(group, edge)));
        }
        let gap = if self.large.is_empty() { 0.0 } else { (high[0] - low[0]).max(high[1] - low[1]) };
        Quality { gap, accuracy: sum(0), balanced_accuracy: sum(1), worst, plain_accuracy: sum(2) }
    }
}

/// An edge, or several between which a coin decides.
pub(crate) trait Threshold {
    /// The mean of a figure of each edge.
    fn mean_of(&self, of: impl Fn(usize) -> f64) -> f64;
}

impl Threshold for usize {
    fn mean_of(&self, of: impl Fn(usize) -> f64) -> f64 {
        of(*self)
    }
}

impl Threshold for Mixture {
    fn mean_of(&self, of: impl Fn(usize) -> f64) -> f64 {
        self.mean(of)
    }
}
