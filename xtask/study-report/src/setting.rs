//! What was run: data, model, departures from the paper, and the health of the runs.

use std::collections::BTreeSet;

use fair_report::number;
use fair_report::{Block, Cell, Row, Table};
use run_records::mark::{Mark, marked};
use run_records::shell;
use run_records::{ExperimentResults, RunRecord, StudyResults};

use super::label::label;

/// The commands and the machines.
pub(crate) fn study(results: &StudyResults) -> Vec<Block> {
    let seed = results.seed.map_or_else(
        || {
            format!(
                "none given: batches and noise came from the operating system and cannot be replayed; partitions and initial \
                 parameters follow from the public seed {}",
                results.split_seed
            )
        },
        |seed| format!("{seed}; whoever knows it can take the noise off: these runs are not private"),
    );
    let mut facts = vec![format!("Seed: {seed}")];
    for session in &results.sessions {
        facts.push(format!(
            "{}: {} runs in {:.1} s on {} threads; code revision {}; {}",
            shell::line(&session.command),
            number::count(session.n_runs),
            session.wall_seconds,
            session.threads,
            session.code_revision,
            session.host
        ));
    }
    facts.push(arithmetic(results));
    vec![Block::List(facts)]
}

/// The versions of the arithmetic that the runs were trained under. Under the first, one record
/// could move a sum by more than its bound.
fn arithmetic(results: &StudyResults) -> String {
    let methods = results.experiments.iter().flat_map(|experiment| &experiment.methods);
    let versions: BTreeSet<u32> = methods.flat_map(|method| &method.runs).map(RunRecord::numerics).collect();
    let names: Vec<String> = versions.iter().map(u32::to_string).collect();
    let remark = if versions.contains(&1) {
        ". Version 1 took sums whose sensitivity was not proven in floating point: figures stand, ε holds for exact arithmetic \
         (docs/benchmarks/sensitivity.md)"
    } else {
        ""
    };
    format!("Version of the arithmetic: {}{remark}", names.join(", "))
}

/// Data, model and departures of one experiment.
pub(crate) fn experiment(experiment: &ExperimentResults, mark: Option<Mark>) -> Vec<Block> {
    let dataset = &experiment.dataset;
    let generated = if dataset.synthetic { " (SYNTHETIC)" } else { "" };
    let mut facts = vec![
        format!("Data: {}{generated}, {}", dataset.name, dataset.source),
        format!("Digest (sha256): {}", dataset.digest),
        format!("Encoding: {}, {} inputs; classes: {}", dataset.encoding, dataset.n_inputs, dataset.classes.join(", ")),
        format!("Model: {}, {} parameters", experiment.model.name, number::count(experiment.model.n_params as u64)),
    ];
    facts.extend(dataset.notes.iter().cloned());
    let mut blocks = vec![Block::List(facts)];
    if !experiment.departures.is_empty() {
        blocks.push(Block::Paragraph("Departures from the paper:".to_owned()));
        blocks.push(Block::List(experiment.departures.clone()));
    }
    let groups = dataset
        .groups
        .iter()
        .map(|group| Row {
            header: group.name.clone(),
            cells: vec![
                Cell::plain(number::count(group.n_train as u64)),
                Cell::plain(number::count(group.n_test as u64)),
            ],
        })
        .collect();
    blocks.push(Block::Table(Table {
        caption: marked(mark, &format!("Records by {} (first seed; not for release)", dataset.group_attribute)),
        columns: vec!["Group".to_owned(), "Training".to_owned(), "Test".to_owned()],
        rows: groups,
        notes: Vec::new(),
    }));
    blocks.push(Block::Table(runs(experiment, mark)));
    let failures: Vec<String> = experiment
        .methods
        .iter()
        .flat_map(|method| method.failures.iter().map(move |failure| (method, failure)))
        .map(|(method, failure)| format!("{}, seed {}: {}", label(&method.method), failure.index + 1, failure.reason))
        .collect();
    if !failures.is_empty() {
        blocks.push(Block::Paragraph(
            "Failed runs. They left no model and are in no mean; their method gets no verdict. A run is not repeated because it failed."
                .to_owned(),
        ));
        blocks.push(Block::List(failures));
    }
    blocks
}

fn runs(experiment: &ExperimentResults, mark: Option<Mark>) -> Table {
    let rows = experiment
        .methods
        .iter()
        .map(|method| {
            let n = method.runs.len();
            let seconds: f64 = method.runs.iter().map(|run| run.seconds).sum();
            let epochs = method.runs.iter().map(|run| run.epochs.last().map_or(0, |last| last.epoch));
            let epochs = match (epochs.clone().min(), epochs.max()) {
                (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
                (Some(least), _) => least.to_string(),
                _ => "–".to_owned(),
            };
            let mean = if n == 0 { "–".to_owned() } else { format!("{:.2}", seconds / n as f64) };
            let non_finite: u64 = method.runs.iter().map(|run| run.n_non_finite).sum();
            let empty: u64 = method.runs.iter().map(|run| run.n_empty_batches).sum();
            Row {
                header: label(&method.method),
                cells: vec![
                    Cell::plain(number::count(n as u64)),
                    Cell::plain(number::count(method.failures.len() as u64)),
                    Cell::plain(epochs),
                    Cell::plain(mean),
                    Cell::plain(number::count(non_finite)),
                    Cell::plain(number::count(empty)),
                ],
            }
        })
        .collect();
    Table {
        caption: marked(mark, &format!("Runs: {}", experiment.title)),
        columns: ["Method", "Seeds", "Failed", "Epochs", "Seconds a run", "Non-finite gradients", "Empty batches"]
            .map(str::to_owned)
            .into(),
        rows,
        notes: vec![
            "Diagnostics, not for release. A record whose gradient is not finite contributes zero; an empty batch is a step of noise alone."
                .to_owned(),
        ],
    }
}
