//! Thresholds by group, from one noisy histogram of scores on the training records.

use dp_accounting::NoiseMultiplier;
use dp_engine::Grid;
use dp_table::Group;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::config::Fairness;
use crate::model::decide;

/// Edges on either side of the common threshold, and how far apart they are in log-odds.
const SIDE: i32 = 20;
const STEP: f64 = 0.3;
/// Bins of the score: one below each edge, and one above the last.
const BINS: usize = 2 * SIDE as usize + 2;
/// The common threshold among the edges.
const COMMON: usize = SIDE as usize;
/// Records of a class that a group must have, in standard deviations of their noise, for a
/// separate threshold.
const ENOUGH: f64 = 5.0;
/// A class with fewer than this many may have no records at all.
const NONE: f64 = 3.0;
/// The least gain of a separate threshold, in standard deviations of that gain.
const GAIN: f64 = 3.0;

/// The chosen thresholds by group and their cost, by released counts of training
/// records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Thresholds {
    /// Why.
    pub mode: Fairness,
    /// The log-odds above which the positive class is answered, by group.
    pub by_group: Vec<f64>,
    /// Groups with too few records for a threshold of their own: they keep the common one, as do
    /// groups for which another one would be better by no more than noise and chance explain.
    pub too_small: Vec<Group>,
    /// Groups with enough records of one class and too few of the other: they keep the common
    /// threshold, too.
    #[serde(default)]
    pub without_class: Vec<WithoutClass>,
    /// Accuracy with the common threshold.
    pub accuracy_before: f64,
    /// Accuracy with these.
    pub accuracy_after: f64,
    /// Standard deviation of the noise in either accuracy, at most.
    #[serde(default)]
    pub accuracy_noise: f64,
}

/// A group with too few records of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WithoutClass {
    /// The group.
    pub group: Group,
    /// The class.
    pub class: String,
    /// Its number of training records, with noise.
    pub records: f64,
    /// Whether that number is within noise of none.
    pub maybe_none: bool,
}

impl Thresholds {
    /// Sentences on groups that have no separate threshold for want of records.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.too_small.is_empty() {
            let groups: Vec<String> = self.too_small.iter().map(Group::to_string).collect();
            remarks.push(format!("groups too small for a threshold of their own: {}", groups.join(", ")));
        }
        let mut classes: Vec<&str> = self.without_class.iter().map(|one| &*one.class).collect();
        classes.sort_unstable();
        classes.dedup();
        for class in classes {
            let (none, few): (Vec<_>, Vec<_>) =
                self.without_class.iter().filter(|one| one.class == class).partition(|one| one.maybe_none);
            if !none.is_empty() {
                let groups: Vec<String> = none.iter().map(|one| one.group.to_string()).collect();
                let groups = groups.join(", ");
                remarks
                    .push(format!("no records of class {class}, within noise, for a threshold of its own: {groups}"));
            }
            if !few.is_empty() {
                let groups: Vec<String> =
                    few.iter().map(|one| format!("{} (about {:.0})", one.group, one.records)).collect();
                let groups = groups.join(", ");
                remarks.push(format!("too few records of class {class} for a threshold of its own: {groups}"));
            }
        }
        remarks
    }
}

/// Thresholds between which a group may choose. The common one is among them, and a record is
/// counted on the side of each on which a decision at this threshold puts it: so a count says what
/// predictions will do, also where many records have one score.
pub(crate) struct Edges(Vec<f64>);

impl Edges {
    /// Log-odds around those above which the positive class is answered without regard to groups.
    pub(crate) fn around(common: f64) -> Self {
        Self((-SIDE..=SIDE).map(|place| common + f64::from(place) * STEP).collect())
    }

    /// How many of them a record is above.
    fn bin(&self, probabilities: &[f64]) -> usize {
        self.0.partition_point(|&edge| decide(probabilities, &offsets(edge)) == 1)
    }
}

/// Added to the log-probabilities of the classes for a decision at this threshold.
pub(crate) fn offsets(threshold: f64) -> [f64; 2] {
    [threshold, 0.0]
}

/// Training records below which not even two groups can have thresholds of their own: public, so it
/// is known beforehand.
pub(crate) fn least_records(noise_multiplier: NoiseMultiplier, records_per_unit: u64) -> usize {
    let of_one_class = ENOUGH * noise_multiplier.get() * records_per_unit as f64 * (BINS as f64).sqrt();
    (2.0 * 2.0 * of_one_class).ceil() as usize
}

