//! Records from a table of metrics: what verdicts need, where nothing else was kept.
//!
//! `metrics.csv` has accuracy and loss of every final model, by part and group. Published tables of
//! these, claims and privacy costs can be judged from it as from the records. What it does not have
//! stays undefined: class means, curves, thresholds, ε and settings.

use std::collections::BTreeMap;

use anyhow::{Context, bail};

use crate::record::{
    Coordinate, DatasetRecord, ExperimentResults, GroupMetrics, GroupSize, MethodResults, MetricsRecord, ModelRecord,
    RunRecord, SessionRecord, StudyResults,
};

/// How such a table begins.
pub(super) const HEADER: &[u8] = b"experiment,method,config,seed_index,part,group,n,accuracy,loss";

/// A row.
struct MetricRow {
    experiment: String,
    method: String,
    index: usize,
    part: String,
    group: String,
    metrics: GroupMetrics,
    synthetic: bool,
    quick: bool,
}

/// The study of a table; its name is given, for the table does not hold it.
///
/// # Errors
/// Names the line.
pub(super) fn study(name: &str, csv: &[u8]) -> anyhow::Result<StudyResults> {
    let rows = rows(csv)?;
    let mut experiments: Vec<ExperimentResults> = Vec::new();
    let mut runs: BTreeMap<(&str, &str, usize), Vec<&MetricRow>> = BTreeMap::new();
    for row in &rows {
        runs.entry((&row.experiment, &row.method, row.index)).or_default().push(row);
    }
    for ((id, method, index), rows) in runs {
        if experiments.last().is_none_or(|experiment| experiment.id != id) {
            experiments.push(experiment(id, &rows));
        }
        let Some(experiment) = experiments.last_mut() else { continue };
        if experiment.methods.last().is_none_or(|last| last.method != method) {
            experiment.methods.push(without_runs(method)?);
        }
        let run = run(index, &rows, &experiment.dataset.groups)
            .with_context(|| format!("{id}: {method}, seed {}", index + 1))?;
        if let Some(method) = experiment.methods.last_mut() {
            method.runs.push(run);
        }
    }
    let session = SessionRecord {
        command: vec!["imported from a table of metrics".to_owned()],
        code_revision: "unknown".to_owned(),
        host: "unknown".to_owned(),
        threads: 0,
        n_runs: experiments.iter().flat_map(|e| &e.methods).map(|method| method.runs.len() as u64).sum(),
        wall_seconds: 0.0,
    };
    Ok(StudyResults {
        study: name.to_owned(),
        sessions: vec![session],
        private: false,
        seed: None,
        split_seed: 0,
        quick: rows.iter().any(|row| row.quick),
        synthetic: rows.iter().any(|row| row.synthetic),
        experiments,
    })
}

fn rows(csv: &[u8]) -> anyhow::Result<Vec<MetricRow>> {
    let mut rows = Vec::new();
    let mut reader = csv::Reader::from_reader(csv);
    let header = reader.headers().context("a table of metrics")?.clone();
    let column = |name: &str| header.iter().position(|column| column == name);
    let marks = [column("synthetic"), column("quick")];
    for record in reader.records() {
        let record = record.context("a table of metrics")?;
        let line = record.position().map_or(0, csv::Position::line);
        let row = row(&record, marks).with_context(|| format!("line {line}"))?;
        rows.push(row);
    }
    Ok(rows)
}

/// `marks`: where it says whether records are generated and runs shortened; tables from before that
/// do not.
fn row(record: &csv::StringRecord, marks: [Option<usize>; 2]) -> anyhow::Result<MetricRow> {
    let field = |index: usize| record.get(index).with_context(|| format!("no field {}", index + 1));
    let number = |index: usize| -> anyhow::Result<Option<f64>> {
        match field(index)? {
            "" => Ok(None),
            text => text.parse().map(Some).with_context(|| format!("`{text}` is not a number")),
        }
    };
    let count = |index: usize| -> anyhow::Result<usize> {
        field(index)?.parse().with_context(|| format!("`{}` is not a count", record.get(index).unwrap_or_default()))
    };
    let [synthetic, quick] = marks.map(|mark| match mark.map(field).transpose()? {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => bail!("`{other}` is not 0 or 1"),
    });
    Ok(MetricRow {
        synthetic: synthetic?,
        quick: quick?,
        experiment: field(0)?.to_owned(),
        method: field(1)?.to_owned(),
        index: count(3)?,
        part: field(4)?.to_owned(),
        group: field(5)?.to_owned(),
        metrics: GroupMetrics { n: count(6)?, accuracy: number(7)?, loss: number(8)? },
    })
}

