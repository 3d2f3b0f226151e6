//! Tables of a database of runs.
//!
//! What identifies a run is in columns of its own; what came out is one JSON document per run, the
//! same that the report reads. Views spread it into columns, so that `sqlite3 records.db 'SELECT *
//! FROM metric'` works without this program.

use std::path::Path;

use anyhow::{Context, bail};
use rusqlite::Connection;

/// Marks a file as a database of runs (`PRAGMA application_id`): "dprn".
const APPLICATION_ID: i32 = 0x6470_726e;
/// Grows with every change of the tables (`PRAGMA user_version`).
const VERSION: i32 = 3;
/// Without seals, and read all the same.
const UNSEALED: i32 = 2;

const TABLES: &str = r"
    CREATE TABLE study (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        name TEXT NOT NULL,
        quick INTEGER NOT NULL,
        seed TEXT,                    -- NULL: batches and noise came from the operating system
        split_seed TEXT NOT NULL      -- u64 as text: SQLite's integers are signed
    ) STRICT;
    CREATE TABLE session (            -- a command that trained runs
        id INTEGER PRIMARY KEY,
        command TEXT NOT NULL,        -- JSON array of words
        code_revision TEXT NOT NULL,
        host TEXT NOT NULL,
        threads INTEGER NOT NULL,
        started TEXT NOT NULL,        -- UTC
        wall_seconds REAL NOT NULL    -- until its last finished run
    ) STRICT;
    CREATE TABLE experiment (
        id TEXT PRIMARY KEY,
        record TEXT NOT NULL          -- JSON: title, departures, data, model
    ) STRICT;
    CREATE TABLE method (
        experiment TEXT NOT NULL REFERENCES experiment,
        name TEXT NOT NULL,
        config_hash TEXT NOT NULL,
        record TEXT NOT NULL,         -- JSON: configuration, privacy with the ledger
        PRIMARY KEY (experiment, name, config_hash)
    ) STRICT;
    CREATE TABLE run (
        id INTEGER PRIMARY KEY,
        experiment TEXT NOT NULL,
        method TEXT NOT NULL,
        config_hash TEXT NOT NULL,
        data_digest TEXT NOT NULL,
        seed_index INTEGER NOT NULL,
        session INTEGER NOT NULL REFERENCES session,
        finished TEXT NOT NULL,       -- UTC
        ledger TEXT NOT NULL,         -- JSON: what the run released
        record TEXT NOT NULL,         -- JSON: epochs, thresholds, metrics, seconds
        UNIQUE (experiment, method, config_hash, data_digest, seed_index),
        FOREIGN KEY (experiment, method, config_hash) REFERENCES method
    ) STRICT;
    CREATE TABLE failure (            -- a run that left no model
        experiment TEXT NOT NULL,
        method TEXT NOT NULL,
        config_hash TEXT NOT NULL,
        data_digest TEXT NOT NULL,
        seed_index INTEGER NOT NULL,
        session INTEGER NOT NULL REFERENCES session,
        finished TEXT NOT NULL,       -- UTC
        reason TEXT NOT NULL,
        PRIMARY KEY (experiment, method, config_hash, data_digest, seed_index),
        FOREIGN KEY (experiment, method, config_hash) REFERENCES method
    ) STRICT;
    CREATE TABLE seal (               -- a digest of every row above: a damaged one is noticed
        name TEXT NOT NULL,           -- its table
        key TEXT NOT NULL,            -- its key, fields on lines of their own
        sha256 TEXT NOT NULL,
        PRIMARY KEY (name, key)
    ) STRICT;
";

