//! Metrics by group, for several attributes at once.

mod attribute;
mod intervals;
mod metric_frame;
mod parity;

pub use attribute::Attribute;
pub use intervals::{StratumIntervals, frame_intervals};
pub use metric_frame::{Distance, GroupValue, MetricFrame, Stratum};
pub use parity::{
    Aggregate, BinaryRate, binary_frame, demographic_parity_difference, demographic_parity_ratio,
    equal_opportunity_difference, equal_opportunity_ratio, equalized_odds_difference, equalized_odds_ratio,
};
