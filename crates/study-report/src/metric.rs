//! The quantities that tables print, computed from the records of a study.

use std::fmt;
use std::str::FromStr;

use anyhow::bail;
use fair_metrics::{
    Estimate, SeedValues, gaps_over_seeds, largest_gap, macro_accuracy, pairwise_gaps, worst_class_accuracy,
};
use run_records::{EpochRecord, ExperimentResults, MethodResults, MetricsRecord, RunRecord};

/// Name of the reference without privacy among an experiment's methods.
pub const REFERENCE: &str = "non-private";

/// What is measured. The names are those of the published tables' files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Test accuracy.
    Accuracy,
    /// Test accuracy minus that of the reference: the negative of the privacy cost.
    AccuracyChange,
    /// Test accuracy of the reference minus test accuracy.
    PrivacyCost,
    /// Absolute difference of two groups' privacy costs.
    PrivacyCostGap,
    /// Mean test loss.
    Loss,
    /// Mean test loss minus that of the reference.
    ExcessiveRisk,
    /// Absolute difference of two groups' excessive risks.
    ExcessiveRiskGap,
    /// Mean training loss of the final model.
    TrainLoss,
    /// Norm of the group's mean training gradient at the final model.
    MeanGradientNorm,
    /// Mean of the class recalls on the test records.
    MacroAccuracy,
    /// Least class recall on the test records.
    WorstClassAccuracy,
    /// Absolute difference of two groups' test losses. Unlike the gaps above, which are of the
    /// means over seeds (Esipova), its figure is the mean of the seeds' gaps, as Soleymani prints
    /// it.
    LossGap,
    /// By what share the mean of such differences is smaller than that of another method: ratio of
    /// the means over seeds.
    DisparityReduction,
    /// Mean norm of the records' gradients before clipping, over all epochs.
    GradientNorm,
    /// The same after clipping.
    ClippedGradientNorm,
    /// Harmonic mean of precision and recall of the second of two classes on the test records.
    F1,
}

/// Whose metric it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// All records.
    Total,
    /// One group, by name, or all intersections (`male, young`) with a part of this name.
    Group(String),
    /// The two groups that are furthest apart.
    Gap,
    /// These two groups.
    Between(String, String),
    /// The mean over several pairs of groups, one for each attribute.
    Average(Vec<(String, String)>),
    /// The same, against the method with this registry name and the same coordinates.
    AverageAgainst(String, Vec<(String, String)>),
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// What is measured.
    pub metric: Metric,
    /// Of which records.
    pub subject: Subject,
    /// Printed in per cent.
    pub percent: bool,
    /// Printed in a unit that the paper does not define: only the order of methods can be compared.
    pub order_only: bool,
    /// In place of test losses those of the last epoch: the mean over its batches of the group's
    /// mean training loss, where a batch without the group counts as 0.
    pub in_batches: bool,
}

impl Metric {
    /// Whether it is a share of records rather than a loss or a norm.
    pub fn is_rate(self) -> bool {
        matches!(
            self,
            Self::Accuracy
                | Self::AccuracyChange
                | Self::PrivacyCost
                | Self::PrivacyCostGap
                | Self::MacroAccuracy
                | Self::WorstClassAccuracy
                | Self::F1
                | Self::DisparityReduction
        )
    }

    /// For people.
    fn label(self) -> &'static str {
        match self {
            Self::Accuracy => "Accuracy",
            Self::AccuracyChange => "Change of accuracy",
            Self::PrivacyCost => "Privacy cost",
            Self::PrivacyCostGap => "Privacy cost gap",
            Self::Loss => "Loss",
            Self::ExcessiveRisk => "Excessive risk",
            Self::ExcessiveRiskGap => "Excessive risk gap",
            Self::TrainLoss => "Training loss",
            Self::MeanGradientNorm => "Gradient norm",
            Self::MacroAccuracy => "Macro accuracy",
            Self::WorstClassAccuracy => "Worst-class accuracy",
            Self::LossGap => "Mean of the seeds' loss gaps",
            Self::DisparityReduction => "Reduction of the loss gap",
            Self::GradientNorm => "Norm before clipping",
            Self::ClippedGradientNorm => "Norm after clipping",
            Self::F1 => "F1",
        }
    }
}

