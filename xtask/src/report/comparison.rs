//! Published tables with our figures beside them.

use fair_metrics::Estimate;

use super::document::{Block, Cell, Mark, Row, Section, Table, Tone, marked};
use super::metric::Column;
use super::number;
use super::presentation::TablePresentation;
use super::published::{Printed, PublishedCell};
use super::verdict::{
    Agreement, Comparison, MAX_RELATIVE, MAX_STANDARD_ERRORS, Verdict, absolute_tolerance, compare, judge,
};
use crate::results::{ExperimentResults, MethodResults};

/// A published table answered by an experiment.
pub(crate) struct Answer<'a> {
    pub(crate) presentation: &'a TablePresentation,
    pub(crate) rows: Vec<AnswerRow<'a>>,
    columns: Vec<&'a Column>,
}

/// One method of a published table.
pub(crate) struct AnswerRow<'a> {
    pub(crate) method: &'a str,
    pub(crate) verdict: Verdict,
    cells: Vec<Option<AnswerCell<'a>>>,
}

struct AnswerCell<'a> {
    published: &'a PublishedCell,
    ours: Option<Estimate>,
    comparison: Option<Comparison>,
}

impl<'a> Answer<'a> {
    /// Computes our figures, their differences and the verdicts (none under a mark).
    pub(crate) fn new(
        presentation: &'a TablePresentation,
        experiment: &ExperimentResults,
        mark: Option<Mark>,
    ) -> anyhow::Result<Self> {
        let table = &presentation.published;
        let columns = table.columns();
        // Every figure once, so that a failure (an unknown group) surfaces here and not inside the verdict.
        let mut figures: Vec<(&str, &Column, Estimate)> = Vec::new();
        for cell in &table.cells {
            if let Some(method) = find(experiment, &cell.method) {
                figures.push((&cell.method, &cell.column, cell.column.estimate(experiment, method)?));
            }
        }
        let ours = |method: &str, column: &Column| {
            figures.iter().find(|(m, c, _)| *m == method && *c == column).map(|(_, _, estimate)| *estimate)
        };
        let rows = table
            .methods()
            .into_iter()
            .map(|method| {
                let cells = columns
                    .iter()
                    .map(|column| {
                        let published = table.cell(method, column)?;
                        let ours = ours(method, column);
                        let comparison = ours.filter(|_| mark.is_none()).and_then(|ours| compare(&ours, published));
                        Some(AnswerCell { published, ours, comparison })
                    })
                    .collect();
                let has_failed = find(experiment, method).is_some_and(|method| !method.failures.is_empty());
                let verdict = match mark {
                    Some(mark) => Verdict::None(mark.label()),
                    None if has_failed => Verdict::None("a run failed"),
                    None => judge(table, method, &ours),
                };
                AnswerRow { method, verdict, cells }
            })
            .collect();
        Ok(Self { presentation, rows, columns })
    }

    /// The verdicts of this table: method, verdict, figures that agree, cause.
    pub(crate) fn summary(&self, mark: Option<Mark>) -> Table {
        let rows = self
            .rows
            .iter()
            .map(|row| {
                let cells: Vec<&AnswerCell<'_>> = row.cells.iter().flatten().collect();
                let n_agreeing = cells.iter().filter(|cell| agrees(cell)).count();
                let agreeing = match row.verdict {
                    Verdict::None(_) => "–".to_owned(),
                    _ => format!("{n_agreeing} of {}", cells.len()),
                };
                let cause = match row.verdict {
                    Verdict::Differs | Verdict::SameOrdering => self.presentation.cause(row.method),
                    Verdict::Agrees | Verdict::None(_) => "",
                };
                let verdict = Cell::toned(row.verdict.to_string(), verdict_tone(&row.verdict));
                Row { header: row.method.to_owned(), cells: vec![verdict, Cell::plain(agreeing), Cell::prose(cause)] }
            })
            .collect();
        let published = &self.presentation.published;
        Table {
            caption: marked(mark, &format!("Verdicts: {} ({})", published.citation, published.data)),
            columns: ["Method", "Verdict", "Figures that agree", "Suspected cause"].map(str::to_owned).into(),
            rows,
            notes: Vec::new(),
        }
    }

    /// The table itself, split where it would be too wide to read.
    pub(crate) fn section(&self, mark: Option<Mark>) -> Section {
        let published = &self.presentation.published;
        let blocks = split(&self.columns)
            .into_iter()
            .map(|range| {
                let columns = &self.columns[range.clone()];
                let parts = if columns.len() == self.columns.len() { "" } else { part_name(columns) };
                Block::Table(Table {
                    caption: marked(mark, &format!("{} ({}){parts}", published.citation, published.data)),
                    columns: std::iter::once("Method".to_owned())
                        .chain(columns.iter().map(ToString::to_string))
                        .chain(std::iter::once("Verdict on the row".to_owned()))
                        .collect(),
                    rows: self.rows.iter().map(|row| table_row(row, &row.cells[range.clone()], mark)).collect(),
                    notes: self.notes(mark),
                })
            })
            .collect();
        let title = format!("{} ({})", published.citation, published.data);
        Section { id: self.presentation.id.clone(), title, level: 2, blocks }
    }

