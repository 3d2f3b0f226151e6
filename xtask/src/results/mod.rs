//! Records of runs: what they hold, where they are kept, and `cargo xtask results`.

mod command;
pub(crate) mod compact;
mod database;
mod difference;
mod export;
pub(crate) mod extended;
#[cfg(test)]
mod fixture;
mod import;
mod key;
mod list;
mod merge;
mod metrics;
mod parquet;
mod record;
mod repair;
mod schema;
mod seal;
mod show;
mod table;

pub(crate) use self::command::{ResultsArgs, run};
pub(crate) use self::database::{Database, SessionId};
pub(crate) use self::export::metrics_csv;
pub(crate) use self::key::{RunKey, Source, config_hash};
pub(crate) use self::merge::add_all;
pub(crate) use self::record::*;
