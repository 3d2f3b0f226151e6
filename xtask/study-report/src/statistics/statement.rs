//! Who pays for privacy, how much, and whether the seeds can tell: in words and as data.

use std::fmt;

use fair_metrics::{
    Alternative, EqualCostAnswer, EqualCostOverRuns, Estimate, MetricError, PairGapEstimate, TTest,
    equal_cost_over_runs, excessive_risk, gaps_over_seeds, holm, privacy_cost, t_test,
};
use serde::{Deserialize, Serialize};

use super::cause::check_len;
use super::{RiskCause, RiskTerm, SIGNIFICANCE, XU_TOLERANCE};

/// Outcomes of the runs with and without privacy. Run `i` with privacy is compared with run `i`
/// without.
#[derive(Debug, Clone, Copy)]
pub struct PairedRuns<'a> {
    /// Names of the groups.
    pub group_names: &'a [String],
    /// Accuracy without privacy, `[runs][groups]`.
    pub reference_accuracy: &'a [Vec<Option<f64>>],
    /// Accuracy with privacy, `[runs][groups]`.
    pub private_accuracy: &'a [Vec<Option<f64>>],
    /// Mean loss without privacy, `[runs][groups]`.
    pub reference_loss: &'a [Vec<Option<f64>>],
    /// Mean loss with privacy, `[runs][groups]`.
    pub private_loss: &'a [Vec<Option<f64>>],
}

/// What privacy costs one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupCost {
    /// Name of the group.
    pub group: String,
    /// Loss of accuracy, as a fraction.
    pub privacy_cost: Estimate,
    /// Gain of mean loss.
    pub excessive_risk: Estimate,
}

/// Who pays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payer {
    /// This group loses accuracy, and more than another: both significantly at [`SIGNIFICANCE`],
    /// with the number of groups and of pairs taken into account.
    Group(String),
    /// A group loses accuracy, and none detectably more than another.
    Alike,
    /// No group detectably loses accuracy.
    Nobody,
    /// Fewer than two groups or two runs are defined.
    Unknown,
}

/// The widest gap between two groups' costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WidestGap {
    /// The group with the higher privacy cost.
    pub higher: String,
    /// The group with the lower one.
    pub lower: String,
    /// Privacy cost of the higher minus that of the lower, as a fraction.
    pub difference: Estimate,
    /// Two-sided t-test of the pair over runs; `None` below two runs. With ten groups a signed-rank
    /// test of ten runs could not be significant: there are 45 pairs, and 90/1024 is above 0.05.
    pub test: Option<TTest>,
    /// The test's p-value, corrected by Bonferroni for choosing the pair among all pairs.
    pub p_value: Option<f64>,
}

/// The statement for one private method.
///
/// # Example
/// ```
/// use fair_metrics::EqualCostAnswer;
/// use study_report::statistics::{FairnessStatement, PairedRuns, Payer};
///
/// let runs = |a: f64, b: f64| -> Vec<Vec<Option<f64>>> {
///     (0..5).map(|run| vec![Some(a + 0.01 * f64::from(run % 2)), Some(b)]).collect()
/// };
/// let statement = FairnessStatement::new(&PairedRuns {
///     group_names: &["male".to_owned(), "female".to_owned()],
///     reference_accuracy: &vec![vec![Some(0.80), Some(0.92)]; 5],
///     private_accuracy: &runs(0.70, 0.89),
///     reference_loss: &runs(0.40, 0.19),
///     private_loss: &runs(0.78, 0.40),
/// })?;
/// assert_eq!(statement.payer, Payer::Group("male".to_owned()));
/// assert_eq!(statement.equal_cost.answer, EqualCostAnswer::Fails);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FairnessStatement {
    /// Runs compared.
    pub n_runs: usize,
    /// In group order.
    pub groups: Vec<GroupCost>,
    /// Who pays.
    pub payer: Payer,
    /// The two groups whose privacy costs are furthest apart.
    pub widest_gap: Option<WidestGap>,
    /// Xu's test of equal privacy costs at τ = 0.05, against the uncertainty of their means.
    pub equal_cost: EqualCostOverRuns,
    /// The term that adds most to the excessive risk of the group with the higher cost over the
    /// other; `None` unless terms were given to [`explained_by`](Self::explained_by) and there are
    /// two groups to compare.
    pub cause: Option<RiskCause>,
}

