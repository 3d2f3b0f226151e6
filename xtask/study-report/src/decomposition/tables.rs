//! Terms of single steps, gradients and bounds as tables.

use dp_train::analysis::{ErrorBound, GroupTerms, RiskGapBounds, StepDecomposition};
use fair_metrics::Estimate;
use fair_report::{Block, Cell, Row, Table};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults};

use super::{OfGroup, analysed, analyses, widest_pair};
use crate::estimate::mean_and_error;
use crate::label::label;

/// Terms, norms and bounds as tables; nothing unless runs were analysed.
pub(crate) fn blocks(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Vec<Block>> {
    let methods = analysed(experiment);
    if methods.is_empty() {
        return Ok(Vec::new());
    }
    let mut blocks =
        vec![Block::Table(terms(experiment, &methods, mark)?), Block::Table(norms(experiment, &methods, mark)?)];
    let steps = methods.iter().flat_map(|method| analyses(method)).flat_map(|analysis| &analysis.steps);
    if steps.flat_map(|step| step.groups.iter().flatten()).any(|group| group.error.is_some()) {
        blocks.push(Block::Table(errors(experiment, &methods, mark)?));
    }
    blocks.push(Block::Table(bounds(experiment, &methods, mark)?));
    blocks.push(Block::Paragraph(cost(&methods)));
    Ok(blocks)
}

/// Mean over the evaluated steps of each run, then over runs with its standard error.
fn over_runs(method: &MethodResults, of: &dyn Fn(&StepDecomposition) -> Option<f64>) -> anyhow::Result<Estimate> {
    let by_run: Vec<Option<f64>> = analyses(method)
        .map(|analysis| {
            let values: Vec<f64> = analysis.steps.iter().filter_map(of).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        })
        .collect();
    Ok(Estimate::over_seeds(&by_run)?)
}

/// Four significant digits, with the standard error.
fn scientific(estimate: &Estimate) -> Cell {
    Cell::plain(match (estimate.mean, estimate.standard_error) {
        (Some(mean), Some(error)) => format!("{mean:.2e} ± {error:.0e}"),
        (Some(mean), None) => format!("{mean:.2e}"),
        (None, _) => "undefined".to_owned(),
    })
}

fn by_group(
    experiment: &ExperimentResults,
    methods: &[&MethodResults],
    cells: &dyn Fn(&MethodResults, usize) -> anyhow::Result<Vec<Cell>>,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for method in methods {
        for (index, group) in experiment.dataset.groups.iter().enumerate() {
            rows.push(Row {
                header: format!("{}, {}", label(&method.method), group.name),
                cells: cells(method, index)?,
            });
        }
    }
    Ok(rows)
}

fn terms(experiment: &ExperimentResults, methods: &[&MethodResults], mark: Option<Mark>) -> anyhow::Result<Table> {
    let quantities: [(&str, OfGroup); 7] = [
        ("R^clip", |group| group.clip.mean),
        ("R^mag", |group| group.magnitude.mean),
        ("R^dir", |group| group.direction.mean),
        ("R^mag*", |group| group.magnitude_star.mean),
        ("R^dir*", |group| group.direction_star.mean),
        ("R^noise", |group| group.noise.mean),
        ("R^noise as printed", |group| group.noise_as_printed.mean),
    ];
    let rows = by_group(experiment, methods, &|method, group| {
        quantities
            .iter()
            .map(|(_, of)| Ok(scientific(&over_runs(method, &|step| Some(of(step.groups.get(group)?.as_ref()?)))?)))
            .collect()
    })?;
    let mut columns = vec!["Method, group".to_owned()];
    columns.extend(quantities.iter().map(|(name, _)| (*name).to_owned()));
    let mut notes = vec![
        "Nats per step, mean over evaluated steps, ± standard error over seeds. R^clip = R^mag + R^dir = R^mag* + R^dir*. The \
         noise that is added is divided by the batch size; the paper prints its term without."
            .to_owned(),
        "Each step is compared with one without privacy from the same point. Such differences do not add up to the excessive risk at \
         the end of training (Esipova 2023, 4): a large term of single steps need not be what makes the final models differ."
            .to_owned(),
    ];
    if methods.iter().any(|method| method.base == "fairlens") {
        let note = "What FairLens clips is the gradient of its regularised loss: what the regularisers do to a step is in R^clip.";
        notes.push(note.to_owned());
    }
    Ok(Table {
        caption: marked(
            mark,
            &format!("Excessive training loss of a step, mean over evaluated steps: {}", experiment.title),
        ),
        columns,
        rows,
        notes,
    })
}

fn norms(experiment: &ExperimentResults, methods: &[&MethodResults], mark: Option<Mark>) -> anyhow::Result<Table> {
    let columns = [
        "Method, group",
        "Per-sample norm",
        "after clipping",
        "‖g_Da‖",
        "θ (degrees)",
        "θ̄ (degrees)",
        "trace of the Hessian",
    ];
    let rows = by_group(experiment, methods, &|method, group| {
        let cell = |of: fn(&GroupTerms) -> Option<f64>, digits| {
            let estimate = over_runs(method, &|step| of(step.groups.get(group)?.as_ref()?))?;
            Ok(Cell::plain(mean_and_error(&estimate, digits)))
        };
        [
            cell(|group| group.sample_norm, 3),
            cell(|group| group.clipped_sample_norm, 4),
            cell(|group| Some(group.gradient_norm), 3),
            cell(|group| Some(group.plain_angle.mean), 1),
            cell(|group| Some(group.clipped_angle.mean), 1),
            cell(|group| Some(group.trace.mean), 1),
        ]
        .into_iter()
        .collect()
    })?;
    Ok(Table {
        caption: marked(mark, &format!("Gradients by group before and after clipping: {}", experiment.title)),
        columns: columns.iter().map(ToString::to_string).collect(),
        rows,
        notes: vec![
            "θ is the angle between the group's exact gradient and the batch's, θ̄ that with the clipped one. Mean over evaluated \
             steps, ± standard error over seeds."
                .to_owned(),
        ],
    })
}

/// Xu's two terms of a group's error, and the bound for which their sum is least.
fn errors(experiment: &ExperimentResults, methods: &[&MethodResults], mark: Option<Mark>) -> anyhow::Result<Table> {
    let rows = by_group(experiment, methods, &|method, group| {
        let cell = |of: fn(&ErrorBound) -> f64, digits| {
            let estimate = over_runs(method, &|step| step.groups.get(group)?.as_ref()?.error.as_ref().map(of))?;
            Ok(Cell::plain(mean_and_error(&estimate, digits)))
        };
        [cell(|error| error.bias.mean, 3), cell(|error| error.noise.mean, 4), cell(|error| error.best.mean, 3)]
            .into_iter()
            .collect()
    })?;
    let columns = ["Method, group", "Bias of clipping", "Noise", "Best bound"];
    Ok(Table {
        caption: marked(mark, &format!("Error of each group's mean gradient in a batch: {}", experiment.title)),
        columns: columns.map(str::to_owned).into(),
        rows,
        notes: vec![
            "The mean gradient of a group's clipped and noisy records is off by at most bias plus noise in expectation (Xu 2020, 4.2, Eq. 1, \
             there for one coordinate and Laplace noise): the mean length of what clipping takes, and σS√d over the group's expected records. \
             The best bound makes their sum least: the 1 − σ√d/b quantile of the b norms; 0 where noise outweighs them all. Mean over \
             evaluated steps, ± standard error over seeds."
                .to_owned(),
        ],
    })
}

fn bounds(experiment: &ExperimentResults, methods: &[&MethodResults], mark: Option<Mark>) -> anyhow::Result<Table> {
    let mut rows = Vec::new();
    for method in methods {
        let Some((a, b)) = widest_pair(experiment, method) else { continue };
        let mean = |of: fn(&RiskGapBounds) -> Option<f64>| {
            over_runs(method, &|step| step.risk_gap_bounds(a, b).and_then(|bounds| of(&bounds)))
        };
        let share = |holds: &dyn Fn(&StepDecomposition) -> Option<bool>| -> anyhow::Result<Cell> {
            let estimate = over_runs(method, &|step| holds(step).map(|holds| f64::from(u8::from(holds))))?;
            Ok(Cell::plain(
                estimate.mean.map_or_else(|| "not asked".to_owned(), |mean| format!("{:.0} %", 100.0 * mean)),
            ))
        };
        let groups = &experiment.dataset.groups;
        rows.push(Row {
            header: format!("{}: {} − {}", label(&method.method), groups[a].name, groups[b].name),
            cells: vec![
                scientific(&mean(|bounds| Some(bounds.clip_gap))?),
                scientific(&mean(|bounds| bounds.tran)?),
                scientific(&mean(|bounds| Some(bounds.direction_gap))?),
                scientific(&mean(|bounds| Some(bounds.proposition_3))?),
                share(&|step| step.risk_gap_bounds(a, b).map(|bounds| bounds.proposition_3 <= bounds.direction_gap))?,
                share(&StepDecomposition::rate_condition)?,
            ],
        });
    }
    let columns = [
        "Method: pair",
        "R^clip gap",
        "bound of Tran 2021",
        "R^dir gap",
        "Proposition 3",
        "steps where it is below the gap",
        "steps with η ≤ 1/λ",
    ];
    Ok(Table {
        caption: marked(mark, &format!("Differences between groups and their lower bounds: {}", experiment.title)),
        columns: columns.iter().map(ToString::to_string).collect(),
        rows,
        notes: vec![
            "The pair whose error of direction differs most. The bounds assume a convex loss and η ≤ 1/λ, with λ the largest \
             eigenvalue of any group's Hessian, here over a sample of each group's records."
                .to_owned(),
            "Tran's bound is for two groups that hold all records, and is derived anew from the inequality that it is said to use, \
             ⟨x, y⟩ ≥ −‖x‖‖y‖: Esipova 2023 draws it without a formula."
                .to_owned(),
        ],
    })
}

fn cost(methods: &[&MethodResults]) -> String {
    let runs = || methods.iter().flat_map(|method| &method.runs);
    let evaluating: f64 = runs().filter_map(|run| run.analysis.as_ref()).map(|analysis| analysis.seconds).sum();
    let whole: f64 = runs().map(|run| run.seconds).sum();
    let steps: usize = runs().filter_map(|run| run.analysis.as_ref()).map(|analysis| analysis.steps.len()).sum();
    let every = runs().find_map(|run| run.analysis.as_ref()).map_or(0, |analysis| analysis.every);
    format!(
        "{steps} steps were taken apart, every {every}th of each run: {evaluating:.1} s of evaluations beside {:.1} s of everything \
         else in these runs, one thread for each run.",
        whole - evaluating
    )
}
