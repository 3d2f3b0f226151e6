//! Published tables with our figures beside them.

use fair_metrics::{Compared, Estimate};
use fair_report::number;
use fair_report::{Block, Cell, Row, Section, Table, Tone};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults};

use super::estimate::mean_and_error;
use super::label::label;
use super::metric::{Column, paired};
use super::presentation::TablePresentation;
use super::published::{Printed, PublishedCell, PublishedTable};
use super::statistics::SIGNIFICANCE;
use super::verdict::{Agreement, Comparison, MAX_RELATIVE, Ours, Verdict, absolute_tolerance, compare, judge};

/// A published table answered by an experiment.
pub struct Answer<'a> {
    /// The table.
    pub presentation: &'a TablePresentation,
    /// Its methods in order.
    pub rows: Vec<AnswerRow<'a>>,
    columns: Vec<&'a Column>,
}

/// One method of a published table.
pub struct AnswerRow<'a> {
    /// Registry name of the method.
    pub method: &'a str,
    /// Whether its figures agree.
    pub verdict: Verdict,
    cells: Vec<Option<AnswerCell<'a>>>,
}

struct AnswerCell<'a> {
    published: &'a PublishedCell,
    ours: Option<Estimate>,
    comparison: Option<Comparison>,
}

impl<'a> Answer<'a> {
    /// Computes our figures, their differences and the verdicts (none under a mark).
    ///
    /// # Errors
    /// If the experiment has no such group.
    pub fn new(
        presentation: &'a TablePresentation,
        experiment: &ExperimentResults,
        mark: Option<Mark>,
    ) -> anyhow::Result<Self> {
        let table = &presentation.published;
        let columns = table.columns();
        let ours = Figures::new(table, experiment)?;
        let cell = |method: &str, column: &Column| -> anyhow::Result<Option<AnswerCell<'a>>> {
            let Some(published) = table.cell(method, column) else { return Ok(None) };
            let ours = ours.figure(method, column);
            let comparison = match ours.filter(|_| mark.is_none()) {
                Some(ours) => compare(table, published, &ours)?,
                None => None,
            };
            Ok(Some(AnswerCell { published, ours, comparison }))
        };
        let rows = table
            .methods()
            .into_iter()
            .map(|method| {
                let cells = columns.iter().map(|column| cell(method, column)).collect::<anyhow::Result<_>>()?;
                let has_failed = find(experiment, method).is_some_and(|method| !method.failures.is_empty());
                let verdict = match mark {
                    Some(mark) => Verdict::None(mark.label()),
                    None if has_failed => Verdict::None("a run failed"),
                    None => judge(table, method, &ours)?,
                };
                Ok(AnswerRow { method, verdict, cells })
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { presentation, rows, columns })
    }

    /// Figures that agree, and all.
    pub fn figures_that_agree(&self) -> (usize, usize) {
        let cells: Vec<&AnswerCell<'_>> = self.rows.iter().flat_map(|row| row.cells.iter().flatten()).collect();
        (cells.iter().filter(|cell| agrees(cell)).count(), cells.len())
    }

    /// The verdicts of this table: method, verdict, figures that agree, cause.
    pub fn summary(&self, mark: Option<Mark>) -> Table {
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
                    Verdict::Differs | Verdict::SameOrdering(_) => self.presentation.cause(row.method),
                    Verdict::Agrees | Verdict::TooWide | Verdict::None(_) => "",
                };
                let verdict = Cell::toned(row.verdict.to_string(), verdict_tone(&row.verdict));
                Row { header: label(row.method), cells: vec![verdict, Cell::plain(agreeing), Cell::prose(cause)] }
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
    pub fn section(&self, mark: Option<Mark>) -> Section {
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
        Section::new(self.presentation.id.clone(), title, blocks)
    }

    fn notes(&self, mark: Option<Mark>) -> Vec<String> {
        let mut notes = vec!["Each cell: ours, then the paper's, as mean ± standard error over seeds.".to_owned()];
        if mark.is_none() {
            notes.push(
                "Third line: the difference in combined standard errors (SE); ✓ within the interval that the row's figures share, ≈ within the \
                 stated tolerance, ? within an interval too wide to tell, ✗ outside."
                    .to_owned(),
            );
        }
        let without_error = |cell: &PublishedCell| cell.standard_error.is_none();
        let cells = &self.presentation.published.cells;
        if cells.iter().all(without_error) {
            notes.push(
                "The paper prints no standard errors: its figures are taken for those of one run more, which varies as ours do.".to_owned(),
            );
        } else if cells.iter().any(without_error) {
            notes.push(
                "Where the paper prints no standard error, its figure is taken for that of one run more, which varies as ours do.".to_owned(),
            );
        }
        notes.extend(self.presentation.notes.iter().cloned());
        notes
    }
}

