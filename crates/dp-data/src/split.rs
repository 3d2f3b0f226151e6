//! Seeded choice of records: balanced groups and the division into training and test part.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::constants::InputConstant;
use crate::error::DataError;

/// Independent random streams of one seed, so that for example another group size leaves the
/// split's stream alone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    Sampling = 1,
    Split = 2,
    Validation = 3,
}

pub(crate) fn stream(seed: u64, stream: Stream) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    rng.set_stream(stream as u64);
    rng
}

/// How many records of a group take part.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupSample {
    /// All.
    #[default]
    All,
    /// Exactly this many, drawn without replacement.
    Exactly(usize),
    /// Each on its own with this probability, so that the number varies with the seed.
    Coin(f64),
}

/// Positions in random order. Draws and splits follow it, and it depends on their number alone:
/// what is at a position does not move what is at the others.
pub(crate) fn shuffled(n_positions: usize, rng: &mut ChaCha20Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n_positions).collect();
    order.shuffle(rng);
    order
}

impl GroupSample {
    /// The rows that stay, of those in random order; `group` is for the error.
    pub(crate) fn choose(
        self,
        mut rows: Vec<usize>,
        group: &str,
        rng: &mut ChaCha20Rng,
    ) -> Result<Vec<usize>, DataError> {
        match self {
            Self::All => {}
            Self::Exactly(n) => {
                if n == 0 || n > rows.len() {
                    return Err(DataError::InvalidParameter {
                        parameter: "records per group",
                        value: n.to_string(),
                        expected: format!("1 to {} for `{group}`", rows.len()),
                    });
                }
                rows.truncate(n);
            }
            Self::Coin(probability) => {
                if !(0.0..=1.0).contains(&probability) {
                    return Err(DataError::InvalidParameter {
                        parameter: "probability to keep a record",
                        value: probability.to_string(),
                        expected: format!("0 to 1 for `{group}`"),
                    });
                }
                rows.retain(|_| rng.random_bool(probability));
            }
        }
        rows.sort_unstable();
        Ok(rows)
    }
}

/// The positions of each group `k` that `keep[k]` leaves, ascending, of `n_positions`; `groups` has
/// the position and the group of each record that takes part, `names` are for the error.
///
/// Positions are drawn in one random order of all of them: a record that changes, or drops out,
/// moves none of the others but the one that takes its place where a number is exact.
pub(crate) fn sample_groups(
    n_positions: usize,
    groups: &[(usize, usize)],
    keep: &[GroupSample],
    names: &[&str],
    rng: &mut ChaCha20Rng,
) -> Result<Vec<usize>, DataError> {
    let order = shuffled(n_positions, rng);
    // Coins are of positions too: each has its own, whichever group it is in.
    let coins: Vec<f64> = (0..n_positions).map(|_| rng.random()).collect();
    let mut of_position = vec![None; n_positions];
    for &(position, group) in groups {
        of_position[position] = Some(group);
    }
    let mut chosen = Vec::new();
    for (group, keep) in keep.iter().enumerate() {
        let mut rows: Vec<usize> =
            order.iter().copied().filter(|&position| of_position[position] == Some(group)).collect();
        if let GroupSample::Coin(probability @ 0.0..=1.0) = *keep {
            rows.retain(|&position| coins[position] < probability);
            chosen.extend(rows);
        } else {
            chosen.extend(keep.choose(rows, names[group], rng)?);
        }
    }
    chosen.sort_unstable();
    Ok(chosen)
}

/// The `chosen` rows and the others of `rows`, each in the random order of all `n_positions`.
pub(crate) fn partition_chosen(
    n_positions: usize,
    chosen: &[usize],
    rows: &[usize],
    rng: &mut ChaCha20Rng,
) -> (Vec<usize>, Vec<usize>) {
    let mut is_chosen = vec![false; n_positions];
    for &row in chosen {
        is_chosen[row] = true;
    }
    in_order(&shuffled(n_positions, rng), rows).into_iter().partition(|&row| is_chosen[row])
}

/// `n` of those `rows` that are `positive`, drawn again with replacement; nothing if there are
/// none.
pub(crate) fn oversampled(
    rows: &[usize],
    positive: impl Fn(usize) -> bool,
    n: usize,
    rng: &mut ChaCha20Rng,
) -> Vec<usize> {
    let positives: Vec<usize> = rows.iter().copied().filter(|&row| positive(row)).collect();
    if positives.is_empty() {
        return Vec::new();
    }
    (0..n).map(|_| positives[rng.random_range(0..positives.len())]).collect()
}

