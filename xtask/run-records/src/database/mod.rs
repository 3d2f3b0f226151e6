//! A file of runs: what it is, and who may open it.

mod lock;
mod open;
mod read;
mod results;
mod write;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rusqlite::{Connection, OpenFlags, Row, ToSql, params};

use self::lock::Lock;
use self::open::{connect, ensure_file, open_at, upgrade};
pub(crate) use self::read::{StoredFailure, StoredRun};
use crate::key::{RunKey, Source};
use crate::{schema, seal};

/// SQLite opens no path of more than 512 bytes, and adds `-journal` to it.
const MAX_PATH: usize = 500;

/// Runs of one study in an SQLite file.
///
/// A run is written in one transaction when it has finished, and is on the disk when the call
/// returns: whatever happens to the process afterwards, it is neither lost nor half there. The
/// journal is SQLite's plain one, which also works on network file systems; one process writes at a
/// time, others may read.
pub struct Database {
    pub(super) connection: Connection,
    path: PathBuf,
    /// Held as long as runs may be written.
    _lock: Option<Lock>,
}

/// A command that trains runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub(super) i64);

impl Database {
    /// Makes a new database for writing.
    ///
    /// # Errors
    /// If the file exists, or another process writes to it.
    pub fn create(path: &Path, source: &Source) -> anyhow::Result<Self> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        }
        if path.as_os_str().len() > MAX_PATH {
            bail!("{}: the path of a database has at most {MAX_PATH} bytes", path.display());
        }
        let lock = Lock::take(path)?;
        if std::fs::symlink_metadata(path).is_ok() {
            bail!("{} exists", path.display());
        }
        // Beside it first: a file under its name has its tables.
        let partial = with_suffix(path, "partial");
        // With its journal, which SQLite would play back into the new one.
        for left in [with_suffix(path, "partial-journal"), partial.clone()] {
            if left.exists() {
                std::fs::remove_file(&left).with_context(|| format!("removing {}", left.display()))?;
            }
        }
        let connection = connect(&partial, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        schema::create(&connection)?;
        connection
            .execute(
                "INSERT INTO study VALUES (1, ?, ?, ?, ?)",
                params![
                    source.study,
                    source.quick,
                    source.seed.map(|seed| seed.to_string()),
                    source.split_seed.to_string()
                ],
            )
            .and_then(|_| seal::STUDY.seal(&connection, &[&1]))
            .context("writing the study")?;
        connection.close().map_err(|(_, error)| error).context("closing the new database")?;
        std::fs::rename(&partial, path).with_context(|| format!("creating {}", path.display()))?;
        let (connection, _) = open_at(path)?;
        Ok(Self { connection, path: path.to_owned(), _lock: Some(lock) })
    }

    /// Opens an existing database for writing. One from before rows were sealed gets its seals.
    ///
    /// # Errors
    /// If it is none, is damaged, or another process writes to it.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        ensure_file(path)?;
        let lock = Lock::take(path)?;
        let (mut connection, is_sealed) = open_at(path)?;
        if !is_sealed {
            upgrade(&mut connection).with_context(|| format!("upgrading {}", path.display()))?;
        }
        Ok(Self { connection, path: path.to_owned(), _lock: Some(lock) })
    }

    /// Opens an existing database to read from it.
    ///
    /// # Errors
    /// If it is none, or is damaged.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let (connection, _) = open_at(path)?;
        Ok(Self { connection, path: path.to_owned(), _lock: None })
    }

    /// Moves a database out of the way, or removes it if it holds no run. Returns where it is now.
    ///
    /// # Errors
    /// If it is no database of runs of this study, is damaged, or another process writes to it.
    pub fn set_aside(path: &Path, study: &str) -> anyhow::Result<Option<PathBuf>> {
        // Opening takes back what a killed process left in the journal, so that the file can be
        // moved without it.
        let database = Self::open(path)?;
        let found = database.source()?.study;
        if found != study {
            bail!("{} holds runs of the study {found}, not of {study}", path.display());
        }
        let n_runs: u64 = database
            .connection
            .query_row("SELECT (SELECT count(*) FROM run) + (SELECT count(*) FROM failure)", [], |row| row.get(0))
            .with_context(|| database.reading("run"))?;
        database
            .connection
            .close()
            .map_err(|(_, error)| error)
            .with_context(|| format!("closing {}", path.display()))?;
        if n_runs == 0 {
            std::fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
            return Ok(None);
        }
        let free = (1..=u32::MAX).map(|n| path.with_extension(format!("earlier-{n}.db"))).find(|free| !free.exists());
        let free = free.with_context(|| format!("no free name beside {}", path.display()))?;
        std::fs::rename(path, &free).with_context(|| format!("moving {} to {}", path.display(), free.display()))?;
        Ok(Some(free))
    }

    /// Writes what it holds to another file, where none may be.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn copy_to(&self, path: &Path) -> anyhow::Result<()> {
        let name = path.to_str().context("a path in UTF-8")?;
        let copied = self.connection.execute("VACUUM INTO ?1", [name]);
        copied.map(drop).with_context(|| format!("writing {name}"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Study and seeds.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn source(&self) -> anyhow::Result<Source> {
        let row =
            |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<String>>(2)?, row.get::<_, String>(3)?));
        let (study, quick, seed, split_seed): (String, bool, Option<String>, String) = self
            .connection
            .query_row("SELECT name, quick, seed, split_seed FROM study", [], row)
            .with_context(|| self.reading("study"))?;
        let number =
            |text: &str| text.parse::<u64>().with_context(|| format!("{}: seed `{text}`", self.path.display()));
        Ok(Source { study, quick, seed: seed.map(|text| number(&text)).transpose()?, split_seed: number(&split_seed)? })
    }

    fn reading(&self, table: &str) -> String {
        format!("reading table `{table}` of {}", self.path.display())
    }
}

