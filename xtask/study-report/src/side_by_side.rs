//! The opening of a comparison: which method is best at which ε, as a sentence, a table and a
//! figure for each data set.

use fair_metrics::Estimate;
use fair_report::number;
use fair_report::plot::{LinePanel, Panel, Plot, Point, Series};
use fair_report::{Block, Cell, Row, Section, Table, Tone};
use run_records::coordinate::{coordinate, is_grid};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults, StudyResults};

use super::answer::drawn;
use super::estimate::mean_and_error;
use super::figures::DrawnFigure;
use super::label::label;
use super::metric::{Column, REFERENCE};
use super::ranking::Ranked;

/// The coordinate that methods are compared along.
const COORDINATE: &str = "ε";
/// Of accuracies in per cent.
const DECIMALS: usize = 1;

/// One method's curve.
struct Curve<'a> {
    base: &'a str,
    points: Vec<(f64, Estimate)>,
}

/// The section and its figures; `None` unless one of the ranked experiments was run.
///
/// # Errors
/// If an experiment's records are inconsistent, or a figure cannot be drawn.
pub(super) fn section(
    results: &StudyResults,
    ranked: &[Ranked],
) -> anyhow::Result<Option<(Section, Vec<DrawnFigure>)>> {
    let mut blocks = Vec::new();
    let mut figures = Vec::new();
    for ranked in ranked {
        let found = results.experiments.iter().find(|experiment| experiment.id == ranked.experiment);
        let Some(experiment) = found.filter(|experiment| !is_grid(experiment)) else { continue };
        let mark = Mark::new(experiment.dataset.synthetic, results.quick);
        let column = ranked.judged.column()?;
        let curves = curves(experiment, &column)?;
        if curves.is_empty() {
            continue;
        }
        blocks.push(Block::Paragraph(sentence(experiment, *ranked, &curves)));
        blocks.push(Block::Table(table(experiment, *ranked, &column, &curves, mark)?));
        let figure = figure(experiment, *ranked, &curves, mark);
        blocks.push(Block::Figure(drawn(&figure)?));
        figures.push(figure);
    }
    let section = Section::new("answer", "The answer", blocks);
    Ok((!figures.is_empty()).then_some((section, figures)))
}

