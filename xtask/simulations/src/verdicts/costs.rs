//! Who pays, and whether costs are equal.

use fair_metrics::{EqualCostAnswer, MetricError, equal_cost_over_runs};
use study_report::statistics::{FairnessStatement, PairedRuns, Payer, SIGNIFICANCE, XU_TOLERANCE};

use super::{Scenario, Sink};
use crate::draws::Draws;

const RUNS: usize = 10;
const DEVIATION: f64 = 0.01;

/// Who is said to pay where groups have these costs.
fn payer(draws: &mut Draws<'_>, n_runs: usize, costs: &[f64]) -> Result<Payer, MetricError> {
    let names: Vec<String> = (0..costs.len()).map(|group| group.to_string()).collect();
    let reference = vec![vec![Some(0.8); costs.len()]; n_runs];
    let lost = draws.costs(n_runs, costs, DEVIATION);
    let private: Vec<Vec<Option<f64>>> =
        lost.iter().map(|costs| costs.iter().map(|cost| cost.map(|cost| 0.8 - cost)).collect()).collect();
    let statement = FairnessStatement::new(&PairedRuns {
        group_names: &names,
        reference_accuracy: &reference,
        private_accuracy: &private,
        reference_loss: &reference,
        private_loss: &private,
    })?;
    Ok(statement.payer)
}

fn names_a_payer(draws: &mut Draws<'_>, n_runs: usize, costs: &[f64]) -> Result<bool, MetricError> {
    Ok(matches!(payer(draws, n_runs, costs)?, Payer::Group(_)))
}

fn equal_cost(draws: &mut Draws<'_>, costs: &[f64]) -> Result<EqualCostAnswer, MetricError> {
    Ok(equal_cost_over_runs(&draws.costs(RUNS, costs, DEVIATION), XU_TOLERANCE, SIGNIFICANCE)?.answer)
}

pub(super) fn simulate(sink: Sink<'_>) -> Result<(), MetricError> {
    const NAMED: &str = "who pays: a group is named";
    sink(Scenario { rule: NAMED, truth: "2 groups with equal costs", trial: &|d| names_a_payer(d, RUNS, &[0.05; 2]) })?;
    sink(Scenario { rule: NAMED, truth: "4 groups with equal costs", trial: &|d| names_a_payer(d, RUNS, &[0.05; 4]) })?;
    sink(Scenario {
        rule: NAMED,
        truth: "10 groups with equal costs",
        trial: &|d| names_a_payer(d, RUNS, &[0.05; 10]),
    })?;
    sink(Scenario {
        rule: NAMED,
        truth: "4 groups with equal costs, five runs",
        trial: &|d| names_a_payer(d, 5, &[0.05; 4]),
    })?;
    sink(Scenario {
        rule: NAMED,
        truth: "one group gains much, no other loses",
        trial: &|d| names_a_payer(d, RUNS, &[0.0, 0.0, -0.1]),
    })?;
    sink(Scenario {
        rule: "who pays: somebody does",
        truth: "4 groups lose nothing",
        trial: &|d| Ok(payer(d, RUNS, &[0.0; 4])? != Payer::Nobody),
    })?;
    sink(Scenario {
        rule: "equal cost: holds",
        truth: "two groups apart by τ",
        trial: &|d| Ok(equal_cost(d, &[0.1, 0.1 - XU_TOLERANCE])? == EqualCostAnswer::Holds),
    })?;
    sink(Scenario {
        rule: "equal cost: fails",
        truth: "two groups apart by τ",
        trial: &|d| Ok(equal_cost(d, &[0.1, 0.1 - XU_TOLERANCE])? == EqualCostAnswer::Fails),
    })?;
    sink(Scenario {
        rule: "equal cost: fails",
        truth: "four groups, every other two apart by τ",
        trial: &|d| Ok(equal_cost(d, &[0.1, 0.1 - XU_TOLERANCE, 0.1, 0.1 - XU_TOLERANCE])? == EqualCostAnswer::Fails),
    })
}
