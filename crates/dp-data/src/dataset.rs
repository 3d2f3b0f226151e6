//! Input of training code: numbers, labels, groups, and their names.

use ndarray::{Array2, Axis};

use crate::constants::InputConstant;
use crate::split::{self, Stream, TestFraction};

/// Encoded records with labels and groups.
///
/// **Shapes.** `features` is `[records, inputs]`; `labels` and `groups` have one entry per record.
///
/// **Guarantee.** Every label indexes `class_names`, every group indexes `group_names`, every
/// feature is finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// `[records, inputs]`.
    pub features: Array2<f32>,
    /// Index into `class_names`.
    pub labels: Vec<u32>,
    /// Index into `group_names`.
    pub groups: Vec<usize>,
    /// One per input.
    pub feature_names: Vec<String>,
    /// One per class.
    pub class_names: Vec<String>,
    /// One per group.
    pub group_names: Vec<String>,
    /// The attribute that makes the groups, for example `sex`.
    pub group_attribute: String,
}

/// The names of a data set that is made of records.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) features: Vec<String>,
    pub(crate) classes: [&'static str; 2],
    pub(crate) groups: &'static [&'static str],
    pub(crate) group_attribute: &'static str,
}

impl Dataset {
    /// The records with the value of each input, their label and their group.
    pub(crate) fn of<R>(
        records: &[&R],
        names: &Names,
        value: impl Fn(&R, usize) -> f32,
        label: impl Fn(&R) -> bool,
        group: impl Fn(&R) -> usize,
    ) -> Self {
        Self {
            features: Array2::from_shape_fn((records.len(), names.features.len()), |(row, input)| {
                value(records[row], input)
            }),
            labels: records.iter().map(|record| u32::from(label(record))).collect(),
            groups: records.iter().map(|record| group(record)).collect(),
            feature_names: names.features.clone(),
            class_names: names.classes.map(String::from).to_vec(),
            group_names: names.groups.iter().map(|&name| name.into()).collect(),
            group_attribute: names.group_attribute.into(),
        }
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// True without a record.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.features.ncols()
    }

    /// Records per group, in the order of `group_names`.
    pub fn group_sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.group_names.len()];
        for &group in &self.groups {
            sizes[group] += 1;
        }
        sizes
    }

    /// Holds out a random part, for example to choose hyper-parameters without the test records:
    /// `(rest, held_out)`.
    #[must_use]
    pub fn hold_out(&self, fraction: TestFraction, seed: u64) -> (Self, Self) {
        let all: Vec<usize> = (0..self.len()).collect();
        let (rest, held_out) = fraction.divide(self.len(), &all, &mut split::stream(seed, Stream::Validation));
        (self.select(&rest), self.select(&held_out))
    }

    /// Divides the records at random into those to train on and those to test on: `(train, test)`.
    #[must_use]
    pub fn divide(&self, test: TestFraction, seed: u64) -> (Self, Self) {
        let all: Vec<usize> = (0..self.len()).collect();
        let (train, test) = test.divide(self.len(), &all, &mut split::stream(seed, Stream::Split));
        (self.select(&train), self.select(&test))
    }

    /// The records at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is out of range.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            features: self.features.select(Axis(0), rows),
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
            groups: rows.iter().map(|&row| self.groups[row]).collect(),
            feature_names: self.feature_names.clone(),
            class_names: self.class_names.clone(),
            group_names: self.group_names.clone(),
            group_attribute: self.group_attribute.clone(),
        }
    }
}

/// A training and a test part of one data set.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Records to train on.
    pub train: Dataset,
    /// Records never seen in training.
    pub test: Dataset,
    /// Records to choose hyper-parameters with, where the data set comes with such a part.
    pub validation: Option<Dataset>,
    /// How records were chosen, split and scaled: one sentence each, for the report.
    pub notes: Vec<String>,
    /// Every constant that shaped the inputs, with its source.
    pub constants: Vec<InputConstant>,
}

impl Split {
    /// The conditions of a guarantee for training on these records; empty if no constant was taken
    /// from the records.
    pub fn given(&self) -> Vec<String> {
        self.constants.iter().filter_map(InputConstant::condition).collect()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn select_keeps_rows_together() {
        let all = Dataset {
            features: array![[0.0], [1.0], [2.0]],
            labels: vec![0, 1, 0],
            groups: vec![1, 0, 1],
            feature_names: vec!["x".into()],
            class_names: vec!["no".into(), "yes".into()],
            group_names: vec!["a".into(), "b".into(), "c".into()],
            group_attribute: "letter".into(),
        };
        assert_eq!(all.group_sizes(), [1, 2, 0]);
        let (rest, held_out) = all.hold_out(TestFraction::new(0.3).unwrap(), 1);
        assert_eq!((rest.len(), held_out.len()), (2, 1));
        assert_eq!(rest.labels.iter().sum::<u32>() + held_out.labels[0], 1);
        let (train, test) = all.divide(TestFraction::new(0.3).unwrap(), 1);
        assert_eq!((train.len(), test.len()), (2, 1));
        let some = all.select(&[2, 1]);
        assert_eq!(some.features, array![[2.0], [1.0]]);
        assert_eq!(some.labels, [0, 1]);
        assert_eq!(some.groups, [1, 0]);
    }
}
