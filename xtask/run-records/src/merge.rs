//! Joins databases of one study, for example those of its shards.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rusqlite::{Connection, OptionalExtension, params};

use crate::database::{Database, StoredFailure, StoredRun, parameters, values};
use crate::difference::difference;
use crate::key::RunKey;
use crate::record::{ExperimentResults, MethodResults, RunRecord};
use crate::seal;

/// What a merge did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// Runs that are new in the output.
    pub added: usize,
    /// Runs that were there already, with the same result.
    pub equal: usize,
}

/// Adds the runs of `inputs` to `out`, which is made if there is none.
///
/// A run that is there already must have the same result, bit for bit, or have failed for the same
/// reason; the time it took may differ. The merge is one transaction: if it fails, `out` is as it
/// was.
///
/// # Errors
/// If the databases are of different studies or seeds, or two of them disagree about a run; the
/// message says where.
pub fn merge(out: &Path, inputs: &[PathBuf]) -> anyhow::Result<Merged> {
    let is_same = |input: &PathBuf| match (std::fs::canonicalize(input), std::fs::canonicalize(out)) {
        (Ok(input), Ok(out)) => input == out,
        _ => false,
    };
    if let Some(input) = inputs.iter().find(|input| is_same(input)) {
        bail!("{} is read by this command, so it cannot be written, too", input.display());
    }
    let inputs = inputs.iter().map(|path| Database::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let first = inputs.first().context("nothing to merge")?;
    let existed = out.exists();
    let mut database = if existed { Database::open(out)? } else { Database::create(out, &first.source()?)? };
    let merged = add_all(&mut database, &inputs);
    drop(database);
    if merged.is_err() && !existed {
        std::fs::remove_file(out).with_context(|| format!("removing {}", out.display()))?;
    }
    merged
}

/// Adds the runs of `inputs` to a database that is open, in one transaction.
///
/// # Errors
/// As [`merge`].
pub fn add_all(database: &mut Database, inputs: &[Database]) -> anyhow::Result<Merged> {
    let source = database.source()?;
    let context = format!("writing {}", database.path().display());
    let transaction = database.connection.transaction().with_context(|| context.clone())?;
    let mut merged = Merged { added: 0, equal: 0 };
    for input in inputs {
        if let Some(difference) = source.difference(&input.source()?) {
            bail!("{} does not belong to these records: they are of {difference}", input.path().display());
        }
        add(&transaction, input, &mut merged).with_context(|| format!("merging {}", input.path().display()))?;
    }
    transaction.commit().context(context)?;
    Ok(merged)
}

fn add(out: &Connection, input: &Database, merged: &mut Merged) -> anyhow::Result<()> {
    let descriptions = input.query("SELECT id, record FROM experiment ORDER BY id", |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    for (id, record) in descriptions {
        add_experiment(out, &id, &record).with_context(|| format!("experiment {id}"))?;
    }
    let mut sessions = BTreeMap::new();
    for run in input.runs()? {
        let named = || run.key.to_string();
        add_method(out, input, &run.key).with_context(named)?;
        if is_there(out, &run).with_context(named)? {
            merged.equal += 1;
            continue;
        }
        let session = match sessions.entry(run.session) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => *entry.insert(copy_session(out, input, run.session.0)?),
        };
        insert(out, &run, session).with_context(named)?;
        merged.added += 1;
    }
    for failure in input.failures()? {
        let named = || failure.key.to_string();
        add_method(out, input, &failure.key).with_context(named)?;
        if has_failed(out, &failure).with_context(named)? {
            merged.equal += 1;
            continue;
        }
        let session = match sessions.entry(failure.session) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => *entry.insert(copy_session(out, input, failure.session.0)?),
        };
        insert_failure(out, &failure, session).with_context(named)?;
        merged.added += 1;
    }
    Ok(())
}

/// Descriptions may differ in words (where the files were found), not in what the records are.
fn add_experiment(out: &Connection, id: &str, record: &str) -> anyhow::Result<()> {
    let known: Option<String> =
        out.query_row("SELECT record FROM experiment WHERE id = ?", [id], |row| row.get(0)).optional()?;
    let Some(known) = known else {
        serde_json::from_str::<ExperimentResults>(record).context("no record of an experiment")?;
        out.execute("INSERT INTO experiment VALUES (?, ?)", [id, record])?;
        return Ok(seal::EXPERIMENT.seal(out, &[&id])?);
    };
    let identity = |text: &str| -> anyhow::Result<serde_json::Value> {
        let record: serde_json::Value = serde_json::from_str(text)?;
        let dataset = &record["dataset"];
        Ok(serde_json::json!({
            "digest": dataset["digest"], "synthetic": dataset["synthetic"], "encoding": dataset["encoding"],
            "model": record["model"],
        }))
    };
    refuse_difference(&identity(&known)?, &identity(record)?)
}

