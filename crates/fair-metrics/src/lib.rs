#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod accuracy;
mod bootstrap;
mod calibration;
mod columns;
mod confusion;
mod disparity;
mod equal_cost;
mod error;
mod estimate;
mod frame;
mod gap;
mod groups;
mod interval;
mod loss;
mod measured;
mod multiple_testing;
pub mod noisy;
mod privacy_cost;
mod score;
mod seed_values;
mod special;
mod student;
mod wilcoxon;

/// The version whose generators the bootstrap takes: `fair_metrics::rand::rngs::StdRng`.
pub use rand;

pub use accuracy::{accuracy, accuracy_by_group, class_recall, macro_accuracy, worst_class_accuracy};
pub use bootstrap::{BootstrapInterval, PairedBootstrap, bootstrap, paired_bootstrap};
pub use calibration::{CalibrationBin, GroupCalibration, calibration_by_group};
pub use columns::{Labels, Predictions};
pub use confusion::Confusion;
pub use disparity::{average_disparity, disparity_reduction, loss_gap, worst_group};
pub use equal_cost::{EqualCost, EqualCostAnswer, EqualCostOverRuns, equal_cost, equal_cost_over_runs};
pub use error::MetricError;
pub use estimate::Estimate;
pub use frame::{
    Aggregate, Attribute, BinaryRate, Decisions, Distance, EmptyClass, GroupValue, MetricFrame, RateIntervals, Stratum,
    StratumIntervals, StratumQuantiles, binary_frame, binary_intervals, demographic_parity_difference,
    demographic_parity_ratio, equal_opportunity_difference, equal_opportunity_ratio, equalized_odds_difference,
    equalized_odds_ratio, frame_quantiles,
};
pub use gap::{PairGap, PairGapEstimate, gaps_over_seeds, largest_gap, pairwise_gaps};
pub use groups::Groups;
pub use interval::{Interval, clopper_pearson, resampled_t_interval, t_interval};
pub use loss::mean_loss_by_group;
pub use measured::Measured;
pub use multiple_testing::{bonferroni, holm};
pub use privacy_cost::{excessive_risk, privacy_cost};
pub use score::{log_loss, roc_auc, roc_auc_by_group};
pub use seed_values::{Compared, SeedValues, compare, p_smaller_by_t_test};
pub use special::t_quantile;
pub use student::{TTest, resampled_t_test, t_test};
pub use wilcoxon::{Alternative, Wilcoxon, WilcoxonMethod, wilcoxon_signed_rank};