/// Exact counts by group, class and bin of the score. **Not private.**
pub(crate) struct ScoreCounts<'a> {
    edges: &'a Edges,
    pub(crate) values: Vec<f64>,
}

impl<'a> ScoreCounts<'a> {
    pub(crate) fn new(edges: &'a Edges, n_groups: usize) -> Self {
        Self { edges, values: vec![0.0; n_groups * 2 * BINS] }
    }

    /// Counts a record with these probabilities of the two classes.
    pub(crate) fn add(&mut self, group: usize, class: usize, probabilities: &[f64]) {
        self.values[(group * 2 + class) * BINS + self.edges.bin(probabilities)] += 1.0;
    }
}

/// Records by group, class and bin of the score, with noise: of either sign, so that sums of many
/// bins have no bias.
pub(crate) struct Scores {
    values: Vec<f64>,
    std: f64,
}

impl Scores {
    /// **Guarantee.** A record is in one cell: a unit of `k` records changes the counts by at most
    /// `k`.
    pub(crate) fn release(
        counts: Vec<f64>,
        noise_multiplier: NoiseMultiplier,
        records_per_unit: u64,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let std = noise_multiplier.get() * records_per_unit as f64;
        Self { values: Grid::for_counts().release(counts, std, rng), std }
    }

    fn of(&self, group: usize, class: usize) -> &[f64] {
        &self.values[(group * 2 + class) * BINS..][..BINS]
    }

    fn n_records(&self, group: usize, class: usize) -> f64 {
        self.of(group, class).iter().sum()
    }

    /// Shares of the negative and the positive records of some groups above an edge.
    fn rates(&self, groups: &[usize], edge: usize) -> [f64; 2] {
        [0, 1].map(|class| {
            let sum = |from: usize| groups.iter().map(|&group| self.of(group, class)[from..].iter().sum::<f64>()).sum();
            let (above, all): (f64, f64) = (sum(edge + 1), sum(0));
            if all > 0.0 { (above / all).clamp(0.0, 1.0) } else { 0.0 }
        })
    }

    /// Records of a group that are answered right at an edge.
    fn right(&self, group: usize, edge: usize) -> f64 {
        self.of(group, 0)[..=edge].iter().sum::<f64>() + self.of(group, 1)[edge + 1..].iter().sum::<f64>()
    }

    /// Standard deviation of what a group gains by an edge in place of the common threshold, of
    /// noise and of the draw of its records, at most: of the records between the two, and of the
    /// class sizes by which they are divided.
    fn deviation(&self, group: usize, edge: usize) -> f64 {
        let (common, there) = (self.rates(&[group], COMMON), self.rates(&[group], edge));
        let variance = |class: usize| {
            let n = self.n_records(group, class).max(1.0);
            let between = edge.abs_diff(COMMON) as f64;
            let share = there[class] - common[class];
            (between + share * share * BINS as f64) * (self.std / n).powi(2) + 0.25 / n
        };
        (variance(0) + variance(1)).sqrt()
    }