/// The experiment of a run, its groups in the order of their names.
fn experiment(id: &str, rows: &[&MetricRow]) -> ExperimentResults {
    let size = |part: &str, group: &str| {
        rows.iter().find(|row| row.part == part && row.group == group).map_or(0, |row| row.metrics.n)
    };
    let mut names: Vec<&str> = rows.iter().map(|row| row.group.as_str()).filter(|group| *group != "all").collect();
    names.sort_unstable();
    names.dedup();
    let groups = names.into_iter().map(|name| GroupSize {
        name: name.to_owned(),
        n_train: size("train", name),
        n_test: size("test", name),
    });
    ExperimentResults {
        id: id.to_owned(),
        title: id.to_owned(),
        departures: Vec::new(),
        dataset: DatasetRecord {
            name: "unknown".to_owned(),
            synthetic: rows.iter().any(|row| row.synthetic),
            source:
                "imported from a table of metrics, which holds accuracy and loss of the final models and nothing else"
                    .to_owned(),
            digest: "unknown".to_owned(),
            encoding: "unknown".to_owned(),
            n_inputs: 0,
            group_attribute: "group".to_owned(),
            groups: groups.collect(),
            classes: Vec::new(),
            notes: Vec::new(),
            one_partition: false,
        },
        model: ModelRecord { name: "unknown".to_owned(), n_params: 0 },
        methods: Vec::new(),
    }
}

/// A method by its name in tables: the registry name, then its coordinates.
fn without_runs(method: &str) -> anyhow::Result<MethodResults> {
    let (base, rest) = method.split_once(' ').unwrap_or((method, ""));
    let coordinates = rest
        .split(", ")
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value) =
                part.split_once('=').with_context(|| format!("`{part}` in `{method}` is no coordinate"))?;
            let value = value.parse().with_context(|| format!("`{value}` in `{method}` is not a number"))?;
            Ok(Coordinate { name: name.to_owned(), value })
        })
        .collect::<anyhow::Result<_>>()?;
    Ok(MethodResults {
        method: method.to_owned(),
        base: base.to_owned(),
        coordinates,
        config: serde_json::Value::Null,
        privacy: None,
        runs: Vec::new(),
        failures: Vec::new(),
    })
}

fn run(index: usize, rows: &[&MetricRow], groups: &[GroupSize]) -> anyhow::Result<RunRecord> {
    let part = |part: &str| -> anyhow::Result<Option<MetricsRecord>> {
        let of =
            |group: &str| rows.iter().find(|row| row.part == part && row.group == group).map(|row| row.metrics.clone());
        let Some(overall) = of("all") else { return Ok(None) };
        let groups = groups
            .iter()
            .map(|group| of(&group.name).with_context(|| format!("no row of {} in the {part} part", group.name)))
            .collect::<anyhow::Result<_>>()?;
        let (class_recall, class_sizes, group_recalls) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Some(MetricsRecord { overall, groups, class_recall, class_sizes, group_recalls }))
    };
    let (Some(train), Some(test)) = (part("train")?, part("test")?) else {
        bail!("no row of all records in the training or the test part");
    };
    Ok(RunRecord {
        index,
        seconds: 0.0,
        n_non_finite: 0,
        n_empty_batches: 0,
        epochs: Vec::new(),
        thresholds: Vec::new(),
        group_epsilons: Vec::new(),
        test,
        validation: part("validation")?,
        train,
        analysis: None,
        search: None,
        provenance: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up as fixture;
    use crate::metrics_csv;

    #[test]
    fn metrics_come_back() {
        let study_before = fixture::study();
        let csv = metrics_csv(&study_before).unwrap();
        assert!(csv.starts_with(HEADER));
        let back = study("adult", &csv).unwrap();
        let (before, after) = (&study_before.experiments[0], &back.experiments[0]);
        assert_eq!(after.id, before.id);
        for method in &before.methods {
            let imported = after.methods.iter().find(|candidate| candidate.method == method.method).unwrap();
            assert_eq!(imported.runs.len(), method.runs.len());
            for (run, imported) in method.runs.iter().zip(&imported.runs) {
                assert_eq!((run.index, &run.test.overall), (imported.index, &imported.test.overall));
                // Groups are in the order of their names: female, male.
                assert_eq!(run.test.groups[0], imported.test.groups[1]);
            }
        }
    }

    #[test]
    fn coordinates_are_in_the_name() {
        let method = without_runs("bounded-adaptive ε=0.5, rate=1, bound=0.001").unwrap();
        assert_eq!(method.base, "bounded-adaptive");
        let values: Vec<(&str, f64)> = method.coordinates.iter().map(|c| (c.name.as_str(), c.value)).collect();
        assert_eq!(values, [("ε", 0.5), ("rate", 1.0), ("bound", 0.001)]);
        assert!(without_runs("dpsgd x").is_err());
    }

    #[test]
    fn bad_lines_are_named() {
        let header = std::str::from_utf8(HEADER).unwrap();
        let error = |line: &str| format!("{:#}", study("adult", format!("{header}\n{line}\n").as_bytes()).unwrap_err());
        assert_eq!(
            error("e,m,c,0,test,all,ten,0.5,0.1"),
            "line 2: `ten` is not a count: invalid digit found in string"
        );
        assert_eq!(error("e,m,c,0,test,all,10,x,0.1"), "line 2: `x` is not a number: invalid float literal");
        assert_eq!(
            error("e,m,c,0,test,all,10,0.5,0.1"),
            "e: m, seed 1: no row of all records in the training or the test part"
        );
    }
}