    fn notes(&self, mark: Option<Mark>) -> Vec<String> {
        let mut notes = vec!["Each cell: ours, then the paper's, as mean ± standard error over seeds.".to_owned()];
        if mark.is_none() {
            notes.push(
                format!(
                    "Third line: the difference in combined standard errors (SE); ✓ within {MAX_STANDARD_ERRORS} SE plus the \
                     paper's rounding, ≈ within the stated tolerance, ✗ outside both."
                ),
            );
        }
        if self.presentation.published.cells.iter().any(|cell| cell.standard_error.is_none()) {
            notes.push("The paper prints no standard errors: differences are in ours alone.".to_owned());
        }
        notes
    }
}

/// The definition of the verdicts, as the report states it.
pub(crate) fn verdict_definition() -> Vec<String> {
    use super::metric::Metric;
    vec![
        format!(
            "A figure agrees if its difference from the paper's is at most {MAX_STANDARD_ERRORS} combined standard errors, \
             √(ours² + theirs²), plus half a unit of the paper's last printed digit (✓), or at most {} percentage points \
             for shares of records or {} for losses and gradient norms, and in any case at most {} % of the paper's figure (≈). A standard error printed as zero counts as half \
             a unit of its last digit; where the paper prints none, ours stands alone.",
            100.0 * absolute_tolerance(Metric::Accuracy),
            absolute_tolerance(Metric::Loss),
            100.0 * MAX_RELATIVE,
        ),
        "agrees: every figure of the row agrees.".to_owned(),
        format!(
            "same ordering: not every figure agrees, but in every column our means rank the method against every other \
             method as the paper does, wherever the paper's two figures are further apart than their rounding plus \
             {MAX_STANDARD_ERRORS} combined standard errors (the paper's, or ours where it prints none)."
        ),
        "differs: neither. The suspected cause is given, or that it is not known.".to_owned(),
        "No verdict: the method was not run, a run of it failed, a figure is undefined, there are fewer than two seeds, or the run is \
         SYNTHETIC or QUICK."
            .to_owned(),
    ]
}

fn find<'a>(experiment: &'a ExperimentResults, method: &str) -> Option<&'a MethodResults> {
    experiment.methods.iter().find(|candidate| candidate.method == method)
}

fn agrees(cell: &AnswerCell<'_>) -> bool {
    cell.comparison.is_some_and(|comparison| comparison.agreement != Agreement::Outside)
}

fn verdict_tone(verdict: &Verdict) -> Tone {
    match verdict {
        Verdict::Agrees => Tone::Good,
        Verdict::SameOrdering => Tone::Middling,
        Verdict::Differs => Tone::Bad,
        Verdict::None(_) => Tone::Plain,
    }
}

fn table_row(row: &AnswerRow<'_>, cells: &[Option<AnswerCell<'_>>], mark: Option<Mark>) -> Row {
    let verdict = Cell::toned(row.verdict.to_string(), verdict_tone(&row.verdict));
    Row {
        header: row.method.to_owned(),
        cells: cells.iter().map(|cell| figure_cell(cell.as_ref(), mark)).chain(std::iter::once(verdict)).collect(),
    }
}

fn figure_cell(cell: Option<&AnswerCell<'_>>, mark: Option<Mark>) -> Cell {
    let Some(cell) = cell else { return Cell::plain("–") };
    let printed = cell.published.value;
    let paper = match cell.published.standard_error {
        Some(error) => {
            format!("paper {} ± {:.*}", number::fixed(printed.value, printed.decimals), error.decimals, error.value)
        }
        None => format!("paper {}", number::fixed(printed.value, printed.decimals)),
    };
    let Some(ours) = cell.ours else {
        return Cell::lines(vec!["not run".to_owned(), paper], Tone::Plain);
    };
    let decimals = our_decimals(printed);
    let mut lines = vec![number::estimate(&ours, decimals), paper];
    let mut tone = Tone::Plain;
    if let Some(comparison) = cell.comparison {
        let (symbol, agreement_tone) = match comparison.agreement {
            Agreement::WithinErrors => ("✓", Tone::Good),
            Agreement::WithinTolerance => ("≈", Tone::Middling),
            Agreement::Outside => ("✗", Tone::Bad),
        };
        tone = agreement_tone;
        lines.push(match comparison.standard_errors {
            Some(errors) => format!("{} SE {symbol}", number::signed(errors, 1)),
            None => format!("{} {symbol}", number::signed(comparison.difference, decimals)),
        });
    } else if mark.is_none() {
        lines.push("not comparable".to_owned());
    }
    Cell::lines(lines, tone)
}

/// One digit more than the paper prints, unless it prints three or more.
fn our_decimals(printed: Printed) -> usize {
    if printed.decimals < 3 { printed.decimals + 1 } else { printed.decimals }
}

/// Ranges of columns: shares of records and the rest apart when there are more than six columns.
fn split(columns: &[&Column]) -> Vec<std::ops::Range<usize>> {
    let boundary = columns.iter().position(|column| !column.metric.is_rate()).unwrap_or(columns.len());
    let sorted = columns[boundary..].iter().all(|column| !column.metric.is_rate());
    if columns.len() > 6 && sorted && boundary > 0 && boundary < columns.len() {
        vec![0..boundary, boundary..columns.len()]
    } else {
        std::iter::once(0..columns.len()).collect()
    }
}

fn part_name(columns: &[&Column]) -> &'static str {
    if columns.first().is_some_and(|column| column.metric.is_rate()) { ", accuracy" } else { ", loss" }
}
