//! An experiment that searched a grid of learning rates and bounds: heat maps and the best point of
//! each method.

use std::collections::BTreeMap;

use anyhow::bail;
use fair_report::plot::{HeatPanel, Panel, Plot};
use fair_report::{Block, Cell, Row, Table};
use run_records::coordinate::{BOUND, RATE, coordinate};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults};

use super::estimate::mean_and_error;
use super::figures::DrawnFigure;
use super::judged::{Judged, Searched};
use super::label::label;
use super::metric::Column;

/// The part of the records that the points of a grid are judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Held out of training and test part.
    Validation,
    /// As published.
    Test,
}

impl Part {
    /// What these records were searched on: validation records, if any run has some.
    fn of(experiment: &ExperimentResults) -> Self {
        let mut runs = experiment.methods.iter().flat_map(|method| &method.runs);
        if runs.any(|run| run.validation.is_some()) { Self::Validation } else { Self::Test }
    }

    /// The same runs with this part's metrics in the place of the test part's.
    fn in_place_of_test(self, experiment: &ExperimentResults) -> anyhow::Result<ExperimentResults> {
        let mut experiment = experiment.clone();
        if self == Self::Test {
            return Ok(experiment);
        }
        for method in &mut experiment.methods {
            for run in &mut method.runs {
                let Some(validation) = run.validation.take() else {
                    bail!(
                        "{}: {}, run {}: no metrics of validation records to judge it by",
                        experiment.id,
                        method.method,
                        run.index
                    );
                };
                run.test = validation;
            }
        }
        Ok(experiment)
    }
}

/// The point with the greatest mean on this part, for each method of a grid; the first of equals.
///
/// # Errors
/// If the metric cannot be computed, or a run lacks metrics of the part.
pub fn best_points(experiment: &ExperimentResults, part: Part, judged: Judged) -> anyhow::Result<Vec<&MethodResults>> {
    let on_part = part.in_place_of_test(experiment)?;
    let best: Vec<&str> = best_of(&on_part, judged)?.into_iter().map(|method| method.method.as_str()).collect();
    Ok(experiment.methods.iter().filter(|method| best.contains(&method.method.as_str())).collect())
}

/// The points with the greatest mean on this part: so many of those that a method of a grid has at
/// one learning rate; of equals the first.
///
/// # Errors
/// As [`best_points`].
pub fn leading_points(
    experiment: &ExperimentResults,
    part: Part,
    judged: Judged,
    how_many: impl Fn(usize) -> usize,
) -> anyhow::Result<Vec<&MethodResults>> {
    let on_part = part.in_place_of_test(experiment)?;
    let mut leading: Vec<&str> = Vec::new();
    for points in ranked(&on_part, judged)? {
        let mut by_rate: BTreeMap<Option<u64>, Vec<&str>> = BTreeMap::new();
        for (_, method) in points {
            by_rate.entry(coordinate(method, RATE).map(f64::to_bits)).or_default().push(&method.method);
        }
        for names in by_rate.into_values() {
            let n = how_many(names.len());
            leading.extend(names.into_iter().take(n));
        }
    }
    Ok(experiment.methods.iter().filter(|method| leading.contains(&method.method.as_str())).collect())
}

fn best_of(experiment: &ExperimentResults, judged: Judged) -> anyhow::Result<Vec<&MethodResults>> {
    let best = ranked(experiment, judged)?.into_iter().filter_map(|points| points.into_iter().next());
    Ok(best.filter(|(value, _)| *value > f64::NEG_INFINITY).map(|(_, method)| method).collect())
}

/// The points of each method of a grid with their means, the greatest first; without one it counts
/// as the least.
fn ranked(experiment: &ExperimentResults, judged: Judged) -> anyhow::Result<Vec<Vec<(f64, &MethodResults)>>> {
    let objective = judged.column()?;
    let mut ranked: Vec<Vec<(f64, &MethodResults)>> = Vec::new();
    for method in experiment.methods.iter().filter(|method| coordinate(method, RATE).is_some()) {
        let point = (objective.estimate(experiment, method)?.mean.unwrap_or(f64::NEG_INFINITY), method);
        match ranked.iter_mut().find(|points| points[0].1.base == method.base) {
            Some(points) => points.push(point),
            None => ranked.push(vec![point]),
        }
    }
    for points in &mut ranked {
        points.sort_by(|a, b| b.0.total_cmp(&a.0));
    }
    Ok(ranked)
}