/// The methods with an ε, the workspace's own ones last.
fn curves<'a>(experiment: &'a ExperimentResults, column: &Column) -> anyhow::Result<Vec<Curve<'a>>> {
    let mut curves: Vec<Curve<'a>> = Vec::new();
    for method in &experiment.methods {
        let Some(epsilon) = coordinate(method, COORDINATE) else { continue };
        let estimate = column.estimate(experiment, method)?;
        match curves.iter_mut().find(|curve| curve.base == method.base) {
            Some(curve) => curve.points.push((epsilon, estimate)),
            None => curves.push(Curve { base: &method.base, points: vec![(epsilon, estimate)] }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    Ok(curves)
}

fn epsilons(curves: &[Curve<'_>]) -> Vec<f64> {
    let mut all: Vec<f64> = curves.iter().flat_map(|curve| &curve.points).map(|(epsilon, _)| *epsilon).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

fn mean_at(curve: &Curve<'_>, epsilon: f64) -> Option<f64> {
    curve.points.iter().find(|(at, _)| *at == epsilon)?.1.mean
}

/// The best of the papers' methods at this ε, and its mean.
fn best_rival<'a>(ranked: Ranked, curves: &'a [Curve<'_>], epsilon: f64) -> Option<(&'a str, f64)> {
    let rivals = curves.iter().filter(|curve| !ranked.own.contains(&curve.base));
    rivals.filter_map(|curve| Some((curve.base, mean_at(curve, epsilon)?))).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The recommended method beside the best of the papers', at ε = 1 or nearest to it, and at how
/// many ε it is ahead.
fn sentence(experiment: &ExperimentResults, ranked: Ranked, curves: &[Curve<'_>]) -> String {
    let ours = curves.iter().find(|curve| curve.base == ranked.recommended);
    let pairs: Vec<(f64, f64, &str, f64)> = epsilons(curves)
        .into_iter()
        .filter_map(|epsilon| {
            let (name, best) = best_rival(ranked, curves, epsilon)?;
            Some((epsilon, mean_at(ours?, epsilon)?, name, best))
        })
        .collect();
    let Some((epsilon, mean, name, best)) = pairs.iter().min_by(|a, b| a.0.ln().abs().total_cmp(&b.0.ln().abs()))
    else {
        return format!("{}: {} was not run beside a method of the papers.", experiment.title, ranked.recommended);
    };
    let ahead = pairs.iter().filter(|(_, mean, _, best)| mean > best).count();
    format!(
        "{}. At ε = {epsilon}, {} has {} % {}; the best of the papers' methods, {}, has {} %. It is ahead at {ahead} of {} values of ε.",
        experiment.title,
        ranked.recommended,
        number::fixed(*mean, DECIMALS),
        ranked.judged.words(),
        label(name),
        number::fixed(*best, DECIMALS),
        pairs.len(),
    )
}

fn table(
    experiment: &ExperimentResults,
    ranked: Ranked,
    column: &Column,
    curves: &[Curve<'_>],
    mark: Option<Mark>,
) -> anyhow::Result<Table> {
    let epsilons = epsilons(curves);
    let best = |epsilon: f64| {
        let means = curves.iter().filter_map(|curve| mean_at(curve, epsilon));
        means.max_by(f64::total_cmp)
    };
    let mut rows = Vec::new();
    if let Some(reference) = experiment.methods.iter().find(|method| method.method == REFERENCE) {
        let estimate = column.estimate(experiment, reference)?;
        let cells = epsilons.iter().map(|_| Cell::plain(mean_and_error(&estimate, DECIMALS))).collect();
        rows.push(Row { header: label(REFERENCE), cells });
    }
    for curve in curves {
        let cell = |&epsilon: &f64| {
            let found = curve.points.iter().find(|(at, _)| *at == epsilon);
            found.map_or_else(
                || Cell::plain("–"),
                |(_, estimate)| {
                    let is_best = estimate.mean.is_some() && estimate.mean == best(epsilon);
                    let tone = if is_best { Tone::Good } else { Tone::Plain };
                    let text = mean_and_error(estimate, DECIMALS);
                    Cell::toned(if is_best { format!("{text} (best)") } else { text }, tone)
                },
            )
        };
        let recommended = if curve.base == ranked.recommended { " (recommended)" } else { "" };
        rows.push(Row {
            header: format!("{}{recommended}", label(curve.base)),
            cells: epsilons.iter().map(cell).collect(),
        });
    }
    let seeds = experiment.methods.iter().map(|method| method.runs.len()).max().unwrap_or(0);
    Ok(Table {
        caption: marked(
            mark,
            &format!("{} in per cent, by method and ε: {}", capital(ranked.judged.words()), experiment.title),
        ),
        columns: std::iter::once("Method".to_owned()).chain(epsilons.iter().map(ToString::to_string)).collect(),
        rows,
        notes: vec![
            format!("Mean ± standard error over {seeds} seeds, on test records."),
            marks(experiment),
            "The reference has no ε; it is trained as the papers' methods are, so that it is no upper limit of others."
                .to_owned(),
        ],
    })
}

/// What the ε at the head of the columns are worth.
fn marks(experiment: &ExperimentResults) -> String {
    let is_nominal = |method: &&MethodResults| method.privacy.as_ref().is_some_and(|privacy| !privacy.certified);
    let nominal: Vec<String> =
        experiment.methods.iter().filter(is_nominal).map(|method| label(&method.method)).collect();
    if nominal.is_empty() {
        return "Columns are values of ε: for every method a certified upper bound.".to_owned();
    }
    format!("Columns are values of ε: certified upper bounds, but nominal for {}.", nominal.join(", "))
}

fn figure(experiment: &ExperimentResults, ranked: Ranked, curves: &[Curve<'_>], mark: Option<Mark>) -> DrawnFigure {
    let series: Vec<Series> = curves
        .iter()
        .map(|curve| {
            let points = curve.points.iter().filter_map(|(x, estimate)| point(*x, estimate)).collect();
            Series { name: label(curve.base), points }
        })
        .filter(|series: &Series| !series.points.is_empty())
        .collect();
    let words: Vec<String> = series
        .iter()
        .filter_map(|series| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            Some(format!("{}: {:.1} at ε = {} to {:.1} at {}", series.name, first.mean, first.x, last.mean, last.x))
        })
        .collect();
    let title = format!("{} over ε. {}", capital(ranked.judged.words()), experiment.title);
    DrawnFigure {
        stem: format!("{}-answer", experiment.id),
        caption: marked(mark, &format!("{title}. Mean over seeds with a band of one standard error.")),
        alt: marked(mark, &format!("A line chart, a line for each method. {}.", words.join("; "))),
        plot: Plot {
            title: marked(mark, &title),
            n_columns: 1,
            panels: vec![Panel::Lines(LinePanel {
                title: marked(mark, &capital(ranked.judged.words())),
                x_label: COORDINATE.to_owned(),
                y_label: format!("{} (%)", ranked.judged.words()),
                series,
                y_range: None,
                log2_x: true,
            })],
        },
    }
}

fn point(x: f64, estimate: &Estimate) -> Option<Point> {
    let mean = estimate.mean?;
    let error = estimate.standard_error.unwrap_or(0.0);
    Some(Point { x, mean, low: mean - error, high: mean + error })
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use run_records::Coordinate;

    use super::*;
    use crate::{Judged, fixture};

    #[test]
    fn a_comparison_opens_with_its_answer() {
        let mut results = fixture::study();
        let own: &'static [&'static str] = &["dpsgd-f"];
        let ranked =
            Ranked { experiment: "esipova-adult", data: "adult", recommended: own[0], own, judged: Judged::Accuracy };
        assert!(section(&results, &[ranked]).unwrap().is_none(), "no method has an ε of its own");
        for method in &mut results.experiments[0].methods {
            if method.base != REFERENCE {
                method.coordinates = vec![Coordinate { name: COORDINATE.to_owned(), value: 0.5 }];
            }
        }
        let (section, figures) = section(&results, &[ranked]).unwrap().unwrap();
        assert_eq!((section.blocks.len(), figures.len()), (3, 1));
        let Block::Table(table) = &section.blocks[1] else { panic!("{:?}", section.blocks[1]) };
        assert_eq!(table.columns, ["Method", "0.5"]);
        assert!(table.rows.iter().any(|row| row.header == "DPSGD-F (recommended)"));
        assert_eq!(table.rows.iter().filter(|row| row.cells[0].lines[0].ends_with("(best)")).count(), 1);
        assert!(figures[0].plot.svg().unwrap().contains("DPSGD-F"));
    }
}
