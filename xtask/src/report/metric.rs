//! The quantities that tables print, computed from the records of a study.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail};
use fair_metrics::{Estimate, gaps_over_seeds};

use crate::results::{ExperimentResults, MethodResults, MetricsRecord, RunRecord};

/// Name of the reference without privacy among an experiment's methods.
pub(crate) const REFERENCE: &str = "non-private";

/// What is measured. The names are those of the published tables' files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
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
}

/// Whose metric it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// All records.
    Total,
    /// One group, by name.
    Group(String),
    /// The two groups that are furthest apart.
    Gap,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) metric: Metric,
    pub(crate) subject: Subject,
    /// Printed in per cent.
    pub(crate) percent: bool,
}

impl Metric {
    /// Name and whether it is printed in per cent, from a file's `metric` column.
    pub(crate) fn parse(text: &str) -> anyhow::Result<(Self, bool)> {
        let (name, percent) = text.strip_suffix("_pct").map_or((text, false), |name| (name, true));
        let metric = match name {
            "accuracy" => Self::Accuracy,
            "accuracy_change" => Self::AccuracyChange,
            "privacy_cost" => Self::PrivacyCost,
            "privacy_cost_gap" => Self::PrivacyCostGap,
            "loss" => Self::Loss,
            "excessive_risk" => Self::ExcessiveRisk,
            "excessive_risk_gap" => Self::ExcessiveRiskGap,
            "train_loss" => Self::TrainLoss,
            "mean_gradient_norm" => Self::MeanGradientNorm,
            _ => bail!("metric `{text}` is not known"),
        };
        Ok((metric, percent))
    }

    /// Whether it is a share of records rather than a loss or a norm.
    pub(crate) fn is_rate(self) -> bool {
        matches!(self, Self::Accuracy | Self::AccuracyChange | Self::PrivacyCost | Self::PrivacyCostGap)
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
        }
    }
}

impl FromStr for Subject {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "total" => Self::Total,
            "gap" => Self::Gap,
            name => Self::Group(name.to_owned()),
        })
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.metric.label())?;
        match &self.subject {
            Subject::Total => f.write_str(", all")?,
            Subject::Group(name) => write!(f, ", {name}")?,
            Subject::Gap => {}
        }
        if self.percent { f.write_str(" (%)") } else { Ok(()) }
    }
}

impl Column {
    /// The column's mean and standard error over seeds for one method, in the column's unit.
    ///
    /// Quantities relative to the reference pair run `i` with the reference's run `i`; a seed that one of them lacks is
    /// undefined.
    pub(crate) fn estimate(&self, experiment: &ExperimentResults, method: &MethodResults) -> anyhow::Result<Estimate> {
        let scale = if self.percent { 100.0 } else { 1.0 };
        let estimate = match &self.subject {
            Subject::Gap => {
                let by_seed: Vec<Vec<Option<f64>>> =
                    method.runs.iter().map(|run| self.by_group(experiment, run)).collect();
                widest_gap(&by_seed)?
            }
            subject => {
                let group = match subject {
                    Subject::Group(name) => Some(group_index(experiment, name)?),
                    _ => None,
                };
                let values: Vec<Option<f64>> =
                    method.runs.iter().map(|run| self.value(experiment, run, group)).collect();
                Estimate::over_seeds(&values)?
            }
        };
        Ok(Estimate {
            mean: estimate.mean.map(|mean| mean * scale),
            standard_error: estimate.standard_error.map(|error| error * scale),
            ..estimate
        })
    }

    fn by_group(&self, experiment: &ExperimentResults, run: &RunRecord) -> Vec<Option<f64>> {
        (0..experiment.dataset.groups.len()).map(|group| self.value(experiment, run, Some(group))).collect()
    }

    /// One run's value for one group (or all records, `None`), as a fraction.
    fn value(&self, experiment: &ExperimentResults, run: &RunRecord, group: Option<usize>) -> Option<f64> {
        let reference = || reference_run(experiment, run.index);
        let accuracy = |run: &RunRecord| of_group(&run.test, group).accuracy;
        let loss = |run: &RunRecord| of_group(&run.test, group).loss;
        match self.metric {
            Metric::Accuracy => accuracy(run),
            Metric::AccuracyChange => Some(accuracy(run)? - accuracy(reference()?)?),
            Metric::PrivacyCost | Metric::PrivacyCostGap => Some(accuracy(reference()?)? - accuracy(run)?),
            Metric::Loss => loss(run),
            Metric::ExcessiveRisk | Metric::ExcessiveRiskGap => Some(loss(run)? - loss(reference()?)?),
            Metric::TrainLoss => *run.epochs.last()?.loss.get(group?)?,
            Metric::MeanGradientNorm => *run.epochs.last()?.mean_gradient_norm.get(group?)?,
        }
    }
}

fn of_group(metrics: &MetricsRecord, group: Option<usize>) -> &crate::results::GroupMetrics {
    group.and_then(|group| metrics.groups.get(group)).unwrap_or(&metrics.overall)
}

/// The run without privacy that shares its split and initial weights with run `index`.
pub(crate) fn reference_run(experiment: &ExperimentResults, index: usize) -> Option<&RunRecord> {
    let reference = experiment.methods.iter().find(|method| method.method == REFERENCE)?;
    reference.runs.iter().find(|run| run.index == index)
}

/// The privacy cost of every group in every run, `[seeds][groups]`, as fractions.
pub(crate) fn privacy_costs(experiment: &ExperimentResults, method: &MethodResults) -> Vec<Vec<Option<f64>>> {
    by_seed(Metric::PrivacyCost, experiment, method)
}

/// The excessive risk of every group in every run, `[seeds][groups]`.
pub(crate) fn excessive_risks(experiment: &ExperimentResults, method: &MethodResults) -> Vec<Vec<Option<f64>>> {
    by_seed(Metric::ExcessiveRisk, experiment, method)
}

fn by_seed(metric: Metric, experiment: &ExperimentResults, method: &MethodResults) -> Vec<Vec<Option<f64>>> {
    let column = Column { metric, subject: Subject::Gap, percent: false };
    method.runs.iter().map(|run| column.by_group(experiment, run)).collect()
}

/// The gap of the two groups whose means are furthest apart; its error is that of their difference.
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

/// Index of the group with this name.
pub(crate) fn group_index(experiment: &ExperimentResults, name: &str) -> anyhow::Result<usize> {
    let groups = &experiment.dataset.groups;
    groups.iter().position(|group| group.name == name).with_context(|| {
        let known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        format!("experiment `{}` has no group `{name}`, only {}", experiment.id, known.join(", "))
    })
}
