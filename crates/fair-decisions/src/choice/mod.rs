//! Thresholds of each group.

mod coins;
mod hull;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;
use serde::{Deserialize, Serialize};

use crate::cumulative::CumulativeCounts;
use crate::grid::{N_EDGES, ScoreGrid};
use crate::mixture::Mixture;
use crate::mode::{Aim, Mode};
use crate::prefix_sums::PrefixSums;
use crate::rates::{Rates, Threshold};

/// Accuracy that is given up for a gap smaller by 1 where both are within the limits: it decides
/// between thresholds with nearly the same gap.
const PRICE: f64 = 0.1;
/// The least gain, in standard deviations of its noise and of the draw of records.
const GAIN: f64 = 2.0;
/// Times that a choice is made again on counts that might as well have been released, by the number of groups that
/// move: a choice among more groups takes longer, and its error varies less.
const AGAIN: usize = 512;
const LEAST_AGAIN: usize = 8;
const MOST_AGAIN: usize = 32;
/// Starts the public draws of these counts.
const SEED: u64 = 57;

/// How much of the thresholds of many groups is tried.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// Points and distances around them at which groups are tried to meet.
    points: usize,
    distances: usize,
    /// Rounds in which one group after the other moves.
    rounds: usize,
    /// Pairs of other noise, where two groups move.
    pairs: usize,
    /// Rates at which groups are tried to meet by coins.
    targets: usize,
}

impl Effort {
    /// Fewer where more groups move: each pair takes longer.
    fn pairs(self, n_large: usize) -> usize {
        (2 * self.pairs / n_large.max(2)).max(usize::from(self.pairs > 0))
    }
}

const FULL: Effort = Effort { points: 256, distances: 24, rounds: 20, pairs: 16, targets: 128 };
const LIGHT: Effort = Effort { points: 64, distances: 12, rounds: 2, pairs: 2, targets: 32 };
const NONE: Effort = Effort { points: 0, distances: 0, rounds: 0, pairs: 0, targets: 0 };

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
    /// Share of right answers, every record counted alike.
    #[serde(default)]
    pub plain_accuracy: f64,
}

/// What a mode gains on other records of the same people.
///
/// Thresholds suit the records and the noise from which they are chosen, and claim too much. The choice is made
/// again on counts that are drawn around the released ones, with new records and new noise: by how much it claims
/// too much there, on average, is taken off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Gain {
    /// By how much the gap falls, or the least balanced accuracy rises.
    pub value: f64,
    /// Its standard deviation.
    pub deviation: f64,
}

impl Gain {
    /// Whether it is more than noise and the draw of records explain.
    fn is_told(self) -> bool {
        self.value > 0.0 && self.value > GAIN * self.deviation
    }
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
        /// The gain on other records of the same people.
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
    /// The threshold of each group: an edge, or with [`Aim::coins`] several between which a coin decides.
    pub thresholds: Vec<Mixture>,
    /// Why none moved, if so.
    pub kept: Option<KeptReason>,
    /// With the common threshold, on the records that were counted.
    pub before: Quality,
    /// With these, on the records that they were chosen by: better than on others.
    pub after: Quality,
    /// What they gain on other records, if they moved.
    pub gain: Option<Gain>,
    /// Groups with enough records for a threshold of their own.
    pub large: Vec<usize>,
    /// Records of each side that are enough; for the worst group, of each class.
    pub needed: f64,
}

