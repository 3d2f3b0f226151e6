//! The opening of a report: what came out of each experiment, in a sentence and a figure.

use fair_report::{Block, Figure, Section, number};
use run_records::coordinate::is_grid;
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults, StudyResults};

use super::fairness::{Cost, cost_of};
use super::figures::{ACCURACY, DrawnFigure};
use super::label::label;
use super::metric::REFERENCE;

/// The method that others are compared with.
const BASELINE: &str = "dpsgd";

/// Of more experiments, figures would hide the answer: they are in the details.
const MAX_FIGURES: usize = 4;

/// The section, with those figures of accuracy that come first; `None` if nothing can be compared.
///
/// # Errors
/// If an experiment's records are inconsistent, or a figure cannot be drawn.
pub(super) fn section(results: &StudyResults, figures: &[Vec<DrawnFigure>]) -> anyhow::Result<Option<Section>> {
    let experiments: Vec<&ExperimentResults> =
        results.experiments.iter().filter(|experiment| !is_grid(experiment)).collect();
    let mut blocks = Vec::new();
    for experiment in &experiments {
        let mark = Mark::new(experiment.dataset.synthetic, results.quick);
        let Some(sentence) = sentence(experiment)? else { continue };
        blocks.push(Block::Paragraph(marked(mark, &sentence)));
        let stem = format!("{}-{ACCURACY}", experiment.id);
        let figure = figures.iter().flatten().find(|figure| figure.stem == stem);
        if let Some(figure) = figure.filter(|_| experiments.len() <= MAX_FIGURES) {
            blocks.push(Block::Figure(drawn(figure)?));
        }
    }
    Ok((!blocks.is_empty()).then(|| Section::new("answer", "The answer", blocks)))
}

/// Whether a section shows a figure.
pub(super) fn shows(section: &Section, figure: &DrawnFigure) -> bool {
    section.blocks.iter().any(|block| matches!(block, Block::Figure(shown) if shown.stem == figure.stem))
}

/// A figure on the page.
///
/// # Errors
/// If it cannot be drawn.
pub(super) fn drawn(figure: &DrawnFigure) -> anyhow::Result<Figure> {
    Ok(Figure {
        stem: figure.stem.clone(),
        caption: figure.caption.clone(),
        alt: figure.alt.clone(),
        panels: figure.plot.panel_svgs()?,
    })
}

/// The private method whose costs differ least between groups, and the baseline beside it; `None`
/// without a reference.
fn sentence(experiment: &ExperimentResults) -> anyhow::Result<Option<String>> {
    let mut costs = Vec::new();
    if experiment.methods.iter().any(|method| method.method == REFERENCE) {
        // Analyses without noise cost no privacy.
        let private = |method: &&MethodResults| method.method != REFERENCE && method.privacy.is_some();
        for method in experiment.methods.iter().filter(private) {
            if let Cost { gap: Some(gap), payer } = cost_of(experiment, method)? {
                costs.push((method, gap, payer));
            }
        }
    }
    let Some(evenest) = costs.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else { return Ok(None) };
    let in_words = |(method, gap, payer): &(&MethodResults, f64, String)| {
        format!("{} points{}; who pays: {payer}", number::fixed(100.0 * gap, 1), epsilon(method))
    };
    let (best, least, _) = evenest;
    let others: Vec<String> = costs
        .iter()
        .filter(|(method, gap, _)| gap == least && method.method != best.method)
        .map(|(method, ..)| label(&method.method))
        .collect();
    let names = std::iter::once(label(&best.method)).chain(others).collect::<Vec<_>>();
    let names = match &names[..] {
        [one] => format!("{one} has"),
        [first @ .., last] => format!("{} and {last} have", first.join(", ")),
        [] => String::new(),
    };
    // Beside it under the same conditions.
    let baseline = costs.iter().find(|(method, ..)| {
        method.base == BASELINE && method.method != best.method && method.coordinates == best.coordinates
    });
    let beside =
        baseline.map_or_else(String::new, |found| format!(" {}: {}.", label(&found.0.method), in_words(found)));
    Ok(Some(format!(
        "{}. Of {} private methods, {names} the smallest gap between what privacy costs the groups in accuracy: {}.{beside}",
        experiment.title,
        costs.len(),
        in_words(evenest),
    )))
}

/// The least ε that an accountant found, with its mark.
fn epsilon(method: &MethodResults) -> String {
    let least = method.privacy.as_ref().and_then(|privacy| {
        privacy.epsilons.iter().min_by(|a, b| a.epsilon.epsilon().get().total_cmp(&b.epsilon.epsilon().get()))
    });
    least.map_or_else(String::new, |record| format!(" at ε = {:.2}", record.epsilon))
}
