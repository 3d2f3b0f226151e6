//! Why clipping is unfair: the excessive risk of single steps, term by term.

mod plots;
mod tables;

use dp_train::analysis::GroupTerms;

pub(super) use self::plots::figures;
pub(super) use self::tables::blocks;
use run_records::{AnalysisRecord, ExperimentResults, MethodResults};

use super::statistics::RiskTerm;

/// What a group's terms say at a step.
type OfGroup = fn(&GroupTerms) -> f64;

const MAGNITUDE: &str = "clipping, magnitude";
const DIRECTION: &str = "clipping, direction";
const NOISE: &str = "noise";

/// Terms that the excessive risk of a step consists of: by Proposition 2, and by its alternate, which
/// splits the same cost of clipping in another way.
const DECOMPOSITIONS: [[(&str, OfGroup); 3]; 2] = [
    [
        (MAGNITUDE, |group| group.magnitude.mean),
        (DIRECTION, |group| group.direction.mean),
        (NOISE, |group| group.noise.mean),
    ],
    [
        (MAGNITUDE, |group| group.magnitude_star.mean),
        (DIRECTION, |group| group.direction_star.mean),
        (NOISE, |group| group.noise.mean),
    ],
];

fn analyses(method: &MethodResults) -> impl Iterator<Item = &AnalysisRecord> {
    method.runs.iter().filter_map(|run| run.analysis.as_ref())
}

fn analysed(experiment: &ExperimentResults) -> Vec<&MethodResults> {
    experiment.methods.iter().filter(|method| analyses(method).next().is_some()).collect()
}

/// The terms of the excessive risk by group in each run, each the mean over evaluated steps, with
/// its sign, in both decompositions; empty unless the method's runs were analysed.
pub(super) fn risk_terms(experiment: &ExperimentResults, method: &MethodResults) -> Vec<Vec<RiskTerm>> {
    if analyses(method).next().is_none() {
        return Vec::new();
    }
    let n_groups = experiment.dataset.groups.len();
    let of_run = |analysis: &AnalysisRecord, of: OfGroup| {
        let mut by_group = vec![0.0; n_groups];
        for step in &analysis.steps {
            for (total, group) in by_group.iter_mut().zip(&step.groups) {
                *total += group.as_ref().map_or(0.0, of) / analysis.steps.len() as f64;
            }
        }
        by_group
    };
    let term = |&(name, of): &(&str, OfGroup)| RiskTerm {
        name: name.to_owned(),
        by_run: analyses(method).map(|analysis| of_run(analysis, of)).collect(),
    };
    DECOMPOSITIONS.iter().map(|terms| terms.iter().map(term).collect()).collect()
}

/// The two groups whose error of direction differs most in a method's runs, the one that suffers
/// more first.
fn widest_pair(experiment: &ExperimentResults, method: &MethodResults) -> Option<(usize, usize)> {
    let decompositions = risk_terms(experiment, method);
    let terms = decompositions.first()?;
    let direction = &terms.iter().find(|term| term.name == DIRECTION)?.by_run;
    let total = |group: &usize| direction.iter().map(|groups| groups[*group]).sum::<f64>();
    let order = |a: &usize, b: &usize| total(a).total_cmp(&total(b));
    let groups = 0..experiment.dataset.groups.len();
    let (highest, lowest) = (groups.clone().max_by(order)?, groups.min_by(order)?);
    (highest != lowest).then_some((highest, lowest))
}

#[cfg(test)]
mod tests {
    use dp_train::analysis::StepDecomposition;
    use serde_json::{Value, json};

    use super::*;
    use crate::fixture;
    use crate::metric::Column;
    use fair_report::Block;

    fn sampled(mean: f64) -> Value {
        json!({ "mean": mean, "standard_error": 0.1 * mean.abs() })
    }

    /// A group whose terms follow from its error of direction.
    fn group(direction: f64) -> Value {
        json!({
            "share": 0.5,
            "gradient_norm": 0.8,
            "sample_norm": 2.0,
            "clipped_sample_norm": 0.5,
            "error": { "bias": sampled(1.5), "noise": sampled(0.7), "best": sampled(1.25) },
            "clip": sampled(direction + 1e-3),
            "noise": sampled(1e-6),
            "noise_as_printed": sampled(0.06),
            "magnitude": sampled(1e-3),
            "direction": sampled(direction),
            "magnitude_star": sampled(1e-3),
            "direction_star": sampled(direction),
            "direction_slope": sampled(direction),
            "direction_star_slope": sampled(direction),
            "plain_cosine": sampled(0.9),
            "clipped_cosine": sampled(0.8),
            "plain_angle": sampled(26.0),
            "clipped_angle": sampled(37.0),
            "trace": sampled(10.0),
            "largest_eigenvalue": null,
        })
    }