    /// Chooses one of the edges for every group.
    pub(crate) fn choose(&self, mode: Fairness, edges: &Edges, groups: &[Group], classes: &[String]) -> Thresholds {
        let all: Vec<usize> = (0..groups.len()).collect();
        let [target_false, target_true] = self.rates(&all, COMMON);
        let noise = self.std * (BINS as f64).sqrt();
        let (mut too_small, mut without_class) = (Vec::new(), Vec::new());
        let mut has_enough = |place: usize, group: &Group| {
            let n = [0, 1].map(|class| self.n_records(place, class));
            match n.map(|n| n < ENOUGH * noise) {
                [false, false] => return true,
                [true, true] => too_small.push(group.clone()),
                [_, is_positive] => {
                    let class = usize::from(is_positive);
                    without_class.push(WithoutClass {
                        group: group.clone(),
                        class: classes[class].clone(),
                        records: n[class],
                        maybe_none: n[class] < NONE * noise,
                    });
                }
            }
            false
        };
        let choose = |(place, group): (usize, &Group)| {
            if !has_enough(place, group) {
                return COMMON;
            }
            let cost = |edge: usize| {
                let [false_positive, true_positive] = self.rates(&[place], edge);
                match mode {
                    Fairness::EqualizedOdds => {
                        (false_positive - target_false).abs().max((true_positive - target_true).abs())
                    }
                    Fairness::None | Fairness::WorstGroup => false_positive - true_positive,
                }
            };
            // The gain beyond noise and chance: 0 at the common threshold.
            let gain = |edge: usize| match edge {
                COMMON => 0.0,
                _ => cost(COMMON) - cost(edge) - GAIN * self.deviation(place, edge),
            };
            (0..edges.0.len()).max_by(|&a, &b| gain(a).total_cmp(&gain(b))).unwrap_or(COMMON)
        };
        let chosen: Vec<usize> = groups.iter().enumerate().map(choose).collect();
        let n_records = self.values.iter().sum::<f64>().max(1.0);
        let accuracy = |edge_of: &dyn Fn(usize) -> usize| {
            let right: f64 = all.iter().map(|&group| self.right(group, edge_of(group))).sum();
            (right / n_records).clamp(0.0, 1.0)
        };
        Thresholds {
            mode,
            by_group: chosen.iter().map(|&edge| edges.0[edge]).collect(),
            too_small,
            without_class,
            accuracy_before: accuracy(&|_| COMMON),
            accuracy_after: accuracy(&|group| chosen[group]),
            accuracy_noise: self.std * (self.values.len() as f64).sqrt() / n_records,
        }
    }
}

#[cfg(test)]
mod tests {
    use dp_table::Level;
    use rand_chacha::rand_core::SeedableRng as _;

    use super::*;
    use dp_linear::sigmoid;

    fn groups<const N: usize>(names: [&str; N]) -> [Group; N] {
        names.map(|name| Group::new(vec![Level::Value(name.into())]))
    }

    fn classes() -> [String; 2] {
        ["0", "1"].map(str::to_owned)
    }

    /// A record by group, class and log-odds of the positive class.
    type Record = (usize, usize, f64);

    fn is_positive(log_odds: f64, threshold: f64) -> bool {
        decide(&[sigmoid(-log_odds), sigmoid(log_odds)], &offsets(threshold)) == 1
    }

    fn choose(records: &[Record], names: &[Group], (mode, common): (Fairness, f64), std: f64, seed: u64) -> Thresholds {
        let edges = Edges::around(common);
        let mut counts = ScoreCounts::new(&edges, names.len());
        for &(group, class, log_odds) in records {
            counts.add(group, class, &[sigmoid(-log_odds), sigmoid(log_odds)]);
        }
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let scores = Scores::release(counts.values, NoiseMultiplier::new(std).unwrap(), 1, &mut rng);
        scores.choose(mode, &edges, names, &classes())
    }

    fn accuracy(records: &[Record], threshold: &dyn Fn(usize) -> f64) -> f64 {
        let is_right = |(group, class, log_odds): &&Record| is_positive(*log_odds, threshold(*group)) == (*class == 1);
        records.iter().filter(is_right).count() as f64 / records.len() as f64
    }

    /// Group b has the same people as group a with scores lower by 2: its threshold is lower by 2.
    #[test]
    fn a_group_whose_scores_are_lower_has_a_lower_threshold() {
        let records: Vec<Record> = (0..20_000_i32)
            .map(|i| {
                let (group, class) = (i % 2, (i / 2) % 2);
                let spread = f64::from((i / 4) % 1_000) / 1_000.0 - 0.5;
                let score = 4.0 * f64::from(class) - 2.0 + 3.0 * spread - 2.0 * f64::from(group);
                (group as usize, class as usize, score)
            })
            .collect();
        for mode in [Fairness::WorstGroup, Fairness::EqualizedOdds] {
            let found = choose(&records, &groups(["a", "b"]), (mode, 0.0), 1.0, 1);
            assert_eq!((found.too_small.len(), found.without_class.len()), (0, 0));
            assert!((found.by_group[0] - found.by_group[1] - 2.0).abs() < 1.0, "{mode:?} {:?}", found.by_group);
            assert!(found.accuracy_after > found.accuracy_before, "{found:?}");
        }
    }

