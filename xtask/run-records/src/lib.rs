//! Records of runs: what they hold, and where they are kept.
//!
//! A study leaves [`StudyResults`] behind. Its runs are in a [`Database`] of SQLite as soon as they
//! are finished; databases are joined ([`merge`]), repaired ([`repair`]), listed ([`list`]), shown
//! ([`show`]) and exported as tables ([`export`]). [`compact`] is the whole of a study in one small
//! file. [`output`] writes files and folders whole or not at all, and [`shell`] quotes words.

mod columns;
pub mod compact;
pub mod coordinate;
pub mod database;
mod difference;
pub mod export;
pub mod extended;
mod f1;
#[cfg(test)]
mod fixture;
mod import;
pub mod join;
mod key;
pub mod ledger;
pub mod list;
pub mod made_up;
pub mod mark;
pub mod merge;
mod metrics;
pub mod output;
mod parquet;
pub mod rank_records;
mod record;
pub mod repair;
mod schema;
mod seal;
pub mod shell;
pub mod show;
pub mod table;
mod worst_group;

use std::path::Path;

pub use self::database::{Database, SessionId};
pub use self::export::metrics_csv;
pub use self::key::{RunKey, Source, config_hash};
pub use self::merge::add_all;
pub use self::record::*;
pub use self::worst_group::LEAST_OF_A_CLASS;

/// The runs in a database, or in a packed file that is named after its study, as CSV.
///
/// # Errors
/// If the file is damaged or none of ours.
pub fn as_csv(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = path.file_name().and_then(|name| name.to_str());
    if let Some(study) = name.and_then(|name| name.strip_suffix(join::SUFFIX)) {
        return metrics_csv(&compact::read(path, study)?);
    }
    let mut bytes = Vec::new();
    export::export(&Database::read(path)?, table::Table::Metrics, export::Format::Csv, &mut bytes)?;
    Ok(bytes)
}
