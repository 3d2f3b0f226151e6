//! Metrics by group, for several attributes at once.

mod attribute;
mod decisions;
mod intervals;
mod metric_frame;
mod parity;
mod quantiles;

pub use attribute::Attribute;
pub use decisions::{Decisions, EmptyClass};
pub use intervals::{RateIntervals, StratumIntervals, binary_intervals};
pub use metric_frame::{Distance, GroupValue, MetricFrame, Stratum};
pub use parity::{
    Aggregate, BinaryRate, binary_frame, demographic_parity_difference, demographic_parity_ratio,
    equal_opportunity_difference, equal_opportunity_ratio, equalized_odds_difference, equalized_odds_ratio,
};
pub use quantiles::{StratumQuantiles, frame_quantiles};
