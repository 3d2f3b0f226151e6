//! Who pays for privacy, how much, and whether the seeds can tell.

use fair_metrics::{EqualCostAnswer, Estimate, compare, macro_accuracy, worst_class_accuracy};
use fair_report::number;
use fair_report::{Block, Cell, Row, Table, Tone};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, GroupMetrics, LEAST_OF_A_CLASS, MethodResults, RunRecord};
use serde::Serialize;

use super::decomposition;
use super::estimate::mean_and_error;
use super::label::label;
use super::metric::{Column, REFERENCE, excessive_risks, paired, privacy_costs, reference_run, widest_gap};
use super::statistics::{FairnessStatement, PairedRuns, SIGNIFICANCE, XU_TOLERANCE};

/// The method that others are tested against.
const BASELINE: &str = "dpsgd";

/// The fairness part of one experiment.
pub(crate) fn blocks(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Vec<Block>> {
    let mut blocks = vec![Block::Table(performance(experiment, mark)?)];
    let has_reference = experiment.methods.iter().any(|method| method.method == REFERENCE);
    let has_private = experiment.methods.iter().any(|method| method.method != REFERENCE);
    if has_reference && has_private {
        blocks.push(Block::Table(costs(experiment, mark)?));
        blocks.push(Block::List(in_words(experiment, mark)?));
        if let Some(table) = signed_rank(experiment, mark)? {
            blocks.push(Block::Table(table));
        }
    } else {
        blocks.push(Block::Paragraph(format!(
            "Privacy cost and excessive risk need the reference {REFERENCE} and a private method; one of them was not run."
        )));
    }
    Ok(blocks)
}

/// Accuracy of all records, by group, and the class means.
fn performance(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Table> {
    let groups = &experiment.dataset.groups;
    let mut columns = vec!["Method".to_owned(), "Accuracy (%)".to_owned()];
    columns.extend(groups.iter().map(|group| format!("Accuracy, {} (%)", group.name)));
    columns.extend(["Macro accuracy (%)", "Worst-class accuracy (%)"].map(str::to_owned));
    let mut runs = experiment.methods.iter().flat_map(|method| &method.runs);
    let groups_have_recalls = runs.any(|run| !run.test.group_recalls.is_empty());
    if groups_have_recalls {
        columns.push("Worst-group macro accuracy (%)".to_owned());
    }
    let rows = experiment
        .methods
        .iter()
        .map(|method| {
            let percent = |value: &dyn Fn(&RunRecord) -> Option<f64>| {
                let values: Vec<Option<f64>> = method.runs.iter().map(|run| value(run).map(|v| 100.0 * v)).collect();
                Ok::<Cell, anyhow::Error>(Cell::plain(mean_and_error(&Estimate::over_seeds(&values)?, 2)))
            };
            let mut cells = vec![percent(&|run| run.test.overall.accuracy)?];
            for index in 0..groups.len() {
                cells.push(percent(&|run| run.test.groups.get(index)?.accuracy)?);
            }
            cells.push(percent(&|run| macro_accuracy(&run.test.class_recall))?);
            cells.push(percent(&|run| worst_class_accuracy(&run.test.class_recall))?);
            if groups_have_recalls {
                cells.push(percent(&|run| run.test.worst_group_macro_accuracy())?);
            }
            Ok(Row { header: label(&method.method), cells })
        })
        .collect::<anyhow::Result<Vec<Row>>>()?;
    let mut notes =
        vec!["Macro accuracy is the mean of the class recalls; worst-class accuracy is the least of them.".to_owned()];
    if groups_have_recalls {
        notes.push(format!(
            "Worst-group macro accuracy is the least macro accuracy of a group; groups with fewer than {LEAST_OF_A_CLASS} records of a \
             class are left out."
        ));
    }
    Ok(Table {
        caption: marked(mark, &format!("Accuracy on the test records: {}", experiment.title)),
        columns,
        rows,
        notes,
    })
}

/// Privacy cost and excessive risk by group, gaps, the equal-cost test, and who pays.
fn costs(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Table> {
    let groups = &experiment.dataset.groups;
    let mut columns = vec!["Method".to_owned()];
    columns.extend(groups.iter().map(|group| format!("Privacy cost, {} (%)", group.name)));
    columns.push("Privacy cost gap (%)".to_owned());
    columns.push(format!("Equal cost at τ = {XU_TOLERANCE}"));
    columns.extend(groups.iter().map(|group| format!("Excessive risk, {}", group.name)));
    columns.push("Excessive risk gap".to_owned());
    columns.push("Who pays".to_owned());
    let rows = experiment
        .methods
        .iter()
        .filter(|method| method.method != REFERENCE)
        .map(|method| cost_row(experiment, method))
        .collect::<anyhow::Result<Vec<Row>>>()?;
    Ok(Table {
        caption: marked(mark, &format!("Who pays for privacy: {}", experiment.title)),
        columns,
        rows,
        notes: vec![
            format!(
                "Privacy cost: accuracy without privacy minus accuracy with it. Excessive risk: loss with privacy minus loss \
                 without. Both on the test records, each private run against the {REFERENCE} run with the same data split \
                 and initial weights."
            ),
            "Gap: absolute difference of the two groups' means, for more than two groups the widest pair's.".to_owned(),
            format!(
                "Equal cost holds or fails if the seeds show it (t-tests at {} %, fails corrected for the number of pairs); else it is not decidable.",
                100.0 * SIGNIFICANCE
            ),
            format!(
                "Who pays: the group with the highest privacy cost if the widest gap is significant (two-sided t-test at {} %, corrected for the \
                 number of pairs) and its cost is (one-sided, Holm over the groups).",
                100.0 * SIGNIFICANCE
            ),
        ],
    })
}

/// What one private method costs the groups, as data.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MethodStatement {
    experiment: String,
    method: String,
    /// `QUICK`, `SYNTHETIC` or both: the statement is then about no paper and no person.
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<&'static str>,
    statement: FairnessStatement,
}

/// The fairness statements of an experiment with a reference, one for each private method.
///
/// # Errors
/// If runs differ in their groups.
pub(crate) fn statements(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Vec<MethodStatement>> {
    if experiment.methods.iter().all(|method| method.method != REFERENCE) {
        return Ok(Vec::new());
    }
    let private = experiment.methods.iter().filter(|method| method.method != REFERENCE);
    private
        .map(|method| {
            Ok(MethodStatement {
                experiment: experiment.id.clone(),
                method: method.method.clone(),
                mark: mark.map(Mark::label),
                statement: statement(experiment, method)?,
            })
        })
        .collect()
}

/// The statement of every private method, one sentence list each.
pub(super) fn in_words(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Vec<String>> {
    experiment
        .methods
        .iter()
        .filter(|method| method.method != REFERENCE)
        .map(|method| Ok(marked(mark, &format!("{}. {}", label(&method.method), statement(experiment, method)?))))
        .collect()
}

/// What a method costs, in short.
pub(super) struct Cost {
    /// The widest gap between the mean privacy costs of two groups, as a fraction.
    pub(super) gap: Option<f64>,
    /// Who pays.
    pub(super) payer: String,
}

/// The widest gap of a private method's costs, and who pays.
pub(super) fn cost_of(experiment: &ExperimentResults, method: &MethodResults) -> anyhow::Result<Cost> {
    let gap = widest_gap(&privacy_costs(experiment, method))?.mean;
    Ok(Cost { gap, payer: statement(experiment, method)?.payer.to_string() })
}

fn cost_row(experiment: &ExperimentResults, method: &MethodResults) -> anyhow::Result<Row> {
    let statement = statement(experiment, method)?;
    let costs = privacy_costs(experiment, method);
    let risks = excessive_risks(experiment, method);
    let n_groups = experiment.dataset.groups.len();
    let mut cells = by_group(&costs, n_groups, 100.0, 2)?;
    cells.push(Cell::plain(mean_and_error(&scaled(widest_gap(&costs)?, 100.0), 2)));
    cells.push(match statement.equal_cost.answer {
        EqualCostAnswer::Holds => Cell::toned("holds", Tone::Good),
        EqualCostAnswer::Fails => Cell::toned("fails", Tone::Bad),
        EqualCostAnswer::NotDecidable => Cell::toned("not decidable", Tone::Middling),
        EqualCostAnswer::Undefined => Cell::plain("undefined"),
    });
    cells.extend(by_group(&risks, n_groups, 1.0, 3)?);
    cells.push(Cell::plain(mean_and_error(&widest_gap(&risks)?, 3)));
    cells.push(Cell::prose(statement.payer.to_string()));
    Ok(Row { header: label(&method.method), cells })
}

/// The fairness statement of one private method, from the runs that have a reference run.
fn statement(experiment: &ExperimentResults, method: &MethodResults) -> anyhow::Result<FairnessStatement> {
    let names: Vec<String> = experiment.dataset.groups.iter().map(|group| group.name.clone()).collect();
    let pairs: Vec<(&RunRecord, &RunRecord)> =
        method.runs.iter().filter_map(|run| Some((reference_run(experiment, run.index)?, run))).collect();
    let reference: Vec<&RunRecord> = pairs.iter().map(|(reference, _)| *reference).collect();
    let private: Vec<&RunRecord> = pairs.iter().map(|(_, private)| *private).collect();
    let statement = FairnessStatement::new(&PairedRuns {
        group_names: &names,
        reference_accuracy: &test_metric(&reference, |metrics| metrics.accuracy),
        private_accuracy: &test_metric(&private, |metrics| metrics.accuracy),
        reference_loss: &test_metric(&reference, |metrics| metrics.loss),
        private_loss: &test_metric(&private, |metrics| metrics.loss),
    })?;
    Ok(statement.explained_by(&decomposition::risk_terms(experiment, method))?)
}

/// One metric of the test records, `[runs][groups]`.
fn test_metric(runs: &[&RunRecord], of: fn(&GroupMetrics) -> Option<f64>) -> Vec<Vec<Option<f64>>> {
    runs.iter().map(|run| run.test.groups.iter().map(of).collect()).collect()
}

fn by_group(by_seed: &[Vec<Option<f64>>], n_groups: usize, scale: f64, decimals: usize) -> anyhow::Result<Vec<Cell>> {
    group_estimates(by_seed, n_groups)?
        .into_iter()
        .map(|estimate| Ok(Cell::plain(mean_and_error(&scaled(estimate, scale), decimals))))
        .collect()
}

fn group_estimates(by_seed: &[Vec<Option<f64>>], n_groups: usize) -> anyhow::Result<Vec<Estimate>> {
    (0..n_groups)
        .map(|group| {
            let values: Vec<Option<f64>> = by_seed.iter().map(|groups| groups[group]).collect();
            Ok(Estimate::over_seeds(&values)?)
        })
        .collect()
}

fn scaled(estimate: Estimate, factor: f64) -> Estimate {
    Estimate {
        mean: estimate.mean.map(|mean| mean * factor),
        standard_error: estimate.standard_error.map(|error| error * factor),
        ..estimate
    }
}

/// One-sided tests of each method against the baseline over common seeds; `None` if there is
/// nothing to test.
fn signed_rank(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Option<Table>> {
    let Some(baseline) = experiment.methods.iter().find(|method| method.method == BASELINE) else { return Ok(None) };
    let mut rows = Vec::new();
    for method in &experiment.methods {
        if method.method == BASELINE || method.method == REFERENCE {
            continue;
        }
        let cells = QUANTITIES
            .iter()
            .map(|quantity| test_cell(experiment, method, baseline, quantity))
            .collect::<anyhow::Result<Vec<Cell>>>()?;
        rows.push(Row { header: label(&method.method), cells });
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let columns = std::iter::once("Method").chain(QUANTITIES.iter().map(|quantity| quantity.title));
    Ok(Some(Table {
        caption: marked(mark, &format!("One-sided signed-rank tests against {BASELINE}: {}", experiment.title)),
        columns: columns.map(str::to_owned).collect(),
        rows,
        notes: vec![
            "Wilcoxon signed-rank tests over seeds, exact, ties included; not corrected for the number of tests. A gap is that of the means, and \
             the choice of its sign is paid for. In brackets: the least p-value that so many seeds can give."
                .to_owned(),
        ],
    }))
}

/// What methods are tested by.
struct Quantity {
    title: &'static str,
    metric: &'static str,
    group: &'static str,
    /// Whether the method's is claimed to be the smaller one.
    smaller: bool,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity { title: "Smaller privacy cost gap", metric: "privacy_cost_gap", group: "gap", smaller: true },
    Quantity { title: "Smaller excessive risk gap", metric: "excessive_risk_gap", group: "gap", smaller: true },
    Quantity { title: "Higher accuracy", metric: "accuracy", group: "total", smaller: false },
    Quantity { title: "Lower loss", metric: "loss", group: "total", smaller: true },
];

/// The test of one quantity in the common runs of two methods.
fn test_cell(
    experiment: &ExperimentResults,
    method: &MethodResults,
    baseline: &MethodResults,
    quantity: &Quantity,
) -> anyhow::Result<Cell> {
    let column = Column::parse(quantity.metric, quantity.group)?;
    if quantity.group == "gap" && experiment.dataset.groups.len() < 2 {
        return Ok(Cell::plain("undefined (one group)"));
    }
    let Some((ours, theirs)) = paired((&column, experiment, method), (&column, experiment, baseline))? else {
        return Ok(Cell::plain("undefined (no common seed)"));
    };
    let compared = compare(&ours, &theirs)?;
    let (p, least) = if quantity.smaller {
        (compared.p_smaller, compared.least_p_smaller)
    } else {
        (compared.p_larger, compared.least_p_larger)
    };
    let text = format!("p = {} [{}]", number::p_value(p), number::p_value(least));
    Ok(if p <= SIGNIFICANCE { Cell::toned(format!("{text} ✓"), Tone::Good) } else { Cell::plain(text) })
}
