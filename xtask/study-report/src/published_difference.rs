//! The difference that a paper prints between two quantities of a claim.

use run_records::ExperimentResults;

use super::metric::{Column, Metric, Subject};
use super::presentation::TablePresentation;
use super::published::PublishedCell;
use super::statistics::PublishedFigure;

/// A printed figure, or what follows from printed figures, and the table it is from.
struct Found<'a> {
    figure: PublishedFigure,
    citation: &'a str,
    /// Whether it is the difference from the reference rather than the quantity: only differences
    /// of two such are known.
    is_change: bool,
}

/// A published difference, with its source.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PublishedEffect {
    pub(super) figure: PublishedFigure,
    pub(super) citation: String,
}

/// What a paper prints for `larger − smaller`, both methods of the same experiment; `None` if none
/// of its tables has both.
///
/// Figures that a table does not print are derived from those it does, with their errors and
/// roundings added: a privacy cost gap from changes of accuracy, an accuracy of all records from
/// the groups' by their shares of our test part.
pub(super) fn published_effect(
    tables: &[TablePresentation],
    experiment: &ExperimentResults,
    (smaller, smaller_column): (&str, &Column),
    (larger, larger_column): (&str, &Column),
) -> Option<PublishedEffect> {
    tables.iter().filter(|table| table.experiment == experiment.id).find_map(|table| {
        let smaller = find(table, experiment, smaller, smaller_column)?;
        let larger = find(table, experiment, larger, larger_column)?;
        (smaller.is_change == larger.is_change).then(|| PublishedEffect {
            figure: combine([(1.0, larger.figure), (-1.0, smaller.figure)]),
            citation: smaller.citation.to_owned(),
        })
    })
}

fn find<'a>(
    table: &'a TablePresentation,
    experiment: &ExperimentResults,
    method: &str,
    column: &Column,
) -> Option<Found<'a>> {
    let runs = table.published.runs;
    let found = |figure, is_change| Found { figure, citation: &table.published.citation, is_change };
    let cell = |metric: Metric, subject: &Subject| -> Option<PublishedFigure> {
        let same = |cell: &&PublishedCell| {
            cell.column.metric == metric
                && cell.column.in_batches == column.in_batches
                && !cell.column.order_only
                && is_same(&cell.column.subject, subject, experiment)
        };
        table.published.row(method).find(same).map(|cell| cell.figure(runs))
    };
    let negative = |figure| combine([(-1.0, figure)]);
    if let Some(figure) = cell(column.metric, &column.subject) {
        return Some(found(figure, false));
    }
    match column.metric {
        Metric::PrivacyCost => {
            cell(Metric::AccuracyChange, &column.subject).map(|figure| found(negative(figure), false))
        }
        Metric::PrivacyCostGap | Metric::ExcessiveRiskGap => {
            let (a, b) = sides(&column.subject, experiment)?;
            let of = |group: String| {
                let subject = Subject::Group(group);
                if column.metric == Metric::ExcessiveRiskGap {
                    cell(Metric::ExcessiveRisk, &subject)
                } else {
                    cell(Metric::PrivacyCost, &subject).or_else(|| cell(Metric::AccuracyChange, &subject).map(negative))
                }
            };
            let difference = combine([(1.0, of(a)?), (-1.0, of(b)?)]);
            Some(found(PublishedFigure { value: difference.value.abs(), ..difference }, false))
        }
        Metric::Accuracy | Metric::Loss if column.subject == Subject::Total => {
            if column.metric == Metric::Accuracy
                && let Some(figure) = cell(Metric::AccuracyChange, &Subject::Total)
            {
                return Some(found(figure, true));
            }
            let groups = &experiment.dataset.groups;
            let n: usize = groups.iter().map(|group| group.n_test).sum();
            let parts = groups
                .iter()
                .map(|group| {
                    let share = group.n_test as f64 / n as f64;
                    Some((share, cell(column.metric, &Subject::Group(group.name.clone()))?))
                })
                .collect::<Option<Vec<_>>>()?;
            Some(found(combine(parts), false))
        }
        _ => None,
    }
}

/// A sum of figures with these factors. Printed errors add in quadrature, roundings as they are;
/// without all errors there is none.
fn combine(parts: impl IntoIterator<Item = (f64, PublishedFigure)>) -> PublishedFigure {
    let mut sum = PublishedFigure { value: 0.0, standard_error: Some(0.0), runs: usize::MAX, rounding: 0.0 };
    for (factor, part) in parts {
        sum.value += factor * part.value;
        sum.standard_error = sum.standard_error.zip(part.standard_error).map(|(a, b)| a.hypot(factor * b));
        sum.runs = sum.runs.min(part.runs);
        sum.rounding += factor.abs() * part.rounding;
    }
    sum
}

/// The two groups of a gap.
fn sides(subject: &Subject, experiment: &ExperimentResults) -> Option<(String, String)> {
    match (subject, &experiment.dataset.groups[..]) {
        (Subject::Between(a, b), _) => Some((a.clone(), b.clone())),
        (Subject::Gap, [a, b]) => Some((a.name.clone(), b.name.clone())),
        _ => None,
    }
}

/// Whether two columns are about the same records: the gap of two groups is the gap between them,
/// whichever comes first.
fn is_same(a: &Subject, b: &Subject, experiment: &ExperimentResults) -> bool {
    let unordered = |subject| sides(subject, experiment).map(|(a, b)| if a < b { (a, b) } else { (b, a) });
    a == b || unordered(a).is_some_and(|pair| unordered(b) == Some(pair))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn effect(smaller: &str, larger: &str, metric: &str, group: &str) -> Option<PublishedEffect> {
        let column = Column::parse(metric, group).unwrap();
        published_effect(
            &fixture::presentation().tables,
            &fixture::study().experiments[0],
            (smaller, &column),
            (larger, &column),
        )
    }

    /// Esipova 2023, Table 4: gaps 6.9 ± 0.3 and 0.2 ± 0.2; accuracies 69.9 and 88.5, 80.7 and
    /// 92.3, groups of equal size.
    #[test]
    fn figures_are_found_or_derived() {
        let gap = effect("dpsgd-global", "dpsgd", "privacy_cost_gap", "gap").unwrap();
        assert!((gap.figure.value - 0.067).abs() < 1e-12);
        assert!((gap.figure.standard_error.unwrap() - 0.003_f64.hypot(0.002)).abs() < 1e-12);
        assert!((gap.figure.rounding - 0.001).abs() < 1e-12);
        assert_eq!((gap.figure.runs, gap.citation.as_str()), (5, "Esipova et al. 2023, Table 4"));
        assert_eq!(effect("dpsgd-global", "dpsgd", "privacy_cost_gap", "female|male"), Some(gap));
        let accuracy = effect("dpsgd", "dpsgd-global-adapt", "accuracy", "total").unwrap();
        assert!((accuracy.figure.value - (0.865 - 0.792)).abs() < 1e-12);
        assert_eq!(effect("dpsgd", "unknown", "accuracy", "total"), None);
        assert_eq!(effect("dpsgd", "dpsgd-f", "f1", "total"), None);
    }
}