/// Chooses an edge for each group, or [one for all](Aim::one_threshold): those that bring the rates of the mode
/// closest together, or serve the worst group best, within the limits of the aim. Of two groups every pair is tried.
///
/// `balance` says how the decision weighs classes in the loss that is capped: 0 where every record counts, 1
/// where every class does, ½ in between.
///
/// Thresholds are those that are best on average over the noise, not at the released counts alone: these suit the
/// noise that was drawn. Groups of few records keep the common threshold. So do all where the [gain](Gain) on other records is no more than
/// two standard deviations of noise and of the draw of records.
///
/// **Source.** Equalised odds as a pair of rates that all groups can reach: Hardt, Price and Srebro 2016; here
/// with one threshold for each group, so that the same record always has the same answer, unless the aim allows
/// [coins](Aim::coins). Gain: Efron 1983, the
/// optimism of a choice, by a parametric bootstrap whose draws are public.
pub fn choose(sums: &PrefixSums, counts: &CumulativeCounts, aim: &Aim, balance: f64) -> Choice {
    let (released, mut rng) = (ReleasedCounts { sums, counts, balance }, ChaCha20Rng::seed_from_u64(SEED));
    let effort = if aim.mode == Mode::None { NONE } else { FULL };
    let search = Search::new(released, aim, effort, None, &mut rng);
    let (thresholds, gain, kept) = match search.decide(released, &mut rng) {
        Ok((thresholds, gain)) => (thresholds, Some(gain), None),
        Err(kept) => (search.common.iter().map(|&edge| Mixture::at(edge)).collect(), None, Some(kept)),
    };
    let after = search.rates.quality(aim.mode, &thresholds);
    let Rates { needed, large, .. } = search.rates;
    Choice { thresholds, kept, before: search.before, after, gain, needed, large }
}

/// Released counts, and how the decision weighs classes in them.
#[derive(Clone, Copy)]
struct ReleasedCounts<'a> {
    sums: &'a PrefixSums,
    counts: &'a CumulativeCounts,
    balance: f64,
}

struct Search<'a> {
    aim: &'a Aim,
    rates: Rates,
    /// Rates of counts with other noise: thresholds suit all of them on average.
    draws: Vec<Rates>,
    before: Quality,
    common: Vec<usize>,
}

impl<'a> Search<'a> {
    /// `large`: groups that may move, if this is decided already.
    fn new(
        released: ReleasedCounts<'_>,
        aim: &'a Aim,
        effort: Effort,
        large: Option<&[usize]>,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let ReleasedCounts { sums, counts, balance } = released;
        let mut rates = Rates::of(sums, counts, balance, aim.mode);
        if let Some(large) = large {
            rates.large = large.to_vec();
        }
        let n_pairs = if counts.noise_std() > 0.0 { effort.pairs(rates.large.len()) } else { 0 };
        let mut draws = Vec::with_capacity(2 * n_pairs);
        for _ in 0..n_pairs {
            let normal = counts.normal(rng);
            // Both signs: what is drawn has the mean of what was released.
            for sign in [1.0, -1.0] {
                let mut other = Rates::of(sums, &counts.again(sums, &normal, [0.0, sign]), balance, aim.mode);
                other.large.clone_from(&rates.large);
                draws.push(other);
            }
        }
        let common = vec![ScoreGrid::common(); counts.n_groups()];
        Self { aim, before: rates.quality(aim.mode, &common), rates, draws, common }
    }

    fn decide(&self, released: ReleasedCounts<'_>, rng: &mut ChaCha20Rng) -> Result<(Vec<Mixture>, Gain), KeptReason> {
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
        let thresholds = self.chosen(self.aim.max_loss, FULL);
        let claimed = self.claim(&thresholds);
        let gain = self.gain(&thresholds, self.aim.max_loss, released, rng);
        if gain.is_told() {
            return Ok((thresholds, gain));
        }
        let without_cap = self.chosen(1.0, FULL);
        let quality = self.rates.quality(mode, &without_cap);
        let is_capped =
            self.claim(&without_cap) > 2.0 * claimed && self.gain(&without_cap, 1.0, released, rng).is_told();
        Err(if is_capped {
            KeptReason::WithinCap { needed: self.loss(&quality), left: self.left(&quality) }
        } else if claimed > 0.0 {
            KeptReason::WithinNoise { gain: gain.value, deviation: gain.deviation }
        } else {
            KeptReason::NothingBetter
        })
    }

