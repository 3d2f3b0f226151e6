//! How a study is run: settings, plans, runs side by side, what is recorded of them, and parts for
//! several machines.

pub(crate) mod checkpoints;
pub(crate) mod conditioned;
pub(crate) mod data_setting;
pub(crate) mod data_source;
pub(crate) mod evaluation;
pub(crate) mod experiment;
pub(crate) mod features;
pub(crate) mod given;
pub(crate) mod group_thresholds;
pub(crate) mod images;
pub(crate) mod kubernetes;
pub(crate) mod least_squares;
pub(crate) mod options;
pub(crate) mod own_data;
pub(crate) mod parts;
pub(crate) mod plans;
pub(crate) mod privacy;
pub(crate) mod progress;
pub(crate) mod random_search;
pub(crate) mod recorder;
pub(crate) mod records;
#[cfg(test)]
mod resume_tests;
pub(crate) mod runner;
pub(crate) mod session;
pub(crate) mod shard;
pub(crate) mod single_run;
pub(crate) mod slurm;
pub(crate) mod step_analysis;
pub(crate) mod strategy;
pub(crate) mod text_inputs;
pub(crate) mod training;
pub(crate) mod workload;
