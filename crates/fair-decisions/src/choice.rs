//! One threshold for each group.

use serde::{Deserialize, Serialize};

use crate::cumulative::CumulativeCounts;
use crate::grid::{N_EDGES, ScoreGrid};
use crate::mode::{Aim, Mode};
use crate::prefix_sums::PrefixSums;
use crate::rates::Rates;

/// Accuracy that is given up for a gap smaller by 1 where both are within the limits: it decides
/// between thresholds with nearly the same gap.
const PRICE: f64 = 0.1;
/// The least gain, in standard deviations of its noise and of the draw of records.
const GAIN: f64 = 1.5;
/// Points and distances around them at which many groups are tried to meet.
const POINTS: usize = 256;
const DISTANCES: usize = 24;
/// Rounds in which one group after the other moves.
const ROUNDS: usize = 20;

/// What thresholds amount to, on the records that were counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Quality {
    /// The largest difference between groups in the rates of the mode.
    pub gap: f64,
    /// Accuracy as the decision weighs classes.
    pub accuracy: f64,
    /// Mean of the classes' recalls.
    pub balanced_accuracy: f64,
    /// Balanced accuracy of the group where it is least.
    pub worst: f64,
}

/// Why all groups keep the common threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum KeptReason {
    /// The mode does not act.
    NotAsked,
    /// Fewer than two groups have so many records of each class.
    TooFewRecords {
        /// Records of each class, at this noise.
        needed: f64,
    },
    /// The gap is not above the target.
    SmallEnough {
        /// The gap.
        gap: f64,
    },
    /// What would be gained is no more than noise and the draw of records explain.
    WithinNoise {
        /// The gain.
        gain: f64,
        /// Its standard deviation.
        deviation: f64,
    },
    /// Nothing is gained within the cap.
    WithinCap {
        /// The loss of accuracy, or of balanced accuracy, at which there would be a gain.
        needed: f64,
        /// The gap, or for the worst group 1 less its balanced accuracy, that this would leave.
        left: f64,
    },
    /// No thresholds are better than the common one.
    NothingBetter,
}

/// Chosen thresholds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The edge of each group.
    pub edges: Vec<usize>,
    /// Why none moved, if so.
    pub kept: Option<KeptReason>,
    /// With the common threshold.
    pub before: Quality,
    /// With these.
    pub after: Quality,
    /// Groups with enough records for a threshold of their own.
    pub large: Vec<usize>,
    /// Records of each class that are enough.
    pub needed: f64,
}

/// Chooses an edge for each group: those that bring the rates of the mode closest together, or serve the worst
/// group best, within the limits of the aim. Of two groups every pair is tried.
///
/// `balance` says how the decision weighs classes in the loss that is capped: 0 where every record counts, 1
/// where every class does, ½ in between.
///
/// Groups of few records keep the common threshold. So do all where the gain is no more than one and a half standard
/// deviations of noise and of the draw of records.
///
/// **Source.** Equalised odds as a pair of rates that all groups can reach: Hardt, Price and Srebro 2016; here
/// with one threshold for each group, so that the same record always has the same answer.
pub fn choose(sums: &PrefixSums, counts: &CumulativeCounts, aim: &Aim, balance: f64) -> Choice {
    let rates = Rates::of(sums, counts, balance);
    let common = vec![ScoreGrid::common(); counts.n_groups()];
    let search = Search { rates: &rates, aim, before: rates.quality(aim.mode, &common), common: &common };
    let (edges, kept) = match search.decide(sums, counts) {
        Ok(edges) => (edges, None),
        Err(kept) => (common.clone(), Some(kept)),
    };
    let after = rates.quality(aim.mode, &edges);
    Choice { edges, kept, before: search.before, after, needed: rates.needed, large: rates.large }
}

struct Search<'a> {
    rates: &'a Rates,
    aim: &'a Aim,
    before: Quality,
    common: &'a [usize],
}

