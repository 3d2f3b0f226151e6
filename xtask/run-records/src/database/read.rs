//! What is read from a database.

use anyhow::Context;
use rusqlite::{OptionalExtension, Row, params};
use serde::de::DeserializeOwned;

use super::{Database, SessionId, parameters};
use crate::key::RunKey;
use crate::record::{ExperimentResults, MethodResults, RunRecord, SessionRecord};

/// The condition that picks one run by the named parameters of its key.
macro_rules! by_key {
    () => {
        "WHERE (experiment, method, config_hash, data_digest, seed_index)
             = (:experiment, :method, :config_hash, :data_digest, :seed_index)"
    };
}

/// A run as it is stored.
pub(crate) struct StoredRun {
    pub(crate) key: RunKey,
    pub(crate) session: SessionId,
    /// UTC.
    pub(crate) finished: String,
    /// JSON.
    pub(crate) ledger: String,
    /// JSON.
    pub(crate) record: String,
}

/// A failed run as it is stored.
pub(crate) struct StoredFailure {
    pub(crate) key: RunKey,
    pub(crate) session: SessionId,
    /// UTC.
    pub(crate) finished: String,
    pub(crate) reason: String,
}

impl Database {
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

    /// What the run with this key released; `None` if there is no such run, or it failed.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn ledger_of(&self, key: &RunKey) -> anyhow::Result<Option<serde_json::Value>> {
        let text: Option<String> = self
            .connection
            .prepare_cached(concat!("SELECT ledger FROM run ", by_key!()))
            .and_then(|mut statement| statement.query_row(parameters(key).as_slice(), |row| row.get(0)).optional())
            .with_context(|| format!("{key}: {}", self.reading("run")))?;
        text.map(|text| self.parse(&text, "run")).transpose()
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
    pub(crate) fn query<T>(
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
    pub(crate) fn runs(&self) -> anyhow::Result<Vec<StoredRun>> {
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
    pub(crate) fn failures(&self) -> anyhow::Result<Vec<StoredFailure>> {
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
}

/// The key in the first five columns.
pub(super) fn key(row: &Row<'_>) -> rusqlite::Result<RunKey> {
    Ok(RunKey {
        experiment: row.get(0)?,
        method: row.get(1)?,
        config_hash: row.get(2)?,
        data_digest: row.get(3)?,
        index: row.get(4)?,
    })
}

#[cfg(test)]
mod tests {
    use crate::fixture::{key, ledger, source};
    use crate::{Database, RunKey, SessionRecord, group_epsilon, made_up};

    #[test]
    fn runs_come_back_as_they_were_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/records.db");
        let mut study = made_up::study();
        let mut database = Database::create(&path, &source()).unwrap();
        let session = database.begin_session(&study.sessions[0]).unwrap();
        let experiment = &mut study.experiments[0];
        // A run that diverged.
        experiment.methods[1].runs[2].test.groups[1].loss = Some(f64::INFINITY);
        experiment.methods[1].runs[2].group_epsilons = [f64::INFINITY, 1.5].map(group_epsilon).into();
        database.put_experiment(experiment).unwrap();
        for method in &experiment.methods {
            for run in &method.runs {
                database.put_run(&key(method, run), session, 2.5, method, &ledger(method), run).unwrap();
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
}
