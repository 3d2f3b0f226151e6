//! Why clipping is unfair: the excessive risk of single steps, term by term.

use std::collections::BTreeMap;

use dp_train::analysis::{GroupTerms, RiskGapBounds, StepDecomposition};
use fair_metrics::{Estimate, RiskTerm};

use super::document::{Block, Cell, Mark, Row, Table, marked};
use super::figures::DrawnFigure;
use super::number;
use crate::plot::{LinePanel, Panel, Plot, Point, Series};
use crate::results::{AnalysisRecord, ExperimentResults, MethodResults};

/// What a group's terms say at a step.
type OfGroup = fn(&GroupTerms) -> f64;

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

/// Terms that the excessive risk of a step consists of.
const TERMS: [(&str, OfGroup); 3] = [
    ("clipping, magnitude", |group| group.magnitude.mean),
    ("clipping, direction", |group| group.direction.mean),
    ("noise", |group| group.noise.mean),
];

fn analyses(method: &MethodResults) -> impl Iterator<Item = &AnalysisRecord> {
    method.runs.iter().filter_map(|run| run.analysis.as_ref())
}

fn analysed(experiment: &ExperimentResults) -> Vec<&MethodResults> {
    experiment.methods.iter().filter(|method| analyses(method).next().is_some()).collect()
}

/// The terms of the excessive risk by group, summed over the evaluated steps of a run and averaged over runs; empty unless
/// the method's runs were analysed.
pub(super) fn risk_terms(experiment: &ExperimentResults, method: &MethodResults) -> Vec<RiskTerm> {
    let n_runs = analyses(method).count();
    if n_runs == 0 {
        return Vec::new();
    }
    let n_groups = experiment.dataset.groups.len();
    TERMS
        .iter()
        .map(|(name, of)| {
            let mut by_group = vec![0.0; n_groups];
            for step in analyses(method).flat_map(|analysis| &analysis.steps) {
                for (total, group) in by_group.iter_mut().zip(&step.groups) {
                    *total += group.as_ref().map_or(0.0, of) / n_runs as f64;
                }
            }
            RiskTerm { name: (*name).to_owned(), by_group }
        })
        .collect()
}

