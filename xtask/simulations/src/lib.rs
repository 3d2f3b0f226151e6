//! How often intervals and verdicts are wrong, by simulation: studies and releases are drawn from a
//! known truth, and what is said of them is compared with it.
//!
//! [`verdicts`] covers the rules of the reports, [`fairness`] the figures of groups that
//! [`fair_metrics::noisy`] makes from counts. `docs/statistics.md` prints the results of both.

mod draws;
pub mod fairness;
pub mod verdicts;
