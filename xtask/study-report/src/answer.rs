//! The opening of a report: what came out of each experiment, in a sentence and a figure.

use fair_metrics::{SeedValues, p_smaller_by_t_test};
use fair_report::{Block, Figure, Section, number};
use run_records::coordinate::is_grid;
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults, StudyResults};

use super::fairness::{Cost, cost_of};
use super::figures::{ACCURACY, DrawnFigure};
use super::label::label;
use super::metric::{REFERENCE, privacy_costs};
use super::statistics::SIGNIFICANCE;

/// More methods that cannot be told apart are counted, not named: nobody reads a list of thirty.
const MOST_ALIKE: usize = 8;

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

/// A private method with the widest gap of its costs, and who pays.
type Costed<'a> = (&'a MethodResults, f64, String);

/// The private methods whose costs differ least between groups, as far as the seeds can tell, and
/// the baseline beside them; `None` without a reference.
fn sentence(experiment: &ExperimentResults) -> anyhow::Result<Option<String>> {
    let mut costs: Vec<Costed<'_>> = Vec::new();
    if experiment.methods.iter().any(|method| method.method == REFERENCE) {
        // Analyses without noise cost no privacy.
        let private = |method: &&MethodResults| method.method != REFERENCE && method.privacy.is_some();
        for method in experiment.methods.iter().filter(private) {
            if let Cost { gap: Some(gap), payer } = cost_of(experiment, method)? {
                costs.push((method, gap, payer));
            }
        }
    }
    costs.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(evenest), Some(widest)) = (costs.first(), costs.last()) else { return Ok(None) };
    let title = &experiment.title;
    if costs.len() == 1 {
        let gap = "the gap between what privacy costs the groups in accuracy";
        return Ok(Some(format!("{title}. With {}, {gap} is {}.", label(&evenest.0.method), in_words(evenest))));
    }
    let n_methods = costs.len();
    let (mut alike, mut apart) = (vec![evenest], Vec::new());
    for other in &costs[1..] {
        let list = if is_told(experiment, evenest.0, other.0, n_methods)? { &mut apart } else { &mut alike };
        list.push(other);
    }
    let of = format!("{title}. Of {n_methods} private methods");
    let between = "between what privacy costs the groups in accuracy";
    let named = |cost: &Costed<'_>| format!("{}: {}", label(&cost.0.method), in_words(cost));
    if apart.is_empty() {
        let whose = if is_any_told(experiment, &costs)? {
            format!("the smallest gap {between} can be told from no other's")
        } else {
            format!("no method's gap {between} can be told from another's")
        };
        return Ok(Some(format!("{of}, {whose}. Smallest and widest: {}; {}.", named(evenest), named(widest))));
    }
    // Beside it under the same conditions.
    let baseline = apart
        .iter()
        .find(|(method, ..)| method.base == BASELINE && method.coordinates == evenest.0.coordinates)
        .map_or_else(String::new, |found| format!(" {}.", named(found)));
    Ok(Some(match &alike[..] {
        [_] => {
            let name = label(&evenest.0.method);
            format!("{of}, {name} has the smallest gap {between}: {}.{baseline}", in_words(evenest))
        }
        alike => {
            let gaps: Vec<String> = alike.iter().map(|cost| named(cost)).collect();
            format!(
                "{of}, {} may have the smallest gap {between}, as far as the seeds can tell: {}.{baseline}",
                alike.len(),
                listed(&gaps)
            )
        }
    }))
}

fn listed(methods: &[String]) -> String {
    match methods {
        [first, second, .., last] if methods.len() > MOST_ALIKE => {
            format!("{first}; {second}; {} others, of which the last is {last}", methods.len() - 2)
        }
        methods => methods.join("; "),
    }
}

fn in_words((method, gap, payer): &Costed<'_>) -> String {
    format!("{} points{}; who pays: {payer}", number::fixed(100.0 * gap, 1), epsilon(method))
}