    /// What these thresholds gain on the records that they were chosen by.
    fn claim(&self, thresholds: &[Mixture]) -> f64 {
        self.left(&self.before) - self.left(&self.rates.quality(self.aim.mode, thresholds))
    }

    /// What they gain on others.
    fn gain(&self, thresholds: &[Mixture], max_loss: f64, released: ReleasedCounts<'_>, rng: &mut ChaCha20Rng) -> Gain {
        let claimed = self.claim(thresholds);
        if claimed <= 0.0 {
            return Gain { value: claimed, deviation: 0.0 };
        }
        let large = &self.rates.large;
        let times = (AGAIN / large.len()).clamp(LEAST_AGAIN, MOST_AGAIN);
        let too_much: Vec<f64> = (0..times)
            .map(|_| {
                let counts = released.counts.again(released.sums, &released.counts.normal(rng), [1.0; 2]);
                let again = ReleasedCounts { counts: &counts, ..released };
                let again = Search::new(again, self.aim, LIGHT, Some(large), rng);
                let thresholds = again.chosen(max_loss, LIGHT);
                again.claim(&thresholds) - self.claim(&thresholds)
            })
            .collect();
        let mean = too_much.iter().sum::<f64>() / times as f64;
        let squares: f64 = too_much.iter().map(|value| (value - mean).powi(2)).sum();
        Gain { value: claimed - mean, deviation: (squares / (times - 1) as f64).sqrt() }
    }

    /// What a mode makes small.
    fn left(&self, quality: &Quality) -> f64 {
        match self.aim.mode {
            Mode::WorstGroup => 1.0 - quality.worst,
            _ => quality.gap.max(self.aim.max_gap),
        }
    }

    /// The losses that are capped.
    fn losses(&self, quality: &Quality) -> [f64; 3] {
        let Quality { accuracy, balanced_accuracy, plain_accuracy, .. } = self.before;
        [
            accuracy - quality.accuracy,
            balanced_accuracy - quality.balanced_accuracy,
            plain_accuracy - quality.plain_accuracy,
        ]
    }

    /// The largest of them.
    fn loss(&self, quality: &Quality) -> f64 {
        self.losses(quality).into_iter().fold(f64::NEG_INFINITY, f64::max)
    }

    /// What is minimised; infinite beyond the cap.
    fn cost<T: Threshold>(&self, thresholds: &[T], max_loss: f64) -> f64 {
        let mode = self.aim.mode;
        let quality = self.rates.quality(mode, thresholds);
        if self.loss(&quality) > max_loss {
            return f64::INFINITY;
        }
        let left = if self.draws.is_empty() {
            self.left(&quality)
        } else {
            let all = self.draws.iter().map(|rates| self.left(&rates.quality(mode, thresholds)));
            all.sum::<f64>() / self.draws.len() as f64
        };
        left - PRICE * (quality.accuracy - self.before.accuracy)
    }

    /// The best thresholds, with coins where these are allowed.
    fn chosen(&self, max_loss: f64, effort: Effort) -> Vec<Mixture> {
        let edges = self.best(max_loss, effort);
        if self.aim.coins {
            return self.mixed(&edges, max_loss, effort);
        }
        edges.into_iter().map(Mixture::at).collect()
    }