impl FairnessStatement {
    /// Compares the runs.
    ///
    /// # Edge cases
    /// A run in which a group is undefined is left out of that group's figures and counted there.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if the lists differ in runs or groups;
    /// [`MetricError::NotFinite`].
    pub fn new(runs: &PairedRuns<'_>) -> Result<Self, MetricError> {
        let n_runs = runs.reference_accuracy.len();
        let costs = paired("private_accuracy", runs.reference_accuracy, runs.private_accuracy, privacy_cost)?;
        check_len("reference_loss", runs.reference_loss.len(), "reference_accuracy", n_runs)?;
        let risks = paired("private_loss", runs.reference_loss, runs.private_loss, excessive_risk)?;
        for values in costs.iter().chain(&risks) {
            check_len("a run's groups", values.len(), "group_names", runs.group_names.len())?;
        }
        let groups = runs
            .group_names
            .iter()
            .enumerate()
            .map(|(index, name)| {
                Ok(GroupCost {
                    group: name.clone(),
                    privacy_cost: over_runs(&costs, index)?,
                    excessive_risk: over_runs(&risks, index)?,
                })
            })
            .collect::<Result<Vec<GroupCost>, MetricError>>()?;
        let widest_gap = widest_gap(&costs, runs.group_names)?;
        Ok(Self {
            n_runs,
            payer: payer(&groups, widest_gap.as_ref())?,
            equal_cost: equal_cost_over_runs(&costs, XU_TOLERANCE, SIGNIFICANCE)?,
            groups,
            widest_gap,
            cause: None,
        })
    }

    /// Looks among the terms of decompositions of one risk for what sets the two groups of the widest
    /// gap apart: the same term in all of them. No decomposition says nothing.
    ///
    /// Where the terms decompose the risk of single steps, what is found is what sets the groups
    /// apart step by step. It does not explain the difference at the end of training: steps start
    /// where those before them led, and their risks do not add up.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if terms differ in their runs or do not have one value per
    /// group; [`MetricError::NotFinite`].
    pub fn explained_by(mut self, decompositions: &[Vec<RiskTerm>]) -> Result<Self, MetricError> {
        let index = |name: &str| self.groups.iter().position(|group| group.group == name);
        let pair = self.widest_gap.as_ref().and_then(|gap| index(&gap.higher).zip(index(&gap.lower)));
        self.cause = match pair {
            Some(pair) if !decompositions.is_empty() => {
                Some(RiskCause::in_every(decompositions, self.groups.len(), pair)?)
            }
            _ => None,
        };
        Ok(self)
    }
}

type Difference = fn(&[Option<f64>], &[Option<f64>]) -> Result<Vec<Option<f64>>, MetricError>;

fn paired(
    name: &'static str,
    reference: &[Vec<Option<f64>>],
    private: &[Vec<Option<f64>>],
    difference: Difference,
) -> Result<Vec<Vec<Option<f64>>>, MetricError> {
    check_len(name, private.len(), "the runs without privacy", reference.len())?;
    reference.iter().zip(private).map(|(reference, private)| difference(reference, private)).collect()
}

fn over_runs(by_run: &[Vec<Option<f64>>], group: usize) -> Result<Estimate, MetricError> {
    let values: Vec<Option<f64>> = by_run.iter().map(|groups| groups[group]).collect();
    Estimate::over_seeds(&values)
}

fn widest_gap(costs: &[Vec<Option<f64>>], names: &[String]) -> Result<Option<WidestGap>, MetricError> {
    let pairs = gaps_over_seeds(costs)?;
    let widest = pairs
        .iter()
        .filter(|pair| pair.gap.is_some())
        .reduce(|best, pair| if pair.gap > best.gap { pair } else { best });
    Ok(widest.map(|pair| describe(pair, names, pairs.len())))
}

