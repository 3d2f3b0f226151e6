//! The plots of an experiment, from its records.

use std::collections::BTreeMap;

use fair_metrics::Estimate;
use fair_report::plot::{Dot, DotPanel, DotSeries, LinePanel, Panel, Plot, Point, Series, y_range};
use run_records::coordinate::has_curves;
use run_records::mark::{Mark, marked};
use run_records::{EpochRecord, ExperimentResults, MethodResults};

use super::label::label;
use super::metric::Column;
use super::presentation::TablePresentation;
use super::{counterparts, curves, losses};

/// A plot with its words.
pub struct DrawnFigure {
    /// File name without extension.
    pub stem: String,
    pub caption: String,
    pub alt: String,
    pub plot: Plot,
}

/// Most points of a line: more than the pixels can show only make the file large.
const MAX_POINTS: usize = 120;

/// Every plot of an experiment that its records can fill.
pub(crate) fn figures(
    experiment: &ExperimentResults,
    tables: &[TablePresentation],
    mark: Option<Mark>,
) -> anyhow::Result<Vec<DrawnFigure>> {
    let figures = [
        Some(accuracy(experiment, tables, mark)?),
        over_epochs(experiment, mark, &LOSS)?,
        over_epochs(experiment, mark, &GRADIENT_NORM)?,
        over_epochs(experiment, mark, &MEAN_GRADIENT_NORM)?,
        thresholds(experiment, mark)?,
    ];
    let mut figures: Vec<DrawnFigure> = figures.into_iter().flatten().collect();
    figures.extend(losses::figures(experiment, tables, mark)?);
    figures.extend(curves::figures(experiment, mark)?);
    Ok(figures)
}

/// Ends the name of the file of the plot that says most.
pub(super) const ACCURACY: &str = "accuracy";

fn accuracy(
    experiment: &ExperimentResults,
    tables: &[TablePresentation],
    mark: Option<Mark>,
) -> anyhow::Result<DrawnFigure> {
    let published = |method: &MethodResults, column: &Column| {
        // Under a mark nothing is comparable.
        let mut tables = tables.iter().filter(|table| mark.is_none() && table.experiment == experiment.id);
        tables.find_map(|table| {
            let cells = table.published.cells.iter().filter(|cell| cell.method == method.method);
            let cell = cells.into_iter().find(|cell| {
                !cell.column.order_only
                    && (cell.column.metric, &cell.column.subject) == (column.metric, &column.subject)
            })?;
            // In the unit of the plot.
            Some(if cell.column.percent { cell.value.value } else { 100.0 * cell.value.value })
        })
    };
    let series = experiment
        .dataset
        .groups
        .iter()
        .map(|group| {
            let column = Column::parse("accuracy_pct", &group.name)?;
            let dots = experiment
                .methods
                .iter()
                .map(|method| {
                    let estimate = column.estimate(experiment, method)?;
                    let published = published(method, &column);
                    Ok(estimate.mean.map(|mean| Dot { mean, standard_error: estimate.standard_error, published }))
                })
                .collect::<anyhow::Result<Vec<Option<Dot>>>>()?;
            Ok(DotSeries { name: group.name.clone(), dots })
        })
        .collect::<anyhow::Result<Vec<DotSeries>>>()?;
    let is_compared = series.iter().flat_map(|series| &series.dots).flatten().any(|dot| dot.published.is_some());
    let alt = alt_of_dots(experiment, &series);
    let panel = DotPanel {
        title: marked(mark, "Accuracy by group"),
        x_label: "accuracy on the test records (%)".to_owned(),
        categories: experiment.methods.iter().map(|method| label(&method.method)).collect(),
        series,
        limits: (0.0, 100.0),
        decimals: 1,
    };
    Ok(DrawnFigure {
        stem: format!("{}-{ACCURACY}", experiment.id),
        caption: marked(
            mark,
            &format!(
                "Accuracy by group, mean ± standard error over seeds{}. {}.",
                if is_compared { "; hollow diamonds are the paper's" } else { "" },
                experiment.title
            ),
        ),
        alt,
        plot: Plot { title: marked(mark, &experiment.title), panels: vec![Panel::Dots(panel)], n_columns: 1 },
    })
}

/// A quantity that is recorded each epoch, by group.
struct EpochQuantity {
    stem: &'static str,
    axis: &'static str,
    words: &'static str,
    of: fn(&EpochRecord) -> &[Option<f64>],
}

const LOSS: EpochQuantity = EpochQuantity {
    stem: "loss",
    axis: "training loss (nats)",
    words: "Training loss by group over epochs",
    of: |epoch| &epoch.loss,
};

const GRADIENT_NORM: EpochQuantity = EpochQuantity {
    stem: "gradient-norm",
    axis: "gradient norm (L2)",
    words: "Mean per-sample gradient norm before clipping, by group over epochs",
    of: |epoch| &epoch.gradient_norm,
};

const MEAN_GRADIENT_NORM: EpochQuantity = EpochQuantity {
    stem: "mean-gradient-norm",
    axis: "norm of mean gradient (L2)",
    words: "Norm of the group's mean gradient, over epochs",
    of: |epoch| &epoch.mean_gradient_norm,
};

