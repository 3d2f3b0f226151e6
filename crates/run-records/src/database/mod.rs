//! A file of runs.

mod lock;
mod open;
mod results;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, ToSql, named_params, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::lock::Lock;
use self::open::{connect, ensure_file, open_at, upgrade};
use crate::key::{RunKey, Source};
use crate::record::{ExperimentResults, MethodResults, RunRecord, SessionRecord};
use crate::{schema, seal};

/// The condition that picks one run.
macro_rules! by_key {
    () => {
        "WHERE (experiment, method, config_hash, data_digest, seed_index)
             = (:experiment, :method, :config_hash, :data_digest, :seed_index)"
    };
}

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

/// A run as it is stored.
pub(super) struct StoredRun {
    pub(super) key: RunKey,
    pub(super) session: SessionId,
    /// UTC.
    pub(super) finished: String,
    /// JSON.
    pub(super) ledger: String,
    /// JSON.
    pub(super) record: String,
}

/// A failed run as it is stored.
pub(super) struct StoredFailure {
    pub(super) key: RunKey,
    pub(super) session: SessionId,
    /// UTC.
    pub(super) finished: String,
    pub(super) reason: String,
}

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

    /// Notes a command that is about to train.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn begin_session(&self, session: &SessionRecord) -> anyhow::Result<SessionId> {
        let transaction = self.connection.unchecked_transaction().with_context(|| self.writing("session"))?;
        self.connection
            .execute(
                "INSERT INTO session (command, code_revision, host, threads, started, wall_seconds)
                 VALUES (?, ?, ?, ?, datetime('now'), ?)",
                params![
                    json(&session.command)?,
                    session.code_revision,
                    session.host,
                    session.threads,
                    session.wall_seconds
                ],
            )
            .with_context(|| self.writing("session"))?;
        let id = self.connection.last_insert_rowid();
        seal::SESSION.seal(&self.connection, &[&id]).with_context(|| self.writing("session"))?;
        transaction.commit().with_context(|| self.writing("session"))?;
        Ok(SessionId(id))
    }

    /// Notes an experiment without its methods; the latest description counts.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn put_experiment(&self, experiment: &ExperimentResults) -> anyhow::Result<()> {
        let record = json(&ExperimentResults { methods: Vec::new(), ..experiment.clone() })?;
        let context = || self.writing("experiment");
        let transaction = self.connection.unchecked_transaction().with_context(context)?;
        transaction
            .execute(
                "INSERT INTO experiment VALUES (?, ?) ON CONFLICT DO UPDATE SET record = excluded.record",
                params![experiment.id, record],
            )
            .and_then(|_| seal::EXPERIMENT.seal(&transaction, &[&experiment.id]))
            .with_context(context)?;
        transaction.commit().with_context(context)
    }

    /// Writes a finished run and its method, as one transaction.
    ///
    /// # Errors
    /// If a run with this key is there already, its experiment is not, or the disk refuses.
    pub fn put_run(
        &mut self,
        key: &RunKey,
        session: SessionId,
        wall_seconds: f64,
        method: &MethodResults,
        ledger: &serde_json::Value,
        run: &RunRecord,
    ) -> anyhow::Result<()> {
        let context = format!("writing the run {key} to {}", self.path.display());
        let record = json(run)?;
        // What could not be read again must not count as stored; JSON has no digits for some
        // numbers.
        serde_json::from_str::<RunRecord>(&record).with_context(|| context.clone())?;
        let transaction = self.connection.transaction().with_context(|| context.clone())?;
        put_method(&transaction, key, &json(&without_runs(method))?).with_context(|| context.clone())?;
        insert_run(&transaction, key, session, &json(ledger)?, &record).with_context(|| context.clone())?;
        put_wall_seconds(&transaction, session, wall_seconds).with_context(|| context.clone())?;
        transaction.commit().context(context)
    }

    /// Writes that a run failed, and its method, as one transaction.
    ///
    /// # Errors
    /// If a run with this key has failed before, its experiment is not there, or the disk refuses.
    pub fn put_failure(
        &mut self,
        key: &RunKey,
        session: SessionId,
        wall_seconds: f64,
        method: &MethodResults,
        reason: &str,
    ) -> anyhow::Result<()> {
        let context = format!("writing the failed run {key} to {}", self.path.display());
        let transaction = self.connection.transaction().with_context(|| context.clone())?;
        put_method(&transaction, key, &json(&without_runs(method))?)
            .and_then(|()| insert_failure(&transaction, key, session, reason))
            .and_then(|()| put_wall_seconds(&transaction, session, wall_seconds))
            .with_context(|| context.clone())?;
        transaction.commit().context(context)
    }

    /// Whether there is a run of this experiment, failed or not.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn has_runs_of(&self, experiment: &str) -> anyhow::Result<bool> {
        self.connection
            .query_row(
                "SELECT (SELECT count(*) FROM run WHERE experiment = ?1) + (SELECT count(*) FROM failure WHERE experiment = ?1)",
                [experiment],
                |row| Ok(row.get::<_, u64>(0)? > 0),
            )
            .with_context(|| self.reading("run"))
    }

    /// The digest of the data of a run with this key but for the data; `None` if there is no such
    /// run.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn other_data_of(&self, key: &RunKey) -> anyhow::Result<Option<String>> {
        const WHERE: &str =
            "WHERE (experiment, method, config_hash, seed_index) = (?1, ?2, ?3, ?4) AND data_digest <> ?5";
        self.connection
            .prepare_cached(&format!(
                "SELECT data_digest FROM run {WHERE} UNION ALL SELECT data_digest FROM failure {WHERE}"
            ))
            .and_then(|mut statement| {
                let key = params![key.experiment, key.method, key.config_hash, key.index, key.data_digest];
                statement.query_row(key, |row| row.get(0)).optional()
            })
            .with_context(|| self.reading("run"))
    }

    /// Revision of the code that made the run with this key, failed or not; `None` if there is no
    /// such run.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn revision_of(&self, key: &RunKey) -> anyhow::Result<Option<String>> {
        self.connection
            .prepare_cached(concat!(
                "SELECT session.code_revision FROM run JOIN session ON session.id = run.session ",
                by_key!(),
                " UNION ALL SELECT session.code_revision FROM failure JOIN session ON session.id = failure.session ",
                by_key!()
            ))
            .and_then(|mut statement| statement.query_row(parameters(key).as_slice(), |row| row.get(0)).optional())
            .with_context(|| self.reading("run"))
    }

    /// The experiment without its methods.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn experiment(&self, id: &str) -> anyhow::Result<ExperimentResults> {
        let text: String = self
            .connection
            .query_row("SELECT record FROM experiment WHERE id = ?", [id], |row| row.get(0))
            .with_context(|| format!("experiment {id}: {}", self.reading("experiment")))?;
        self.parse(&text, "experiment")
    }

    /// The method of this run, without its runs.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn method(&self, key: &RunKey) -> anyhow::Result<MethodResults> {
        let text: String = self
            .connection
            .prepare_cached("SELECT record FROM method WHERE (experiment, name, config_hash) = (?, ?, ?)")
            .and_then(|mut statement| {
                statement.query_row([&key.experiment, &key.method, &key.config_hash], |row| row.get(0))
            })
            .with_context(|| format!("{key}: {}", self.reading("method")))?;
        self.parse(&text, "method")
    }

    /// The run with this key.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn run(&self, key: &RunKey) -> anyhow::Result<RunRecord> {
        let text: String = self
            .connection
            .prepare_cached(concat!("SELECT run.record FROM run ", by_key!()))
            .and_then(|mut statement| statement.query_row(parameters(key).as_slice(), |row| row.get(0)))
            .with_context(|| format!("{key}: {}", self.reading("run")))?;
        self.parse(&text, "run")
    }

    /// Why the run with this key failed; `None` if it did not.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn failure(&self, key: &RunKey) -> anyhow::Result<Option<String>> {
        self.connection
            .prepare_cached(concat!("SELECT reason FROM failure ", by_key!()))
            .and_then(|mut statement| statement.query_row(parameters(key).as_slice(), |row| row.get(0)).optional())
            .with_context(|| format!("{key}: {}", self.reading("failure")))
    }

    /// The sessions that made any run, in the order in which they began.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn sessions(&self) -> anyhow::Result<Vec<SessionRecord>> {
        let mut statement = self
            .connection
            .prepare(
                "SELECT command, code_revision, host, threads, wall_seconds, count(*)
                 FROM session JOIN (SELECT session FROM run UNION ALL SELECT session FROM failure) AS made
                     ON made.session = session.id
                 GROUP BY session.id ORDER BY started, session.id",
            )
            .with_context(|| self.reading("session"))?;
        let rows = statement
            .query_map([], |row| {
                let session = SessionRecord {
                    command: Vec::new(),
                    code_revision: row.get(1)?,
                    host: row.get(2)?,
                    threads: row.get(3)?,
                    wall_seconds: row.get(4)?,
                    n_runs: row.get(5)?,
                };
                Ok((row.get::<_, String>(0)?, session))
            })
            .with_context(|| self.reading("session"))?;
        rows.map(|row| {
            let (command, session) = row.with_context(|| self.reading("session"))?;
            Ok(SessionRecord { command: self.parse(&command, "session")?, ..session })
        })
        .collect()
    }

    /// The rows of a query that [`schema`] knows to be valid, each mapped by `map`.
    pub(super) fn query<T>(
        &self,
        sql: &str,
        map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        self.connection
            .prepare(sql)
            .and_then(|mut statement| statement.query_map([], map)?.collect())
            .with_context(|| format!("reading {}", self.path.display()))
    }

    /// Every run, by key.
    pub(super) fn runs(&self) -> anyhow::Result<Vec<StoredRun>> {
        self.query(
            "SELECT experiment, method, config_hash, data_digest, seed_index, session, finished, ledger, record
             FROM run ORDER BY experiment, method, config_hash, data_digest, seed_index",
            |row| {
                let session = SessionId(row.get(5)?);
                let (finished, ledger, record) = (row.get(6)?, row.get(7)?, row.get(8)?);
                Ok(StoredRun { key: key(row)?, session, finished, ledger, record })
            },
        )
    }

    /// Every failed run, by key.
    pub(super) fn failures(&self) -> anyhow::Result<Vec<StoredFailure>> {
        self.query(
            "SELECT experiment, method, config_hash, data_digest, seed_index, session, finished, reason
             FROM failure ORDER BY experiment, method, config_hash, data_digest, seed_index",
            |row| {
                let session = SessionId(row.get(5)?);
                Ok(StoredFailure { key: key(row)?, session, finished: row.get(6)?, reason: row.get(7)? })
            },
        )
    }

    fn parse<T: DeserializeOwned>(&self, text: &str, table: &str) -> anyhow::Result<T> {
        serde_json::from_str(text).with_context(|| self.reading(table))
    }

    fn reading(&self, table: &str) -> String {
        format!("reading table `{table}` of {}", self.path.display())
    }

    fn writing(&self, table: &str) -> String {
        format!("writing table `{table}` of {}", self.path.display())
    }
}