fn describe(pair: &PairGapEstimate, names: &[String], n_pairs: usize) -> WidestGap {
    let a_is_higher = pair.difference.mean.is_some_and(|mean| mean >= 0.0);
    let (higher, lower) = if a_is_higher { (pair.a, pair.b) } else { (pair.b, pair.a) };
    let difference = Estimate { mean: pair.gap, ..pair.difference };
    let test = t_test(&difference, Alternative::TwoSided);
    WidestGap {
        higher: names[higher].clone(),
        lower: names[lower].clone(),
        difference,
        p_value: test.map(|test| (test.p_value * n_pairs as f64).min(1.0)),
        test,
    }
}

/// Who pays: the group of the widest gap with the higher cost, if that gap and that cost are
/// significant. Each by a test that takes into account among how many pairs or groups it was
/// chosen.
fn payer(groups: &[GroupCost], gap: Option<&WidestGap>) -> Result<Payer, MetricError> {
    let Some((gap, p_gap)) = gap.and_then(|gap| Some((gap, gap.p_value?))) else { return Ok(Payer::Unknown) };
    // A group that cannot be tested is not known to pay.
    let loses = |group: &GroupCost| t_test(&group.privacy_cost, Alternative::Greater).map_or(1.0, |test| test.p_value);
    let p_costs = holm(&groups.iter().map(loses).collect::<Vec<_>>())?;
    let mut paying = groups.iter().zip(p_costs).filter(|(_, p)| *p <= SIGNIFICANCE).map(|(group, _)| &group.group);
    Ok(match (paying.clone().count(), p_gap <= SIGNIFICANCE && paying.any(|name| *name == gap.higher)) {
        (0, _) => Payer::Nobody,
        (_, true) => Payer::Group(gap.higher.clone()),
        _ => Payer::Alike,
    })
}

impl fmt::Display for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(name) => f.write_str(name),
            Self::Alike => f.write_str("no group detectably more"),
            Self::Nobody => f.write_str("nobody detectably"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

impl fmt::Display for FairnessStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Who pays for privacy: ")?;
        match (&self.payer, &self.widest_gap) {
            (Payer::Group(name), Some(gap)) => {
                write!(f, "{name}, {} percentage points more than {}", points(&gap.difference), gap.lower)?;
            }
            (payer, _) => write!(f, "{payer}")?,
        }
        f.write_str(".")?;
        for group in &self.groups {
            let risk = scaled(&group.excessive_risk, 1.0, 3);
            write!(
                f,
                " It costs {} {} points of accuracy and {risk} of loss.",
                group.group,
                points(&group.privacy_cost)
            )?;
        }
        if let Some(gap) = &self.widest_gap
            && let Some(p_value) = gap.p_value
        {
            write!(
                f,
                " Two-sided t-test of the widest gap over {} runs, corrected for the number of pairs: ",
                gap.difference.n
            )?;
            if p_value < 0.001 { f.write_str("p < 0.001.")? } else { write!(f, "p = {p_value:.3}.")? }
        }
        let equal = match self.equal_cost.answer {
            EqualCostAnswer::Holds => "holds",
            EqualCostAnswer::Fails => "fails",
            EqualCostAnswer::NotDecidable => "is not decidable",
            EqualCostAnswer::Undefined => "is undefined",
        };
        write!(f, " Equal cost at τ = {} {equal}.", self.equal_cost.tolerance)?;
        match &self.cause {
            Some(cause) => write!(f, " Largest term of the difference, step by step: {cause}."),
            None => Ok(()),
        }
    }
}

fn points(estimate: &Estimate) -> String {
    scaled(estimate, 100.0, 2)
}