    fn analysed_experiment() -> ExperimentResults {
        let mut experiment = fixture::study().experiments.remove(0);
        for method in experiment.methods.iter_mut().filter(|method| method.method == "dpsgd") {
            for run in &mut method.runs {
                let steps = [0, 50].map(|step| -> StepDecomposition {
                    let decomposition = json!({
                        "step": step,
                        "learning_rate": 0.01,
                        "thresholds": [0.5],
                        "gradient_norm": 0.5,
                        "plain_sq_norm": sampled(0.3),
                        "clipped_sq_norm": sampled(0.2),
                        "bound": 0.5,
                        "groups": [group(2e-4), group(-1e-4)],
                    });
                    serde_json::from_value(decomposition).unwrap()
                });
                run.analysis = Some(AnalysisRecord { every: 50, seconds: 1.0, steps: steps.to_vec() });
            }
        }
        experiment
    }

    /// Steps of 2e-4 and −1e-4 in every run: the error of direction is what sets the groups apart,
    /// and the statement says so.
    #[test]
    fn terms_are_means_over_steps_and_name_the_cause() {
        let experiment = analysed_experiment();
        let method = &experiment.methods[1];
        let decompositions = risk_terms(&experiment, method);
        let terms = &decompositions[0];
        assert_eq!((decompositions.len(), terms.len()), (2, 3));
        assert_eq!((terms[1].name.as_str(), terms[1].by_run.len()), (DIRECTION, method.runs.len()));
        assert!(terms[1].by_run.iter().all(|groups| groups[..] == [2e-4, -1e-4]));
        assert_eq!(widest_pair(&experiment, method), Some((0, 1)));
        assert!(risk_terms(&experiment, &experiment.methods[2]).is_empty());
        let statements = crate::fairness::in_words(&experiment, None).unwrap();
        let cause =
            "Largest term of the difference, step by step: clipping, direction, 3.00e-4 ± 0e0 of 3.00e-4 ± 0e0.";
        assert!(statements[0].ends_with(cause), "{}", statements[0]);
        assert!(!statements[1].contains("Largest term"));
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
        assert!(figures[0].plot.svg().unwrap().contains("R<tspan dy=\"-0.5em\" font-size=\"70%\">dir</tspan>"));
        let blocks = blocks(&experiment, None).unwrap();
        let Block::Table(terms) = &blocks[0] else { panic!("the terms come first") };
        assert_eq!(terms.rows.len(), 2);
        assert_eq!(terms.rows[0].header, "DPSGD, male");
        assert_eq!(terms.rows[0].cells[2].lines, ["2.00e-4 ± 0e0"]);
        let Block::Table(errors) = &blocks[2] else { panic!("bias and noise come third") };
        assert_eq!(
            errors.rows[0].cells.iter().map(|cell| cell.lines.join(" ")).collect::<Vec<_>>()[..3],
            ["1.500 ± 0.000", "0.7000 ± 0.0000", "1.250 ± 0.000"]
        );
        let best = Column::parse("best_bound", "male").unwrap().estimate(&experiment, &experiment.methods[1]).unwrap();
        assert!((best.mean.unwrap() - 1.25).abs() < 1e-12);
        let mut earlier = experiment.clone();
        for step in earlier
            .methods
            .iter_mut()
            .flat_map(|m| &mut m.runs)
            .filter_map(|run| run.analysis.as_mut())
            .flat_map(|a| &mut a.steps)
        {
            step.groups.iter_mut().flatten().for_each(|group| group.error = None);
        }
        assert_eq!(super::blocks(&earlier, None).unwrap().len() + 1, blocks.len(), "runs from before it was kept");
        let mut plain = experiment;
        plain.methods.iter_mut().flat_map(|method| &mut method.runs).for_each(|run| run.analysis = None);
        assert!(super::blocks(&plain, None).unwrap().is_empty() && super::figures(&plain, None).unwrap().is_empty());
    }
}
