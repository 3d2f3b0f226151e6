//! Saves what is whole of a damaged database, in a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params_from_iter};

use crate::database::Database;
use crate::key::Source;
use crate::record::{ExperimentResults, MethodResults, RunRecord};
use crate::seal::{self, Sealed};

/// Rows in turn that cannot be read before the rest of a table counts as lost.
const MOST_UNREADABLE: i64 = 4_096;

/// What was saved.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Runs, failed ones too.
    pub saved: usize,
    /// Runs that are known to have been there: experiment, method and seed.
    pub lost: Vec<String>,
    /// Whether the list of runs that were there could not be read: there may be more.
    pub may_be_more: bool,
}

impl fmt::Display for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs saved, {} lost", self.saved, self.lost.len())?;
        if self.may_be_more {
            f.write_str("; whether there were others cannot be told")?;
        }
        self.lost.iter().try_for_each(|run| write!(f, "\n  {run}"))
    }
}

/// Copies every row that matches its seal to `out`, which must not be there; in a database from
/// before seals, every row that can be read as what it is. `damaged` stays as it is.
///
/// # Errors
/// If `damaged` says no more what study it is of, or `out` exists or cannot be written.
pub fn repair(damaged: &Path, out: &Path) -> anyhow::Result<Repaired> {
    ensure!(damaged.is_file(), "no database of runs at {}", damaged.display());
    ensure!(std::fs::symlink_metadata(out).is_err(), "{} exists", out.display());
    let from = open(damaged).with_context(|| format!("opening {}", damaged.display()))?;
    let source = source(&from).with_context(|| format!("{}: its study cannot be read", damaged.display()))?;
    let database = Database::create(out, &source)?;
    let copied = copy(&from, &database).with_context(|| format!("writing {}", out.display()));
    drop(database);
    if copied.is_err() {
        std::fs::remove_file(out).with_context(|| format!("removing {}", out.display()))?;
    }
    copied
}

/// Reads on although the file is shorter than it says, or a table is not well formed: that is asked
/// for before anything looks at the file.
fn open(damaged: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let from = Connection::open_with_flags(damaged, flags)?;
    from.pragma_update(None, "writable_schema", true)?;
    Ok(from)
}

fn source(from: &Connection) -> anyhow::Result<Source> {
    let rows = Rescued::of(from, &seal::STUDY);
    let [_, Value::Text(study), Value::Integer(quick), seed, Value::Text(split_seed)] =
        &rows.whole.first().context("it is damaged")?[..]
    else {
        bail!("it is damaged");
    };
    let seed = match seed {
        Value::Text(seed) => Some(seed.parse().context("its seed")?),
        _ => None,
    };
    Ok(Source { study: study.clone(), quick: *quick != 0, seed, split_seed: split_seed.parse().context("its seed")? })
}

/// The rows of a table that are whole, and the keys of those that are known to be missing.
struct Rescued {
    whole: Vec<Vec<Value>>,
    lost: Vec<String>,
    /// Whether there are seals that say what was there.
    is_listed: bool,
}

impl Rescued {
    fn of(from: &Connection, table: &Sealed) -> Self {
        let seals = table.seals(from).ok();
        let mut missing: BTreeSet<String> = seals.iter().flatten().map(|(key, _)| key.clone()).collect();
        let mut whole = Vec::new();
        for_each_row(from, table, |row| {
            let (key, values) = (table.key(row)?, values(row, table.columns.len())?);
            let is_whole = match &seals {
                Some(seals) => seals.get(&key) == Some(&table.digest(row)?),
                None => is_plausible(table, &values),
            };
            if is_whole {
                missing.remove(&key);
                whole.push(values);
            }
            Ok(())
        });
        Self { whole, lost: missing.into_iter().collect(), is_listed: seals.is_some() }
    }
}

