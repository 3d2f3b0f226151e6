//! What is written to a database: each call is one transaction.

use anyhow::Context;
use rusqlite::{Connection, OptionalExtension, named_params, params};
use serde::Serialize;

use super::{Database, SessionId, values};
use crate::key::RunKey;
use crate::ledger::{refuse_other_cost, refuse_unlike};
use crate::record::{ExperimentResults, MethodResults, RunRecord, SessionRecord};
use crate::seal;

impl Database {
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
    /// If the ledger is not the one that the method's ε is composed of, or not that of the method's
    /// earlier runs; if a run with this key is there already, its experiment is not, or the disk
    /// refuses.
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
        refuse_unlike(ledger, method.privacy.as_ref()).with_context(|| context.clone())?;
        let transaction = self.connection.transaction().with_context(|| context.clone())?;
        put_method(&transaction, key, method).with_context(|| context.clone())?;
        insert_run(&transaction, key, session, &json(ledger)?, &record).with_context(|| context.clone())?;
        put_wall_seconds(&transaction, session, wall_seconds).with_context(|| context.clone())?;
        transaction.commit().context(context)
    }

    /// Writes that a run failed, and its method, as one transaction.
    ///
    /// # Errors
    /// If the ledger of the method is not that of its earlier runs; if a run with this key has failed
    /// before, its experiment is not there, or the disk refuses.
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
        put_method(&transaction, key, method).with_context(|| context.clone())?;
        insert_failure(&transaction, key, session, reason)
            .and_then(|()| put_wall_seconds(&transaction, session, wall_seconds))
            .with_context(|| context.clone())?;
        transaction.commit().context(context)
    }

    fn writing(&self, table: &str) -> String {
        format!("writing table `{table}` of {}", self.path.display())
    }
}

