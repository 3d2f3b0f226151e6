//! What a trained model says about records.

use dp_train::{Engine, Evaluation, Execution, Records};
use fair_metrics::{Groups, Labels, Predictions, accuracy_by_group, class_recall, mean_loss_by_group};
use run_records::{ClassRecalls, GroupMetrics, MetricsRecord};

use super::group_thresholds::decide;

/// Why a run has no model: something that the method did, and will do again with the same numbers.
/// A fault of the machine is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

/// Accuracy and loss by group, without regularisation. Losses do not know of thresholds of groups;
/// predictions follow them, where there are any.
///
/// # Errors
/// If the device fails. A loss that is not finite is no error but a [`Failure`].
pub(crate) fn evaluate(
    engine: &mut Engine,
    records: &Records,
    thresholds: Option<&[f64]>,
    execution: &Execution,
) -> anyhow::Result<Result<MetricsRecord, Failure>> {
    let Evaluation { losses, mut predictions, logits, .. } = engine.evaluate(records, execution.records_at_once())?;
    if let Some(thresholds) = thresholds {
        predictions = decide(thresholds, &logits, records.groups());
    }
    if let Some(loss) = losses.iter().find(|loss| !loss.is_finite()) {
        return Ok(Err(Failure(format!("the loss of a record is {loss} after the last step"))));
    }
    let facts = records.facts();
    let (labels, predictions) = (Labels(records.labels()), Predictions(&predictions));
    let metrics = |assignment: &[usize], n_groups| -> anyhow::Result<Vec<GroupMetrics>> {
        let groups = Groups::new(assignment, n_groups)?;
        let losses = mean_loss_by_group(&losses, &groups)?;
        let accuracies = accuracy_by_group(labels, predictions, &groups)?;
        let metrics = accuracies.iter().zip(losses).map(|(accuracy, loss)| GroupMetrics {
            n: accuracy.n,
            accuracy: accuracy.value,
            loss: loss.value,
        });
        Ok(metrics.collect())
    };
    let recalls = class_recall(labels, predictions, facts.n_classes)?;
    let classes = records.labels().iter().map(|&label| label as usize);
    let group_recalls = if classes.eq(records.groups().iter().copied()) {
        Vec::new()
    } else {
        (0..facts.n_groups).map(|group| recalls_within(group, records, predictions.0)).collect::<anyhow::Result<_>>()?
    };
    Ok(Ok(MetricsRecord {
        overall: metrics(&vec![0; records.len()], 1)?.remove(0),
        groups: metrics(records.groups(), facts.n_groups)?,
        class_recall: recalls.iter().map(|recall| recall.value).collect(),
        class_sizes: recalls.iter().map(|recall| recall.n).collect(),
        group_recalls,
    }))
}

/// The class recalls of one group's records.
fn recalls_within(group: usize, records: &Records, predictions: &[u32]) -> anyhow::Result<ClassRecalls> {
    let of_group = |all: &[u32]| -> Vec<u32> {
        all.iter().zip(records.groups()).filter(|(_, of)| **of == group).map(|(value, _)| *value).collect()
    };
    let (labels, predictions) = (of_group(records.labels()), of_group(predictions));
    let recalls = class_recall(Labels(&labels), Predictions(&predictions), records.facts().n_classes)?;
    Ok(ClassRecalls {
        recall: recalls.iter().map(|recall| recall.value).collect(),
        sizes: recalls.iter().map(|recall| recall.n).collect(),
    })
}
