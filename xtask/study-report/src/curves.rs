//! Accuracy by group over what an experiment varies, for example ε.

use fair_metrics::Estimate;
use fair_report::plot::{LinePanel, Panel, Plot, Point, Series, linear_range};
use run_records::coordinate::coordinate;
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults};

use super::counterparts;
use super::figures::DrawnFigure;
use super::label::label;
use super::metric::{Column, REFERENCE};

/// A coordinate that curves run over, and the end of the file name.
const COORDINATES: [(&str, &str); 6] = [
    ("ε", "over-epsilon"),
    ("epochs", "over-epochs"),
    ("C", "over-bounds"),
    ("γ", "over-targets"),
    ("τ", "over-multipliers"),
    ("η_C", "over-threshold-rates"),
];

/// The curves over every coordinate that an experiment varies.
///
/// # Errors
/// If the experiment's groups are inconsistent.
pub(crate) fn figures(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Vec<DrawnFigure>> {
    let figures =
        COORDINATES.iter().map(|coordinate| over(*coordinate, experiment, mark)).collect::<Result<Vec<_>, _>>()?;
    Ok(figures.into_iter().flatten().collect())
}

/// A panel per metric, a curve per method; `None` if no method was run at two different values.
///
/// # Errors
/// If the experiment's groups are inconsistent.
fn over(
    (name, stem): (&str, &str),
    experiment: &ExperimentResults,
    mark: Option<Mark>,
) -> anyhow::Result<Option<DrawnFigure>> {
    let at = |method: &MethodResults| coordinate(method, name);
    let mut bases: Vec<&str> = Vec::new();
    for method in experiment.methods.iter().filter(|method| at(method).is_some()) {
        if !bases.contains(&method.base.as_str()) {
            bases.push(&method.base);
        }
    }
    let is_varied = |base: &str| {
        let mut values = experiment.methods.iter().filter(|method| method.base == base).filter_map(at);
        values.next().is_some_and(|first| values.any(|other| other != first))
    };
    if !bases.iter().any(|base| is_varied(base)) {
        return Ok(None);
    }
    let mut columns = vec![("Accuracy", Column::parse("accuracy_pct", "total")?)];
    if experiment.dataset.groups.len() > 2 {
        columns[0] = ("Macro accuracy", Column::parse("macro_accuracy_pct", "total")?);
        columns.push(("Worst-class accuracy", Column::parse("worst_class_accuracy_pct", "total")?));
    }
    // Of many groups only those that a paper draws.
    let drawn: Vec<&str> = counterparts::drawn_groups(experiment).map(|(_, group)| group.name.as_str()).collect();
    if drawn.len() <= 2 {
        for group in drawn {
            columns.push((group, Column::parse("accuracy_pct", group)?));
        }
    }
    let mut panels = Vec::new();
    let mut words = Vec::new();
    for (title, column) in columns {
        let mut series = Vec::new();
        for base in &bases {
            let mut points = Vec::new();
            for method in experiment.methods.iter().filter(|method| method.base == *base) {
                let Some(x) = at(method) else { continue };
                points.extend(point(x, &column.estimate(experiment, method)?));
            }
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            series.push(Series { name: label(base), points });
        }
        if let Some(reference) = experiment.methods.iter().find(|method| method.method == REFERENCE) {
            let ends = series.iter().flat_map(|series| &series.points).map(|point| point.x);
            let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
            let estimate = column.estimate(experiment, reference)?;
            let points: Vec<Point> = [low, high].into_iter().filter_map(|x| point(x, &estimate)).collect();
            series.push(Series { name: REFERENCE.to_owned(), points });
        }
        series.retain(|series| !series.points.is_empty());
        // Records that were imported from a table of metrics have no class means.
        if series.is_empty() {
            continue;
        }
        words.extend(series.iter().filter_map(|series| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            Some(format!(
                "{title}, {}: {:.1} at {name} = {} to {:.1} at {}",
                series.name, first.mean, first.x, last.mean, last.x
            ))
        }));
        let y_range = linear_range(series.iter().flat_map(|series| &series.points).copied());
        panels.push(Panel::Lines(LinePanel {
            title: marked(mark, title),
            x_label: name.to_owned(),
            y_label: "accuracy (%)".to_owned(),
            series,
            y_range,
            log2_x: false,
        }));
    }
    if panels.is_empty() {
        return Ok(None);
    }
    let caption =
        format!("Accuracy over {name}, mean over seeds with a band of one standard error. {}.", experiment.title);
    Ok(Some(DrawnFigure {
        stem: format!("{}-{stem}", experiment.id),
        caption: marked(mark, &caption),
        alt: format!("Line charts of accuracy over {name}. {}.", words.join("; ")),
        plot: Plot {
            title: marked(mark, &format!("Accuracy over {name}. {}", experiment.title)),
            n_columns: panels.len().min(3),
            panels,
        },
    }))
}

fn point(x: f64, estimate: &Estimate) -> Option<Point> {
    let mean = estimate.mean?;
    let error = estimate.standard_error.unwrap_or(0.0);
    Some(Point { x, mean, low: mean - error, high: mean + error })
}
