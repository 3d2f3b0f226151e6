//! What a finished study says in a terminal: the answer, on one screen.

use fair_report::{Document, aligned, number};
use run_records::coordinate::is_grid;
use run_records::mark::Mark;
use run_records::{ExperimentResults, MethodResults, StudyResults};

use super::fairness::{Cost, cost_of};
use super::label::label;
use super::metric::REFERENCE;
use super::summary::{CLAIMS, ROWS, Tally};
use super::{StudyPresentation, answers, claims, ranking, summary};

/// Lines of all experiments together; with title, verdicts and paths they make 25.
const LINES: usize = 18;
/// Groups that get a column each; of more, the least and the most accurate are shown.
const GROUPS: usize = 3;
/// The method that others are compared with.
const BASELINE: &str = "dpsgd";

/// The answer of a study in a few lines.
///
/// # Errors
/// If the records are inconsistent with the presentation.
pub fn short(results: &StudyResults, presentation: &StudyPresentation) -> anyhow::Result<String> {
    let mark = Mark::new(results.synthetic, results.quick);
    let mut lines = vec![mark.map_or_else(
        || presentation.title.clone(),
        |mark| format!("{}: {}. No verdict is given.", mark.label(), presentation.title),
    )];
    if let Some(seed) = results.seed {
        lines.push(format!("THESE RUNS ARE NOT PRIVATE: their noise follows from the seed {seed}."));
    }
    let ranking = ranking::cells(results, &presentation.ranked);
    if ranking.is_empty() {
        lines.extend(by_experiment(results)?);
    } else {
        lines.extend(columns(&ranking));
    }
    lines.extend(verdicts(results, presentation)?);
    Ok(lines.join("\n"))
}

/// A table for each of the first experiments.
fn by_experiment(results: &StudyResults) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    let n_experiments = results.experiments.len().max(1);
    let shown = n_experiments.min(LINES / 3);
    for experiment in &results.experiments[..shown.min(results.experiments.len())] {
        lines.extend(experiment_lines(experiment, LINES / shown)?);
    }
    if n_experiments > shown {
        lines.push(format!("… and {} more experiments in the report.", n_experiments - shown));
    }
    Ok(lines)
}

/// How many rows and claims came to which verdict, where there can be one.
fn verdicts(results: &StudyResults, presentation: &StudyPresentation) -> anyhow::Result<Vec<String>> {
    let mut sections = vec![summary(&answers(results, presentation)?)];
    sections.extend(claims::section(results, presentation)?);
    let document = Document { title: String::new(), mark: None, sections };
    let words = |tally: Tally, of: &str, kinds: [&str; 3]| {
        let [good, middling, bad] = kinds;
        let Tally { good: n_good, middling: n_middling, bad: n_bad, none } = tally;
        (tally.total() > none).then(|| {
            format!("{of}: {n_good} {good}, {n_middling} {middling}, {n_bad} {bad}, {none} without a verdict.")
        })
    };
    let rows = words(Tally::of(&document, "verdicts"), "Published rows", ROWS);
    let claims = words(Tally::of(&document, "claims"), "Claims", CLAIMS);
    Ok([rows, claims].into_iter().flatten().collect())
}

/// A table of one experiment in at most so many lines, at least two.
fn experiment_lines(experiment: &ExperimentResults, n_lines: usize) -> anyhow::Result<Vec<String>> {
    if is_grid(experiment) {
        let n_runs: usize = experiment.methods.iter().map(|method| method.runs.len()).sum();
        return Ok(vec![format!(
            "{}: a grid of {} runs, drawn in the report.",
            experiment.id,
            number::count(n_runs as u64)
        )]);
    }
    let mut rows = vec![header(experiment)];
    for (method, cost) in chosen(experiment, n_lines - 1)? {
        rows.push(row(experiment, method, cost.as_ref()));
    }
    let n_left = experiment.methods.len() + 1 - rows.len();
    if n_left > 0 {
        rows[0][0] = format!("{} (+{n_left} more)", experiment.id);
    }
    Ok(columns(&rows))
}

/// The methods that have room: the reference, the method whose privacy costs differ most between
/// groups, the baseline, and those whose costs differ least.
fn chosen(experiment: &ExperimentResults, n_rows: usize) -> anyhow::Result<Vec<(&MethodResults, Option<Cost>)>> {
    let mut methods = Vec::new();
    for (place, method) in experiment.methods.iter().enumerate() {
        let cost = if method.method == REFERENCE { None } else { Some(cost_of(experiment, method)?) };
        let rank = match (method.method.as_str(), &cost) {
            (REFERENCE, _) => f64::NEG_INFINITY,
            (BASELINE, _) => f64::MIN,
            (_, Some(Cost { gap: Some(gap), .. })) => *gap,
            _ => f64::INFINITY,
        };
        methods.push((rank, place, method, cost));
    }
    let gap = |cost: &Option<Cost>| cost.as_ref().and_then(|cost| cost.gap);
    let widest = methods.iter().filter_map(|(_, place, _, cost)| Some((*place, gap(cost)?)));
    let widest = widest.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place);
    // Behind the reference alone.
    methods.sort_by(|a, b| (Some(a.1) != widest).cmp(&(Some(b.1) != widest)).then(a.0.total_cmp(&b.0)));
    methods.sort_by_key(|(rank, ..)| *rank != f64::NEG_INFINITY);
    methods.truncate(n_rows);
    methods.sort_by_key(|(_, place, ..)| *place);
    Ok(methods.into_iter().map(|(_, _, method, cost)| (method, cost)).collect())
}

