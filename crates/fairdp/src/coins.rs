//! Decisions between thresholds by a coin, which the values of the record toss.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a coin does, for people.
pub(crate) const IN_WORDS: &str = "a coin decides between thresholds of a group: a keyed hash of the record's values, so that the same values have the \
     same answer";

/// A threshold, and how probable a coin makes it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CoinThreshold {
    /// Its probability.
    pub probability: f64,
    /// The score above which the positive class is answered.
    pub threshold: f64,
}

/// The thresholds of every group, and the key of the hash that decides between them.
///
/// A record with the same values has the same answer, in any table and program that reads the release: nothing is
/// drawn. Over people with different values the hash is as good as a coin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Coins {
    /// The sha256 of the weights: public, and of this model alone.
    pub(crate) key: String,
    pub(crate) by_group: Vec<Vec<CoinThreshold>>,
}

impl Coins {
    /// Whether they are those of so many groups.
    pub(crate) fn check(&self, n_groups: usize) -> Result<(), String> {
        if self.by_group.len() != n_groups {
            return Err(format!("coins: {} groups, expected {n_groups}", self.by_group.len()));
        }
        let is_sound = |parts: &Vec<CoinThreshold>| {
            let sum: f64 = parts.iter().map(|part| part.probability).sum();
            parts.iter().all(|part| part.threshold.is_finite() && part.probability > 0.0) && (sum - 1.0).abs() < 1e-6
        };
        if self.by_group.iter().all(is_sound) {
            return Ok(());
        }
        Err("coins: expected thresholds with probabilities that add up to 1".into())
    }

    /// The threshold for a record of a group with these features; those of 0 say nothing.
    pub(crate) fn threshold(&self, group: usize, features: impl Iterator<Item = (usize, f32)>) -> f64 {
        let parts = &self.by_group[group];
        let mut left = self.toss(group, features);
        for part in parts {
            if left < part.probability {
                return part.threshold;
            }
            left -= part.probability;
        }
        // Rounding: the probabilities add up to nearly 1.
        parts.last().map_or(0.0, |part| part.threshold)
    }

    /// A number from 0 to 1.
    fn toss(&self, group: usize, features: impl Iterator<Item = (usize, f32)>) -> f64 {
        let mut hash = Sha256::new();
        hash.update(self.key.as_bytes());
        hash.update((group as u64).to_le_bytes());
        for (place, value) in features.filter(|(_, value)| *value != 0.0) {
            hash.update((place as u64).to_le_bytes());
            hash.update(value.to_bits().to_le_bytes());
        }
        let bytes: [u8; 32] = hash.finalize().into();
        let bits = bytes.iter().take(8).fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coins() -> Coins {
        let parts = [(0.25, -1.0), (0.75, 2.0)];
        let parts = parts.map(|(probability, threshold)| CoinThreshold { probability, threshold }).to_vec();
        Coins { key: "key".into(), by_group: vec![parts.clone(), parts] }
    }

    /// Of 4,000 records a quarter has the first threshold, within four deviations; zeros change nothing, and groups
    /// and keys have other coins.
    #[test]
    fn the_values_of_a_record_toss_its_coin() {
        let (coins, other) = (coins(), Coins { key: "other".into(), ..coins() });
        let features = |i: u16| [(0, f32::from(i)), (3, 0.5)].into_iter();
        let of = |coins: &Coins, group: usize| -> Vec<bool> {
            (1..=4_000).map(|i| coins.threshold(group, features(i)) < 0.0).collect()
        };
        let all = of(&coins, 0);
        let first = all.iter().filter(|first| **first).count();
        assert!((first as f64 - 1_000.0).abs() < 4.0 * 27.4, "{first}");
        assert_eq!(all, of(&coins, 0));
        assert!(all != of(&coins, 1) && all != of(&other, 0));
        let dense = [(0, 7.0), (1, 0.0), (2, -0.0), (3, 0.5)].into_iter();
        assert_eq!(coins.threshold(0, dense), coins.threshold(0, features(7)));
    }

    #[test]
    fn damaged_coins_are_refused() {
        let mut coins = coins();
        coins.check(2).unwrap();
        assert_eq!(coins.check(3).unwrap_err(), "coins: 2 groups, expected 3");
        coins.by_group[1][0].probability = 0.5;
        assert!(coins.check(2).is_err());
    }
}