fn scaled(estimate: &Estimate, factor: f64, decimals: u8) -> String {
    let unit = 10_f64.powi(i32::from(decimals));
    let decimals = usize::from(decimals);
    // Adding 0 turns a rounded −0 into 0.
    let round = |value: f64| (value * factor * unit).round() / unit + 0.0;
    match (estimate.mean, estimate.standard_error) {
        (Some(mean), Some(error)) => format!("{:.decimals$} ± {:.decimals$}", round(mean), error * factor),
        (Some(mean), None) => format!("{:.decimals$}", round(mean)),
        (None, _) => "undefined".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Runs = Vec<Vec<Option<f64>>>;

    fn names() -> Vec<String> {
        vec!["male".to_owned(), "female".to_owned()]
    }

    /// Five runs whose costs are `male` and `female`, give or take a thousandth.
    fn statement(male: f64, female: f64, n_runs: usize) -> FairnessStatement {
        let runs = |accuracy: [f64; 2], spread: f64| -> Runs {
            (0..n_runs).map(|run| vec![Some(accuracy[0] + spread * run as f64), Some(accuracy[1])]).collect()
        };
        FairnessStatement::new(&PairedRuns {
            group_names: &names(),
            reference_accuracy: &runs([0.8, 0.9], 0.0),
            private_accuracy: &runs([0.8 - male, 0.9 - female], 0.001),
            reference_loss: &runs([0.4, 0.2], 0.0),
            private_loss: &runs([0.5, 0.2], 0.001),
        })
        .unwrap()
    }

    #[test]
    fn in_words() {
        let term = |name: &str, by_run: [[f64; 2]; 2]| RiskTerm {
            name: name.to_owned(),
            by_run: by_run.iter().map(|groups| groups.to_vec()).collect(),
        };
        let terms = [term("noise", [[0.01, 0.01]; 2]), term("direction", [[0.3, 0.1], [0.32, 0.1]])];
        let statement = statement(0.1, 0.02, 5).explained_by(&[terms.to_vec()]).unwrap();
        insta::assert_snapshot!(statement.to_string(), @"Who pays for privacy: male, 7.80 ± 0.07 percentage points more than female. It costs male 9.80 ± 0.07 points of accuracy and 0.102 ± 0.001 of loss. It costs female 2.00 ± 0.00 points of accuracy and 0.000 ± 0.000 of loss. Two-sided t-test of the widest gap over 5 runs, corrected for the number of pairs: p < 0.001. Equal cost at τ = 0.05 fails. Largest term of the difference, step by step: direction, 2.10e-1 ± 1e-2 of 2.10e-1 ± 1e-2.");
    }

    #[test]
    fn payers() {
        assert_eq!(statement(0.1, 0.02, 5).payer, Payer::Group("male".to_owned()));
        assert_eq!(statement(0.02, 0.1, 5).payer, Payer::Group("female".to_owned()));
        // 0.020 ± 0.001 against 0.020: both pay. The spread of the first run's cost hides 0.0005.
        assert_eq!(statement(0.0225, 0.02, 5).payer, Payer::Alike);
        assert_eq!(statement(-0.1, -0.02, 5).payer, Payer::Nobody);
        assert_eq!(statement(0.1, 0.02, 1).payer, Payer::Unknown);
        assert_eq!(statement(0.1, 0.02, 0).payer, Payer::Unknown);
    }

    #[test]
    fn terms_need_one_value_per_group() {
        assert_eq!(statement(0.1, 0.02, 5).explained_by(&[]).unwrap().cause, None);
        let short = RiskTerm { name: "noise".to_owned(), by_run: vec![vec![0.0]] };
        assert!(statement(0.1, 0.02, 5).explained_by(&[vec![short]]).is_err());
    }

    #[test]
    fn lists_must_match() {
        let one: Runs = vec![vec![Some(0.5), Some(0.5)]];
        let runs = PairedRuns {
            group_names: &names(),
            reference_accuracy: &one,
            private_accuracy: &[],
            reference_loss: &one,
            private_loss: &one,
        };
        assert!(matches!(
            FairnessStatement::new(&runs),
            Err(MetricError::LengthMismatch { parameter: "private_accuracy", length: 0, expected: 1, .. })
        ));
        let three_groups: Runs = vec![vec![Some(0.5); 3]];
        let runs = PairedRuns { reference_accuracy: &three_groups, private_accuracy: &three_groups, ..runs };
        assert!(FairnessStatement::new(&runs).is_err());
    }

    #[test]
    fn it_survives_json() {
        let statement = statement(0.1, 0.02, 5);
        let json = serde_json::to_string(&statement).unwrap();
        let back: FairnessStatement = serde_json::from_str(&json).unwrap();
        assert_eq!(back.payer, statement.payer);
        assert_eq!(back.groups.len(), 2);
    }
}
