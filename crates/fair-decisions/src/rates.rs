//! Rates of groups at every edge, and what a choice of edges does to all of them.

use crate::choice::Quality;
use crate::cumulative::CumulativeCounts;
use crate::grid::N_EDGES;
use crate::mode::Mode;
use crate::prefix_sums::PrefixSums;

/// A group at every edge.
#[derive(Debug)]
struct GroupRates {
    /// Records of each class, at least 0.
    n: [f64; 2],
    /// Shares of each class above each edge.
    above: [Vec<f64>; 2],
    /// What it adds to the accuracy as the decision weighs classes, to the balanced and to the plain accuracy.
    adds: [Vec<f64>; 3],
}

/// All groups at every edge.
#[derive(Debug)]
pub(crate) struct Rates {
    groups: Vec<GroupRates>,
    /// Groups with enough records of both classes.
    pub(crate) large: Vec<usize>,
    /// Records of each class that are enough.
    pub(crate) needed: f64,
}

impl Rates {
    /// `balance` is 0 where every record counts in the accuracy, 1 where every class does.
    pub(crate) fn of(sums: &PrefixSums, counts: &CumulativeCounts, balance: f64) -> Self {
        let n_groups = counts.n_groups();
        let needed = sums.enough_records(counts.noise_std());
        let n_of = |group: usize| [0, 1].map(|class| counts.total(group, class).max(0.0));
        let large: Vec<usize> = (0..n_groups).filter(|&group| n_of(group).iter().all(|&n| n >= needed)).collect();
        let all = [0, 1].map(|class| (0..n_groups).map(|group| n_of(group)[class]).sum::<f64>().max(1.0));
        let weights = [balance, 1.0, 0.0].map(|balance| {
            let of = all.map(|n| n.powf(1.0 - balance));
            of.map(|weight| weight / (of[0] + of[1]))
        });
        let groups = (0..n_groups)
            .map(|group| {
                let (n, above) = (n_of(group), [0, 1].map(|class| counts.monotone_shares(group, class)));
                let adds = weights.map(|weight| {
                    let at = |edge: usize| {
                        weight[0] * n[0] / all[0] * (1.0 - above[0][edge]) + weight[1] * n[1] / all[1] * above[1][edge]
                    };
                    (0..N_EDGES).map(at).collect()
                });
                GroupRates { n, above, adds }
            })
            .collect();
        Self { groups, large, needed }
    }

    /// What one group adds to the accuracy as the decision weighs classes.
    pub(crate) fn adds(&self, group: usize, edge: usize) -> f64 {
        self.groups[group].adds[0][edge]
    }

    /// Mean of the recalls of a group.
    pub(crate) fn balanced(&self, group: usize, edge: usize) -> f64 {
        let above = &self.groups[group].above;
        0.5 * (1.0 - above[0][edge] + above[1][edge])
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

    /// What edges for all groups amount to. Groups of few records count for accuracy alone.
    pub(crate) fn quality(&self, mode: Mode, edges: &[usize]) -> Quality {
        let sum = |of: usize| self.groups.iter().zip(edges).map(|(group, &edge)| group.adds[of][edge]).sum();
        let rates = self.large.iter().map(|&group| self.compared(mode, group, edges[group]));
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        for rate in rates {
            for i in 0..2 {
                (low[i], high[i]) = (low[i].min(rate[i]), high[i].max(rate[i]));
            }
        }
        let worst = self.large.iter().map(|&group| self.balanced(group, edges[group])).fold(1.0, f64::min);
        let gap = if self.large.is_empty() { 0.0 } else { (high[0] - low[0]).max(high[1] - low[1]) };
        Quality { gap, accuracy: sum(0), balanced_accuracy: sum(1), worst, plain_accuracy: sum(2) }
    }
}