fn over_epochs(
    experiment: &ExperimentResults,
    mark: Option<Mark>,
    quantity: &EpochQuantity,
) -> anyhow::Result<Option<DrawnFigure>> {
    let mut panels = Vec::new();
    if !has_curves(experiment) {
        return Ok(None);
    }
    for method in &experiment.methods {
        let series = epoch_series(experiment, method, quantity)?;
        if !series.is_empty() {
            panels.push(LinePanel {
                title: marked(mark, &label(&method.method)),
                x_label: "epoch".to_owned(),
                y_label: quantity.axis.to_owned(),
                series,
                y_range: None,
                log2_x: false,
            });
        }
    }
    // All methods on one scale: what one of them does to the quantity is the point of the figure.
    let common = y_range(panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points).copied());
    for panel in &mut panels {
        panel.y_range = common;
    }
    let figure = figure(experiment, mark, quantity.stem, quantity.words, panels);
    Ok(figure.map(|figure| counterparts::note_omitted(experiment, figure)))
}

fn epoch_series(
    experiment: &ExperimentResults,
    method: &MethodResults,
    quantity: &EpochQuantity,
) -> anyhow::Result<Vec<Series>> {
    let mut series = Vec::new();
    for (index, group) in counterparts::drawn_groups(experiment) {
        let values = method.runs.iter().flat_map(|run| &run.epochs).map(|epoch| {
            let value = (quantity.of)(epoch).get(index).copied().flatten();
            (epoch.epoch as u64, value)
        });
        let points = mean_points(values)?;
        if !points.is_empty() {
            series.push(Series { name: group.name.clone(), points });
        }
    }
    Ok(series)
}

/// Thresholds of the methods whose threshold moves; the others have nothing to show.
fn thresholds(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Option<DrawnFigure>> {
    let mut panels = Vec::new();
    if !has_curves(experiment) {
        return Ok(None);
    }
    for method in &experiment.methods {
        let records = || method.runs.iter().flat_map(|run| &run.thresholds);
        let width = records().map(|record| record.values.len()).max().unwrap_or(0);
        let first = records().next().map(|record| &record.values);
        if width == 0 || records().all(|record| Some(&record.values) == first) {
            continue;
        }
        let mut series = Vec::new();
        for index in 0..width {
            let values = records().map(|record| (record.step, record.values.get(index).copied()));
            let name = if width == 1 {
                "threshold".to_owned()
            } else {
                experiment.dataset.groups.get(index).map_or_else(|| index.to_string(), |group| group.name.clone())
            };
            series.push(Series { name, points: mean_points(values)? });
        }
        panels.push(LinePanel {
            title: marked(mark, &label(&method.method)),
            x_label: "step".to_owned(),
            y_label: if width == 1 { "threshold Z or C" } else { "clipping bound C of the group" }.to_owned(),
            series,
            y_range: None,
            log2_x: false,
        });
    }
    Ok(figure(experiment, mark, "thresholds", "Clipping thresholds over steps", panels))
}

fn figure(
    experiment: &ExperimentResults,
    mark: Option<Mark>,
    stem: &str,
    words: &str,
    panels: Vec<LinePanel>,
) -> Option<DrawnFigure> {
    if panels.is_empty() {
        return None;
    }
    let alt = alt_of_lines(words, &panels);
    let n_columns = if panels.len() == 4 { 2 } else { panels.len().min(3) };
    Some(DrawnFigure {
        stem: format!("{}-{stem}", experiment.id),
        caption: marked(
            mark,
            &format!("{words}, mean over seeds with a band of one standard error. {}.", experiment.title),
        ),
        alt,
        plot: Plot {
            title: marked(mark, &format!("{words}. {}", experiment.title)),
            panels: panels.into_iter().map(Panel::Lines).collect(),
            n_columns,
        },
    })
}

/// Mean and standard error at each x, thinned; an x without a defined value is left out.
fn mean_points(values: impl Iterator<Item = (u64, Option<f64>)>) -> anyhow::Result<Vec<Point>> {
    let mut by_x: BTreeMap<u64, Vec<Option<f64>>> = BTreeMap::new();
    for (x, value) in values {
        by_x.entry(x).or_default().push(value.filter(|value| value.is_finite()));
    }
    let spacing = by_x.len().div_ceil(MAX_POINTS).max(1);
    let last = by_x.len().saturating_sub(1);
    let mut points = Vec::new();
    for (index, (x, values)) in by_x.into_iter().enumerate() {
        if index % spacing != 0 && index != last {
            continue;
        }
        let estimate = Estimate::over_seeds(&values)?;
        if let Some(mean) = estimate.mean {
            let error = estimate.standard_error.unwrap_or(0.0);
            points.push(Point { x: x as f64, mean, low: mean - error, high: mean + error });
        }
    }
    Ok(points)
}

fn alt_of_dots(experiment: &ExperimentResults, series: &[DotSeries]) -> String {
    let methods: Vec<String> = experiment
        .methods
        .iter()
        .enumerate()
        .map(|(index, method)| {
            let values: Vec<String> = series
                .iter()
                .map(|series| match series.dots[index] {
                    Some(dot) => format!("{} {:.1} %", series.name, dot.mean),
                    None => format!("{} undefined", series.name),
                })
                .collect();
            format!("{}: {}", label(&method.method), values.join(", "))
        })
        .collect();
    format!("Dot chart of accuracy by group. {}.", methods.join("; "))
}

/// First and last value of every line: the shape in words.
fn alt_of_lines(words: &str, panels: &[LinePanel]) -> String {
    let panels: Vec<String> = panels
        .iter()
        .map(|panel| {
            let lines: Vec<String> = panel
                .series
                .iter()
                .filter_map(|series| {
                    let (first, last) = (series.points.first()?, series.points.last()?);
                    Some(format!("{} from {:.3} to {:.3}", series.name, first.mean, last.mean))
                })
                .collect();
            format!("{}: {}", panel.title, lines.join(", "))
        })
        .collect();
    format!("Line charts. {words}. {}.", panels.join("; "))
}
