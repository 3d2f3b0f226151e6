//! Searches within ε: how many trials they made and what they chose.

use fair_report::number;
use fair_report::{Cell, Row, Table};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, SearchRecord, TrialRecord};

use super::label::label;

/// One row per method that searches; `None` if none does.
pub(crate) fn table(experiment: &ExperimentResults, mark: Option<Mark>) -> Option<Table> {
    let mut rows = Vec::new();
    for method in &experiment.methods {
        let searches: Vec<&SearchRecord> = method.runs.iter().filter_map(|run| run.search.as_ref()).collect();
        if searches.is_empty() {
            continue;
        }
        let trials = || searches.iter().flat_map(|search| &search.trials);
        let released: Vec<&TrialRecord> =
            searches.iter().filter_map(|search| search.trials.get(search.released)).collect();
        let numbers = searches.iter().map(|search| search.trials.len() as f64).collect();
        let bounds: Vec<f64> = released.iter().filter_map(|trial| trial.bound).collect();
        rows.push(Row {
            header: label(&method.method),
            cells: vec![
                Cell::plain(spread(numbers, 0)),
                Cell::plain(number::count(trials().filter(|trial| trial.score.is_none()).count() as u64)),
                Cell::plain(spread(released.iter().map(|trial| trial.rate).collect(), 2)),
                Cell::plain(if bounds.is_empty() { "–".to_owned() } else { spread(bounds, 4) }),
                Cell::plain(spread(released.iter().map(|trial| trial.batch_size).collect(), 0)),
            ],
        });
    }
    (!rows.is_empty()).then(|| Table {
        caption: marked(mark, &format!("Searches: {}", experiment.title)),
        columns: ["Method", "Trials", "Diverged", "Rate", "Bound", "Batch size"].map(str::to_owned).into(),
        rows,
        notes: vec![
            "Least, median and largest over seeds; rate, bound and batch size are those of the released models. Which trials were \
             made besides, and how many, a release does not say: its ε needs the number hidden. Diagnostics, not for release."
                .to_owned(),
        ],
    })
}

/// `least, median, largest`.
fn spread(mut values: Vec<f64>, decimals: usize) -> String {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).map_or_else(|| "–".to_owned(), |value| number::fixed(*value, decimals));
    format!("{}, {}, {}", at(0), at(values.len() / 2), at(values.len().saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn searches_of_a_method_in_one_row() {
        let mut experiment = fixture::study().experiments.remove(0);
        assert_eq!(table(&experiment, None), None);
        let trial = |rate, score| TrialRecord { rate, bound: None, batch_size: 1024.0, score };
        for (index, run) in experiment.methods[1].runs.iter_mut().enumerate() {
            let trials = vec![trial(1.0, None), trial(1.0 + index as f64, Some(0.7))];
            run.search = Some(SearchRecord { trials, released: 1 });
        }
        let table = table(&experiment, None).unwrap();
        let cells: Vec<String> = table.rows[0].cells.iter().map(|cell| cell.lines.join(" ")).collect();
        assert_eq!(cells, ["2, 2, 2", "5", "1.00, 3.00, 5.00", "–", "1024, 1024, 1024"]);
    }
}
