//! The quantities that tables print, computed from the records of a study.

mod column;
mod one_run;
mod reduction;

use anyhow::ensure;
use fair_metrics::{Estimate, SeedValues, gaps_over_seeds, largest_gap, pairwise_gaps};
use run_records::{ExperimentResults, MethodResults, RunRecord};

pub use self::column::{Column, Metric, Subject};
pub use self::one_run::reference_run;
use self::one_run::{Scope, members};
use self::reduction::{loss_gaps, reduction};

/// Name of the reference without privacy among an experiment's methods.
pub const REFERENCE: &str = "non-private";

/// A run's index, and what its quantity is made of, if that is defined.
type RunParts = (usize, Option<Vec<f64>>);

/// The index of a run and its value, if that is defined.
type RunValue = (usize, Option<f64>);

impl Column {
    /// The column's mean and standard error over seeds for one method, in the column's unit.
    ///
    /// Quantities relative to the reference pair run `i` with the reference's run `i`; a seed that
    /// one of them lacks is undefined.
    ///
    /// # Errors
    /// If the experiment has no such group.
    pub fn estimate(&self, experiment: &ExperimentResults, method: &MethodResults) -> anyhow::Result<Estimate> {
        let scale = if self.percent { 100.0 } else { 1.0 };
        let estimate = self.fraction(experiment, method)?;
        Ok(Estimate {
            mean: estimate.mean.map(|mean| mean * scale),
            standard_error: estimate.standard_error.map(|error| error * scale),
            ..estimate
        })
    }

    /// The same as a fraction, or per record.
    ///
    /// # Errors
    /// If the experiment has no such group.
    pub fn fraction(&self, experiment: &ExperimentResults, method: &MethodResults) -> anyhow::Result<Estimate> {
        let pair = matches!(self.metric, Metric::PrivacyCostGap | Metric::ExcessiveRiskGap);
        Ok(if let Subject::AverageAgainst(base, pairs) = &self.subject {
            reduction(experiment, method, base, pairs)?
        } else if pair {
            // The gap of the means, as the papers define it, not the mean of the runs' gaps.
            let by_seed: Vec<Vec<Option<f64>>> =
                method.runs.iter().map(|run| self.sides(experiment, run)).collect::<anyhow::Result<_>>()?;
            widest_gap(&by_seed)?
        } else {
            let values: Vec<Option<f64>> =
                self.by_run(experiment, method)?.into_iter().map(|(_, value)| value).collect();
            Estimate::over_seeds(&values)?
        })
    }

    /// Each run's value, as a fraction, with the run's index. A gap is that of the run: see
    /// [`paired`] for comparing methods.
    ///
    /// # Errors
    /// If the experiment has no such group.
    pub(crate) fn by_run(
        &self,
        experiment: &ExperimentResults,
        method: &MethodResults,
    ) -> anyhow::Result<Vec<RunValue>> {
        method
            .runs
            .iter()
            .map(|run| {
                let value = match &self.subject {
                    // For the report's tests; tables have the ratio of the means.
                    Subject::Average(pairs) | Subject::AverageAgainst(_, pairs) => {
                        let gaps = pairs.iter().map(|(a, b)| {
                            let sides = [a, b].map(|name| {
                                Ok(self.value(experiment, run, &Scope::Groups(members(experiment, name)?)))
                            });
                            let [a, b]: [anyhow::Result<Option<f64>>; 2] = sides;
                            Ok(a?.zip(b?).map(|(a, b)| (a - b).abs()))
                        });
                        let gaps = gaps.collect::<anyhow::Result<Option<Vec<f64>>>>()?;
                        gaps.map(|gaps| gaps.iter().sum::<f64>() / gaps.len() as f64)
                    }
                    Subject::Gap | Subject::Between(..) => {
                        largest_gap(&pairwise_gaps(&self.sides(experiment, run)?)?).and_then(|pair| pair.gap)
                    }
                    Subject::Total => self.value(experiment, run, &Scope::All),
                    Subject::Group(name) => self.value(experiment, run, &Scope::Groups(members(experiment, name)?)),
                };
                Ok((run.index, value))
            })
            .collect()
    }

    /// What a comparison of methods is made of: each run's value, the values of the groups of a
    /// gap, or the signed differences that a mean gap is over. Reductions of a gap are values: each
    /// is against a base of its own.
    ///
    /// # Errors
    /// If the experiment has no such group.
    fn parts_by_run(&self, experiment: &ExperimentResults, method: &MethodResults) -> anyhow::Result<Vec<RunParts>> {
        let gaps = match &self.subject {
            Subject::AverageAgainst(base, pairs) => loss_gaps(experiment, method, base, pairs)?,
            _ => Vec::new(),
        };
        let runs = method.runs.iter().map(|run| {
            let of = |name: &str| -> anyhow::Result<Option<f64>> {
                Ok(self.value(experiment, run, &Scope::Groups(members(experiment, name)?)))
            };
            let parts: Vec<Option<f64>> = match &self.subject {
                Subject::AverageAgainst(..) => {
                    let gaps = gaps.iter().find(|gaps| gaps.index == run.index);
                    vec![gaps.filter(|gaps| gaps.base > 0.0).map(|gaps| 1.0 - gaps.ours / gaps.base)]
                }
                Subject::Average(pairs) => pairs
                    .iter()
                    .map(|(a, b)| Ok(of(a)?.zip(of(b)?).map(|(a, b)| a - b)))
                    .collect::<anyhow::Result<_>>()?,
                Subject::Gap | Subject::Between(..) => self.sides(experiment, run)?,
                Subject::Total => vec![self.value(experiment, run, &Scope::All)],
                Subject::Group(name) => vec![of(name)?],
            };
            Ok((run.index, parts.into_iter().collect()))
        });
        runs.collect()
    }