/// The condition of a guarantee if records are drawn by their group.
pub(crate) fn drawn_by_group() -> InputConstant {
    InputConstant::from_records("the choice of records", "draws fixed numbers of each group from the private ones")
}

/// The condition of a guarantee if parts have equal shares of every label.
pub(crate) fn divided_by_label() -> InputConstant {
    InputConstant::from_records("the split", "gives every part the same share of each label among the private records")
}

/// The share of records that is held out for testing: between 0 and 1, both excluded; 0.2 by
/// default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct TestFraction(f64);

impl TestFraction {
    /// # Errors
    /// [`DataError::InvalidParameter`] outside the range.
    pub fn new(fraction: f64) -> Result<Self, DataError> {
        if fraction > 0.0 && fraction < 1.0 {
            return Ok(Self(fraction));
        }
        Err(DataError::InvalidParameter {
            parameter: "test fraction",
            value: fraction.to_string(),
            expected: "between 0 and 1, both excluded".into(),
        })
    }

    /// The share.
    pub fn get(self) -> f64 {
        self.0
    }

    /// A random part of `round(fraction·n)` test rows and the rest, each in random order: `(train,
    /// test)`. The order is that of all `n_positions`, of which `rows` are some.
    pub(crate) fn divide(self, n_positions: usize, rows: &[usize], rng: &mut ChaCha20Rng) -> (Vec<usize>, Vec<usize>) {
        let mut test = in_order(&shuffled(n_positions, rng), rows);
        let train = test.split_off((self.0 * rows.len() as f64).round() as usize);
        (train, test)
    }
}

/// `rows` in the order of all positions.
fn in_order(order: &[usize], rows: &[usize]) -> Vec<usize> {
    let mut takes_part = vec![false; order.len()];
    for &row in rows {
        takes_part[row] = true;
    }
    order.iter().copied().filter(|&position| takes_part[position]).collect()
}

/// Random parts with the same share of every label: `(train, validation, test)`, each in the random
/// order of all `n_positions`; `labels` has the position and the label of each record that takes
/// part.
pub(crate) fn stratified(
    n_positions: usize,
    labels: &[(usize, u32)],
    validation: f64,
    test: f64,
    rng: &mut ChaCha20Rng,
) -> [Vec<usize>; 3] {
    let order = shuffled(n_positions, rng);
    let mut parts = [const { Vec::new() }; 3];
    for label in 0..=labels.iter().map(|&(_, label)| label).max().unwrap_or(0) {
        let of_label: Vec<usize> =
            labels.iter().filter(|&&(_, other)| other == label).map(|&(position, _)| position).collect();
        let mut rows = in_order(&order, &of_label);
        let n = rows.len() as f64;
        let held_out = rows.split_off(rows.len() - ((validation + test) * n).round() as usize);
        let (test, validation) = held_out.split_at((test * n).round() as usize);
        parts[0].extend(rows);
        parts[1].extend(validation);
        parts[2].extend(test);
    }
    parts.map(|part| in_order(&order, &part))
}

impl Default for TestFraction {
    fn default() -> Self {
        Self(0.2)
    }
}

impl TryFrom<f64> for TestFraction {
    type Error = DataError;

    fn try_from(fraction: f64) -> Result<Self, DataError> {
        Self::new(fraction)
    }
}