/// The best points as a table. Where points were given up in `earlier` experiments of the same
/// search, the grid is theirs.
///
/// # Errors
/// If the experiment's groups are inconsistent, or some runs of it have validation records and
/// others have none.
pub fn blocks(
    experiment: &ExperimentResults,
    earlier: &[&ExperimentResults],
    search: &Searched,
    mark: Option<Mark>,
) -> anyhow::Result<Vec<Block>> {
    let experiment = &Part::of(experiment).in_place_of_test(experiment)?;
    let columns = columns(experiment, search.judged)?;
    let best = best_of(experiment, search.judged)?;
    let mut rows = Vec::new();
    let mut at_edges = Vec::new();
    for method in best {
        let mut cells = vec![
            Cell::plain(coordinate(method, RATE).map_or_else(|| "–".to_owned(), |rate| rate.to_string())),
            Cell::plain(coordinate(method, BOUND).map_or_else(|| "–".to_owned(), |bound| bound.to_string())),
        ];
        for (_, column) in &columns {
            cells.push(Cell::plain(mean_and_error(&column.estimate(experiment, method)?, 3)));
        }
        rows.push(Row { header: label(&method.base), cells });
        let searched = earlier.iter().copied().chain([experiment]).flat_map(|rung| points_of(rung, &method.base));
        let edges = edges(method, &searched.collect::<Vec<_>>());
        if !edges.is_empty() {
            at_edges.push(format!("{} ({})", label(&method.base), edges.join(", ")));
        }
    }
    let heads = ["Method", "Learning rate", "Bound"].map(str::to_owned).into_iter();
    let by = match search.published {
        Some(source) => {
            format!("{} ({source}; claims judge by other figures, as the paper does)", search.judged.words())
        }
        None => format!("{}, by which methods are judged, too", search.judged.words()),
    };
    let mut notes = vec![format!(
        "Best by mean {by}; means over seeds. Bound: C of constant clipping, the lower bound C_LB of bounded adaptive clipping; unbounded \
         clipping has none. The search is not accounted for in ε."
    )];
    if !at_edges.is_empty() {
        notes.push(format!(
            "At the edge of what was searched, so that a better point may lie beyond: {}.",
            at_edges.join("; ")
        ));
    }
    Ok(vec![Block::Table(Table {
        caption: marked(mark, &format!("Best points of the grid: {}", experiment.title)),
        columns: heads.chain(columns.iter().map(|(name, _)| name.clone())).collect(),
        rows,
        notes,
    })])
}

/// The axes on which a point has the least or the largest value of all that were searched.
fn edges(point: &MethodResults, searched: &[&MethodResults]) -> Vec<String> {
    let mut edges = Vec::new();
    for name in [RATE, BOUND] {
        let Some(value) = coordinate(point, name) else { continue };
        let axis = sorted(searched.iter().filter_map(|method| coordinate(method, name)));
        match axis[..] {
            [least, .., largest] if value == least || value == largest => {
                let words = if value == least { "least" } else { "largest" };
                edges.push(format!("{words} {name}"));
            }
            _ => {}
        }
    }
    edges
}