fn add_method(out: &Connection, input: &Database, key: &RunKey) -> anyhow::Result<()> {
    const RECORD: &str = "SELECT record FROM method WHERE (experiment, name, config_hash) = (?, ?, ?)";
    let name = [&key.experiment, &key.method, &key.config_hash];
    let record: String = input.connection.prepare_cached(RECORD)?.query_row(name, |row| row.get(0))?;
    let known: Option<String> = out.prepare_cached(RECORD)?.query_row(name, |row| row.get(0)).optional()?;
    match known {
        None => {
            serde_json::from_str::<MethodResults>(&record).context("no record of a method")?;
            let row = params![key.experiment, key.method, key.config_hash, record];
            out.execute("INSERT INTO method VALUES (?, ?, ?, ?)", row)?;
            Ok(seal::METHOD.seal(out, &values(key)[..3])?)
        }
        Some(known) => refuse_difference(&serde_json::from_str(&known)?, &serde_json::from_str(&record)?),
    }
}

/// Why a run failed; `None` if it did not or is not there.
fn failure(out: &Connection, key: &RunKey) -> anyhow::Result<Option<String>> {
    Ok(out
        .prepare_cached(
            "SELECT reason FROM failure WHERE (experiment, method, config_hash, data_digest, seed_index)
                 = (:experiment, :method, :config_hash, :data_digest, :seed_index)",
        )?
        .query_row(parameters(key).as_slice(), |row| row.get(0))
        .optional()?)
}

/// Whether the run has failed there, too; an error if it has not, or for another reason.
fn has_failed(out: &Connection, failed: &StoredFailure) -> anyhow::Result<bool> {
    let n_runs: u64 = out
        .prepare_cached(
            "SELECT count(*) FROM run WHERE (experiment, method, config_hash, data_digest, seed_index)
                 = (:experiment, :method, :config_hash, :data_digest, :seed_index)",
        )?
        .query_row(parameters(&failed.key).as_slice(), |row| row.get(0))?;
    match failure(out, &failed.key)? {
        _ if n_runs > 0 => {
            bail!("the records disagree: one has its result, and in the other it failed: {}", failed.reason)
        }
        Some(known) if known != failed.reason => {
            bail!("the records disagree: it failed with `{known}`, and with `{}`", failed.reason)
        }
        known => Ok(known.is_some()),
    }
}

/// Whether the run is there already; an error if it is and had another result.
fn is_there(out: &Connection, run: &StoredRun) -> anyhow::Result<bool> {
    if let Some(reason) = failure(out, &run.key)? {
        bail!("the records disagree: one has its result, and in the other it failed: {reason}");
    }
    let known: Option<(String, String)> = out
        .prepare_cached(
            "SELECT ledger, record FROM run WHERE (experiment, method, config_hash, data_digest, seed_index)
                 = (:experiment, :method, :config_hash, :data_digest, :seed_index)",
        )?
        .query_row(parameters(&run.key).as_slice(), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((ledger, record)) = known else { return Ok(false) };
    refuse_difference(&serde_json::from_str(&ledger)?, &serde_json::from_str(&run.ledger)?)?;
    refuse_difference(&serde_json::from_str(&record)?, &serde_json::from_str(&run.record)?)?;
    Ok(true)
}

fn refuse_difference(ours: &serde_json::Value, theirs: &serde_json::Value) -> anyhow::Result<()> {
    match difference(ours, theirs) {
        None => Ok(()),
        Some(found) => bail!("the records disagree: {found}"),
    }
}

fn copy_session(out: &Connection, input: &Database, id: i64) -> anyhow::Result<i64> {
    let row: (String, String, String, u64, String, f64) = input.connection.query_row(
        "SELECT command, code_revision, host, threads, started, wall_seconds FROM session WHERE id = ?",
        [id],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?)),
    )?;
    out.execute(
        "INSERT INTO session (command, code_revision, host, threads, started, wall_seconds) VALUES (?, ?, ?, ?, ?, ?)",
        row,
    )?;
    let id = out.last_insert_rowid();
    seal::SESSION.seal(out, &[&id])?;
    Ok(id)
}

fn insert_failure(out: &Connection, failed: &StoredFailure, session: i64) -> anyhow::Result<()> {
    let StoredFailure { key, finished, reason, .. } = failed;
    let RunKey { experiment, method, config_hash, data_digest, index } = key;
    out.execute(
        "INSERT INTO failure (experiment, method, config_hash, data_digest, seed_index, session, finished, reason)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        params![experiment, method, config_hash, data_digest, index, session, finished, reason],
    )?;
    Ok(seal::FAILURE.seal(out, &values(key))?)
}