impl From<TestFraction> for f64 {
    fn from(fraction: TestFraction) -> Self {
        fraction.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_split_is_a_partition(n in 0..200usize, fraction in 0.01..0.99f64, seed: u64) {
            let all: Vec<usize> = (0..n).collect();
            let (mut train, test) = TestFraction::new(fraction).unwrap().divide(n, &all, &mut stream(seed, Stream::Split));
            prop_assert_eq!(test.len(), (fraction * n as f64).round() as usize);
            train.extend(test);
            train.sort_unstable();
            prop_assert_eq!(train, (0..n).collect::<Vec<_>>());
        }

        #[test]
        fn groups_have_exactly_the_size_asked_for(groups in prop::collection::vec(0..2usize, 2..100), seed: u64) {
            let n0 = groups.iter().filter(|&&group| group == 0).count();
            prop_assume!(n0 > 0);
            let size = 1 + n0 / 2;
            prop_assume!(size <= n0);
            let numbered: Vec<(usize, usize)> = groups.iter().copied().enumerate().collect();
            let keep = [GroupSample::Exactly(size), GroupSample::All];
            let mut rng = stream(seed, Stream::Sampling);
            let rows = sample_groups(groups.len(), &numbered, &keep, &["a", "b"], &mut rng).unwrap();
            prop_assert!(rows.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(rows.iter().filter(|&&row| groups[row] == 0).count(), size);
            prop_assert_eq!(rows.len(), size + groups.len() - n0);
        }
    }

    /// 20 of label 0 and 10 of label 1 at 70/10/20: 14 + 7, 2 + 1, 4 + 2.
    #[test]
    fn stratified_parts_have_the_same_shares() {
        let labels: Vec<u32> = (0..30).map(|row| u32::from(row % 3 == 0)).collect();
        let numbered: Vec<(usize, u32)> = labels.iter().copied().enumerate().collect();
        let parts = stratified(30, &numbered, 0.1, 0.2, &mut stream(1, Stream::Split));
        assert_eq!(parts.each_ref().map(Vec::len), [21, 3, 6]);
        assert_eq!(parts.each_ref().map(|part| part.iter().filter(|&&row| labels[row] == 1).count()), [7, 1, 2]);
        let mut all = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..30).collect::<Vec<_>>());
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let all: Vec<usize> = (0..50).collect();
        let order = |seed, kind| TestFraction::default().divide(50, &all, &mut stream(seed, kind));
        assert_eq!(order(1, Stream::Split), order(1, Stream::Split));
        assert_ne!(order(1, Stream::Split), order(2, Stream::Split));
        assert_ne!(order(1, Stream::Split), order(1, Stream::Sampling));
    }

    /// One record changes its group, or drops out: of all others at most the one that takes its
    /// place moves.
    #[test]
    fn a_record_moves_no_other() {
        let groups: Vec<(usize, usize)> = (0..200).map(|position| (position, position % 2)).collect();
        let part_of = |groups: &[(usize, usize)], keep: GroupSample| {
            let rows = sample_groups(200, groups, &[keep; 2], &["a", "b"], &mut stream(3, Stream::Sampling)).unwrap();
            let (train, test) = TestFraction::default().divide(200, &rows, &mut stream(3, Stream::Split));
            let mut part = vec![0; 200];
            for &position in &train {
                part[position] = 1;
            }
            for &position in &test {
                part[position] = 2;
            }
            (part, train)
        };
        for keep in [GroupSample::All, GroupSample::Exactly(60), GroupSample::Coin(0.6)] {
            let (before, train) = part_of(&groups, keep);
            for position in (0..200).step_by(7) {
                let mut without = groups.clone();
                without.remove(position);
                let mut other_group = groups.clone();
                other_group[position].1 ^= 1;
                for (groups, most) in [(without, 2), (other_group, 3)] {
                    let (after, train_after) = part_of(&groups, keep);
                    let moved = (0..200).filter(|&other| other != position && before[other] != after[other]).count();
                    assert!(moved <= most, "{keep:?} {position}: {moved} moved");
                    // The records that stay keep their order.
                    let stays = |train: &[usize], other: &[usize]| -> Vec<usize> {
                        train.iter().copied().filter(|position| other.contains(position)).collect()
                    };
                    assert_eq!(stays(&train, &train_after), stays(&train_after, &train));
                }
            }
        }
    }

    /// 10,000 coins at 0.3: 3,000 ± 46. Six standard deviations: false alarm below 1e-8, and the
    /// seed is fixed.
    #[test]
    fn coins_fall_as_often_as_asked_for() {
        let mut rng = stream(4, Stream::Sampling);
        let kept = GroupSample::Coin(0.3).choose((0..10_000).collect(), "all", &mut rng).unwrap();
        assert!((2_725..=3_275).contains(&kept.len()), "{}", kept.len());
    }

    #[test]
    fn impossible_sizes() {
        let mut rng = stream(0, Stream::Sampling);
        insta::assert_snapshot!(
            sample_groups(2, &[(0, 0), (1, 0)], &[GroupSample::Exactly(3)], &["male"], &mut rng).unwrap_err(),
            @"records per group = 3: expected 1 to 2 for `male`"
        );
        insta::assert_snapshot!(
            sample_groups(2, &[(0, 0), (1, 0)], &[GroupSample::Coin(1.5)], &["male"], &mut rng).unwrap_err(),
            @"probability to keep a record = 1.5: expected 0 to 1 for `male`"
        );
        insta::assert_snapshot!(
            TestFraction::new(f64::NAN).unwrap_err(),
            @"test fraction = NaN: expected between 0 and 1, both excluded"
        );
    }
}