fn header(experiment: &ExperimentResults) -> Vec<String> {
    let mut cells = vec![experiment.id.clone(), "ε".to_owned(), "accuracy %".to_owned()];
    let groups = &experiment.dataset.groups;
    if groups.len() > GROUPS {
        cells.extend(["worst group", "best group"].map(str::to_owned));
    } else {
        cells.extend(groups.iter().map(|group| group.name.clone()));
    }
    cells.extend(["cost gap", "who pays"].map(str::to_owned));
    cells
}

fn row(experiment: &ExperimentResults, method: &MethodResults, cost: Option<&Cost>) -> Vec<String> {
    let epsilon = method.privacy.as_ref().and_then(|privacy| {
        privacy.epsilons.iter().min_by(|a, b| a.epsilon.epsilon().get().total_cmp(&b.epsilon.epsilon().get()))
    });
    let mut cells = vec![
        label(&method.method),
        epsilon.map_or_else(|| "–".to_owned(), |record| format!("{:.2}", record.epsilon)),
        percent(mean(method.runs.iter().map(|run| run.test.overall.accuracy))),
    ];
    let groups: Vec<Option<f64>> = (0..experiment.dataset.groups.len())
        .map(|group| mean(method.runs.iter().map(|run| run.test.groups.get(group)?.accuracy)))
        .collect();
    if groups.len() > GROUPS {
        let name = |group: usize| &experiment.dataset.groups[group].name;
        let known: Vec<(usize, f64)> = groups.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?))).collect();
        let ends = [known.iter().min_by(|a, b| a.1.total_cmp(&b.1)), known.iter().max_by(|a, b| a.1.total_cmp(&b.1))];
        cells.extend(
            ends.map(|end| end.map_or_else(String::new, |(i, v)| format!("{} {}", percent(Some(*v)), name(*i)))),
        );
    } else {
        cells.extend(groups.into_iter().map(percent));
    }
    let gap = cost.and_then(|cost| cost.gap);
    cells.push(gap.map_or_else(String::new, |gap| number::fixed(100.0 * gap, 2)));
    cells.push(cost.map_or_else(String::new, |cost| cost.payer.clone()));
    cells
}

fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn percent(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| "–".to_owned(), |fraction| number::fixed(100.0 * fraction, 2))
}

/// The first two columns and the last are text.
fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    aligned(rows, |column| column < 2 || column + 1 == n_columns)
}

#[cfg(test)]
mod tests {
    use run_records::Coordinate;

    use super::*;
    use crate::fixture::{presentation, study};
    use crate::{Judged, Ranked};

    #[test]
    fn the_answer_of_a_study() {
        insta::assert_snapshot!(short(&study(), &presentation()).unwrap());
    }

    /// A comparison of methods answers with the recommended one beside the best of the others, at
    /// every ε.
    #[test]
    fn the_answer_of_a_comparison() {
        let mut study = study();
        let experiment = &mut study.experiments[0];
        for method in &mut experiment.methods {
            if method.base != REFERENCE {
                method.coordinates = vec![Coordinate { name: "ε".to_owned(), value: 0.5 }];
            }
        }
        let names: Vec<String> = experiment.methods.iter().map(|method| method.base.clone()).collect();
        let own: &'static [&'static str] = &["dpsgd-f"];
        assert!(names.iter().any(|name| name == own[0]) && names.len() > 2, "{names:?}");
        let ranked =
            Ranked { experiment: "esipova-adult", data: "adult", recommended: own[0], own, judged: Judged::Accuracy };
        let presentation = StudyPresentation { ranked: vec![ranked], ..presentation() };
        let text = short(&study, &presentation).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("adult")).collect();
        assert_eq!(lines.len(), 1, "{text}");
        assert!(lines[0].starts_with("adult, mlp-2x256-tanh  0.5"), "{text}");
    }

    /// The one that a reader must not miss, however little room there is.
    #[test]
    fn the_widest_gap_is_never_left_out() {
        let mut results = study();
        let mut experiment = results.experiments.remove(0);
        let widest = experiment.methods.iter().position(|method| method.method == "dpsgd-global").unwrap();
        for run in &mut experiment.methods[widest].runs {
            run.test.groups[0].accuracy = Some(0.1);
        }
        let even = experiment.methods.iter().find(|method| method.method == "dpsgd-f").unwrap().clone();
        for place in 0..12 {
            let mut copy = even.clone();
            copy.method = format!("dpsgd-f (copy {place})");
            experiment.methods.push(copy);
        }
        for n_rows in 2..6 {
            let names: Vec<_> =
                chosen(&experiment, n_rows).unwrap().iter().map(|(method, _)| &method.method).cloned().collect();
            assert_eq!(names.len(), n_rows);
            assert!(names.iter().any(|name| name == "dpsgd-global"), "{names:?}");
            assert!(names.iter().any(|name| name == REFERENCE), "{names:?}");
        }
    }

    /// However many methods and experiments there are.
    #[test]
    fn the_answer_fits_on_a_screen() {
        for (n_experiments, n_copies) in [(1, 1), (1, 9), (4, 3), (30, 1)] {
            let mut results = study();
            let mut experiment = results.experiments.remove(0);
            let methods = experiment.methods.clone();
            for _ in 1..n_copies {
                experiment.methods.extend(methods.iter().filter(|method| method.method != REFERENCE).cloned());
            }
            results.experiments = vec![experiment; n_experiments];
            results.quick = true;
            let text = short(&results, &presentation()).unwrap();
            assert!(text.lines().count() <= 23, "{n_experiments} {n_copies}:\n{text}");
            assert!(text.starts_with("QUICK: "), "{text}");
            assert!(text.contains("(certified)"), "{text}");
        }
    }
}
