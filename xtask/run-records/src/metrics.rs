//! One row per run, part and group: the table that is committed beside a report.

use std::cmp::Ordering;

use anyhow::Context;

use crate::database::{Database, StoredRun};
use crate::key::config_hash;
use crate::record::{ClassRecalls, EpochRecord, ExperimentResults, MetricsRecord, RunRecord, StudyResults};
use crate::table::{Column, Kind, Value};

/// The columns.
pub(super) const COLUMNS: &[Column] = &[
    ("experiment", Kind::Text),
    ("method", Kind::Text),
    ("config", Kind::Text),
    ("seed_index", Kind::Integer),
    ("part", Kind::Text),
    ("group", Kind::Text),
    ("n", Kind::Integer),
    ("accuracy", Kind::Real),
    ("loss", Kind::Real),
    // Of the rows of all records; the first also of groups that are not the classes.
    ("macro_accuracy", Kind::Real),
    ("worst_class_accuracy", Kind::Real),
    ("f1", Kind::Real),
    // Of the groups' training records: means over the batches of the last epoch.
    ("epoch_loss", Kind::Real),
    ("gradient_norm", Kind::Real),
    ("clipped_gradient_norm", Kind::Real),
    ("mean_gradient_norm", Kind::Real),
    // Of the run.
    ("synthetic", Kind::Integer),
    ("quick", Kind::Integer),
];

/// The rows of a database of runs, in an order that follows from their content.
///
/// # Errors
/// If the database cannot be read.
pub(super) fn of_database(database: &Database) -> anyhow::Result<Vec<Vec<Value>>> {
    let quick = database.source()?.quick;
    let mut experiments: Vec<ExperimentResults> = Vec::new();
    let mut rows = Vec::new();
    for StoredRun { key, record, .. } in database.runs()? {
        if experiments.iter().all(|experiment| experiment.id != key.experiment) {
            experiments.push(database.experiment(&key.experiment)?);
        }
        let run = serde_json::from_str(&record).with_context(|| format!("the record of {key}"))?;
        let experiment = experiments.iter().find(|experiment| experiment.id == key.experiment);
        rows.extend(experiment.into_iter().flat_map(|e| rows_of_run(e, &key.method, &key.config_hash, &run, quick)));
    }
    sort(&mut rows);
    Ok(rows)
}

/// The rows of a study.
pub(super) fn of_study(results: &StudyResults) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for experiment in &results.experiments {
        for method in &experiment.methods {
            let hash = config_hash(&method.config);
            let rows_of_run = |run| rows_of_run(experiment, &method.method, &hash, run, results.quick);
            rows.extend(method.runs.iter().flat_map(rows_of_run));
        }
    }
    sort(&mut rows);
    rows
}

fn sort(rows: &mut [Vec<Value>]) {
    rows.sort_by(|a, b| {
        a.iter().zip(b).map(|(a, b)| order(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
}

fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::Real(a), Value::Real(b)) => a.total_cmp(b),
        // Columns are of one kind but for what is undefined.
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        _ => Ordering::Greater,
    }
}

fn rows_of_run(
    experiment: &ExperimentResults,
    method: &str,
    hash: &str,
    run: &RunRecord,
    quick: bool,
) -> Vec<Vec<Value>> {
    // What a run says of itself counts.
    let synthetic = run.is_synthetic().unwrap_or(experiment.dataset.synthetic);
    let marks = [synthetic, run.is_quick().unwrap_or(quick)].map(|mark| Value::Integer(mark.into()));
    let parts = [("train", Some(&run.train)), ("validation", run.validation.as_ref()), ("test", Some(&run.test))];
    let mut rows = Vec::new();
    for (part, metrics) in parts {
        let Some(metrics) = metrics else { continue };
        let head = |group: &str| -> Vec<Value> {
            vec![
                Value::Text(experiment.id.clone()),
                Value::Text(method.to_owned()),
                Value::Text(hash.chars().take(12).collect()),
                count(run.index),
                Value::Text(part.to_owned()),
                Value::Text(group.to_owned()),
            ]
        };
        let mut all = head("all");
        all.extend([count(metrics.overall.n), real(metrics.overall.accuracy), real(metrics.overall.loss)]);
        all.extend(class_means(metrics));
        all.extend([const { Value::Null }; 4]);
        all.extend(marks.clone());
        rows.push(all);
        let last = run.epochs.last().filter(|_| part == "train");
        for (index, (size, group)) in experiment.dataset.groups.iter().zip(&metrics.groups).enumerate() {
            let mut row = head(&size.name);
            row.extend([count(group.n), real(group.accuracy), real(group.loss)]);
            row.push(real(metrics.group_recalls.get(index).and_then(ClassRecalls::macro_accuracy)));
            row.extend([const { Value::Null }; 2]);
            let of = |values: fn(&EpochRecord) -> &[Option<f64>]| real(last.and_then(|last| *values(last).get(index)?));
            row.extend([
                of(|epoch| &epoch.loss),
                of(|epoch| &epoch.gradient_norm),
                of(|epoch| &epoch.clipped_gradient_norm),
                of(|epoch| &epoch.mean_gradient_norm),
            ]);
            row.extend(marks.clone());
            rows.push(row);
        }
    }
    rows
}

fn class_means(metrics: &MetricsRecord) -> [Value; 3] {
    [
        real(fair_metrics::macro_accuracy(&metrics.class_recall)),
        real(fair_metrics::worst_class_accuracy(&metrics.class_recall)),
        real(metrics.f1()),
    ]
}

fn count(n: usize) -> Value {
    Value::Integer(i64::try_from(n).unwrap_or(i64::MAX))
}

fn real(value: Option<f64>) -> Value {
    value.map_or(Value::Null, Value::Real)
}