/// Calls `each` with every row that can be read, in the order of their numbers.
fn for_each_row(from: &Connection, table: &Sealed, mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<()>) {
    let columns = table.columns.join(", ");
    let next = format!("SELECT {columns}, rowid FROM main.{} WHERE rowid > ? ORDER BY rowid LIMIT 1", table.table);
    let one = format!("SELECT {columns}, rowid FROM main.{} WHERE rowid = ?", table.table);
    let n = table.columns.len();
    let mut last = 0_i64;
    let mut n_unreadable = 0;
    while n_unreadable < MOST_UNREADABLE {
        let mut found = None;
        let mut read = |row: &Row<'_>| {
            found = Some(row.get::<_, i64>(n)?);
            each(row)
        };
        let answer = from.query_row(&next, [last], &mut read).optional();
        let answer = match answer {
            Ok(None) => return,
            Ok(Some(())) => Ok(Some(())),
            // The next one may be on a page that is gone: the numbers after it, one by one.
            Err(_) => from.query_row(&one, [last.saturating_add(1)], &mut read).optional(),
        };
        match (answer, found) {
            (Ok(Some(())), Some(number)) if number > last => (last, n_unreadable) = (number, 0),
            _ => (last, n_unreadable) = (last.saturating_add(1), n_unreadable + 1),
        }
    }
}

fn values(row: &Row<'_>, n: usize) -> rusqlite::Result<Vec<Value>> {
    (0..n).map(|column| row.get(column)).collect()
}

/// Whether a row without a seal is what it should be, as far as that can be told.
fn is_plausible(table: &Sealed, values: &[Value]) -> bool {
    let Some(Value::Text(text)) = values.last() else { return table.table == seal::SESSION.table };
    match table.table {
        "experiment" => serde_json::from_str::<ExperimentResults>(text).is_ok(),
        "method" => serde_json::from_str::<MethodResults>(text).is_ok(),
        "run" => serde_json::from_str::<RunRecord>(text).is_ok(),
        _ => true,
    }
}

fn copy(from: &Connection, out: &Database) -> anyhow::Result<Repaired> {
    let transaction = out.connection.unchecked_transaction()?;
    let mut rescued = Vec::new();
    for table in [&seal::SESSION, &seal::EXPERIMENT, &seal::METHOD, &seal::RUN, &seal::FAILURE] {
        rescued.push((table, Rescued::of(from, table)));
    }
    let mut repaired = Repaired::default();
    let mut parents: BTreeMap<&str, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for (table, Rescued { whole, lost, is_listed }) in rescued {
        let is_run = matches!(table.table, "run" | "failure");
        if is_run {
            repaired.may_be_more |= !is_listed;
            repaired.lost.extend(lost.iter().map(|key| named(key)));
        }
        let places = vec!["?"; table.columns.len()].join(", ");
        let insert = format!("INSERT INTO main.{} ({}) VALUES ({places})", table.table, table.columns.join(", "));
        for row in whole {
            if table.table == "method" && !has(&parents, "experiment", &row[..1]) {
                continue;
            }
            if is_run && !has(&parents, "method", &row[..3]) {
                let key: Vec<String> = row[..5].iter().map(text).collect();
                repaired.lost.push(named(&key.join("\n")));
                continue;
            }
            if is_run && !has(&parents, "session", &row[5..6]) {
                unknown_session(&transaction, &row[5])?;
                parents.entry("session").or_default().insert(identity(&row[5..6]));
            }
            transaction.execute(&insert, params_from_iter(&row))?;
            repaired.saved += usize::from(is_run);
            let n_keys = if table.table == "method" { 3 } else { 1 };
            parents.entry(table.table).or_default().insert(identity(&row[..n_keys]));
        }
    }
    for table in seal::TABLES {
        table.seal_all(&transaction)?;
    }
    transaction.commit()?;
    repaired.lost.sort();
    Ok(repaired)
}

/// Runs outlive the description of the command that made them.
fn unknown_session(out: &Connection, id: &Value) -> rusqlite::Result<usize> {
    out.execute(
        "INSERT INTO session (id, command, code_revision, host, threads, started, wall_seconds)
         VALUES (?, '[\"unknown\"]', 'unknown', 'unknown', 0, '', 0.0)",
        [id],
    )
}

fn has(parents: &BTreeMap<&str, BTreeSet<Vec<u8>>>, table: &str, key: &[Value]) -> bool {
    parents.get(table).is_some_and(|known| known.contains(&identity(key)))
}