fn insert(out: &Connection, run: &StoredRun, session: i64) -> anyhow::Result<()> {
    let key = &run.key;
    serde_json::from_str::<RunRecord>(&run.record).context("no record of a run")?;
    out.execute(
        "INSERT INTO run (experiment, method, config_hash, data_digest, seed_index, session, finished, ledger, record)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            key.experiment,
            key.method,
            key.config_hash,
            key.data_digest,
            key.index,
            session,
            run.finished,
            run.ledger,
            run.record
        ],
    )?;
    Ok(seal::RUN.seal(out, &values(key))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{fill, source};
    use crate::record::{FailureRecord, StudyResults};

    /// The runs of a database as text, without times.
    fn runs(path: &Path) -> Vec<(RunKey, String)> {
        let runs = Database::read(path).unwrap().runs().unwrap();
        runs.into_iter().map(|run| (run.key, run.record)).collect()
    }

    /// Databases of the even and the odd seeds of the made-up study, and one of all.
    fn parts(folder: &Path, change: impl Fn(&mut StudyResults)) -> [PathBuf; 3] {
        let path = |name: &str| folder.join(name);
        let keep = |wanted: &dyn Fn(usize) -> bool| {
            let mut study = crate::made_up::study();
            for method in &mut study.experiments[0].methods {
                method.runs.retain(|run| wanted(run.index));
            }
            change(&mut study);
            study
        };
        fill(&path("even.db"), &source(), &keep(&|index| index % 2 == 0));
        fill(&path("odd.db"), &source(), &keep(&|index| index % 2 == 1));
        fill(&path("whole.db"), &source(), &keep(&|_| true));
        [path("even.db"), path("odd.db"), path("whole.db")]
    }

    #[test]
    fn parts_merged_equal_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let [even, odd, whole] = parts(folder.path(), |_| {});
        let out = folder.path().join("merged.db");
        assert_eq!(merge(&out, &[even.clone(), odd.clone()]).unwrap(), Merged { added: 25, equal: 0 });
        assert_eq!(runs(&out), runs(&whole));
        let sessions: Vec<u64> =
            Database::read(&out).unwrap().sessions().unwrap().iter().map(|session| session.n_runs).collect();
        assert_eq!(sessions, [15, 10]);
        assert_eq!(
            merge(&out, &[even, whole.clone()]).unwrap(),
            Merged { added: 0, equal: 40 },
            "known runs stay once"
        );
        assert_eq!(runs(&out), runs(&whole));
    }

    #[test]
    fn a_disagreement_is_shown_and_changes_nothing() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [even, odd, _] = parts(one.path(), |_| {});
        let [_, _, other] = parts(two.path(), |study| {
            for method in &mut study.experiments[0].methods {
                for run in method.runs.iter_mut().filter(|run| run.index == 3) {
                    run.seconds = 99.0;
                    run.test.groups[1].accuracy = Some(0.5);
                }
            }
        });
        let out = one.path().join("merged.db");
        merge(&out, std::slice::from_ref(&even)).unwrap();
        let error = format!("{:#}", merge(&out, &[odd.clone(), other.clone()]).unwrap_err());
        assert!(error.contains("whole.db: esipova-adult: dpsgd, seed 4: the records disagree"), "{error}");
        assert!(error.contains("test.groups[1].accuracy: "), "{error}");
        assert!(error.ends_with(" and 0.5"), "{error}");
        assert_eq!(runs(&out), runs(&even), "as before");
        let fresh = one.path().join("fresh.db");
        merge(&fresh, &[odd, other]).unwrap_err();
        assert!(!fresh.exists());
    }

    #[test]
    fn failures_are_joined_too_and_are_no_results() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [even, odd, whole] = parts(one.path(), |study| {
            let dpsgd = &mut study.experiments[0].methods[1];
            if dpsgd.runs.iter().any(|run| run.index == 2) {
                dpsgd.runs.retain(|run| run.index != 2);
                dpsgd.failures = vec![FailureRecord { index: 2, reason: "diverged".to_owned() }];
            }
        });
        let out = one.path().join("merged.db");
        assert_eq!(merge(&out, &[even, odd]).unwrap(), Merged { added: 25, equal: 0 });
        assert_eq!(merge(&out, &[whole]).unwrap(), Merged { added: 0, equal: 25 });
        let failures = Database::read(&out).unwrap().failures().unwrap();
        assert_eq!(failures.iter().map(|failure| failure.key.index).collect::<Vec<_>>(), [2]);
        let [healthy, ..] = parts(two.path(), |_| {});
        let error = format!("{:#}", merge(&out, &[healthy]).unwrap_err());
        let end = "dpsgd, seed 3: the records disagree: one has its result, and in the other it failed: diverged";
        assert!(error.ends_with(end), "{error}");
    }

    #[test]
    fn other_studies_and_other_data_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [even, odd, _] = parts(folder.path(), |_| {});
        let other = folder.path().join("other.db");
        let study = crate::made_up::study();
        fill(&other, &crate::Source { seed: None, ..source() }, &study);
        let out = folder.path().join("merged.db");
        let error = format!("{:#}", merge(&out, &[even.clone(), other]).unwrap_err());
        assert!(error.ends_with(&format!("they are of --seed {}, not no --seed", u64::MAX)), "{error}");
        let synthetic = folder.path().join("synthetic.db");
        let mut study = study;
        study.experiments[0].dataset.synthetic = true;
        study.experiments[0].dataset.source = "elsewhere".to_owned();
        fill(&synthetic, &source(), &study);
        let error = format!("{:#}", merge(&out, &[odd, synthetic]).unwrap_err());
        assert!(
            error.ends_with("experiment esipova-adult: the records disagree: synthetic: false and true"),
            "{error}"
        );
        assert!(merge(&out, &[]).is_err());
    }
}