    /// The best edges.
    fn best(&self, max_loss: f64, effort: Effort) -> Vec<usize> {
        let mut best = (self.cost(&self.common, max_loss), self.common.clone());
        let mut edges = self.common.clone();
        let mut offer = |edges: &[usize]| {
            let cost = self.cost(edges, max_loss);
            if cost < best.0 {
                best = (cost, edges.to_vec());
            }
        };
        if self.aim.one_threshold {
            for edge in 0..N_EDGES {
                edges.fill(edge);
                offer(&edges);
            }
            return best.1;
        }
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
        for place in (0..n_points).step_by(n_points.div_ceil(effort.points)) {
            let (group, edge) = (self.rates.large[place / N_EDGES], place % N_EDGES);
            let point = self.point(group, edge);
            for step in 0..=effort.distances {
                let distance = 0.5 * self.before.gap.max(0.02) * step as f64 / effort.distances as f64;
                if self.meet(point, distance, &mut edges) {
                    offer(&edges);
                }
            }
        }
        self.polished(best.1, max_loss, effort.rounds)
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
    fn polished(&self, mut edges: Vec<usize>, max_loss: f64, rounds: usize) -> Vec<usize> {
        let mut cost = self.cost(&edges, max_loss);
        for _ in 0..rounds {
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
                let [a, b] = [0, 1].map(|group| grid.edges()[choice.thresholds[group].likeliest()]);
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
        let released = ReleasedCounts { sums: &sums, counts: &counts, balance: 0.5 };
        let search = Search::new(released, &aim, FULL, None, &mut ChaCha20Rng::seed_from_u64(SEED));
        let mut best = f64::INFINITY;
        for a in 0..N_EDGES {
            for b in 0..N_EDGES {
                for c in 0..N_EDGES {
                    best = best.min(search.cost(&[a, b, c], aim.max_loss));
                }
            }
        }
        let found = search.cost(&search.best(aim.max_loss, FULL), aim.max_loss);
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
            assert!(choice.before.plain_accuracy - choice.after.plain_accuracy <= max_loss);
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

    /// Groups whose ROC curves cross nowhere near: a coin closes the gap that edges leave, within the same cap.
    #[test]
    fn a_coin_reaches_what_no_edges_do() {
        let spread = |i: usize| ((i % 997) as f64 + 0.5) / 997.0;
        let spread = |i: usize| (spread(i) / (1.0 - spread(i))).ln();
        // Scores of the second group tell its classes apart less well.
        let of = |i: usize| {
            let (group, class) = (i % 2, i / 2 % 2);
            (group, class, spread(i / 4) + [3.0, 1.6][group] * (class as f64 - 0.5))
        };
        let all = cells(2, (0..80_000).map(of));
        for mode in [Mode::EqualizedOdds, Mode::EqualOpportunity, Mode::DemographicParity] {
            let aim = Aim::with_limits(mode, 0.2, 0.0).unwrap();
            let (edges, coins) = (chosen(&all, aim, 0.0, 0), chosen(&all, aim.with_coins(true), 0.0, 0));
            assert!(coins.after.gap <= edges.after.gap + 1e-9, "{mode:?} {coins:?} {edges:?}");
            if mode == Mode::EqualizedOdds {
                assert!(edges.after.gap > 0.01 && coins.after.gap < 1e-3, "{coins:?} {edges:?}");
                assert!(coins.thresholds.iter().any(|threshold| threshold.fixed().is_none()), "{coins:?}");
            }
        }
        let aim = Aim::with_limits(Mode::EqualizedOdds, 0.02, 0.0).unwrap().with_coins(true);
        for seed in 0..3 {
            let choice = chosen(&all, aim, 11.8, seed);
            assert!(choice.before.accuracy - choice.after.accuracy <= 0.02, "{choice:?}");
            assert!(choice.kept.is_some() || choice.after.gap < choice.before.gap, "{choice:?}");
        }
    }

    /// A group of few records keeps the common threshold, and the others move.
    #[test]
    fn small_groups_stay() {
        let mut all = shifted(&[0.0, -1.0, 0.0], 20_000).into_values();
        let third = all.len() / 3;
        all[2 * third..].iter_mut().for_each(|count| *count = (*count / 200.0).floor());
        let choice = chosen(&ScoreCells::new(3).with_values(all), Aim::of(Mode::EqualizedOdds), 11.8, 1);
        assert_eq!((choice.large.as_slice(), choice.thresholds[2].fixed()), (&[0, 1][..], Some(ScoreGrid::common())));
        assert!(choice.kept.is_none() && choice.after.gap < 0.05);
    }
}