    /// Two groups of the same people, whose scores fill few bins: the noise of the empty ones does
    /// not count as records, and no threshold is moved for the sake of noise.
    #[test]
    fn groups_that_are_alike_keep_the_common_threshold() {
        let records: Vec<Record> = (0..4_000)
            .map(|i| (i % 2, (i / 2) % 2, if (i / 4) % 5 == 0 { 0.5 } else { 2.0 * ((i / 2) % 2) as f64 - 1.0 }))
            .collect();
        let right = accuracy(&records, &|_| 0.0);
        for seed in 0..20 {
            for mode in [Fairness::WorstGroup, Fairness::EqualizedOdds] {
                let found = choose(&records, &groups(["a", "b"]), (mode, 0.0), 4.0, seed);
                let off = (found.accuracy_before - right).abs();
                assert!(off < 4.0 * found.accuracy_noise, "{seed} {found:?}");
                assert!((found.accuracy_after - found.accuracy_before).abs() < 0.1, "{seed} {found:?}");
            }
        }
    }

    /// Two scores per group, on both sides of a's threshold and on one side of b's, wherever the
    /// common threshold is: what is reported is what decisions at these thresholds do.
    #[test]
    fn where_scores_are_few_the_threshold_itself_is_compared_and_counted() {
        for common in [0.0, 0.013, -0.449, 0.2999, -1.95] {
            for near in [0.004, 0.02, 0.14] {
                // Just below the common threshold, and far below it; b's negatives are just above.
                let records: Vec<Record> = (0..6_000)
                    .map(|i| {
                        let (group, class) = (i % 2, usize::from(i % 20 >= 10) ^ usize::from(i % 40 == 0));
                        let score = if i % 20 >= 10 { common + near + 1.0 } else { common - 1.0 };
                        (group, class, if group == 1 && i % 20 < 10 { common + near } else { score })
                    })
                    .collect();
                let [before, best] = [common, common + near + 0.5]
                    .map(|b| accuracy(&records, &|group| if group == 1 { b } else { common }));
                assert!(best > before + 0.2, "{before} {best}");
                for seed in 0..4 {
                    let found = choose(&records, &groups(["a", "b"]), (Fairness::WorstGroup, common), 4.0, seed);
                    let after = accuracy(&records, &|group| found.by_group[group]);
                    assert_eq!((found.by_group[0], after), (common, best), "{common} {near} {found:?}");
                    assert!((found.accuracy_before - before).abs() < 3.0 * found.accuracy_noise, "{found:?}");
                    assert!((found.accuracy_after - after).abs() < 3.0 * found.accuracy_noise, "{found:?}");
                }
            }
        }
    }

    /// A score equal to a threshold is on the side on which a decision puts it.
    #[test]
    fn a_score_on_an_edge_is_counted_as_it_is_decided() {
        for common in [0.0, 0.1, -1.3, 2.7] {
            let edges = Edges::around(common);
            assert_eq!(edges.0[COMMON], common);
            for (place, &edge) in edges.0.iter().enumerate() {
                for log_odds in [edge.next_down(), edge, edge.next_up()] {
                    let bin = edges.bin(&[sigmoid(-log_odds), sigmoid(log_odds)]);
                    assert_eq!(bin > place, is_positive(log_odds, edge), "{log_odds} at {edge}");
                }
            }
        }
    }

    #[test]
    fn a_large_group_without_a_class_is_not_called_small() {
        let records: Vec<Record> = (0..9_000)
            .map(|i| match i {
                0..3_000 => (0, 0, -1.0),
                3_000..3_010 => (1, i % 2, 0.0),
                3_010..6_000 => (2, usize::from(i < 3_120), -1.0),
                _ => (3, i % 2, 0.5),
            })
            .collect();
        let names = groups(["f", "few", "rare", "m"]);
        let found = choose(&records, &names, (Fairness::WorstGroup, 0.0), 4.0, 1);
        assert_eq!(found.too_small, [names[1].clone()]);
        let without: Vec<_> = found.without_class.iter().map(|one| (&one.group, &*one.class, one.maybe_none)).collect();
        assert_eq!(without, [(&names[0], "1", true), (&names[2], "1", false)]);
        let remarks = found.remarks();
        assert_eq!(remarks[1], "no records of class 1, within noise, for a threshold of its own: f");
        assert!(remarks[2].starts_with("too few records of class 1 for a threshold of its own: rare (about 1"));
    }
}
