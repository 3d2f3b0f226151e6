//! Exact figures of the test part: for the person who may see the records, never for release.

use std::collections::BTreeMap;

use dp_table::{Group, TableCounts};
use dp_train::ranks::Collective;
use fair_metrics::{log_loss, roc_auc};
use serde::Serialize;

use crate::error::Result;
use crate::numbers::{NumberAnswers, NumberDiagnostics};

/// `private/diagnostics.json`. Computed from the records without noise: **not private**.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Records that were trained on.
    pub training_records: usize,
    /// Records that were tested on.
    pub test_records: usize,
    /// The records of the figures: `test`, or `training` without a test part.
    pub measured_on: &'static str,
    /// Share of right answers.
    pub accuracy: Option<f64>,
    /// Area under the ROC curve; of two classes only.
    pub auc: Option<f64>,
    /// Mean of the classes' recalls.
    pub balanced_accuracy: Option<f64>,
    /// Mean negative log-probability, in nats.
    pub log_loss: Option<f64>,
    /// Figures by group.
    pub by_group: BTreeMap<String, GroupDiagnostics>,
    /// Errors of predicted numbers; then the figures of classes are empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<NumberDiagnostics>,
    /// The same by group.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub numbers_by_group: BTreeMap<String, NumberDiagnostics>,
    /// Counts of the training table.
    pub table: TableCounts,
    /// Counts of a separate test table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_table: Option<TableCounts>,
    /// Values in the tables that are not declared, a line each ([`TableCounts::remarks`]).
    pub remarks: Vec<String>,
    /// The same figures of a model that was trained without privacy, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<Box<Diagnostics>>,
}

/// Exact figures of one group.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct GroupDiagnostics {
    /// Its test records.
    pub records: usize,
    /// Share of right answers.
    pub accuracy: Option<f64>,
    /// Mean of the classes' recalls.
    pub balanced_accuracy: Option<f64>,
    /// Recall of each class.
    pub recall: Vec<Option<f64>>,
}

/// A model's answers for some records.
#[expect(clippy::struct_field_names, reason = "an answer is the class that was answered")]
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    pub(crate) labels: Vec<u32>,
    pub(crate) answers: Vec<u32>,
    pub(crate) groups: Vec<u32>,
    /// Probability of the last class.
    pub(crate) scores: Vec<f64>,
}

impl Answers {
    /// Gathers the answers of all ranks, in their order, on every rank.
    pub(crate) fn of_ranks(self, ranks: &dyn Collective) -> Result<Self> {
        if ranks.size() == 1 {
            return Ok(self);
        }
        let mut message = Vec::with_capacity(20 * self.labels.len());
        for i in 0..self.labels.len() {
            for number in [self.labels[i], self.answers[i], self.groups[i]] {
                message.extend(number.to_le_bytes());
            }
            message.extend(self.scores[i].to_le_bytes());
        }
        let mut all = Self::default();
        for record in ranks.gather(message)?.iter().flat_map(|part| part.as_chunks::<20>().0) {
            let [label, answer, group] =
                [0, 4, 8].map(|at| u32::from_le_bytes(std::array::from_fn(|i| record[at + i])));
            all.labels.push(label);
            all.answers.push(answer);
            all.groups.push(group);
            all.scores.push(f64::from_le_bytes(std::array::from_fn(|i| record[12 + i])));
        }
        Ok(all)
    }

    /// Counts by group, class and answer.
    pub(crate) fn counts(&self, n_groups: usize, n_classes: usize) -> Vec<f64> {
        let mut counts = vec![0.0; n_groups * n_classes * n_classes];
        for ((&label, &answer), &group) in self.labels.iter().zip(&self.answers).zip(&self.groups) {
            counts[(group as usize * n_classes + label as usize) * n_classes + answer as usize] += 1.0;
        }
        counts
    }
}

/// How many records a model was trained and tested on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordCounts {
    pub(crate) training: usize,
    pub(crate) test: usize,
    /// Whether the run has a test part.
    pub(crate) has_test: bool,
}

impl Diagnostics {
    pub(crate) fn of_numbers(
        answers: &NumberAnswers,
        records: RecordCounts,
        groups: &[Group],
        table: TableCounts,
    ) -> Self {
        let of_group = |(place, group): (u32, &Group)| (group.to_string(), answers.exact(|other| other == place));
        Self {
            training_records: records.training,
            test_records: records.test,
            measured_on: if records.has_test { "test" } else { "training" },
            accuracy: None,
            auc: None,
            balanced_accuracy: None,
            log_loss: None,
            by_group: BTreeMap::new(),
            numbers: Some(answers.exact(|_| true)),
            numbers_by_group: (0..).zip(groups).map(of_group).collect(),
            table,
            test_table: None,
            remarks: Vec::new(),
            reference: None,
        }
    }

    pub(crate) fn of(
        answers: &Answers,
        records: RecordCounts,
        groups: &[Group],
        n_classes: usize,
        table: TableCounts,
    ) -> Result<Self> {
        let counts = answers.counts(groups.len(), n_classes);
        let by_group: BTreeMap<String, GroupDiagnostics> = groups
            .iter()
            .zip(counts.chunks_exact(n_classes * n_classes))
            .map(|(group, counts)| (group.to_string(), GroupDiagnostics::of(counts, n_classes)))
            .collect();
        let mut all = vec![0.0; n_classes * n_classes];
        for counts in counts.chunks_exact(n_classes * n_classes) {
            all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
        }
        let overall = GroupDiagnostics::of(&all, n_classes);
        let both = answers.labels.contains(&0) && answers.labels.contains(&1);
        let is_binary = n_classes == 2 && both;
        let positive: Vec<bool> = answers.labels.iter().map(|&label| label == 1).collect();
        Ok(Self {
            training_records: records.training,
            test_records: records.test,
            measured_on: if records.has_test { "test" } else { "training" },
            accuracy: overall.accuracy,
            auc: if is_binary { roc_auc(&positive, &answers.scores)?.value } else { None },
            balanced_accuracy: overall.balanced_accuracy,
            log_loss: if is_binary { log_loss(&positive, &answers.scores)?.value } else { None },
            by_group,
            numbers: None,
            numbers_by_group: BTreeMap::new(),
            table,
            test_table: None,
            remarks: Vec::new(),
            reference: None,
        })
    }
}

impl GroupDiagnostics {
    fn of(counts: &[f64], n_classes: usize) -> Self {
        let n: f64 = counts.iter().sum();
        let right: f64 = (0..n_classes).map(|class| counts[class * n_classes + class]).sum();
        let recall: Vec<Option<f64>> = counts
            .chunks_exact(n_classes)
            .enumerate()
            .map(|(class, row)| {
                let n: f64 = row.iter().sum();
                (n > 0.0).then(|| row[class] / n)
            })
            .collect();
        let known: Vec<f64> = recall.iter().flatten().copied().collect();
        Self {
            records: n as usize,
            accuracy: (n > 0.0).then(|| right / n),
            balanced_accuracy: (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64),
            recall,
        }
    }
}
