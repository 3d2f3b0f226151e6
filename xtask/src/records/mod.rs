//! Records of runs: what they hold, and where they are kept.

pub(crate) mod compact;
pub(crate) mod coordinate;
pub(crate) mod database;
mod difference;
pub(crate) mod export;
pub(crate) mod extended;
mod f1;
#[cfg(test)]
mod fixture;
mod import;
pub(crate) mod join;
mod key;
pub(crate) mod list;
pub(crate) mod mark;
pub(crate) mod merge;
mod metrics;
mod parquet;
mod record;
pub(crate) mod repair;
mod schema;
mod seal;
pub(crate) mod show;
#[cfg(test)]
pub(crate) mod study_fixture;
pub(crate) mod table;

use std::path::Path;

pub(crate) use self::database::{Database, SessionId};
pub(crate) use self::export::metrics_csv;
pub(crate) use self::key::{RunKey, Source, config_hash};
pub(crate) use self::merge::add_all;
pub(crate) use self::record::*;

/// The runs in a database, or in a packed file that is named after its study, as CSV.
///
/// # Errors
/// If the file is damaged or none of ours.
pub(crate) fn as_csv(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = path.file_name().and_then(|name| name.to_str());
    if let Some(study) = name.and_then(|name| name.strip_suffix(join::SUFFIX)) {
        return metrics_csv(&compact::read(path, study)?);
    }
    let mut bytes = Vec::new();
    export::export(&Database::read(path)?, table::Table::Metrics, export::Format::Csv, &mut bytes)?;
    Ok(bytes)
}