fn identity(key: &[Value]) -> Vec<u8> {
    key.iter().map(text).collect::<Vec<_>>().join("\n").into_bytes()
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// Experiment, method and seed of a run's key.
fn named(key: &str) -> String {
    let fields: Vec<&str> = key.lines().collect();
    match fields[..] {
        [experiment, method, _, _, index] => {
            let seed = index.parse::<u64>().map_or_else(|_| index.to_owned(), |index| (index + 1).to_string());
            format!("{experiment}: {method}, seed {seed}")
        }
        _ => key.replace('\n', ", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{fill, source};
    use crate::made_up as fixture;

    #[test]
    fn runs_that_match_their_seals_are_saved_and_the_others_named() {
        let folder = tempfile::tempdir().unwrap();
        let (path, out) = (folder.path().join("records.db"), folder.path().join("saved.db"));
        fill(&path, &source(), &fixture::study());
        let damage = Connection::open(&path).unwrap();
        damage.execute_batch("UPDATE run SET record = replace(record, '0.', '1.') WHERE id = 3").unwrap();
        damage.execute_batch("DELETE FROM run WHERE id = 7; UPDATE session SET host = 'elsewhere'").unwrap();
        drop(damage);
        let error = format!("{:#}", Database::read(&path).err().unwrap());
        assert!(error.contains("is damaged (`cargo xtask results repair` saves what is whole)"), "{error}");
        assert!(error.contains("3 rows differ from their seals, the first: session 1 "), "{error}");
        let repaired = repair(&path, &out).unwrap();
        assert_eq!(repaired.saved, 23);
        assert_eq!(repaired.lost, ["esipova-adult: dpsgd, seed 2", "esipova-adult: non-private, seed 3"]);
        let saved = Database::read(&out).unwrap();
        assert_eq!(saved.runs().unwrap().len(), 23);
        assert_eq!(saved.sessions().unwrap()[0].host, "unknown");
        assert!(repair(&path, &out).unwrap_err().to_string().ends_with("saved.db exists"));
    }

    #[test]
    fn a_file_that_is_cut_short_is_refused_and_what_it_has_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let (path, out) = (folder.path().join("records.db"), folder.path().join("saved.db"));
        fill(&path, &source(), &fixture::study());
        let whole = std::fs::read(&path).unwrap();
        let saved = [8, 4, 1].map(|pages| {
            std::fs::write(&path, &whole[..whole.len() - pages * 4_096]).unwrap();
            let _ = std::fs::remove_file(&out);
            assert!(Database::read(&path).is_err());
            let repaired = repair(&path, &out).unwrap();
            assert_eq!(Database::read(&out).unwrap().runs().unwrap().len(), repaired.saved);
            let is_known = !repaired.to_string().contains("cannot be told");
            assert!(!is_known || repaired.saved + repaired.lost.len() == 25, "{pages}: {repaired}");
            repaired.saved
        });
        assert!(saved.is_sorted() && saved[2] > 0, "{saved:?}");
    }

    /// Wherever a bit flips, the database is refused or reads as it was.
    #[test]
    fn no_flipped_bit_changes_an_export_in_silence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.db");
        fill(&path, &source(), &fixture::study());
        let whole = std::fs::read(&path).unwrap();
        let records = |path: &Path| -> anyhow::Result<Vec<String>> {
            Ok(Database::read(path)?.runs()?.into_iter().map(|run| run.record).collect())
        };
        let expected = records(&path).unwrap();
        let mut n_refused = 0;
        // The header, the schema on the first page, and places all over the file.
        let places = (0..100).chain((100..4_096).step_by(41)).chain((977..whole.len()).step_by(whole.len() / 50));
        for (step, position) in places.enumerate() {
            let mut bytes = whole.clone();
            bytes[position] ^= 1 << (step % 8);
            std::fs::write(&path, &bytes).unwrap();
            match records(&path) {
                Ok(found) => assert_eq!(found, expected, "byte {position}"),
                Err(error) => {
                    assert!(!format!("{error:#}").contains('\n'), "byte {position}: {error:#}");
                    n_refused += 1;
                }
            }
        }
        assert!(n_refused > 50, "{n_refused}");
    }
}