    /// A quantity of seeds from such parts.
    fn seed_values(&self, parts: &[Vec<f64>]) -> anyhow::Result<SeedValues> {
        Ok(match &self.subject {
            Subject::Average(_) => SeedValues::mean_gap(parts)?,
            Subject::Gap | Subject::Between(..) => SeedValues::gap(parts)?,
            Subject::Total | Subject::Group(_) | Subject::AverageAgainst(..) => SeedValues::plain(&parts.concat())?,
        })
    }

    /// The values that a gap is between: of the two groups it names, or of all.
    fn sides(&self, experiment: &ExperimentResults, run: &RunRecord) -> anyhow::Result<Vec<Option<f64>>> {
        let scopes = match &self.subject {
            Subject::Between(a, b) => vec![members(experiment, a)?, members(experiment, b)?],
            _ => (0..experiment.dataset.groups.len()).map(|group| vec![group]).collect(),
        };
        Ok(scopes.into_iter().map(|groups| self.value(experiment, run, &Scope::Groups(groups))).collect())
    }
}

/// Two quantities over the seeds that both have, in the order given; `None` if they share none.
///
/// # Errors
/// If an experiment has no such group.
pub fn paired(
    a: (&Column, &ExperimentResults, &MethodResults),
    b: (&Column, &ExperimentResults, &MethodResults),
) -> anyhow::Result<Option<(SeedValues, SeedValues)>> {
    paired_within(a, b, 0.0)
}

/// The same, the second one greater by a margin.
///
/// # Errors
/// If an experiment has no such group, or a margin is added to a gap, which is several values.
pub(crate) fn paired_within(
    (a, a_experiment, a_method): (&Column, &ExperimentResults, &MethodResults),
    (b, b_experiment, b_method): (&Column, &ExperimentResults, &MethodResults),
    margin: f64,
) -> anyhow::Result<Option<(SeedValues, SeedValues)>> {
    let mut theirs = b.parts_by_run(b_experiment, b_method)?;
    if margin != 0.0 {
        ensure!(
            matches!(b.subject, Subject::Total | Subject::Group(_)),
            "{b}: a margin is added to single values alone"
        );
        for part in theirs.iter_mut().filter_map(|(_, parts)| parts.as_mut()).flatten() {
            *part += margin;
        }
    }
    let common = a.parts_by_run(a_experiment, a_method)?.into_iter().filter_map(|(index, ours)| {
        let (_, theirs) = theirs.iter().find(|(candidate, _)| *candidate == index)?;
        ours.zip(theirs.clone())
    });
    let (ours, theirs): (Vec<_>, Vec<_>) = common.unzip();
    if ours.is_empty() {
        return Ok(None);
    }
    Ok(Some((a.seed_values(&ours)?, b.seed_values(&theirs)?)))
}

/// The privacy cost of every group in every run, `[seeds][groups]`, as fractions.
pub fn privacy_costs(experiment: &ExperimentResults, method: &MethodResults) -> Vec<Vec<Option<f64>>> {
    by_group(Metric::PrivacyCost, experiment, method)
}

/// The excessive risk of every group in every run, `[seeds][groups]`.
pub fn excessive_risks(experiment: &ExperimentResults, method: &MethodResults) -> Vec<Vec<Option<f64>>> {
    by_group(Metric::ExcessiveRisk, experiment, method)
}

fn by_group(metric: Metric, experiment: &ExperimentResults, method: &MethodResults) -> Vec<Vec<Option<f64>>> {
    let column = Column { metric, subject: Subject::Gap, percent: false, order_only: false, in_batches: false };
    let groups = 0..experiment.dataset.groups.len();
    let of_run = |run| groups.clone().map(|group| column.value(experiment, run, &Scope::Groups(vec![group]))).collect();
    method.runs.iter().map(of_run).collect()
}

/// The gap of the two groups whose means are furthest apart; its error is that of their difference.
///
/// # Errors
/// If seeds have different numbers of groups.
pub(crate) fn widest_gap(by_seed: &[Vec<Option<f64>>]) -> anyhow::Result<Estimate> {
    let pairs = gaps_over_seeds(by_seed)?;
    let widest = pairs.iter().filter(|pair| pair.gap.is_some()).reduce(
        |best, pair| {
            if pair.gap > best.gap { pair } else { best }
        },
    );
    Ok(match widest {
        Some(pair) => Estimate { mean: pair.gap, ..pair.difference },
        None => Estimate::over_seeds(&vec![None; by_seed.len()])?,
    })
}
