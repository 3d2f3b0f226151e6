//! Terms of single steps, bounds and eigenvalues as plots.

use std::collections::BTreeMap;

use dp_train::analysis::{RiskGapBounds, StepDecomposition};
use fair_metrics::Estimate;
use fair_report::plot::{LinePanel, Panel, Plot, Point, Series};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults};

use super::{OfGroup, analysed, analyses, widest_pair};
use crate::counterparts;
use crate::figures::DrawnFigure;
use crate::label::label;

/// A quantity of a group at a step.
struct Quantity {
    stem: &'static str,
    axis: &'static str,
    words: &'static str,
    of: OfGroup,
    /// Whether all methods are drawn on one scale.
    common_scale: bool,
}

const QUANTITIES: [Quantity; 6] = [
    Quantity {
        stem: "direction",
        axis: "R^dir",
        words: "Excessive risk of a step by the error of direction, R^dir",
        of: |group| group.direction.mean,
        common_scale: true,
    },
    Quantity {
        stem: "magnitude",
        axis: "R^mag",
        words: "Excessive risk of a step by the error of magnitude, R^mag",
        of: |group| group.magnitude.mean,
        common_scale: false,
    },
    Quantity {
        stem: "noise",
        axis: "R^noise",
        words: "Excessive risk of a step by the noise, R^noise",
        of: |group| group.noise.mean,
        common_scale: false,
    },
    Quantity {
        stem: "direction-star",
        axis: "R^dir*",
        words: "Excessive risk of a step by the error of direction in the alternate decomposition, R^dir*",
        of: |group| group.direction_star.mean,
        common_scale: false,
    },
    Quantity {
        stem: "magnitude-star",
        axis: "R^mag*",
        words: "Excessive risk of a step by the error of magnitude in the alternate decomposition, R^mag*",
        of: |group| group.magnitude_star.mean,
        common_scale: false,
    },
    Quantity {
        stem: "turn",
        axis: "θ̄ − θ (degrees)",
        words: "How much further from the group's gradient clipping turns the batch's, in degrees",
        of: |group| group.clipped_angle.mean - group.plain_angle.mean,
        common_scale: true,
    },
];

