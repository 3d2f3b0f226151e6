#![doc = include_str!("../README.md")]

mod accuracy;
mod equal_cost;
mod error;
mod estimate;
mod gap;
mod groups;
mod loss;
mod measured;
mod privacy_cost;
mod wilcoxon;

pub use accuracy::{accuracy, accuracy_by_group, class_recall, macro_accuracy, worst_class_accuracy};
pub use equal_cost::{EqualCost, XU_TOLERANCE, equal_cost};
pub use error::MetricError;
pub use estimate::Estimate;
pub use gap::{PairGap, PairGapEstimate, gaps_over_seeds, largest_gap, pairwise_gaps};
pub use groups::Groups;
pub use loss::mean_loss_by_group;
pub use measured::Measured;
pub use privacy_cost::{excessive_risk, privacy_cost};
pub use wilcoxon::{Alternative, EXACT_LIMIT, Wilcoxon, WilcoxonMethod, wilcoxon_signed_rank};
