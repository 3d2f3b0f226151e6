//! What tells one run from another.

use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The identity of a run within a study. Two runs with the same key and the same source of
/// randomness have the same result, whatever else was run beside them.
///
/// What is not in it cannot change a result beyond rounding (threads, micro-batch), or is asked
/// about apart (the revision of the code).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    /// Experiment by its identifier.
    pub experiment: String,
    /// Method by its name in the experiment.
    pub method: String,
    /// Of the training configuration; see [`config_hash`].
    pub config_hash: String,
    /// sha256 of the records as they were trained on and tested with: features, labels, groups, in
    /// order.
    pub data_digest: String,
    /// Index of the seed, 0-based.
    pub index: usize,
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, seed {}", self.experiment, self.method, self.index + 1)
    }
}

/// sha256, in hexadecimal, of a configuration as JSON with sorted keys.
pub fn config_hash(config: &Value) -> String {
    // The map of `serde_json` is sorted by key, so equal configurations have equal text.
    hex::encode(Sha256::digest(config.to_string()))
}

/// Where the randomness of a study's runs came from; the same for all runs of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Study by its name on the command line.
    pub study: String,
    /// Shortened runs.
    pub quick: bool,
    /// The base seed, if batches and noise follow from one.
    pub seed: Option<u64>,
    /// Seed of partitions and initial parameters.
    pub split_seed: u64,
}

impl Source {
    /// What differs from `other`, in the words of the command line, ours first; `None` if nothing
    /// does.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let seed = |source: &Self| source.seed.map_or_else(|| "no --seed".to_owned(), |seed| format!("--seed {seed}"));
        let quick = |source: &Self| if source.quick { "--quick" } else { "no --quick" };
        let pairs = [
            (format!("study {}", self.study), format!("study {}", other.study)),
            (quick(self).to_owned(), quick(other).to_owned()),
            (seed(self), seed(other)),
            (format!("--split-seed {}", self.split_seed), format!("--split-seed {}", other.split_seed)),
        ];
        pairs.into_iter().find(|(ours, theirs)| ours != theirs).map(|(ours, theirs)| format!("{ours}, not {theirs}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_of_values_not_of_their_order() {
        let one: Value = serde_json::from_str(r#"{"l2": 0.01, "batches": {"steps": 5, "epochs": 1}}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"batches": {"epochs": 1, "steps": 5}, "l2": 0.01}"#).unwrap();
        // $ printf '%s' '{"batches":{"epochs":1,"steps":5},"l2":0.01}' | sha256sum
        assert_eq!(config_hash(&one), "5e2c25297b3b8e785022b6bd59bf993ec74a06e20ef9f64142d585a0a39e8e3b");
        assert_eq!(config_hash(&one), config_hash(&two));
        let other = serde_json::json!({"batches": {"epochs": 1, "steps": 6}, "l2": 0.01});
        assert_ne!(config_hash(&one), config_hash(&other));
    }

    #[test]
    fn sources_are_compared_in_words() {
        let source = Source { study: "adult".to_owned(), quick: false, seed: Some(7), split_seed: 7 };
        assert_eq!(source.difference(&source), None);
        let other = Source { seed: None, split_seed: 9, ..source.clone() };
        assert_eq!(source.difference(&other).unwrap(), "--seed 7, not no --seed");
        let other = Source { quick: true, ..source.clone() };
        assert_eq!(source.difference(&other).unwrap(), "no --quick, not --quick");
    }
}