/// A key as named parameters of a statement.
pub(super) fn parameters(key: &RunKey) -> [(&'static str, &dyn ToSql); 5] {
    [
        (":experiment", &key.experiment),
        (":method", &key.method),
        (":config_hash", &key.config_hash),
        (":data_digest", &key.data_digest),
        (":seed_index", &key.index),
    ]
}

/// A key as the first columns of a sealed row.
pub(super) fn values(key: &RunKey) -> [&dyn ToSql; 5] {
    parameters(key).map(|(_, value)| value)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{key, ledger, source};
    use crate::made_up;

    #[test]
    fn one_process_writes_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.db");
        let database = Database::create(&path, &source()).unwrap();
        let error = Database::open(&path).err().unwrap().to_string();
        assert!(error.ends_with("records.db is being written by another process"), "{error}");
        drop(database);
        Database::open(&path).unwrap();
        let error = Database::create(&path, &source()).err().unwrap().to_string();
        assert!(error.ends_with("records.db exists"), "{error}");
    }

    #[test]
    fn earlier_runs_are_moved_aside_and_empty_records_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.db");
        drop(Database::create(&path, &source()).unwrap());
        assert_eq!(Database::set_aside(&path, "adult").unwrap(), None);
        assert!(!path.exists());
        let study = made_up::study();
        let method = &study.experiments[0].methods[0];
        for n in 1..=2 {
            let mut database = Database::create(&path, &source()).unwrap();
            let session = database.begin_session(&study.sessions[0]).unwrap();
            database.put_experiment(&study.experiments[0]).unwrap();
            let run = &method.runs[0];
            database.put_run(&key(method, run), session, 1.0, method, &ledger(method), run).unwrap();
            drop(database);
            let aside = folder.path().join(format!("records.earlier-{n}.db"));
            assert_eq!(Database::set_aside(&path, "adult").unwrap(), Some(aside.clone()));
            assert_eq!(Database::open(&aside).unwrap().sessions().unwrap().len(), 1);
        }
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.db");
        let error = |path: &Path| format!("{:#}", Database::open(path).err().unwrap());
        assert!(error(&path).starts_with("no database of runs at "), "{}", error(&path));
        std::fs::write(&path, "not a database, but long enough to look like a page of something").unwrap();
        assert!(error(&path).contains("records.db: file is not a database"), "{}", error(&path));
        let other = folder.path().join("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        assert!(!folder.path().join("other.db.lock").exists(), "no lock is left");
        assert!(error(&other).ends_with("other.db is a database, but not one of runs"), "{}", error(&other));
        let newer = folder.path().join("newer.db");
        drop(Database::create(&newer, &source()).unwrap());
        Connection::open(&newer).unwrap().pragma_update(None, "user_version", 9).unwrap();
        assert!(
            error(&newer).ends_with("newer.db: version 9 of the tables, this program knows 3"),
            "{}",
            error(&newer)
        );
    }
}