/// Heat maps: a row of panels per method with a bound, a panel per metric. Where points were given
/// up in `earlier` experiments, the first of the same search, a panel more says how far each was
/// trained.
///
/// # Errors
/// As [`blocks`].
pub fn figures(
    experiment: &ExperimentResults,
    earlier: &[&ExperimentResults],
    judged: Judged,
    mark: Option<Mark>,
) -> anyhow::Result<Vec<DrawnFigure>> {
    let experiment = &Part::of(experiment).in_place_of_test(experiment)?;
    let mut figures = Vec::new();
    let mut bases: Vec<&str> = Vec::new();
    for method in experiment.methods.iter().filter(|method| coordinate(method, BOUND).is_some()) {
        if !bases.contains(&method.base.as_str()) {
            bases.push(&method.base);
        }
    }
    for base in bases {
        let name = label(base);
        let of_base = |experiment| points_of(experiment, base);
        let given_up: Vec<&MethodResults> = earlier.iter().copied().flat_map(of_base).collect();
        let points = of_base(experiment);
        let all: Vec<&MethodResults> = given_up.iter().chain(&points).copied().collect();
        let axes = [BOUND, RATE].map(|name| sorted(all.iter().filter_map(|method| coordinate(method, name))));
        let mut maps = Vec::new();
        for (metric, column) in columns(experiment, judged)? {
            let means = points.iter().map(|method| Ok((*method, column.estimate(experiment, method)?.mean)));
            maps.push((metric, on_grid(&axes, means.collect::<anyhow::Result<Vec<_>>>()?)));
        }
        if !earlier.is_empty() {
            maps.push((
                "Epochs trained".to_owned(),
                on_grid(&axes, all.iter().map(|method| (*method, epochs(method)))),
            ));
        }
        let mut panels = Vec::new();
        let mut words = Vec::new();
        for (metric, values) in maps {
            let defined = values.iter().flatten().flatten();
            let (low, high) = defined.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
            words.push(format!("{metric} from {low:.3} to {high:.3}"));
            let [x_values, y_values] = axes.clone();
            panels.push(Panel::Heat(HeatPanel {
                title: marked(mark, &metric),
                x_label: "bound".to_owned(),
                y_label: "learning rate".to_owned(),
                x_values,
                y_values,
                values,
            }));
        }
        let empty = if earlier.is_empty() { "" } else { " Empty cells were given up earlier." };
        let caption =
            format!("{name}: metrics over learning rate and bound, means over seeds. {}.{empty}", experiment.title);
        figures.push(DrawnFigure {
            stem: format!("{}-{base}-landscape", experiment.id),
            caption: marked(mark, &caption),
            alt: format!("Heat maps over learning rate and bound for {name}. {}.", words.join("; ")),
            plot: Plot {
                title: marked(mark, &format!("{name} over learning rate and bound. {}", experiment.title)),
                n_columns: panels.len().min(3),
                panels,
            },
        });
    }
    Ok(figures)
}

/// The experiments before this one that searched the same grid and gave up points of it: their
/// identifiers are those of the grid's experiment and `-after-EPOCHS`.
pub(super) fn rungs_before<'a>(experiments: &'a [ExperimentResults], id: &str) -> Vec<&'a ExperimentResults> {
    let before = experiments.iter().take_while(|experiment| experiment.id != id);
    before.filter(|experiment| grid_of(&experiment.id) == grid_of(id)).collect()
}

/// An identifier without what says that points were given up.
fn grid_of(id: &str) -> &str {
    id.split_once("-after-").map_or(id, |(grid, _)| grid)
}

/// The points of a method in a grid.
fn points_of<'a>(experiment: &'a ExperimentResults, base: &str) -> Vec<&'a MethodResults> {
    experiment.methods.iter().filter(|method| method.base == base).collect()
}

/// Epochs of the longest run.
fn epochs(method: &MethodResults) -> Option<f64> {
    let last = method.runs.iter().filter_map(|run| run.epochs.last());
    last.map(|epoch| epoch.epoch as f64).reduce(f64::max)
}

/// Values of points at their places, `[rate][bound]`; of two at one place the last.
fn on_grid<'a>(
    [bounds, rates]: &[Vec<f64>; 2],
    points: impl IntoIterator<Item = (&'a MethodResults, Option<f64>)>,
) -> Vec<Vec<Option<f64>>> {
    let mut values = vec![vec![None; bounds.len()]; rates.len()];
    for (method, value) in points {
        let place = |axis: &[f64], name| axis.iter().position(|at| Some(*at) == coordinate(method, name));
        if let (Some(y), Some(x)) = (place(rates, RATE), place(bounds, BOUND)) {
            values[y][x] = value;
        }
    }
    values
}