/// Made in the file, for other programs, and again for this connection: what is read does not
/// depend on what a file says a view is.
const VIEWS: &str = r#"
    CREATE VIEW run_summary AS
        SELECT run.id AS run, run.experiment, run.method, run.config_hash, run.data_digest, run.seed_index,
            (SELECT name FROM study) AS study,
            coalesce(json_extract(run.record, '$.provenance.quick'), (SELECT quick FROM study)) AS quick,
            (SELECT seed FROM study) AS seed, (SELECT split_seed FROM study) AS split_seed,
            (SELECT seed IS NULL FROM study) AS private,
            coalesce(json_extract(run.record, '$.provenance.synthetic'),
                json_extract(experiment.record, '$.dataset.synthetic')) AS synthetic,
            coalesce(json_extract(run.record, '$.provenance.code_revision'), session.code_revision) AS code_revision, session.host, run.finished,
            json_extract(run.record, '$.seconds') AS seconds,
            json_extract(method.record, '$.privacy.certified') AS certified,
            json_extract(method.record, '$.privacy.noise_multiplier') AS noise_multiplier,
            json_extract(method.record, '$.privacy.steps') AS steps,
            json_extract(method.record, '$.privacy.delta') AS delta,
            json_extract(method.record, '$.privacy.epsilons[0].epsilon') AS epsilon,
            json_extract(run.record, '$.n_non_finite') AS n_non_finite,
            json_extract(run.record, '$.n_empty_batches') AS n_empty_batches,
            json_extract(run.record, '$.test.overall.accuracy') AS test_accuracy,
            json_extract(run.record, '$.test.overall.loss') AS test_loss
        FROM run
        JOIN session ON session.id = run.session
        JOIN experiment ON experiment.id = run.experiment
        JOIN method ON (method.experiment, method.name, method.config_hash)
                     = (run.experiment, run.method, run.config_hash);
    CREATE VIEW metric AS
        SELECT run.id AS run, run.experiment, run.method, substr(run.config_hash, 1, 12) AS config, run.seed_index,
            part.value AS part,
            'all' AS "group",
            json_extract(run.record, '$.' || part.value || '.overall.n') AS n,
            json_extract(run.record, '$.' || part.value || '.overall.accuracy') AS accuracy,
            json_extract(run.record, '$.' || part.value || '.overall.loss') AS loss,
            marks.synthetic, marks.quick
        FROM run JOIN run_summary AS marks ON marks.run = run.id
        JOIN json_each('["train", "validation", "test"]') AS part
        WHERE json_extract(run.record, '$.' || part.value) IS NOT NULL
        UNION ALL
        SELECT run.id, run.experiment, run.method, substr(run.config_hash, 1, 12), run.seed_index, part.value,
            json_extract(experiment.record, '$.dataset.groups[' || entry.key || '].name'),
            json_extract(entry.value, '$.n'),
            json_extract(entry.value, '$.accuracy'),
            json_extract(entry.value, '$.loss'),
            marks.synthetic, marks.quick
        FROM run
        JOIN run_summary AS marks ON marks.run = run.id
        JOIN experiment ON experiment.id = run.experiment
        JOIN json_each('["train", "validation", "test"]') AS part
        JOIN json_each(run.record, '$.' || part.value || '.groups') AS entry;
    CREATE VIEW epoch AS
        SELECT run.id AS run, run.experiment, run.method, substr(run.config_hash, 1, 12) AS config, run.seed_index,
            json_extract(entry.value, '$.epoch') AS epoch,
            json_extract(entry.value, '$.step') AS step,
            json_extract(names.value, '$.name') AS "group",
            json_extract(entry.value, '$.loss[' || names.key || ']') AS loss,
            json_extract(entry.value, '$.gradient_norm[' || names.key || ']') AS gradient_norm,
            json_extract(entry.value, '$.mean_gradient_norm[' || names.key || ']') AS mean_gradient_norm,
            marks.synthetic, marks.quick
        FROM run
        JOIN run_summary AS marks ON marks.run = run.id
        JOIN experiment ON experiment.id = run.experiment
        JOIN json_each(run.record, '$.epochs') AS entry
        JOIN json_each(experiment.record, '$.dataset.groups') AS names;
    CREATE VIEW threshold AS
        SELECT run.id AS run, run.experiment, run.method, substr(run.config_hash, 1, 12) AS config, run.seed_index,
            json_extract(entry.value, '$.step') AS step,
            slot.key AS slot,
            slot.value AS value,
            marks.synthetic, marks.quick
        FROM run
        JOIN run_summary AS marks ON marks.run = run.id
        JOIN json_each(run.record, '$.thresholds') AS entry
        JOIN json_each(entry.value, '$.values') AS slot;
"#;

/// Names of the views.
const VIEW_NAMES: [&str; 4] = ["run_summary", "metric", "epoch", "threshold"];

/// Makes the tables in an empty file.
pub(super) fn create(connection: &Connection) -> anyhow::Result<()> {
    connection.execute_batch(TABLES).context("creating the tables")?;
    connection.execute_batch(VIEWS).context("creating the views")?;
    connection.pragma_update(None, "application_id", APPLICATION_ID).context("marking the file")?;
    connection.pragma_update(None, "user_version", VERSION).context("marking the file")?;
    Ok(())
}

/// The views of this version, for this connection alone.
pub(super) fn create_own_views(connection: &Connection) -> anyhow::Result<()> {
    connection.pragma_update(None, "temp_store", "MEMORY").context("the connection's own views")?;
    let views = VIEWS.replace("CREATE VIEW", "CREATE TEMP VIEW");
    connection.execute_batch(&views).context("the connection's own views")
}

/// Gives a database without seals the tables and views of this version. The rows are then to be
/// sealed.
pub(super) fn upgrade(connection: &Connection) -> anyhow::Result<()> {
    let seal = TABLES.split("    CREATE TABLE").find(|table| table.trim_start().starts_with("seal"));
    let seal = seal.context("the table of seals")?;
    for view in VIEW_NAMES {
        connection.execute_batch(&format!("DROP VIEW main.{view}")).context("renewing the views")?;
    }
    connection.execute_batch(&format!("CREATE TABLE main.{seal}")).context("creating the table of seals")?;
    connection.execute_batch(&VIEWS.replace("CREATE VIEW ", "CREATE VIEW main.")).context("renewing the views")?;
    connection.pragma_update(None, "user_version", VERSION).context("marking the file")
}

/// Refuses what is not a database of runs in this version or the one before; returns whether its
/// rows are sealed.
pub(super) fn check(connection: &Connection, path: &Path) -> anyhow::Result<bool> {
    let pragma = |name: &str| connection.pragma_query_value(Some("main"), name, |row| row.get::<_, i32>(0));
    let id = pragma("application_id").with_context(|| format!("reading {}", path.display()))?;
    if id != APPLICATION_ID {
        bail!("{} is a database, but not one of runs", path.display());
    }
    let version = pragma("user_version").with_context(|| format!("reading {}", path.display()))?;
    let has_seals: bool = connection
        .query_row("SELECT count(*) FROM main.sqlite_master WHERE name = 'seal'", [], |row| row.get(0))
        .with_context(|| format!("reading {}", path.display()))?;
    match (version, has_seals) {
        (VERSION, true) => Ok(true),
        (UNSEALED, false) => Ok(false),
        (VERSION | UNSEALED, _) => bail!("{}: its tables are not those of version {version}", path.display()),
        _ => bail!("{}: version {version} of the tables, this program knows {VERSION}", path.display()),
    }
}