/// What [`by_key`] asks for.
pub(super) fn parameters(key: &RunKey) -> [(&'static str, &dyn ToSql); 5] {
    [
        (":experiment", &key.experiment),
        (":method", &key.method),
        (":config_hash", &key.config_hash),
        (":data_digest", &key.data_digest),
        (":seed_index", &key.index),
    ]
}

/// The key in the first five columns.
fn key(row: &Row<'_>) -> rusqlite::Result<RunKey> {
    Ok(RunKey {
        experiment: row.get(0)?,
        method: row.get(1)?,
        config_hash: row.get(2)?,
        data_digest: row.get(3)?,
        index: row.get(4)?,
    })
}

fn put_wall_seconds(connection: &Connection, session: SessionId, seconds: f64) -> rusqlite::Result<()> {
    connection.execute("UPDATE session SET wall_seconds = ? WHERE id = ?", params![seconds, session.0])?;
    seal::SESSION.seal(connection, &[&session.0])
}

fn insert_failure(connection: &Connection, key: &RunKey, session: SessionId, reason: &str) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO failure (experiment, method, config_hash, data_digest, seed_index, session, finished, reason)
         VALUES (:experiment, :method, :config_hash, :data_digest, :seed_index, :session, datetime('now'), :reason)",
        named_params! {
            ":experiment": key.experiment, ":method": key.method, ":config_hash": key.config_hash,
            ":data_digest": key.data_digest, ":seed_index": key.index, ":session": session.0, ":reason": reason,
        },
    )?;
    seal::FAILURE.seal(connection, &values(key))
}