/// The plots of an experiment whose runs were analysed; none otherwise.
pub(super) fn figures(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Vec<DrawnFigure>> {
    let methods = analysed(experiment);
    if methods.is_empty() {
        return Ok(Vec::new());
    }
    let mut figures = Vec::new();
    for quantity in &QUANTITIES {
        let mut panels = Vec::new();
        for method in &methods {
            let mut series = Vec::new();
            for (index, group) in experiment.dataset.groups.iter().enumerate() {
                let value = |step: &StepDecomposition| Some((quantity.of)(step.groups.get(index)?.as_ref()?));
                series.push(line(method, &group.name, &value)?);
            }
            panels.push(panel(mark, &method.method, quantity.axis, series));
        }
        figures.push(drawn(experiment, mark, quantity.stem, quantity.words, panels, quantity.common_scale));
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

/// The two groups whose error of direction differs most in a method's runs, the one that suffers more first.
fn widest_pair(experiment: &ExperimentResults, method: &MethodResults) -> Option<(usize, usize)> {
    let terms = risk_terms(experiment, method);
    let direction = &terms.iter().find(|term| term.name == TERMS[1].0)?.by_group;
    let order = |a: &usize, b: &usize| direction[*a].total_cmp(&direction[*b]);
    let highest = (0..direction.len()).max_by(order)?;
    let lowest = (0..direction.len()).min_by(order)?;
    (highest != lowest).then_some((highest, lowest))
}

fn bound_panels(
    experiment: &ExperimentResults,
    method: &MethodResults,
    mark: Option<Mark>,
) -> anyhow::Result<Vec<LinePanel>> {
    let Some((a, b)) = widest_pair(experiment, method) else { return Ok(Vec::new()) };
    let names = (&experiment.dataset.groups[a].name, &experiment.dataset.groups[b].name);
    let bounds = |of: fn(&RiskGapBounds) -> f64| {
        move |step: &StepDecomposition| step.risk_gap_bounds(a, b).map(|bounds| of(&bounds))
    };
    let gap = format!("R({}) − R({})", names.0, names.1);
    Ok(vec![
        panel(
            mark,
            &format!("{}, clipping", method.method),
            &gap,
            vec![
                line(method, "R^clip", &bounds(|bounds| bounds.clip_gap))?,
                line(method, "bound of Tran 2021", &bounds(|bounds| bounds.tran))?,
            ],
        ),
        panel(
            mark,
            &format!("{}, direction", method.method),
            &gap,
            vec![
                line(method, "R^dir", &bounds(|bounds| bounds.direction_gap))?,
                line(method, "Proposition 3", &bounds(|bounds| bounds.proposition_3))?,
            ],
        ),
        panel(
            mark,
            &format!("{}, alternate", method.method),
            &gap,
            vec![
                line(method, "R^dir*", &bounds(|bounds| bounds.direction_star_gap))?,
                line(method, "Proposition 3*", &bounds(|bounds| bounds.proposition_3_star))?,
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
    Ok(Some(panel(mark, &method.method, "eigenvalue", vec![largest, limit])))
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
    DrawnFigure {
        stem: format!("{}-{stem}", experiment.id),
        caption: marked(
            mark,
            &format!("{words}, mean over seeds with a band of one standard error. {}.", experiment.title),
        ),
        alt: format!("Line charts. {words}. {}.", lines.join("; ")),
        plot: Plot {
            title: marked(mark, &format!("{words}. {}", experiment.title)),
            panels: panels.into_iter().map(Panel::Lines).collect(),
            n_columns,
        },
    }
}

/// Terms, norms and bounds as tables; nothing unless runs were analysed.
pub(super) fn blocks(experiment: &ExperimentResults, mark: Option<Mark>) -> anyhow::Result<Vec<Block>> {
    let methods = analysed(experiment);
    if methods.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![
        Block::Table(terms(experiment, &methods, mark)?),
        Block::Table(norms(experiment, &methods, mark)?),
        Block::Table(bounds(experiment, &methods, mark)?),
        Block::Paragraph(cost(&methods)),
    ])
}

/// Mean over the evaluated steps of each run, then over runs with its standard error.
fn over_runs(method: &MethodResults, of: &dyn Fn(&StepDecomposition) -> Option<f64>) -> anyhow::Result<Estimate> {
    let by_run: Vec<Option<f64>> = analyses(method)
        .map(|analysis| {
            let values: Vec<f64> = analysis.steps.iter().filter_map(of).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        })
        .collect();
    Ok(Estimate::over_seeds(&by_run)?)
}

/// Four significant digits, with the standard error.
fn scientific(estimate: &Estimate) -> Cell {
    Cell::plain(match (estimate.mean, estimate.standard_error) {
        (Some(mean), Some(error)) => format!("{mean:.2e} ± {error:.0e}"),
        (Some(mean), None) => format!("{mean:.2e}"),
        (None, _) => "undefined".to_owned(),
    })
}

fn by_group(
    experiment: &ExperimentResults,
    methods: &[&MethodResults],
    cells: &dyn Fn(&MethodResults, usize) -> anyhow::Result<Vec<Cell>>,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for method in methods {
        for (index, group) in experiment.dataset.groups.iter().enumerate() {
            rows.push(Row { header: format!("{}, {}", method.method, group.name), cells: cells(method, index)? });
        }
    }
    Ok(rows)
}

fn terms(experiment: &ExperimentResults, methods: &[&MethodResults], mark: Option<Mark>) -> anyhow::Result<Table> {
    let quantities: [(&str, OfGroup); 7] = [
        ("R^clip", |group| group.clip.mean),
        ("R^mag", |group| group.magnitude.mean),
        ("R^dir", |group| group.direction.mean),
        ("R^mag*", |group| group.magnitude_star.mean),
        ("R^dir*", |group| group.direction_star.mean),
        ("R^noise", |group| group.noise.mean),
        ("R^noise as printed", |group| group.noise_as_printed.mean),
    ];
    let rows = by_group(experiment, methods, &|method, group| {
        quantities
            .iter()
            .map(|(_, of)| Ok(scientific(&over_runs(method, &|step| Some(of(step.groups.get(group)?.as_ref()?)))?)))
            .collect()
    })?;
    let mut columns = vec!["Method, group".to_owned()];
    columns.extend(quantities.iter().map(|(name, _)| (*name).to_owned()));
    Ok(Table {
        caption: marked(mark, &format!("Excessive training loss of a step, mean over evaluated steps: {}", experiment.title)),
        columns,
        rows,
        notes: vec![
            "Nats per step, mean over evaluated steps, ± standard error over seeds. R^clip = R^mag + R^dir = R^mag* + R^dir*. The \
             noise that is added is divided by the batch size; the paper prints its term without."
                .to_owned(),
        ],
    })
}

fn norms(experiment: &ExperimentResults, methods: &[&MethodResults], mark: Option<Mark>) -> anyhow::Result<Table> {
    let columns = [
        "Method, group",
        "Per-sample norm",
        "after clipping",
        "‖g_Da‖",
        "θ (degrees)",
        "θ̄ (degrees)",
        "trace of the Hessian",
    ];
    let rows = by_group(experiment, methods, &|method, group| {
        let cell = |of: fn(&GroupTerms) -> Option<f64>, digits| {
            let estimate = over_runs(method, &|step| of(step.groups.get(group)?.as_ref()?))?;
            Ok(Cell::plain(number::estimate(&estimate, digits)))
        };
        [
            cell(|group| group.sample_norm, 3),
            cell(|group| group.clipped_sample_norm, 4),
            cell(|group| Some(group.gradient_norm), 3),
            cell(|group| Some(group.plain_angle.mean), 1),
            cell(|group| Some(group.clipped_angle.mean), 1),
            cell(|group| Some(group.trace.mean), 1),
        ]
        .into_iter()
        .collect()
    })?;
    Ok(Table {
        caption: marked(mark, &format!("Gradients by group before and after clipping: {}", experiment.title)),
        columns: columns.iter().map(ToString::to_string).collect(),
        rows,
        notes: vec![
            "θ is the angle between the group's exact gradient and the batch's, θ̄ that with the clipped one. Mean over evaluated \
             steps, ± standard error over seeds."
                .to_owned(),
        ],
    })
}

fn bounds(experiment: &ExperimentResults, methods: &[&MethodResults], mark: Option<Mark>) -> anyhow::Result<Table> {
    let mut rows = Vec::new();
    for method in methods {
        let Some((a, b)) = widest_pair(experiment, method) else { continue };
        let mean = |of: fn(&RiskGapBounds) -> f64| {
            over_runs(method, &|step| step.risk_gap_bounds(a, b).map(|bounds| of(&bounds)))
        };
        let share = |holds: &dyn Fn(&StepDecomposition) -> Option<bool>| -> anyhow::Result<Cell> {
            let estimate = over_runs(method, &|step| holds(step).map(|holds| f64::from(u8::from(holds))))?;
            Ok(Cell::plain(
                estimate.mean.map_or_else(|| "not asked".to_owned(), |mean| format!("{:.0} %", 100.0 * mean)),
            ))
        };
        let groups = &experiment.dataset.groups;
        rows.push(Row {
            header: format!("{}: {} − {}", method.method, groups[a].name, groups[b].name),
            cells: vec![
                scientific(&mean(|bounds| bounds.clip_gap)?),
                scientific(&mean(|bounds| bounds.tran)?),
                scientific(&mean(|bounds| bounds.direction_gap)?),
                scientific(&mean(|bounds| bounds.proposition_3)?),
                share(&|step| step.risk_gap_bounds(a, b).map(|bounds| bounds.proposition_3 <= bounds.direction_gap))?,
                share(&StepDecomposition::rate_condition)?,
            ],
        });
    }
    let columns = [
        "Method: pair",
        "R^clip gap",
        "bound of Tran 2021",
        "R^dir gap",
        "Proposition 3",
        "steps where it is below the gap",
        "steps with η ≤ 1/λ",
    ];
    Ok(Table {
        caption: marked(mark, &format!("Differences between groups and their lower bounds: {}", experiment.title)),
        columns: columns.iter().map(ToString::to_string).collect(),
        rows,
        notes: vec![
            "The pair whose error of direction differs most. The bounds assume a convex loss and η ≤ 1/λ, with λ the largest \
             eigenvalue of any group's Hessian, here over a sample of each group's records."
                .to_owned(),
        ],
    })
}

fn cost(methods: &[&MethodResults]) -> String {
    let runs = || methods.iter().flat_map(|method| &method.runs);
    let evaluating: f64 = runs().filter_map(|run| run.analysis.as_ref()).map(|analysis| analysis.seconds).sum();
    let whole: f64 = runs().map(|run| run.seconds).sum();
    let steps: usize = runs().filter_map(|run| run.analysis.as_ref()).map(|analysis| analysis.steps.len()).sum();
    let every = runs().find_map(|run| run.analysis.as_ref()).map_or(0, |analysis| analysis.every);
    format!(
        "{steps} steps were taken apart, every {every}th of each run: {evaluating:.1} s of evaluations beside {:.1} s of everything \
         else in these runs, one thread for each run.",
        whole - evaluating
    )
}

#[cfg(test)]
mod tests {
    use dp_train::analysis::Sampled;

    use super::*;
    use crate::report::fixture;

    fn sampled(mean: f64) -> Sampled {
        Sampled { mean, standard_error: Some(0.1 * mean.abs()) }
    }

    /// A group whose terms follow from its error of direction.
    fn group(direction: f64) -> GroupTerms {
        GroupTerms {
            share: 0.5,
            gradient_norm: 0.8,
            sample_norm: Some(2.0),
            clipped_sample_norm: Some(0.5),
            clip: sampled(direction + 1e-3),
            noise: sampled(1e-6),
            noise_as_printed: sampled(0.06),
            magnitude: sampled(1e-3),
            direction: sampled(direction),
            magnitude_star: sampled(1e-3),
            direction_star: sampled(direction),
            direction_slope: sampled(direction),
            direction_star_slope: sampled(direction),
            plain_cosine: sampled(0.9),
            clipped_cosine: sampled(0.8),
            plain_angle: sampled(26.0),
            clipped_angle: sampled(37.0),
            trace: sampled(10.0),
            largest_eigenvalue: None,
        }
    }

    fn analysed_experiment() -> ExperimentResults {
        let mut experiment = fixture::study().experiments.remove(0);
        for method in experiment.methods.iter_mut().filter(|method| method.method == "dpsgd") {
            for run in &mut method.runs {
                let steps = [0, 50].map(|step| StepDecomposition {
                    step,
                    learning_rate: 0.01,
                    thresholds: vec![0.5],
                    gradient_norm: 0.5,
                    plain_sq_norm: sampled(0.3),
                    clipped_sq_norm: sampled(0.2),
                    bound: 0.5,
                    groups: vec![Some(group(2e-4)), Some(group(-1e-4))],
                });
                run.analysis = Some(AnalysisRecord { every: 50, seconds: 1.0, steps: steps.to_vec() });
            }
        }
        experiment
    }

    /// Two steps of 2e-4 and −1e-4: the error of direction is what sets the groups apart, and the statement says so.
    #[test]
    fn terms_are_summed_over_steps_and_name_the_cause() {
        let experiment = analysed_experiment();
        let method = &experiment.methods[1];
        let terms = risk_terms(&experiment, method);
        assert_eq!(terms.len(), 3);
        assert_eq!(terms[1].name, "clipping, direction");
        assert!((terms[1].by_group[0] - 4e-4).abs() < 1e-12 && (terms[1].by_group[1] + 2e-4).abs() < 1e-12);
        assert_eq!(widest_pair(&experiment, method), Some((0, 1)));
        assert!(risk_terms(&experiment, &experiment.methods[2]).is_empty());
        let statements = super::super::fairness::in_words(&experiment, None).unwrap();
        assert!(statements[0].ends_with("Largest cause of the difference: clipping, direction."), "{}", statements[0]);
        assert!(!statements[1].contains("Largest cause"));
    }

    #[test]
    fn plots_and_tables_show_the_analysed_methods_alone() {
        let experiment = analysed_experiment();
        let figures = figures(&experiment, None).unwrap();
        let stems: Vec<&str> = figures.iter().map(|figure| figure.stem.as_str()).collect();
        assert_eq!(
            stems,
            ["direction", "magnitude", "noise", "direction-star", "magnitude-star", "turn", "bounds"]
                .map(|stem| format!("esipova-adult-{stem}"))
        );
        assert!(figures[0].plot.svg().unwrap().contains("R^dir (1e−4 nats)"));
        let blocks = blocks(&experiment, None).unwrap();
        let Block::Table(terms) = &blocks[0] else { panic!("the terms come first") };
        assert_eq!(terms.rows.len(), 2);
        assert_eq!(terms.rows[0].header, "dpsgd, male");
        assert_eq!(terms.rows[0].cells[2].lines, ["2.00e-4 ± 0e0"]);
        let mut plain = experiment;
        plain.methods.iter_mut().flat_map(|method| &mut method.runs).for_each(|run| run.analysis = None);
        assert!(super::blocks(&plain, None).unwrap().is_empty() && super::figures(&plain, None).unwrap().is_empty());
    }
}
