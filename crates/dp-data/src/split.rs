//! Seeded choice of records: balanced groups and the division into training and test part.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::error::DataError;

/// Independent random streams of one seed, so that for example another group size leaves the split's stream alone.
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
pub enum Keep {
    /// All.
    #[default]
    All,
    /// Exactly this many, drawn without replacement.
    Exactly(usize),
    /// Each on its own with this probability, so that the number varies with the seed.
    Coin(f64),
}

impl Keep {
    /// The rows that stay, ascending; `group` is for the error.
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
                    return Err(DataError::Parameter {
                        parameter: "records per group",
                        value: n.to_string(),
                        accepted: format!("1 to {} for `{group}`", rows.len()),
                    });
                }
                rows.shuffle(rng);
                rows.truncate(n);
                rows.sort_unstable();
            }
            Self::Coin(probability) => {
                if !(0.0..=1.0).contains(&probability) {
                    return Err(DataError::Parameter {
                        parameter: "probability to keep a record",
                        value: probability.to_string(),
                        accepted: format!("0 to 1 for `{group}`"),
                    });
                }
                rows.retain(|_| rng.random_bool(probability));
            }
        }
        Ok(rows)
    }
}

/// The rows of each group `k` that `keep[k]` leaves, ascending; `names` are for the error.
pub(crate) fn sample_groups(
    groups: &[usize],
    keep: &[Keep],
    names: &[&str],
    rng: &mut ChaCha20Rng,
) -> Result<Vec<usize>, DataError> {
    let mut chosen = Vec::new();
    for (group, keep) in keep.iter().enumerate() {
        let rows: Vec<usize> = (0..groups.len()).filter(|&row| groups[row] == group).collect();
        chosen.extend(keep.choose(rows, names[group], rng)?);
    }
    chosen.sort_unstable();
    Ok(chosen)
}

/// The share of records that is held out for testing: between 0 and 1, both excluded; 0.2 by default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct TestFraction(f64);

impl TestFraction {
    /// # Errors
    /// [`DataError::Parameter`] outside the range.
    pub fn new(fraction: f64) -> Result<Self, DataError> {
        if fraction > 0.0 && fraction < 1.0 {
            return Ok(Self(fraction));
        }
        Err(DataError::Parameter {
            parameter: "test fraction",
            value: fraction.to_string(),
            accepted: "between 0 and 1, both excluded".into(),
        })
    }

    /// The share.
    pub fn get(self) -> f64 {
        self.0
    }

    /// A random part of `round(fraction·n)` test rows and the rest, each in random order: `(train, test)`.
    pub(crate) fn divide(self, n: usize, rng: &mut ChaCha20Rng) -> (Vec<usize>, Vec<usize>) {
        let mut rows: Vec<usize> = (0..n).collect();
        rows.shuffle(rng);
        let train = rows.split_off((self.0 * n as f64).round() as usize);
        (train, rows)
    }
}

/// Random parts with the same share of every label: `(train, validation, test)`, each in random order.
pub(crate) fn stratified(labels: &[u32], validation: f64, test: f64, rng: &mut ChaCha20Rng) -> [Vec<usize>; 3] {
    let mut parts = [const { Vec::new() }; 3];
    for label in 0..=labels.iter().copied().max().unwrap_or(0) {
        let mut rows: Vec<usize> = (0..labels.len()).filter(|&row| labels[row] == label).collect();
        rows.shuffle(rng);
        let n = rows.len() as f64;
        let held_out = rows.split_off(rows.len() - ((validation + test) * n).round() as usize);
        let (test, validation) = held_out.split_at((test * n).round() as usize);
        parts[0].extend(rows);
        parts[1].extend(validation);
        parts[2].extend(test);
    }
    for part in &mut parts {
        part.shuffle(rng);
    }
    parts
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
            let (mut train, test) = TestFraction::new(fraction).unwrap().divide(n, &mut stream(seed, Stream::Split));
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
            let rows =
                sample_groups(&groups, &[Keep::Exactly(size), Keep::All], &["a", "b"], &mut stream(seed, Stream::Sampling)).unwrap();
            prop_assert!(rows.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(rows.iter().filter(|&&row| groups[row] == 0).count(), size);
            prop_assert_eq!(rows.len(), size + groups.len() - n0);
        }
    }

    /// 20 of label 0 and 10 of label 1 at 70/10/20: 14 + 7, 2 + 1, 4 + 2.
    #[test]
    fn stratified_parts_have_the_same_shares() {
        let labels: Vec<u32> = (0..30).map(|row| u32::from(row % 3 == 0)).collect();
        let parts = stratified(&labels, 0.1, 0.2, &mut stream(1, Stream::Split));
        assert_eq!(parts.each_ref().map(Vec::len), [21, 3, 6]);
        assert_eq!(parts.each_ref().map(|part| part.iter().filter(|&&row| labels[row] == 1).count()), [7, 1, 2]);
        let mut all = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..30).collect::<Vec<_>>());
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let order = |seed, kind| TestFraction::default().divide(50, &mut stream(seed, kind));
        assert_eq!(order(1, Stream::Split), order(1, Stream::Split));
        assert_ne!(order(1, Stream::Split), order(2, Stream::Split));
        assert_ne!(order(1, Stream::Split), order(1, Stream::Sampling));
    }

    /// 10,000 coins at 0.3: 3,000 ± 46. Six standard deviations: false alarm below 1e-8, and the seed is fixed.
    #[test]
    fn coins_fall_as_often_as_asked_for() {
        let mut rng = stream(4, Stream::Sampling);
        let kept = Keep::Coin(0.3).choose((0..10_000).collect(), "all", &mut rng).unwrap();
        assert!((2_725..=3_275).contains(&kept.len()), "{}", kept.len());
    }

    #[test]
    fn impossible_sizes() {
        let mut rng = stream(0, Stream::Sampling);
        insta::assert_snapshot!(
            sample_groups(&[0, 0], &[Keep::Exactly(3)], &["male"], &mut rng).unwrap_err(),
            @"records per group is 3, accepted: 1 to 2 for `male`"
        );
        insta::assert_snapshot!(
            sample_groups(&[0, 0], &[Keep::Coin(1.5)], &["male"], &mut rng).unwrap_err(),
            @"probability to keep a record is 1.5, accepted: 0 to 1 for `male`"
        );
        insta::assert_snapshot!(
            TestFraction::new(f64::NAN).unwrap_err(),
            @"test fraction is NaN, accepted: between 0 and 1, both excluded"
        );
    }
}