/// The plots of an experiment whose runs were analysed; none otherwise.
pub(crate) fn figures(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Vec<DrawnFigure>> {
    let methods = analysed(experiment);
    if methods.is_empty() {
        return Ok(Vec::new());
    }
    let mut figures = Vec::new();
    for quantity in &QUANTITIES {
        let mut panels = Vec::new();
        for method in &methods {
            let mut series = Vec::new();
            for (index, group) in counterparts::drawn_groups(experiment) {
                let value = |step: &StepDecomposition| Some((quantity.of)(step.groups.get(index)?.as_ref()?));
                series.push(line(method, &group.name, &value)?);
            }
            panels.push(panel(mark, &label(&method.method), quantity.axis, series));
        }
        let figure = drawn(experiment, mark, quantity.stem, quantity.words, panels, quantity.common_scale);
        figures.push(counterparts::note_omitted(experiment, figure));
    }
    let mut panels = Vec::new();
    for method in &methods {
        panels.extend(bound_panels(experiment, method, mark)?);
    }
    let words = "Difference of the groups' excessive risks beside its lower bounds";
    figures.push(drawn(experiment, mark, "bounds", words, panels, false));
    let panels = methods
        .iter()
        .filter_map(|method| eigenvalue_panel(method, mark).transpose())
        .collect::<Result<Vec<_>, _>>()?;
    if !panels.is_empty() {
        let words = "Largest eigenvalue of any group's Hessian beside 1/η";
        figures.push(drawn(experiment, mark, "eigenvalue", words, panels, false));
    }
    Ok(figures)
}

fn bound_panels(
    experiment: &ExperimentResults,
    method: &MethodResults,
    mark: Option<Mark>,
) -> anyhow::Result<Vec<LinePanel>> {
    let Some((a, b)) = widest_pair(experiment, method) else { return Ok(Vec::new()) };
    let names = (&experiment.dataset.groups[a].name, &experiment.dataset.groups[b].name);
    let bounds = |of: fn(&RiskGapBounds) -> Option<f64>| {
        move |step: &StepDecomposition| step.risk_gap_bounds(a, b).and_then(|bounds| of(&bounds))
    };
    let gap = format!("R({}) − R({})", names.0, names.1);
    Ok(vec![
        panel(
            mark,
            &format!("{}, clipping", label(&method.method)),
            &gap,
            vec![
                line(method, "R^clip", &bounds(|bounds| Some(bounds.clip_gap)))?,
                line(method, "bound of Tran 2021", &bounds(|bounds| bounds.tran))?,
            ],
        ),
        panel(
            mark,
            &format!("{}, direction", label(&method.method)),
            &gap,
            vec![
                line(method, "R^dir", &bounds(|bounds| Some(bounds.direction_gap)))?,
                line(method, "Proposition 3", &bounds(|bounds| Some(bounds.proposition_3)))?,
            ],
        ),
        panel(
            mark,
            &format!("{}, alternate", label(&method.method)),
            &gap,
            vec![
                line(method, "R^dir*", &bounds(|bounds| Some(bounds.direction_star_gap)))?,
                line(method, "Proposition 3*", &bounds(|bounds| Some(bounds.proposition_3_star)))?,
            ],
        ),
    ])
}

fn largest_eigenvalue(step: &StepDecomposition) -> Option<f64> {
    let values = step.groups.iter().flatten().map(|group| group.largest_eigenvalue.map(|found| found.value));
    values.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

fn eigenvalue_panel(method: &MethodResults, mark: Option<Mark>) -> anyhow::Result<Option<LinePanel>> {
    let largest = line(method, "largest λ", &largest_eigenvalue)?;
    if largest.points.is_empty() {
        return Ok(None);
    }
    let limit = line(method, "1/η", &|step: &StepDecomposition| Some(1.0 / step.learning_rate))?;
    Ok(Some(panel(mark, &label(&method.method), "eigenvalue", vec![largest, limit])))
}

/// Mean over seeds at each step, with a band of one standard error.
fn line(method: &MethodResults, name: &str, of: &dyn Fn(&StepDecomposition) -> Option<f64>) -> anyhow::Result<Series> {
    let mut by_step: BTreeMap<u64, Vec<Option<f64>>> = BTreeMap::new();
    for step in analyses(method).flat_map(|analysis| &analysis.steps) {
        by_step.entry(step.step).or_default().push(of(step));
    }
    let mut points = Vec::new();
    for (step, values) in by_step {
        let estimate = Estimate::over_seeds(&values)?;
        if let Some(mean) = estimate.mean {
            let error = estimate.standard_error.unwrap_or(0.0);
            points.push(Point { x: step as f64, mean, low: mean - error, high: mean + error });
        }
    }
    Ok(Series { name: name.to_owned(), points })
}

fn panel(mark: Option<Mark>, title: &str, y_label: &str, series: Vec<Series>) -> LinePanel {
    LinePanel {
        title: marked(mark, title),
        x_label: "step".to_owned(),
        y_label: y_label.to_owned(),
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        y_range: None,
        log2_x: false,
    }
}

fn values(panels: &[LinePanel]) -> impl Iterator<Item = &Point> {
    panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points)
}

/// Risks of single steps are small: the axes count in powers of ten.
fn in_powers_of_ten(panel: &mut LinePanel, exponent: i32) {
    if exponent >= -1 {
        return;
    }
    let factor = 10_f64.powi(-exponent);
    for point in panel.series.iter_mut().flat_map(|series| &mut series.points) {
        point.mean *= factor;
        point.low *= factor;
        point.high *= factor;
    }
    panel.y_label = format!("{} (1e−{} nats)", panel.y_label, exponent.unsigned_abs());
}

fn exponent(panels: &[LinePanel]) -> i32 {
    let largest = values(panels).map(|point| point.mean.abs()).fold(0.0, f64::max);
    if largest > 0.0 { largest.log10().floor() as i32 } else { 0 }
}

fn drawn(
    experiment: &ExperimentResults,
    mark: Option<Mark>,
    stem: &str,
    words: &str,
    mut panels: Vec<LinePanel>,
    common_scale: bool,
) -> DrawnFigure {
    let common = exponent(&panels);
    for panel in &mut panels {
        let exponent = if common_scale { common } else { exponent(std::slice::from_ref(panel)) };
        in_powers_of_ten(panel, exponent);
    }
    if common_scale {
        let (low, high) = values(&panels).fold((0.0_f64, 0.0_f64), |(low, high), p| (low.min(p.low), high.max(p.high)));
        let margin = (0.05 * (high - low)).max(1e-9);
        for panel in &mut panels {
            panel.y_range = Some((low - margin, high + margin));
        }
    }
    let lines: Vec<String> = panels
        .iter()
        .flat_map(|panel| panel.series.iter().map(move |series| (panel, series)))
        .filter_map(|(panel, series)| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            Some(format!("{}, {}: from {:.3} to {:.3}", panel.title, series.name, first.mean, last.mean))
        })
        .collect();
    let n_columns = if panels.len() == 4 { 2 } else { panels.len().min(3) };
    let axes = if common_scale || panels.len() < 2 { "" } else { " Every panel has an axis of its own." };
    DrawnFigure {
        stem: format!("{}-{stem}", experiment.id),
        caption: marked(
            mark,
            &format!("{words}, mean over seeds with a band of one standard error. {}.{axes}", experiment.title),
        ),
        alt: format!("Line charts. {words}. {}.", lines.join("; ")),
        plot: Plot {
            title: marked(mark, &format!("{words}. {}", experiment.title)),
            panels: panels.into_iter().map(Panel::Lines).collect(),
            n_columns,
        },
    }
}