/// A key as the first columns of a sealed row.
pub(super) fn values(key: &RunKey) -> [&dyn ToSql; 5] {
    parameters(key).map(|(_, value)| value)
}

fn without_runs(method: &MethodResults) -> MethodResults {
    MethodResults { runs: Vec::new(), failures: Vec::new(), ..method.clone() }
}

fn put_method(connection: &Connection, key: &RunKey, record: &str) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO method VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET record = excluded.record",
        params![key.experiment, key.method, key.config_hash, record],
    )?;
    seal::METHOD.seal(connection, &values(key)[..3])
}

fn insert_run(
    connection: &Connection,
    key: &RunKey,
    session: SessionId,
    ledger: &str,
    record: &str,
) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO run (experiment, method, config_hash, data_digest, seed_index, session, finished, ledger, record)
         VALUES (:experiment, :method, :config_hash, :data_digest, :seed_index, :session,
                 datetime('now'), :ledger, :record)",
        named_params! {
            ":experiment": key.experiment, ":method": key.method, ":config_hash": key.config_hash,
            ":data_digest": key.data_digest, ":seed_index": key.index, ":session": session.0,
            ":ledger": ledger, ":record": record,
        },
    )?;
    seal::RUN.seal(connection, &values(key))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn json(value: &impl Serialize) -> anyhow::Result<String> {
    serde_json::to_string(value).context("serialising a record")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{key, source};
    use crate::group_epsilon;
    use crate::made_up as fixture;

    #[test]
    fn runs_come_back_as_they_were_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/records.db");
        let mut study = fixture::study();
        let mut database = Database::create(&path, &source()).unwrap();
        let session = database.begin_session(&study.sessions[0]).unwrap();
        let experiment = &mut study.experiments[0];
        // A run that diverged.
        experiment.methods[1].runs[2].test.groups[1].loss = Some(f64::INFINITY);
        experiment.methods[1].runs[2].group_epsilons =
            [f64::INFINITY, 1.5].map(|epsilon| group_epsilon(epsilon, &[])).into();
        database.put_experiment(experiment).unwrap();
        for method in &experiment.methods {
            for run in &method.runs {
                let ledger = serde_json::json!({"entries": []});
                database.put_run(&key(method, run), session, 2.5, method, &ledger, run).unwrap();
            }
        }
        drop(database);
        let database = Database::open(&path).unwrap();
        assert_eq!(database.source().unwrap(), source());
        let mut back = database.experiment("esipova-adult").unwrap();
        assert!(back.methods.is_empty());
        for method in &experiment.methods {
            let mut stored = database.method(&key(method, &method.runs[0])).unwrap();
            stored.runs = method.runs.iter().map(|run| database.run(&key(method, run)).unwrap()).collect();
            back.methods.push(stored);
        }
        assert_eq!(&back, experiment);
        let sessions = database.sessions().unwrap();
        assert_eq!(sessions, [SessionRecord { wall_seconds: 2.5, n_runs: 25, ..study.sessions[0].clone() }]);
        let absent = RunKey { index: 99, ..key(&experiment.methods[0], &experiment.methods[0].runs[0]) };
        assert_eq!(database.revision_of(&absent).unwrap(), None);
        assert_eq!(database.revision_of(&RunKey { index: 0, ..absent }).unwrap().unwrap(), "0123456789ab");
    }

    #[test]
    fn views_spread_the_records() {
        let folder = tempfile::tempdir().unwrap();
        let study = fixture::study();
        let (experiment, method) = (&study.experiments[0], &study.experiments[0].methods[2]);
        let mut database = Database::create(&folder.path().join("records.db"), &source()).unwrap();
        let session = database.begin_session(&study.sessions[0]).unwrap();
        database.put_experiment(experiment).unwrap();
        let run = &method.runs[0];
        database.put_run(&key(method, run), session, 1.0, method, &serde_json::Value::Null, run).unwrap();
        let count = |view: &str| -> usize {
            database.connection.query_row(&format!("SELECT count(*) FROM {view}"), [], |row| row.get(0)).unwrap()
        };
        assert_eq!(count("run_summary"), 1);
        assert_eq!(count("metric"), 2 * 3, "two parts; all, male, female");
        assert_eq!(count("epoch"), 20 * 2);
        assert_eq!(count("threshold"), 2 * run.thresholds.len());
        let loss: f64 = database
            .connection
            .query_row("SELECT loss FROM metric WHERE part = 'test' AND \"group\" = 'female'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(Some(loss), run.test.groups[1].loss);
        let (group, norm): (String, f64) = database
            .connection
            .query_row("SELECT \"group\", gradient_norm FROM epoch WHERE epoch = 20 ORDER BY 1", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!((group.as_str(), Some(norm)), ("female", run.epochs[19].gradient_norm[1]));
    }

    #[test]
    fn a_run_is_stored_once() {
        let folder = tempfile::tempdir().unwrap();
        let study = fixture::study();
        let method = &study.experiments[0].methods[0];
        let mut database = Database::create(&folder.path().join("records.db"), &source()).unwrap();
        let session = database.begin_session(&study.sessions[0]).unwrap();
        let key = key(method, &method.runs[0]);
        let mut put = || database.put_run(&key, session, 1.0, method, &serde_json::Value::Null, &method.runs[0]);
        let error = format!("{:#}", put().unwrap_err());
        assert!(error.contains("FOREIGN KEY"), "a run without its experiment: {error}");
        database.put_experiment(&study.experiments[0]).unwrap();
        database.put_run(&key, session, 1.0, method, &serde_json::Value::Null, &method.runs[0]).unwrap();
        let again = database.put_run(&key, session, 1.0, method, &serde_json::Value::Null, &method.runs[0]);
        let error = format!("{:#}", again.unwrap_err());
        assert!(error.contains("the run esipova-adult: non-private, seed 1"), "{error}");
        assert!(error.contains("UNIQUE"), "{error}");
    }

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
        let study = fixture::study();
        let method = &study.experiments[0].methods[0];
        for n in 1..=2 {
            let mut database = Database::create(&path, &source()).unwrap();
            let session = database.begin_session(&study.sessions[0]).unwrap();
            database.put_experiment(&study.experiments[0]).unwrap();
            let run = &method.runs[0];
            database.put_run(&key(method, run), session, 1.0, method, &serde_json::Value::Null, run).unwrap();
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