/// Whether the seeds say that one method's gap, of the widest pair of groups, is smaller than
/// another's: by t-tests, corrected for all ordered pairs of so many methods, among which the data
/// choose.
fn is_told(
    experiment: &ExperimentResults,
    smaller: &MethodResults,
    larger: &MethodResults,
    n_methods: usize,
) -> anyhow::Result<bool> {
    let of = |method: &MethodResults| -> Vec<(usize, Vec<f64>)> {
        let costs = privacy_costs(experiment, method).into_iter().zip(&method.runs);
        costs.filter_map(|(costs, run)| Some((run.index, costs.into_iter().collect::<Option<_>>()?))).collect()
    };
    let theirs = of(larger);
    let common = of(smaller).into_iter().filter_map(|(index, ours)| {
        let (_, theirs) = theirs.iter().find(|(other, _)| *other == index)?;
        Some((ours, theirs.clone()))
    });
    let (ours, theirs): (Vec<_>, Vec<_>) = common.unzip();
    if ours.is_empty() || ours[0].len() < 2 {
        return Ok(false);
    }
    let p_value = p_smaller_by_t_test(&SeedValues::gap(&ours)?, &SeedValues::gap(&theirs)?)?;
    Ok(p_value * (n_methods * (n_methods - 1)) as f64 <= SIGNIFICANCE)
}

/// The same of any two; `costs` ascend.
fn is_any_told(experiment: &ExperimentResults, costs: &[Costed<'_>]) -> anyhow::Result<bool> {
    for (place, (smaller, ..)) in costs.iter().enumerate() {
        for (larger, ..) in &costs[place + 1..] {
            if is_told(experiment, smaller, larger, costs.len())? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The least ε that an accountant found, with its mark.
fn epsilon(method: &MethodResults) -> String {
    let least = method.privacy.as_ref().and_then(|privacy| {
        privacy.epsilons.iter().min_by(|a, b| a.epsilon.epsilon().get().total_cmp(&b.epsilon.epsilon().get()))
    });
    least.map_or_else(String::new, |record| format!(" at ε = {:.2}", record.epsilon))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::study;

    /// An experiment of so many seeds, in which privacy costs the second group nothing and the
    /// first these fractions of its accuracy, by method; seeds add up to `spread`.
    fn experiment(n_seeds: usize, spread: f64, costs: &[(&str, f64)]) -> ExperimentResults {
        let mut experiment = study().experiments.remove(0);
        experiment
            .methods
            .retain(|method| method.method == REFERENCE || costs.iter().any(|(name, _)| method.method == *name));
        for method in &mut experiment.methods {
            let cost = costs.iter().find(|(name, _)| method.method == *name).map_or(0.0, |(_, cost)| *cost);
            let is_reference = method.method == REFERENCE;
            let first = method.runs[0].clone();
            method.runs = (0..n_seeds)
                .map(|index| {
                    let mut run = first.clone();
                    run.index = index;
                    let swing = ((index * 7 + (1e4 * cost) as usize) % 5) as f64 - 2.0;
                    let swing = if is_reference { 0.0 } else { spread * swing };
                    for (place, group) in run.test.groups.iter_mut().enumerate() {
                        group.accuracy = Some(0.9 - if place == 0 { cost + swing } else { 0.0 });
                    }
                    run
                })
                .collect();
        }
        experiment
    }

    #[test]
    fn many_methods_alike_are_counted() {
        let methods: Vec<String> = (1..=9).map(|place| format!("m{place}")).collect();
        assert_eq!(listed(&methods), "m1; m2; 7 others, of which the last is m9");
        assert_eq!(listed(&methods[..3]), "m1; m2; m3");
    }

    #[test]
    fn a_smallest_gap_is_named_where_the_seeds_can_tell() {
        let said =
            |n_seeds, spread, costs: &[(&str, f64)]| sentence(&experiment(n_seeds, spread, costs)).unwrap().unwrap();
        let costs = [("dpsgd", 0.10), ("dpsgd-f", 0.01), ("dpsgd-global", 0.05)];
        let text = said(5, 0.002, &costs);
        assert!(text.contains("Of 3 private methods, DPSGD-F has the smallest gap"), "{text}");
        assert!(text.contains(" DPSGD: 10."), "{text}");
        // Nor can seeds that differ by more than the methods do, nor one alone.
        assert!(said(1, 0.0, &costs).contains("can be told from another's"));
        let text = said(5, 0.1, &costs);
        assert!(
            text.contains("no method's gap between what privacy costs the groups in accuracy can be told"),
            "{text}"
        );
        assert!(text.contains("DPSGD-F: 1.0 points") && text.contains("DPSGD: 10.0 points"), "{text}");
        // Two are alike, and the third is not.
        let text = said(10, 0.002, &[("dpsgd", 0.10), ("dpsgd-f", 0.030), ("dpsgd-global", 0.03015)]);
        assert!(
            text.contains("2 may have the smallest gap between") && text.contains("as far as the seeds can tell: "),
            "{text}"
        );
        let text = said(10, 0.0, &[("dpsgd", 0.10)]);
        assert!(text.contains("With DPSGD, the gap") && !text.contains("smallest"), "{text}");
    }
}