impl FromStr for Subject {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let pair = |text: &str| text.split_once('|').map(|(a, b)| (a.to_owned(), b.to_owned()));
        let pairs = |text: &str| text.split('+').filter_map(pair).collect();
        if let Some((method, text)) = text.split_once(": ") {
            return Ok(Self::AverageAgainst(method.to_owned(), pairs(text)));
        }
        if text.contains('+') {
            return Ok(Self::Average(pairs(text)));
        }
        Ok(match pair(text) {
            Some((a, b)) => Self::Between(a, b),
            None if text == "total" => Self::Total,
            None if text == "gap" => Self::Gap,
            None => Self::Group(text.to_owned()),
        })
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.metric.label())?;
        f.write_str(if self.in_batches { " in batches" } else { "" })?;
        match (&self.subject, self.metric) {
            // One figure for all groups: there is nothing to tell it from.
            (Subject::Total, Metric::MacroAccuracy | Metric::WorstClassAccuracy | Metric::F1) | (Subject::Gap, _) => {}
            (Subject::Total, _) => f.write_str(", all")?,
            (Subject::Group(name), _) => write!(f, ", {name}")?,
            (Subject::Between(a, b), _) => write!(f, ", {a} and {b}")?,
            (Subject::Average(pairs), _) => write!(f, ", mean over {} attributes", pairs.len())?,
            (Subject::AverageAgainst(method, pairs), _) => {
                write!(f, ", mean over {} attributes, against {method}", pairs.len())?;
            }
        }
        f.write_str(if self.percent { " (%)" } else { "" })
    }
}

/// A run's index, and what its quantity is made of, if that is defined.
type RunParts = (usize, Option<Vec<f64>>);

/// The index of a run and its value, if that is defined.
type RunValue = (usize, Option<f64>);

/// Which records of a run a figure is about.
enum Scope {
    All,
    Groups(Vec<usize>),
}

