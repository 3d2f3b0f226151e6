//! A digest of every row, so that a damaged database is refused and never read as if it were whole.
//!
//! SQLite finds damage to its own structure (`integrity_check`), not to what is stored in it. A
//! seal is the sha256 of a row, in a table of its own: a bit that flips in a row, a row that is
//! gone, and one that another program has changed do not match.

use std::collections::BTreeMap;
use std::fmt;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params, params_from_iter};
use sha2::{Digest, Sha256};

/// A table whose rows are sealed.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) table: &'static str,
    /// The first columns identify a row.
    n_keys: usize,
    /// Everything that is sealed.
    pub(super) columns: &'static [&'static str],
}

pub(super) const STUDY: Sealed =
    Sealed { table: "study", n_keys: 1, columns: &["only", "name", "quick", "seed", "split_seed"] };
pub(super) const SESSION: Sealed = Sealed {
    table: "session",
    n_keys: 1,
    columns: &["id", "command", "code_revision", "host", "threads", "started", "wall_seconds"],
};
pub(super) const EXPERIMENT: Sealed = Sealed { table: "experiment", n_keys: 1, columns: &["id", "record"] };
pub(super) const METHOD: Sealed =
    Sealed { table: "method", n_keys: 3, columns: &["experiment", "name", "config_hash", "record"] };
pub(super) const RUN: Sealed = Sealed {
    table: "run",
    n_keys: 5,
    columns: &[
        "experiment",
        "method",
        "config_hash",
        "data_digest",
        "seed_index",
        "session",
        "finished",
        "ledger",
        "record",
    ],
};
pub(super) const FAILURE: Sealed = Sealed {
    table: "failure",
    n_keys: 5,
    columns: &["experiment", "method", "config_hash", "data_digest", "seed_index", "session", "finished", "reason"],
};

/// In the order in which rows refer to each other.
pub(super) const TABLES: [&Sealed; 6] = [&STUDY, &SESSION, &EXPERIMENT, &METHOD, &RUN, &FAILURE];

/// A row that is not as it was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage {
    table: &'static str,
    key: String,
    is_gone: bool,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_gone { "is gone" } else { "is not as it was written" };
        // Hashes say nothing to a reader.
        let key: Vec<&str> = self.key.lines().filter(|field| field.len() < 64).collect();
        write!(f, "{} {} {what}", self.table, key.join(", "))
    }
}

impl Sealed {
    fn all(&self) -> String {
        self.columns.join(", ")
    }

    /// Seals the row with this key, which has just been written.
    pub(super) fn seal(&self, connection: &Connection, key: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
        let condition: Vec<String> = self.columns[..self.n_keys].iter().map(|name| format!("{name} = ?")).collect();
        let sql = format!("SELECT {} FROM main.{} WHERE {}", self.all(), self.table, condition.join(" AND "));
        let (key, digest) = connection
            .prepare_cached(&sql)?
            .query_row(params_from_iter(key), |row| Ok((self.key(row)?, self.digest(row)?)))?;
        self.put(connection, &key, &digest)
    }

    /// Seals every row of the table.
    pub(super) fn seal_all(&self, connection: &Connection) -> rusqlite::Result<()> {
        for (key, digest) in self.rows(connection)? {
            self.put(connection, &key, &digest)?;
        }
        Ok(())
    }

    fn put(&self, connection: &Connection, key: &str, digest: &str) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT INTO main.seal VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET sha256 = excluded.sha256",
            )?
            .execute(params![self.table, key, digest])?;
        Ok(())
    }

    fn rows(&self, connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
        let mut statement = connection.prepare(&format!("SELECT {} FROM main.{}", self.all(), self.table))?;
        statement.query_map([], |row| Ok((self.key(row)?, self.digest(row)?)))?.collect()
    }

    /// Rows that do not match their seals.
    pub(super) fn damage(&self, connection: &Connection) -> rusqlite::Result<Vec<Damage>> {
        let mut seals = self.seals(connection)?;
        let mut damage = Vec::new();
        for (key, digest) in self.rows(connection)? {
            if seals.remove(&key).as_ref() != Some(&digest) {
                damage.push(Damage { table: self.table, key, is_gone: false });
            }
        }
        damage.extend(seals.into_keys().map(|key| Damage { table: self.table, key, is_gone: true }));
        Ok(damage)
    }

    /// Digests by key.
    pub(super) fn seals(&self, connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
        let mut statement = connection.prepare("SELECT key, sha256 FROM main.seal WHERE name = ?")?;
        statement.query_map([self.table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// What identifies a row of all columns.
    pub(super) fn key(&self, row: &Row<'_>) -> rusqlite::Result<String> {
        let fields = (0..self.n_keys).map(|column| {
            Ok(match row.get_ref(column)? {
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            })
        });
        Ok(fields.collect::<rusqlite::Result<Vec<_>>>()?.join("\n"))
    }

    /// sha256 of a row of all columns: kind, length and bytes of each.
    pub(super) fn digest(&self, row: &Row<'_>) -> rusqlite::Result<String> {
        let mut hasher = Sha256::new();
        for column in 0..self.columns.len() {
            let mut field = |kind: u8, bytes: &[u8]| {
                hasher.update([kind]);
                hasher.update((bytes.len() as u64).to_le_bytes());
                hasher.update(bytes);
            };
            match row.get_ref(column)? {
                ValueRef::Null => field(0, &[]),
                ValueRef::Integer(number) => field(1, &number.to_le_bytes()),
                ValueRef::Real(number) => field(2, &number.to_bits().to_le_bytes()),
                ValueRef::Text(text) => field(3, text),
                ValueRef::Blob(bytes) => field(4, bytes),
            }
        }
        Ok(hex::encode(hasher.finalize()))
    }
}