/// The latest record of a method counts for all of its runs: its ledger must be theirs.
fn put_method(connection: &Connection, key: &RunKey, method: &MethodResults) -> anyhow::Result<()> {
    let known: Option<String> = connection
        .prepare_cached("SELECT record FROM method WHERE (experiment, name, config_hash) = (?, ?, ?)")?
        .query_row([&key.experiment, &key.method, &key.config_hash], |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        let known: MethodResults = serde_json::from_str(&known).context("the record of the method")?;
        refuse_other_cost(known.privacy.as_ref(), method.privacy.as_ref())
            .context("earlier runs of the method, of another revision perhaps")?;
    }
    connection.execute(
        "INSERT INTO method VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET record = excluded.record",
        params![key.experiment, key.method, key.config_hash, json(&without_runs(method))?],
    )?;
    Ok(seal::METHOD.seal(connection, &values(key)[..3])?)
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

fn put_wall_seconds(connection: &Connection, session: SessionId, seconds: f64) -> rusqlite::Result<()> {
    connection.execute("UPDATE session SET wall_seconds = ? WHERE id = ?", params![seconds, session.0])?;
    seal::SESSION.seal(connection, &[&session.0])
}

fn without_runs(method: &MethodResults) -> MethodResults {
    MethodResults { runs: Vec::new(), failures: Vec::new(), ..method.clone() }
}

fn json(value: &impl Serialize) -> anyhow::Result<String> {
    serde_json::to_string(value).context("serialising a record")
}

#[cfg(test)]
mod tests {
    use crate::fixture::{key, ledger, source};
    use crate::{Database, made_up};

    #[test]
    fn views_spread_the_records() {
        let folder = tempfile::tempdir().unwrap();
        let study = made_up::study();
        let (experiment, method) = (&study.experiments[0], &study.experiments[0].methods[2]);
        let mut database = Database::create(&folder.path().join("records.db"), &source()).unwrap();
        let session = database.begin_session(&study.sessions[0]).unwrap();
        database.put_experiment(experiment).unwrap();
        let run = &method.runs[0];
        database.put_run(&key(method, run), session, 1.0, method, &ledger(method), run).unwrap();
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

    /// The record of a method is that of all its runs: with another ledger its ε would be none of
    /// theirs.
    #[test]
    fn a_run_with_another_ledger_is_not_stored_under_the_method_s_epsilon() {
        let folder = tempfile::tempdir().unwrap();
        let study = made_up::study();
        let (experiment, method) = (&study.experiments[0], &study.experiments[0].methods[1]);
        let mut database = Database::create(&folder.path().join("records.db"), &source()).unwrap();
        let session = database.begin_session(&study.sessions[0]).unwrap();
        database.put_experiment(experiment).unwrap();
        let [first, second, third] = [0, 1, 2].map(|i| (key(method, &method.runs[i]), &method.runs[i]));
        let own = ledger(method);
        // One step more than the method's ε is for.
        let mut other = method.clone();
        let count = &mut other.privacy.as_mut().unwrap().ledger["entries"][0]["count"];
        *count = (count.as_u64().unwrap() + 1).into();
        let error = database.put_run(&first.0, session, 1.0, method, &ledger(&other), first.1).unwrap_err();
        assert!(format!("{error:#}").contains("its ledger is not the one that its ε is composed of"), "{error:#}");
        database.put_run(&first.0, session, 1.0, method, &own, first.1).unwrap();
        // Both agree with each other, and not with the run before.
        let error = database.put_run(&second.0, session, 1.0, &other, &ledger(&other), second.1).unwrap_err();
        assert!(format!("{error:#}").contains("earlier runs of the method, of another revision perhaps"), "{error:#}");
        let error = database.put_failure(&third.0, session, 1.0, &other, "diverged").unwrap_err();
        assert!(format!("{error:#}").contains("earlier runs of the method"), "{error:#}");
        let mut unproven = method.clone();
        unproven.privacy.as_mut().unwrap().certified = false;
        assert!(database.put_run(&second.0, session, 1.0, &unproven, &own, second.1).is_err());
        assert!(
            database
                .put_run(
                    &second.0,
                    session,
                    1.0,
                    &crate::MethodResults { privacy: None, ..method.clone() },
                    &own,
                    second.1
                )
                .is_err()
        );
        assert_eq!(database.ledger_of(&first.0).unwrap(), Some(own.clone()));
        assert_eq!(database.ledger_of(&second.0).unwrap(), None);
        database.put_run(&second.0, session, 1.0, method, &own, second.1).unwrap();
    }

    /// Whoever wrote it: a database in which a run has another ledger than its method is refused by
    /// every command that would show both.
    #[test]
    fn a_database_with_such_a_run_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.db");
        crate::fixture::fill(&path, &source(), &made_up::study());
        let database = Database::open(&path).unwrap();
        let method = &made_up::study().experiments[0].methods[1];
        let mut other = ledger(method);
        other["entries"][0]["count"] = 1.into();
        let key = key(method, &method.runs[3]);
        database
            .connection
            .execute(
                "UPDATE run SET ledger = ?1 WHERE method = ?2 AND seed_index = ?3",
                rusqlite::params![other.to_string(), key.method, key.index],
            )
            .unwrap();
        crate::seal::RUN.seal(&database.connection, &crate::database::values(&key)).unwrap();
        drop(database);
        for error in [Database::open(&path).err(), Database::read(&path).err()] {
            let error = format!("{:#}", error.unwrap());
            assert!(
                error.contains(
                    "records.db: esipova-adult: dpsgd, seed 4: its ledger is not the one that its ε is composed of: entries[0].count: 1 and"
                ),
                "{error}"
            );
        }
    }

    #[test]
    fn a_run_is_stored_once() {
        let folder = tempfile::tempdir().unwrap();
        let study = made_up::study();
        let method = &study.experiments[0].methods[0];
        let mut database = Database::create(&folder.path().join("records.db"), &source()).unwrap();
        let session = database.begin_session(&study.sessions[0]).unwrap();
        let key = key(method, &method.runs[0]);
        let mut put = || database.put_run(&key, session, 1.0, method, &ledger(method), &method.runs[0]);
        let error = format!("{:#}", put().unwrap_err());
        assert!(error.contains("FOREIGN KEY"), "a run without its experiment: {error}");
        database.put_experiment(&study.experiments[0]).unwrap();
        database.put_run(&key, session, 1.0, method, &ledger(method), &method.runs[0]).unwrap();
        let again = database.put_run(&key, session, 1.0, method, &ledger(method), &method.runs[0]);
        let error = format!("{:#}", again.unwrap_err());
        assert!(error.contains("the run esipova-adult: non-private, seed 1"), "{error}");
        assert!(error.contains("UNIQUE"), "{error}");
    }
}