impl Column {
    /// A column from a file's `metric` and `group` fields. `_pct` after the metric: printed in per
    /// cent; `_order`: in a unit the paper does not define; `_in_batches`: of the batches of the last
    /// epoch.
    ///
    /// # Errors
    /// If the metric is not known.
    pub fn parse(metric: &str, group: &str) -> anyhow::Result<Self> {
        let (name, order_only) = metric.strip_suffix("_order").map_or((metric, false), |name| (name, true));
        let (name, percent) = name.strip_suffix("_pct").map_or((name, false), |name| (name, true));
        let (name, in_batches) = name.strip_suffix("_in_batches").map_or((name, false), |name| (name, true));
        let parsed = match name {
            "accuracy" => Metric::Accuracy,
            "accuracy_change" => Metric::AccuracyChange,
            "privacy_cost" => Metric::PrivacyCost,
            "privacy_cost_gap" => Metric::PrivacyCostGap,
            "loss" => Metric::Loss,
            "excessive_risk" => Metric::ExcessiveRisk,
            "excessive_risk_gap" => Metric::ExcessiveRiskGap,
            "train_loss" => Metric::TrainLoss,
            "mean_gradient_norm" => Metric::MeanGradientNorm,
            "macro_accuracy" => Metric::MacroAccuracy,
            "worst_class_accuracy" => Metric::WorstClassAccuracy,
            "loss_gap" => Metric::LossGap,
            "disparity_reduction" => Metric::DisparityReduction,
            "gradient_norm" => Metric::GradientNorm,
            "clipped_gradient_norm" => Metric::ClippedGradientNorm,
            "f1" => Metric::F1,
            _ => bail!("metric `{metric}` is not known"),
        };
        let Ok(subject) = group.parse();
        Ok(Self { metric: parsed, subject, percent, order_only, in_batches })
    }

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
    fn by_run(&self, experiment: &ExperimentResults, method: &MethodResults) -> anyhow::Result<Vec<RunValue>> {
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

    /// One run's value, as a fraction.
    fn value(&self, experiment: &ExperimentResults, run: &RunRecord, scope: &Scope) -> Option<f64> {
        let reference = || reference_run(experiment, run.index);
        let accuracy = |run: &RunRecord| mean_of(&run.test, scope, |metrics| metrics.accuracy);
        // Means over an epoch are kept by group, without the number of records they are over.
        let single = || match scope {
            Scope::Groups(groups) if groups.len() == 1 => Some(groups[0]),
            _ => None,
        };
        let loss = |run: &RunRecord| {
            if self.in_batches {
                loss_in_batches(experiment, run, single()?)
            } else {
                mean_of(&run.test, scope, |metrics| metrics.loss)
            }
        };
        match self.metric {
            Metric::Accuracy => accuracy(run),
            Metric::AccuracyChange => Some(accuracy(run)? - accuracy(reference()?)?),
            Metric::PrivacyCost | Metric::PrivacyCostGap => Some(accuracy(reference()?)? - accuracy(run)?),
            Metric::Loss | Metric::LossGap | Metric::DisparityReduction => loss(run),
            Metric::ExcessiveRisk | Metric::ExcessiveRiskGap => Some(loss(run)? - loss(reference()?)?),
            Metric::TrainLoss => *run.epochs.last()?.loss.get(single()?)?,
            Metric::MeanGradientNorm => *run.epochs.last()?.mean_gradient_norm.get(single()?)?,
            Metric::GradientNorm => mean_over_epochs(experiment, run, scope, |epoch| &epoch.gradient_norm),
            Metric::ClippedGradientNorm => {
                mean_over_epochs(experiment, run, scope, |epoch| &epoch.clipped_gradient_norm)
            }
            Metric::MacroAccuracy => macro_accuracy(&run.test.class_recall),
            Metric::WorstClassAccuracy => worst_class_accuracy(&run.test.class_recall),
            Metric::F1 => run.test.f1(),
        }
    }
}

/// Two quantities over the seeds that both have, in the order given; `None` if they share none.
///
/// # Errors
/// If an experiment has no such group.
pub fn paired(
    (a, a_experiment, a_method): (&Column, &ExperimentResults, &MethodResults),
    (b, b_experiment, b_method): (&Column, &ExperimentResults, &MethodResults),
) -> anyhow::Result<Option<(SeedValues, SeedValues)>> {
    let theirs = b.parts_by_run(b_experiment, b_method)?;
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

/// A mean over the records of a scope.
fn mean_of(
    metrics: &MetricsRecord,
    scope: &Scope,
    of: impl Fn(&run_records::GroupMetrics) -> Option<f64>,
) -> Option<f64> {
    let groups = match scope {
        Scope::All => return of(&metrics.overall),
        Scope::Groups(groups) => groups,
    };
    let (mut sum, mut n) = (0.0, 0);
    for metrics in groups.iter().filter_map(|&group| metrics.groups.get(group)).filter(|metrics| metrics.n > 0) {
        sum += of(metrics)? * metrics.n as f64;
        n += metrics.n;
    }
    (n > 0).then(|| sum / n as f64)
}

/// The mean over epochs of a quantity that is kept by group, each group with the weight of its
/// training records: batches have them in that proportion.
fn mean_over_epochs(
    experiment: &ExperimentResults,
    run: &RunRecord,
    scope: &Scope,
    of: impl Fn(&EpochRecord) -> &[Option<f64>],
) -> Option<f64> {
    let all: Vec<usize>;
    let groups = match scope {
        Scope::Groups(groups) => groups,
        Scope::All => {
            all = (0..experiment.dataset.groups.len()).collect();
            &all
        }
    };
    let (mut sum, mut weight) = (0.0, 0.0);
    for epoch in &run.epochs {
        for &group in groups {
            let n = experiment.dataset.groups.get(group)?.n_train as f64;
            // An epoch may have drawn no record of a small group.
            let Some(value) = *of(epoch).get(group)? else { continue };
            sum += n * value;
            weight += n;
        }
    }
    (weight > 0.0).then(|| sum / weight)
}

/// The mean over the batches of the last epoch of a group's mean loss, 0 where a batch has none of
/// its records. Such batches have their expected share: drawn at the rate of one batch an epoch,
/// each of the `n` records is absent with `1 - 1/batches`.
fn loss_in_batches(experiment: &ExperimentResults, run: &RunRecord, group: usize) -> Option<f64> {
    let last = run.epochs.last()?;
    let loss = (*last.loss.get(group)?)?;
    let batches = last.step as f64 / last.epoch as f64;
    let n = experiment.dataset.groups.get(group)?.n_train as f64;
    Some(loss * (1.0 - (1.0 - 1.0 / batches).powf(n)))
}

/// The mean loss gaps of a run, and of the run of another method that it is held against.
struct LossGaps {
    index: usize,
    ours: f64,
    base: f64,
}

/// Those of the seeds that both methods have; none if the other was not run.
fn loss_gaps(
    experiment: &ExperimentResults,
    method: &MethodResults,
    base: &str,
    pairs: &[(String, String)],
) -> anyhow::Result<Vec<LossGaps>> {
    let subject = Subject::Average(pairs.to_vec());
    let gap = Column { metric: Metric::LossGap, subject, percent: false, order_only: false, in_batches: false };
    let mut others = experiment.methods.iter();
    let Some(other) = others.find(|other| other.base == base && other.coordinates == method.coordinates) else {
        return Ok(Vec::new());
    };
    let theirs = gap.by_run(experiment, other)?;
    let both = gap.by_run(experiment, method)?.into_iter().filter_map(|(index, ours)| {
        let (_, base) = theirs.iter().find(|(candidate, _)| *candidate == index)?;
        let (ours, base) = ours.zip(*base)?;
        Some(LossGaps { index, ours, base })
    });
    Ok(both.collect())
}

/// `1 - mean(ours)/mean(theirs)` of the mean loss gaps, over the seeds that both have; the error is
/// that of a ratio to first order.
fn reduction(
    experiment: &ExperimentResults,
    method: &MethodResults,
    base: &str,
    pairs: &[(String, String)],
) -> anyhow::Result<Estimate> {
    let both = loss_gaps(experiment, method, base, pairs)?;
    let mean = |of: fn(&LossGaps) -> f64| both.iter().map(of).sum::<f64>() / both.len() as f64;
    let (ours, base) = (mean(|gaps| gaps.ours), mean(|gaps| gaps.base));
    if base.is_nan() || base <= 0.0 {
        return Ok(Estimate::over_seeds(&vec![None; method.runs.len()])?);
    }
    let ratio = ours / base;
    let residuals: Vec<Option<f64>> = both.iter().map(|gaps| Some((gaps.ours - ratio * gaps.base) / base)).collect();
    Ok(Estimate { mean: Some(1.0 - ratio), ..Estimate::over_seeds(&residuals)? })
}

/// The run without privacy that shares its split and initial weights with run `index`.
pub fn reference_run(experiment: &ExperimentResults, index: usize) -> Option<&RunRecord> {
    let reference = experiment.methods.iter().find(|method| method.method == REFERENCE)?;
    reference.runs.iter().find(|run| run.index == index)
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

/// Indices of the groups of this name: one, or all intersections that have it as a part.
fn members(experiment: &ExperimentResults, name: &str) -> anyhow::Result<Vec<usize>> {
    let groups = &experiment.dataset.groups;
    let indices = |is: &dyn Fn(&str) -> bool| (0..groups.len()).filter(|&index| is(&groups[index].name)).collect();
    let exact: Vec<usize> = indices(&|group| group == name);
    let found: Vec<usize> =
        if exact.is_empty() { indices(&|group| group.split(", ").any(|part| part == name)) } else { exact };
    if found.is_empty() {
        let known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        bail!("experiment `{}` has no group `{name}`, only {}", experiment.id, known.join(", "));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_reduction_is_a_ratio_of_means() {
        let experiment = fixture::study().experiments.remove(0);
        let of = |against: &str| {
            let column = Column::parse("disparity_reduction_pct", &format!("{against}: male|female")).unwrap();
            column.estimate(&experiment, &experiment.methods[2]).unwrap()
        };
        // DPSGD-F's gap is 0.52 − 0.31, DPSGD's 0.78 − 0.40; over seeds both vary in proportion.
        let estimate = of("dpsgd");
        assert!((estimate.mean.unwrap() - 100.0 * (1.0 - 0.21 / 0.38)).abs() < 1e-9, "{estimate:?}");
        assert!(estimate.standard_error.unwrap() < 1e-9);
        assert_eq!(of("naive").mean, None, "not run");
    }

    #[test]
    fn norms_of_groups_have_the_weight_of_their_records() {
        let mut experiment = fixture::study().experiments.remove(0);
        experiment.dataset.groups[0].n_train = 30;
        experiment.dataset.groups[1].n_train = 10;
        for epoch in &mut experiment.methods[1].runs[0].epochs {
            epoch.gradient_norm = vec![Some(2.0), Some(6.0)];
            epoch.clipped_gradient_norm = vec![Some(0.1), None];
        }
        let first = |metric| {
            let column = Column::parse(metric, "total").unwrap();
            column.by_run(&experiment, &experiment.methods[1]).unwrap()[0].1.unwrap()
        };
        assert!((first("gradient_norm") - 3.0).abs() < 1e-12);
        assert!((first("clipped_gradient_norm") - 0.1).abs() < 1e-12, "a group that was not drawn has no weight");
    }

    #[test]
    fn a_batch_without_the_group_has_no_loss() {
        let mut experiment = fixture::study().experiments.remove(0);
        experiment.dataset.groups[0].n_train = 2;
        experiment.dataset.groups[1].n_train = 10_000;
        for (method, loss) in [(0, [0.2, 0.1]), (1, [0.8, 0.5])] {
            for run in &mut experiment.methods[method].runs {
                let last = run.epochs.last_mut().unwrap();
                (last.epoch, last.step, last.loss) = (3, 30, loss.map(Some).to_vec());
            }
        }
        let of = |metric, group| {
            let column = Column::parse(metric, group).unwrap();
            column.estimate(&experiment, &experiment.methods[1]).unwrap().mean.unwrap()
        };
        let groups = &experiment.dataset.groups;
        // Ten batches an epoch: both records are absent from a batch with 0.9².
        assert!((of("loss_in_batches", &groups[0].name) - 0.8 * 0.19).abs() < 1e-12);
        assert!((of("loss_in_batches", &groups[1].name) - 0.5).abs() < 1e-12);
        assert!((of("excessive_risk_in_batches", &groups[0].name) - 0.6 * 0.19).abs() < 1e-12);
        assert!((of("loss", &groups[0].name) - 0.8 * 0.19).abs() > 1e-3, "the test records' own");
    }

    #[test]
    fn a_part_of_an_intersection_is_the_mean_over_its_records() {
        let mut experiment = fixture::study().experiments.remove(0);
        experiment.dataset.groups[0].name = "male, young".to_owned();
        experiment.dataset.groups[1].name = "male, old".to_owned();
        for run in experiment.methods.iter_mut().flat_map(|method| &mut method.runs) {
            run.test.groups[0] = run_records::GroupMetrics { n: 30, accuracy: Some(0.9), loss: Some(0.2) };
            run.test.groups[1] = run_records::GroupMetrics { n: 10, accuracy: Some(0.5), loss: Some(0.6) };
        }
        let mean = |metric, group| {
            let column = Column::parse(metric, group).unwrap();
            column.estimate(&experiment, &experiment.methods[0]).unwrap().mean.unwrap()
        };
        // (30·0.9 + 10·0.5)/40 and (30·0.2 + 10·0.6)/40.
        assert!((mean("accuracy", "male") - 0.8).abs() < 1e-12);
        assert!((mean("loss", "male") - 0.3).abs() < 1e-12);
        assert!((mean("loss_gap", "young|old") - 0.4).abs() < 1e-12);
        // The second pair is one group against itself: (0.4 + 0)/2.
        assert!((mean("loss_gap", "young|old+male|male") - 0.2).abs() < 1e-12);
        assert!(Column::parse("accuracy", "female").unwrap().estimate(&experiment, &experiment.methods[0]).is_err());
    }

    #[test]
    fn names_of_columns() {
        let name = |metric, group| Column::parse(metric, group).unwrap().to_string();
        assert_eq!(name("accuracy_pct", "2"), "Accuracy, 2 (%)");
        assert_eq!(name("privacy_cost_gap_pct", "2|8"), "Privacy cost gap, 2 and 8 (%)");
        assert_eq!(name("macro_accuracy", "total"), "Macro accuracy");
        assert_eq!(name("loss_order", "total"), "Loss, all");
        assert_eq!(name("loss_in_batches", "8"), "Loss in batches, 8");
    }
}
