//! Names of what tables print.

use std::fmt;
use std::str::FromStr;

use anyhow::bail;

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
    /// Mean loss of the final model on all training records.
    FinalTrainLoss,
    /// Mean loss of the final model on the validation records.
    ValidationLoss,
    /// Norm of the group's mean training gradient at the final model.
    MeanGradientNorm,
    /// Mean of the class recalls on the test records.
    MacroAccuracy,
    /// Least class recall on the test records.
    WorstClassAccuracy,
    /// Least mean of the class recalls within a group, on the test records.
    WorstGroupMacroAccuracy,
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
    /// How much clipping takes from a record's gradient: the mean norm before minus that after, over
    /// all epochs. The first of the two terms that bound a group's error of a clipped and noisy mean
    /// (Xu 2020, 4.2, Eq. 1); the second, `C/(bε)`, grows with the bound and is the same for all
    /// groups of one size.
    ClippingBias,
    /// Harmonic mean of precision and recall of the second of two classes on the test records.
    F1,
    /// Excessive risk of a step by the error of magnitude (Esipova 2023, Prop. 2), the mean over the
    /// evaluated steps.
    MagnitudeError,
    /// The same by the error of direction.
    DirectionError,
    /// By the error of magnitude in the alternate decomposition (Prop. 2*).
    MagnitudeErrorStar,
    /// By the error of direction in the alternate decomposition.
    DirectionErrorStar,
    /// The clipping bound for which bias and noise of a group's mean gradient are least together (Xu
    /// 2020, 4.2), the mean over the evaluated steps.
    BestBound,
    /// Mean threshold over the first tenth of the recorded steps.
    FirstThreshold,
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
                | Self::WorstGroupMacroAccuracy
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
            Self::FinalTrainLoss => "Final training loss",
            Self::ValidationLoss => "Validation loss",
            Self::MeanGradientNorm => "Gradient norm",
            Self::MacroAccuracy => "Macro accuracy",
            Self::WorstClassAccuracy => "Worst-class accuracy",
            Self::WorstGroupMacroAccuracy => "Worst-group macro accuracy",
            Self::LossGap => "Mean of the seeds' loss gaps",
            Self::DisparityReduction => "Reduction of the loss gap",
            Self::GradientNorm => "Norm before clipping",
            Self::ClippedGradientNorm => "Norm after clipping",
            Self::ClippingBias => "Bias of clipping",
            Self::F1 => "F1",
            Self::MagnitudeError => "Error of magnitude",
            Self::DirectionError => "Error of direction",
            Self::MagnitudeErrorStar => "Error of magnitude, alternate",
            Self::DirectionErrorStar => "Error of direction, alternate",
            Self::BestBound => "Best bound",
            Self::FirstThreshold => "Threshold in the first tenth",
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
            (
                Subject::Total,
                Metric::MacroAccuracy | Metric::WorstClassAccuracy | Metric::WorstGroupMacroAccuracy | Metric::F1,
            )
            | (Subject::Gap, _) => {}
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
            "training_loss" => Metric::FinalTrainLoss,
            "validation_loss" => Metric::ValidationLoss,
            "mean_gradient_norm" => Metric::MeanGradientNorm,
            "macro_accuracy" => Metric::MacroAccuracy,
            "worst_class_accuracy" => Metric::WorstClassAccuracy,
            "worst_group_macro_accuracy" => Metric::WorstGroupMacroAccuracy,
            "loss_gap" => Metric::LossGap,
            "disparity_reduction" => Metric::DisparityReduction,
            "gradient_norm" => Metric::GradientNorm,
            "clipped_gradient_norm" => Metric::ClippedGradientNorm,
            "clipping_bias" => Metric::ClippingBias,
            "f1" => Metric::F1,
            "magnitude_error" => Metric::MagnitudeError,
            "direction_error" => Metric::DirectionError,
            "magnitude_error_star" => Metric::MagnitudeErrorStar,
            "direction_error_star" => Metric::DirectionErrorStar,
            "best_bound" => Metric::BestBound,
            "first_threshold" => Metric::FirstThreshold,
            _ => bail!("metric `{metric}` is not known"),
        };
        let Ok(subject) = group.parse();
        Ok(Self { metric: parsed, subject, percent, order_only, in_batches })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
