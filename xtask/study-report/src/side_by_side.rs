//! The opening of a comparison: which method is best at which ε, as a sentence, a table and a
//! figure for each data set.

use fair_metrics::Estimate;
use fair_report::number;
use fair_report::plot::{Dot, DotPanel, DotSeries, LinePanel, Panel, Plot, Point, Series};
use fair_report::{Block, Cell, Row, Section, Table, Tone};
use run_records::coordinate::{coordinate, is_grid};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults, StudyResults};

use super::answer::drawn;
use super::estimate::mean_and_error;
use super::figures::DrawnFigure;
use super::judged::Judged;
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
        let judged = Compared::new(experiment, ranked.judged)?;
        if judged.curves.is_empty() {
            continue;
        }
        // What serving the worst best costs all.
        let average = ranked.judged.average().map(|average| Compared::new(experiment, average)).transpose()?;
        let mut answer = sentence(experiment, *ranked, &judged.curves);
        if let Some(price) = average.as_ref().and_then(|average| price(*ranked, average)) {
            answer.push_str(&price);
        }
        blocks.push(Block::Paragraph(answer));
        for compared in std::iter::once(&judged).chain(&average) {
            blocks.push(Block::Table(table(experiment, *ranked, compared, mark)?));
        }
        let figure = match epsilons(&judged.curves)[..] {
            [epsilon] => dots(experiment, epsilon, &judged, average.as_ref(), mark),
            _ => figure(experiment, *ranked, &judged.curves, mark),
        };
        blocks.push(Block::Figure(drawn(&figure)?));
        figures.push(figure);
    }
    let section = Section::new("answer", "The answer", blocks);
    Ok((!figures.is_empty()).then_some((section, figures)))
}

/// A figure that methods are compared by, with their curves.
struct Compared<'a> {
    judged: Judged,
    column: Column,
    curves: Vec<Curve<'a>>,
}

impl<'a> Compared<'a> {
    fn new(experiment: &'a ExperimentResults, judged: Judged) -> anyhow::Result<Self> {
        let column = judged.column()?;
        let curves = curves(experiment, &column)?;
        Ok(Self { judged, column, curves })
    }
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

/// What the recommended method has on average, at the ε of [`sentence`], beside the best of all.
fn price(ranked: Ranked, average: &Compared<'_>) -> Option<String> {
    let ours = average.curves.iter().find(|curve| curve.base == ranked.recommended)?;
    let epsilon = epsilons(&average.curves).into_iter().min_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()))?;
    let means = average.curves.iter().filter_map(|curve| Some((curve.base, mean_at(curve, epsilon)?)));
    let (name, best) = means.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let own = number::fixed(mean_at(ours, epsilon)?, DECIMALS);
    let words = average.judged.words();
    Some(if name == ranked.recommended {
        format!(" Its {words}, {own} %, is the highest, too.")
    } else {
        format!(" Its {words} is {own} %; the highest, of {}, is {} %.", label(name), number::fixed(best, DECIMALS))
    })
}

fn table(
    experiment: &ExperimentResults,
    ranked: Ranked,
    Compared { judged, column, curves }: &Compared<'_>,
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
            &format!("{} in per cent, by method and ε: {}", capital(judged.words()), experiment.title),
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

/// A comparison at one ε.
fn dots(
    experiment: &ExperimentResults,
    epsilon: f64,
    judged: &Compared<'_>,
    average: Option<&Compared<'_>>,
    mark: Option<Mark>,
) -> DrawnFigure {
    let compared: Vec<&Compared<'_>> = std::iter::once(judged).chain(average).collect();
    let series: Vec<DotSeries> = compared
        .iter()
        .map(|compared| {
            let dot = |curve: &Curve<'_>| {
                let (_, estimate) = curve.points.first()?;
                Some(Dot { mean: estimate.mean?, standard_error: estimate.standard_error, published: None })
            };
            DotSeries { name: compared.judged.words().to_owned(), dots: compared.curves.iter().map(dot).collect() }
        })
        .collect();
    let names: Vec<String> = judged.curves.iter().map(|curve| label(curve.base)).collect();
    let words: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let means = series.iter().filter_map(|series| Some(format!("{:.1}", series.dots[index]?.mean)));
            format!("{name}: {}", means.collect::<Vec<_>>().join(" and "))
        })
        .collect();
    let figures = series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>().join(" and ");
    let title = format!("{} at ε = {epsilon}. {}", capital(&figures), experiment.title);
    DrawnFigure {
        stem: format!("{}-answer", experiment.id),
        caption: marked(mark, &format!("{title}. Mean ± standard error over seeds.")),
        alt: marked(mark, &format!("A dot for each method and figure, {figures}, in per cent. {}.", words.join("; "))),
        plot: Plot {
            title: marked(mark, &title),
            n_columns: 1,
            panels: vec![Panel::Dots(DotPanel {
                title: marked(mark, &capital(&figures)),
                x_label: "on the test records (%)".to_owned(),
                categories: names,
                series,
                limits: (0.0, 100.0),
                decimals: DECIMALS,
            })],
        },
    }
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
        assert!(figures[0].caption.starts_with("Accuracy at ε = 0.5."), "{}", figures[0].caption);

        let worst = [Ranked { judged: Judged::WorstClass, ..ranked }];
        let (section, _) = super::section(&results, &worst).unwrap().unwrap();
        let Block::Paragraph(answer) = &section.blocks[0] else { panic!("{:?}", section.blocks[0]) };
        assert!(answer.contains(" Its macro accuracy"), "{answer}");
        assert_eq!(section.blocks.len(), 4, "what it costs on average has a table of its own");
    }
}
