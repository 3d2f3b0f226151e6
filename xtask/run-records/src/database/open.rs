//! Opening a database that is whole.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::read::key;
use crate::ledger::refuse_unlike;
use crate::record::MethodResults;
use crate::{schema, seal};

pub(super) fn ensure_file(path: &Path) -> anyhow::Result<()> {
    if !path.is_file() {
        bail!("no database of runs at {}", path.display());
    }
    Ok(())
}

/// A connection to a database that is whole, and whether its rows are sealed.
pub(super) fn open_at(path: &Path) -> anyhow::Result<(Connection, bool)> {
    ensure_file(path)?;
    open_file(path).map_err(in_one_line)
}

/// SQLite quotes what it cannot read of the schema, over many lines: the first says enough.
fn in_one_line(error: anyhow::Error) -> anyhow::Error {
    match format!("{error:#}").split_once('\n') {
        Some((first, _)) => anyhow::Error::msg(format!("{first} …")),
        None => error,
    }
}

fn open_file(path: &Path) -> anyhow::Result<(Connection, bool)> {
    // Not `READ_ONLY`: a reader must be able to roll back what a killed writer left in the journal.
    let damaged = || format!("{} is damaged (`cargo xtask results repair` saves what is whole)", path.display());
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(|error| {
        let code = error.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
        if code == Some(ErrorCode::DatabaseCorrupt) { error.context(damaged()) } else { error }
    })?;
    let is_sealed = schema::check(&connection, path)?;
    refuse_damage(&connection, is_sealed).with_context(damaged)?;
    refuse_other_ledgers(&connection).with_context(|| path.display().to_string())?;
    schema::create_own_views(&connection)?;
    Ok((connection, is_sealed))
}

fn refuse_damage(connection: &Connection, is_sealed: bool) -> anyhow::Result<()> {
    // All in one: another process may write meanwhile.
    let transaction = connection.unchecked_transaction()?;
    let answer: String = connection.query_row("PRAGMA main.integrity_check(1)", [], |row| row.get(0))?;
    if answer != "ok" {
        bail!("{}", answer.lines().map(str::trim).collect::<Vec<_>>().join(" "));
    }
    if is_sealed {
        let mut damage = Vec::new();
        for table in seal::TABLES {
            damage.extend(table.damage(connection)?);
        }
        if let Some(first) = damage.first() {
            bail!("{} rows differ from their seals, the first: {first}", damage.len());
        }
    }
    Ok(transaction.commit()?)
}

/// Refuses a run that would be shown under an ε that is not its own.
fn refuse_other_ledgers(connection: &Connection) -> anyhow::Result<()> {
    let mut statement = connection.prepare(
        "SELECT run.experiment, run.method, run.config_hash, run.data_digest, run.seed_index, run.ledger, method.record
         FROM main.run JOIN main.method ON (method.experiment, method.name, method.config_hash)
                                         = (run.experiment, run.method, run.config_hash)
         ORDER BY run.experiment, run.method, run.config_hash",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let key = key(row)?;
        let of_run = || key.to_string();
        let (ledger, method): (String, String) = (row.get(5)?, row.get(6)?);
        let method: MethodResults = serde_json::from_str(&method).with_context(of_run)?;
        refuse_unlike(&serde_json::from_str(&ledger).with_context(of_run)?, method.privacy.as_ref())
            .with_context(of_run)?;
    }
    Ok(())
}

pub(super) fn upgrade(connection: &mut Connection) -> anyhow::Result<()> {
    let transaction = connection.transaction()?;
    schema::upgrade(&transaction)?;
    for table in seal::TABLES {
        table.seal_all(&transaction)?;
    }
    Ok(transaction.commit()?)
}

pub(super) fn connect(path: &Path, flags: OpenFlags) -> anyhow::Result<Connection> {
    let context = || format!("opening {}", path.display());
    let connection =
        Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).with_context(context)?;
    connection.busy_timeout(Duration::from_secs(30)).with_context(context)?;
    connection.pragma_update(None, "foreign_keys", true).with_context(context)?;
    connection.pragma_update(None, "synchronous", "FULL").with_context(context)?;
    Ok(connection)
}