impl Search<'_> {
    fn decide(&self, sums: &PrefixSums, counts: &CumulativeCounts) -> Result<Vec<usize>, KeptReason> {
        let Aim { mode, max_gap, .. } = *self.aim;
        if mode == Mode::None {
            return Err(KeptReason::NotAsked);
        }
        if self.rates.large.len() < 2 {
            return Err(KeptReason::TooFewRecords { needed: self.rates.needed });
        }
        if mode != Mode::WorstGroup && self.before.gap <= max_gap {
            return Err(KeptReason::SmallEnough { gap: self.before.gap });
        }
        let edges = self.best(self.aim.max_loss);
        let gain = self.left(&self.before) - self.left(&self.rates.quality(mode, &edges));
        let deviation = self.rates.deviation(sums, counts, &edges);
        if gain > GAIN * deviation && gain > 0.0 {
            return Ok(edges);
        }
        let without_cap = self.best(1.0);
        let quality = self.rates.quality(mode, &without_cap);
        let (most, deviation_of_most) =
            (self.left(&self.before) - self.left(&quality), self.rates.deviation(sums, counts, &without_cap));
        Err(if most > GAIN * deviation_of_most && most > 2.0 * gain.max(0.0) {
            KeptReason::WithinCap { needed: self.loss(&quality), left: self.left(&quality) }
        } else if gain > 0.0 {
            KeptReason::WithinNoise { gain, deviation }
        } else {
            KeptReason::NothingBetter
        })
    }

    /// What a mode makes small.
    fn left(&self, quality: &Quality) -> f64 {
        match self.aim.mode {
            Mode::WorstGroup => 1.0 - quality.worst,
            _ => quality.gap.max(self.aim.max_gap),
        }
    }

    /// The larger of the two losses.
    fn loss(&self, quality: &Quality) -> f64 {
        let accuracy = self.before.accuracy - quality.accuracy;
        accuracy.max(self.before.balanced_accuracy - quality.balanced_accuracy)
    }

    /// What is minimised; infinite beyond the cap.
    fn cost(&self, edges: &[usize], max_loss: f64) -> f64 {
        let quality = self.rates.quality(self.aim.mode, edges);
        if self.loss(&quality) > max_loss {
            return f64::INFINITY;
        }
        self.left(&quality) - PRICE * (quality.accuracy - self.before.accuracy)
    }

    fn best(&self, max_loss: f64) -> Vec<usize> {
        let mut best = (self.cost(self.common, max_loss), self.common.to_vec());
        let mut edges = self.common.to_vec();
        let mut offer = |edges: &[usize]| {
            let cost = self.cost(edges, max_loss);
            if cost < best.0 {
                best = (cost, edges.to_vec());
            }
        };
        if let [a, b] = self.rates.large[..] {
            for of_a in 0..N_EDGES {
                for of_b in 0..N_EDGES {
                    (edges[a], edges[b]) = (of_a, of_b);
                    offer(&edges);
                }
            }
            return best.1;
        }
        let n_points = self.rates.large.len() * N_EDGES;
        for place in (0..n_points).step_by(n_points.div_ceil(POINTS)) {
            let (group, edge) = (self.rates.large[place / N_EDGES], place % N_EDGES);
            let point = self.point(group, edge);
            for step in 0..=DISTANCES {
                let distance = 0.5 * self.before.gap.max(0.02) * step as f64 / DISTANCES as f64;
                if self.meet(point, distance, &mut edges) {
                    offer(&edges);
                }
            }
        }
        self.polished(best.1, max_loss)
    }

    /// What is compared of a group at an edge.
    fn point(&self, group: usize, edge: usize) -> [f64; 2] {
        match self.aim.mode {
            Mode::WorstGroup => [self.rates.balanced(group, edge); 2],
            mode => self.rates.compared(mode, group, edge),
        }
    }

    /// Moves every group to its most accurate edge at a point; for the worst group, at or above it. Returns whether
    /// all can.
    fn meet(&self, point: [f64; 2], distance: f64, edges: &mut [usize]) -> bool {
        self.rates.large.iter().all(|&group| {
            let is_there = |edge: &usize| {
                let own = self.point(group, *edge);
                match self.aim.mode {
                    Mode::WorstGroup => own[0] >= point[0] - distance,
                    _ => (0..2).all(|i| (own[i] - point[i]).abs() <= distance),
                }
            };
            let adds = |edge: &usize| self.rates.adds(group, *edge);
            let best = (0..N_EDGES).filter(is_there).max_by(|a, b| adds(a).total_cmp(&adds(b)));
            best.map(|edge| edges[group] = edge).is_some()
        })
    }

    /// Moves one group after the other while this is better.
    fn polished(&self, mut edges: Vec<usize>, max_loss: f64) -> Vec<usize> {
        let mut cost = self.cost(&edges, max_loss);
        for _ in 0..ROUNDS {
            let before = cost;
            for &group in &self.rates.large {
                let own = edges[group];
                let mut best = own;
                for edge in 0..N_EDGES {
                    edges[group] = edge;
                    let with = self.cost(&edges, max_loss);
                    if with < cost {
                        (cost, best) = (with, edge);
                    }
                }
                edges[group] = best;
            }
            if cost >= before {
                break;
            }
        }
        edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cumulative::ScoreCells;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng as _;

    /// Records by group, class and log-odds.
    fn cells(n_groups: usize, records: impl Iterator<Item = (usize, usize, f64)>) -> ScoreCells {
        let grid = ScoreGrid::around(0.0);
        let mut cells = ScoreCells::new(n_groups);
        for (group, class, score) in records {
            cells.add(group, class, grid.cell(|edge| score > edge));
        }
        cells
    }

    /// Groups of alike people, whose scores are moved by a shift of each group.
    fn shifted(shifts: &[f64], n: usize) -> ScoreCells {
        // Logistic.
        let spread = |i: usize| ((i % 997) as f64 + 0.5) / 997.0;
        let spread = |i: usize| (spread(i) / (1.0 - spread(i))).ln();
        cells(
            shifts.len(),
            (0..n * shifts.len()).map(|i| {
                let (group, class) = (i % shifts.len(), i / shifts.len() % 2);
                (group, class, spread(i / (2 * shifts.len())) + 3.0 * class as f64 - 1.5 + shifts[group])
            }),
        )
    }

    fn chosen(cells: &ScoreCells, aim: Aim, noise: f64, seed: u64) -> Choice {
        let sums = PrefixSums::new();
        let counts = if noise == 0.0 {
            CumulativeCounts::exact(cells)
        } else {
            CumulativeCounts::release(&sums, cells, noise, 1, &mut ChaCha20Rng::seed_from_u64(seed)).unwrap()
        };
        choose(&sums, &counts, &aim, 0.5)
    }

    #[test]
    fn alike_people_with_lower_scores_have_a_lower_threshold() {
        let grid = ScoreGrid::around(0.0);
        for mode in [Mode::EqualizedOdds, Mode::EqualOpportunity, Mode::DemographicParity] {
            for (noise, seed) in [(0.0, 0), (11.8, 1), (11.8, 2)] {
                let choice = chosen(&shifted(&[0.0, -1.0], 20_000), Aim::of(mode), noise, seed);
                let [a, b] = [0, 1].map(|group| grid.edges()[choice.edges[group]]);
                assert!(choice.kept.is_none() && (a - b - 1.0).abs() < 0.3, "{mode:?} {a} {b} {choice:?}");
                assert!(choice.before.gap > 0.1 && choice.after.gap < 0.04, "{mode:?} {choice:?}");
            }
        }
        let choice = chosen(&shifted(&[0.0, -1.0], 20_000), Aim::of(Mode::WorstGroup), 11.8, 3);
        assert!(choice.after.worst > choice.before.worst + 0.02, "{choice:?}");
    }

    /// Many groups meet where their pairs do.
    #[test]
    fn more_than_two_groups_meet() {
        for mode in [Mode::EqualizedOdds, Mode::DemographicParity, Mode::WorstGroup] {
            let choice = chosen(&shifted(&[0.0, -1.0, 0.6, -0.4, 0.3], 10_000), Aim::of(mode), 0.0, 0);
            assert!(choice.before.gap > 0.2 && choice.kept.is_none(), "{mode:?} {choice:?}");
            if mode != Mode::WorstGroup {
                assert!(choice.after.gap < 0.05, "{mode:?} {choice:?}");
            }
        }
    }

    /// Three groups: the search is as good as every triple of edges, but for a hundredth.
    #[test]
    fn the_search_is_near_every_triple() {
        let (sums, aim) = (PrefixSums::new(), Aim::of(Mode::EqualizedOdds));
        let counts = CumulativeCounts::exact(&shifted(&[0.0, -0.7, 0.9], 2_000));
        let rates = Rates::of(&sums, &counts, 0.5);
        let common = [ScoreGrid::common(); 3];
        let search = Search { rates: &rates, aim: &aim, before: rates.quality(aim.mode, &common), common: &common };
        let mut best = f64::INFINITY;
        for a in 0..N_EDGES {
            for b in 0..N_EDGES {
                for c in 0..N_EDGES {
                    best = best.min(search.cost(&[a, b, c], aim.max_loss));
                }
            }
        }
        let found = search.cost(&search.best(aim.max_loss), aim.max_loss);
        assert!(found <= best + 0.01, "{found} {best}");
    }

    #[test]
    fn the_cap_holds_and_a_target_is_enough() {
        // The scores of the second group say nothing: equal rates cost much.
        let useless = cells(
            2,
            (0..40_000).map(|i| {
                let (group, class) = (i % 2, i / 2 % 2);
                let spread = 5.0 * ((i / 4 % 997) as f64 / 997.0 - 0.5);
                (group, class, spread + if group == 0 { 3.0 * class as f64 - 1.5 } else { 0.0 })
            }),
        );
        for max_loss in [0.005, 0.02, 0.05] {
            let aim = Aim::with_limits(Mode::EqualizedOdds, max_loss, 0.0).unwrap();
            let choice = chosen(&useless, aim, 0.0, 0);
            assert!(choice.before.accuracy - choice.after.accuracy <= max_loss);
            assert!(choice.before.balanced_accuracy - choice.after.balanced_accuracy <= max_loss);
        }
        let aim = Aim::with_limits(Mode::EqualizedOdds, 0.02, 0.1).unwrap();
        let choice = chosen(&shifted(&[0.0, -1.0], 20_000), aim, 0.0, 0);
        assert!(choice.after.gap <= 0.1, "{choice:?}");
        let aim = Aim::with_limits(Mode::EqualizedOdds, 0.02, 0.5).unwrap();
        let kept = chosen(&shifted(&[0.0, -1.0], 20_000), aim, 0.0, 0).kept;
        assert!(matches!(kept, Some(KeptReason::SmallEnough { .. })), "{kept:?}");
    }

    #[test]
    fn what_keeps_the_common_threshold_has_a_reason() {
        let kept = |shifts: &[f64], n: usize, mode: Mode, seed: u64| {
            chosen(&shifted(shifts, n), Aim::of(mode), 11.8, seed).kept
        };
        assert_eq!(kept(&[0.0, -1.0], 2_000, Mode::None, 1), Some(KeptReason::NotAsked));
        // 100 records of each class: at this noise 282 are enough.
        match kept(&[0.0, -1.0], 200, Mode::EqualizedOdds, 1) {
            Some(KeptReason::TooFewRecords { needed }) => assert!((needed - 282.0).abs() < 2.0, "{needed}"),
            other => panic!("{other:?}"),
        }
        // Alike groups: most releases move nothing.
        let n_kept = (0..20).filter(|&seed| kept(&[0.0, 0.0], 4_000, Mode::EqualizedOdds, seed).is_some()).count();
        assert!(n_kept >= 10, "{n_kept}");
    }

    /// A group of few records keeps the common threshold, and the others move.
    #[test]
    fn small_groups_stay() {
        let mut all = shifted(&[0.0, -1.0, 0.0], 20_000).into_values();
        let third = all.len() / 3;
        all[2 * third..].iter_mut().for_each(|count| *count = (*count / 200.0).floor());
        let choice = chosen(&ScoreCells::of(all), Aim::of(Mode::EqualizedOdds), 11.8, 1);
        assert_eq!((choice.large.as_slice(), choice.edges[2]), (&[0, 1][..], ScoreGrid::common()));
        assert!(choice.kept.is_none() && choice.after.gap < 0.05);
    }
}