/// The definition of the verdicts, as the report states it.
pub fn verdict_definition() -> Vec<String> {
    use super::metric::Metric;
    vec![
        format!(
            "A figure agrees if the interval of its difference from the paper's holds zero (✓). The interval combines both standard errors with the \
             quantile of Student's distribution and adds half a unit of the paper's last printed digit. Its level is {} % divided by the number \
             of figures of the row, so that a row that is the same is called different in about {0} % of cases. A standard error printed as zero \
             counts as half a unit of its last digit. Where the paper prints none, its figure is taken for one run more, which varies as ours \
             do: the error is our standard deviation times √(1 + 1/n).",
            100.0 * SIGNIFICANCE,
        ),
        format!(
            "A figure also agrees if the difference is at most {} percentage points for shares of records or {} for losses and gradient norms, \
             and at most {} % of the paper's figure (≈). It is too wide to tell if its interval agrees as well with most of the figures of other \
             methods that the paper tells apart from this one; or if it tells none apart, and half of the interval is wider than the figure, of \
             accuracies also than what is missing to 100 % (?).",
            100.0 * absolute_tolerance(Metric::Accuracy),
            absolute_tolerance(Metric::Loss),
            100.0 * MAX_RELATIVE,
        ),
        "agrees: every figure of the row agrees. too wide to tell: every figure agrees or is too wide, and one is."
            .to_owned(),
        format!(
            "same ordering: not every figure agrees, but our seeds show that the method stands to every other method as in the paper, wherever the \
             paper tells two figures apart. Each such fact is tested (one-sided signed-rank test over common seeds at {} %), and all have to \
             be significant. What orders methods by one fact counts once: accuracy, its change and privacy cost of a group; its loss and \
             excessive risk; two methods with the same results.",
            100.0 * SIGNIFICANCE,
        ),
        "differs: neither. The suspected cause is given, or that it is not known.".to_owned(),
        "No verdict: the method was not run, a run of it failed, a figure is undefined, there are \
         fewer than three seeds, or the run is \
         SYNTHETIC or QUICK."
            .to_owned(),
    ]
}

/// Our figures for a table.
struct Figures<'a> {
    experiment: &'a ExperimentResults,
    /// Every figure once, so that a failure (an unknown group) surfaces here and not inside the
    /// verdict.
    known: Vec<(&'a str, &'a Column, Estimate)>,
}

impl<'a> Figures<'a> {
    fn new(table: &'a PublishedTable, experiment: &'a ExperimentResults) -> anyhow::Result<Self> {
        let mut known: Vec<(&str, &Column, Estimate)> = Vec::new();
        for cell in &table.cells {
            if let Some(method) = find(experiment, &cell.method) {
                known.push((&cell.method, &cell.column, cell.column.fraction(experiment, method)?));
            }
        }
        Ok(Self { experiment, known })
    }
}

impl Ours for Figures<'_> {
    fn figure(&self, method: &str, column: &Column) -> Option<Estimate> {
        self.known.iter().find(|(m, c, _)| *m == method && *c == column).map(|(_, _, estimate)| *estimate)
    }

    fn compare(&self, method: &str, other: &str, column: &Column) -> Option<Compared> {
        let of = |name: &str| Some((column, self.experiment, find(self.experiment, name)?));
        // Groups are known from the figures; what cannot be compared (an overflow) shows nothing.
        let (smaller, larger) = paired(of(method)?, of(other)?).ok()??;
        fair_metrics::compare(&smaller, &larger).ok()
    }
}

fn find<'a>(experiment: &'a ExperimentResults, method: &str) -> Option<&'a MethodResults> {
    experiment.methods.iter().find(|candidate| candidate.method == method)
}

fn agrees(cell: &AnswerCell<'_>) -> bool {
    let agrees = |agreement| matches!(agreement, Agreement::WithinErrors | Agreement::WithinTolerance);
    cell.comparison.is_some_and(|comparison| agrees(comparison.agreement))
}

fn verdict_tone(verdict: &Verdict) -> Tone {
    match verdict {
        Verdict::Agrees => Tone::Good,
        Verdict::SameOrdering(_) | Verdict::TooWide => Tone::Middling,
        Verdict::Differs => Tone::Bad,
        Verdict::None(_) => Tone::Plain,
    }
}

fn table_row(row: &AnswerRow<'_>, cells: &[Option<AnswerCell<'_>>], mark: Option<Mark>) -> Row {
    let verdict = Cell::toned(row.verdict.to_string(), verdict_tone(&row.verdict));
    Row {
        header: label(row.method),
        cells: cells.iter().map(|cell| figure_cell(cell.as_ref(), mark)).chain(std::iter::once(verdict)).collect(),
    }
}

fn figure_cell(cell: Option<&AnswerCell<'_>>, mark: Option<Mark>) -> Cell {
    let Some(cell) = cell else { return Cell::plain("–") };
    let printed = cell.published.value;
    let column = &cell.published.column;
    let paper = match cell.published.standard_error {
        Some(error) => {
            format!("paper {} ± {:.*}", number::fixed(printed.value, printed.decimals), error.decimals, error.value)
        }
        None if cell.published.summed > 1.0 => {
            let per_record = number::fixed(printed.value / cell.published.summed, printed.decimals);
            format!(
                "paper {per_record} ({} / {})",
                number::fixed(printed.value, printed.decimals),
                cell.published.summed
            )
        }
        None => format!("paper {}", number::fixed(printed.value, printed.decimals)),
    };
    let Some(ours) = cell.ours else {
        return Cell::lines(vec!["not run".to_owned(), paper], Tone::Plain);
    };
    let decimals = our_decimals(printed);
    let unit = if column.percent { 100.0 } else { 1.0 };
    let ours = Estimate {
        mean: ours.mean.map(|mean| mean * unit),
        standard_error: ours.standard_error.map(|error| error * unit),
        ..ours
    };
    let mut lines = vec![mean_and_error(&ours, decimals), paper];
    let mut tone = Tone::Plain;
    if let Some(comparison) = cell.comparison {
        let (symbol, agreement_tone) = match comparison.agreement {
            Agreement::WithinErrors => ("✓", Tone::Good),
            Agreement::WithinTolerance => ("≈", Tone::Middling),
            Agreement::TooWide => ("?", Tone::Middling),
            Agreement::Outside => ("✗", Tone::Bad),
        };
        tone = agreement_tone;
        lines.push(match comparison.standard_errors {
            Some(errors) => format!("{} SE {symbol}", number::signed(errors, 1)),
            None => format!("{} {symbol}", number::signed(comparison.difference * unit, decimals)),
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
