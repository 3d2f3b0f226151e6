//! Where the ranks of a study keep the runs that they train.
//!
//! Rank 0 has the study's records. The others have files beside them, so that a finished run is on
//! the disk whatever happens to the other ranks; on a machine that does not see the records' folder
//! they are temporary. What ranks of a killed command have left, the next command takes up.

use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::TempDir;

use crate::{Database, Source, add_all};

/// The records of a rank that is not the first.
#[derive(Debug)]
pub struct RankRecords {
    path: PathBuf,
    /// Whether rank 0 has all of them.
    handed_over: bool,
    /// The folder of temporary ones.
    _folder: Option<TempDir>,
}

impl RankRecords {
    /// New ones, of a study whose records are, or would be, at `study`.
    ///
    /// # Errors
    /// Those of [`Database::create`].
    pub fn create(study: &Path, rank: usize, source: &Source) -> anyhow::Result<(Self, Database)> {
        let folder = match study.parent() {
            Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
                Some(tempfile::tempdir().context("a folder for the records of a rank")?)
            }
            _ => None,
        };
        let study = folder.as_ref().map_or_else(|| study.to_owned(), |folder| folder.path().join("records.db"));
        let path = study.with_extension(format!("rank-{rank}.db"));
        let database = Database::create(&path, source)?;
        Ok((Self { path, handed_over: false, _folder: folder }, database))
    }

    /// Notes that rank 0 has all of them, or that there is a further one.
    pub fn note(&mut self, handed_over: bool) {
        self.handed_over = handed_over;
    }
}

impl Drop for RankRecords {
    fn drop(&mut self) {
        if self.handed_over {
            // If it stays, the next command takes up what it has already.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Adds what ranks of an earlier command have left to the study's records.
///
/// # Errors
/// If a file cannot be read, belongs to another study or seed, or a rank still writes to it.
pub fn take_up(records: &mut Database) -> anyhow::Result<()> {
    for path in left(records.path())? {
        let part = Database::open(&path)?;
        add_all(records, std::slice::from_ref(&part))?;
        drop(part);
        std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(())
}

/// Moves out of the way what ranks have left where a study's records are no longer.
///
/// # Errors
/// Those of [`Database::set_aside`].
pub fn set_aside(records: &Path, study: &str) -> anyhow::Result<()> {
    left(records)?.iter().try_for_each(|path| Database::set_aside(path, study).map(drop))
}

/// The files of ranks beside a study's records, in order.
fn left(records: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = match records.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let reading = || format!("reading {}", folder.display());
    let prefix = format!("{}.rank-", records.file_stem().unwrap_or_default().display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        let name = path.file_name().unwrap_or_default().display().to_string();
        let number = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".db"));
        if number.is_some_and(|number| number.parse::<usize>().is_ok()) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{fill, source};
    use crate::made_up;

    #[test]
    fn what_ranks_have_left_is_taken_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.db");
        let mut records = Database::create(&path, &source()).unwrap();
        let of_rank = |name: &str, source: &Source| fill(&folder.path().join(name), source, &made_up::study());
        of_rank("records.rank-1.db", &source());
        std::fs::write(folder.path().join("records.rank-x.db"), "of somebody else").unwrap();
        take_up(&mut records).unwrap();
        assert_eq!(left(&path).unwrap(), Vec::<PathBuf>::new());
        assert!(!records.runs().unwrap().is_empty());
        of_rank("records.rank-2.db", &Source { split_seed: 8, ..source() });
        let error = take_up(&mut records).unwrap_err().to_string();
        assert!(error.contains("records.rank-2.db does not belong to these records"), "{error}");
        set_aside(&path, "adult").unwrap();
        assert!(folder.path().join("records.rank-2.earlier-1.db").exists());
    }

    #[test]
    fn records_that_were_handed_over_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let study = folder.path().join("records.db");
        for handed_over in [true, false] {
            let (mut rank, database) = RankRecords::create(&study, 3, &source()).unwrap();
            rank.note(handed_over);
            drop((database, rank));
            assert_eq!(folder.path().join("records.rank-3.db").exists(), !handed_over);
        }
        // Where the folder is not to be seen.
        let (rank, database) = RankRecords::create(&folder.path().join("elsewhere/records.db"), 1, &source()).unwrap();
        assert!(!folder.path().join("elsewhere").exists() && database.path() == rank.path);
    }
}