/// What the heat maps show: what the search maximises; for two groups their accuracies and the gap
/// between, else means over classes; the loss.
fn columns(experiment: &ExperimentResults, judged: Judged) -> anyhow::Result<Vec<(String, Column)>> {
    let over_all = |judged: Judged| {
        let words = judged.words();
        Ok::<_, anyhow::Error>((format!("{}{} (%)", words[..1].to_uppercase(), &words[1..]), judged.column()?))
    };
    let mut columns = vec![over_all(judged)?];
    if let [a, b] = &experiment.dataset.groups[..] {
        for group in [a, b] {
            columns.push((format!("Accuracy, {} (%)", group.name), Column::parse("accuracy_pct", &group.name)?));
        }
        columns.push(("Accuracy gap (%)".to_owned(), Column::parse("accuracy_pct", "gap")?));
    } else {
        for other in [Judged::MacroAccuracy, Judged::WorstClass, Judged::Accuracy] {
            if other != judged {
                columns.push(over_all(other)?);
            }
        }
    }
    columns.push(("Loss".to_owned(), Column::parse("loss", "total")?));
    Ok(columns)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use run_records::{Coordinate, EpochRecord};

    use super::*;

    /// An experiment with points of one method at these rates and bounds, trained for so many
    /// epochs.
    fn rung(id: &str, epochs: usize, points: &[(f64, f64)]) -> ExperimentResults {
        let mut experiment = run_records::made_up::study().experiments.remove(0);
        let template = experiment.methods[1].clone();
        experiment.id = id.to_owned();
        experiment.methods.clear();
        for (rate, bound) in points {
            let at = |name: &str, value: f64| Coordinate { name: name.to_owned(), value };
            let coordinates = vec![at(RATE, *rate), at(BOUND, *bound)];
            let mut method = MethodResults { method: format!("{rate}, {bound}"), coordinates, ..template.clone() };
            for run in &mut method.runs {
                let last = run.epochs.last().cloned().unwrap();
                run.epochs = vec![EpochRecord { epoch: epochs, ..last }];
            }
            experiment.methods.push(method);
        }
        experiment
    }

    #[test]
    fn a_heat_map_shows_how_far_points_were_trained() {
        let experiments = [
            rung("other-after-3", 3, &[(9.0, 9.0)]),
            rung("grid-after-3", 3, &[(1.0, 0.1), (1.0, 0.5), (2.0, 0.1), (2.0, 0.5)]),
            rung("grid-after-12", 12, &[(1.0, 0.5), (2.0, 0.1)]),
            rung("grid", 50, &[(2.0, 0.1)]),
        ];
        let before = rungs_before(&experiments, "grid");
        assert_eq!(before.iter().map(|rung| rung.id.as_str()).collect::<Vec<_>>(), ["grid-after-3", "grid-after-12"]);
        let figure = figures(&experiments[3], &before, Judged::MacroAccuracy, None).unwrap().remove(0);
        let Some(Panel::Heat(last)) = figure.plot.panels.last() else { panic!("a heat map") };
        assert_eq!(
            (last.title.as_str(), &last.x_values, &last.y_values),
            ("Epochs trained", &vec![0.1, 0.5], &vec![1.0, 2.0])
        );
        assert_eq!(last.values, [[Some(3.0), Some(12.0)], [Some(50.0), Some(3.0)]]);
        let Some(Panel::Heat(first)) = figure.plot.panels.first() else { panic!("a heat map") };
        assert_eq!(first.values.iter().flatten().flatten().count(), 1);
        assert!(figure.caption.ends_with("Empty cells were given up earlier."), "{}", figure.caption);
        // A search without rungs has no such panel.
        assert!(rungs_before(&experiments[3..], "grid").is_empty());
        let alone = figures(&experiments[3], &[], Judged::MacroAccuracy, None).unwrap().remove(0);
        assert_eq!(alone.plot.panels.len() + 1, figure.plot.panels.len());
    }
    /// The grid is that of all rungs: what was given up was searched.
    #[test]
    fn a_best_point_at_the_edge_is_named() {
        let points = [(1.0, 0.1), (1.0, 0.5), (2.0, 0.1), (2.0, 0.5), (4.0, 0.5)];
        let whole = rung("grid-after-3", 3, &points);
        let edges_of = |index: usize, searched: &ExperimentResults| {
            edges(&whole.methods[index], &searched.methods.iter().collect::<Vec<_>>())
        };
        assert_eq!(edges_of(0, &whole), ["least rate", "least bound"]);
        assert_eq!(edges_of(3, &whole), ["largest bound"]);
        assert_eq!(edges_of(4, &whole), ["largest rate", "largest bound"]);
        assert!(edges_of(0, &rung("one", 3, &points[..1])).is_empty());

        let last = rung("grid", 50, &points[3..4]);
        let search = Searched { experiment: "x".to_owned(), judged: Judged::Accuracy, published: None };
        let note = |earlier: &[&ExperimentResults]| {
            let Block::Table(table) = blocks(&last, earlier, &search, None).unwrap().remove(0) else {
                panic!("a table")
            };
            table.notes.join(" ")
        };
        assert!(
            note(&[&whole]).ends_with("a better point may lie beyond: DPSGD (largest bound)."),
            "{}",
            note(&[&whole])
        );
        assert!(
            note(&[]).contains("Best by mean accuracy, by which methods are judged, too")
                && !note(&[]).contains("edge")
        );
    }
}
