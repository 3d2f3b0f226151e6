//! What a database holds, for a terminal.

use std::fmt::Write as _;

use anyhow::Context;
use dp_accounting::{Mark, Rounding, decimal};
use fair_metrics::Estimate;

use crate::database::Database;
use crate::shell;

/// Sessions, for every method the mean and standard error of its test accuracy over seeds, and the
/// runs that failed.
///
/// # Errors
/// If the database cannot be read.
pub fn database(database: &Database) -> anyhow::Result<String> {
    let source = database.source()?;
    let quick = if source.quick { ", QUICK" } else { "" };
    let seed = source.seed.map_or_else(
        || format!("none; partitions follow from {}", source.split_seed),
        |seed| format!("{seed}: NOT PRIVATE, whoever knows the seed can take the noise off"),
    );
    let not_private = if source.seed.is_some() { "; not private" } else { "" };
    // Writing to a `String` cannot fail.
    let mut text = format!("study {}{quick}, seed {seed}\n", source.study);
    for session in database.sessions()? {
        let _ = writeln!(
            text,
            "  {} runs in {:.1} s, code revision {}, {}: {}",
            session.n_runs,
            session.wall_seconds,
            session.code_revision,
            session.host,
            shell::line(&session.command)
        );
    }
    let mut rows = rows(database)?;
    let mut experiment = (String::new(), false);
    let width = rows.iter().map(|row| row.method.chars().count()).max().unwrap_or(0).max(6);
    while !rows.is_empty() {
        let rest = rows.iter().position(|row| !row.is_like(&rows[0])).unwrap_or(rows.len());
        let following = rows.split_off(rest);
        let first = &rows[0];
        let heading = (first.experiment.clone(), first.synthetic);
        if experiment != heading {
            experiment = heading;
            let mark = if first.synthetic { " (SYNTHETIC)" } else { "" };
            let _ = writeln!(text, "\n{}{mark}", first.experiment);
            let _ = writeln!(
                text,
                "  {:<width$}  {:<8}  {:>5}  {:<46}  test accuracy",
                "method", "config", "seeds", "ε of one run"
            );
        }
        let accuracies: Vec<Option<f64>> = rows.iter().map(|row| row.accuracy).collect();
        let estimate = Estimate::over_seeds(&accuracies)?;
        let epsilon = match first.epsilon {
            Some(epsilon) => format!("{} ({}{not_private})", decimal(epsilon, 3, Rounding::Up), first.mark()),
            None => "–".to_owned(),
        };
        let accuracy = match (estimate.mean, estimate.standard_error) {
            (Some(mean), Some(error)) => format!("{mean:.4} ± {error:.4}"),
            (Some(mean), None) => format!("{mean:.4}"),
            _ => "undefined".to_owned(),
        };
        let _ = writeln!(
            text,
            "  {:<width$}  {:<8}  {:>5}  {epsilon:<46}  {accuracy}",
            first.method,
            &first.config[..8.min(first.config.len())],
            rows.len()
        );
        rows = following;
    }
    let failures = database.failures()?;
    if !failures.is_empty() {
        let _ = writeln!(text, "\nfailed");
    }
    for failure in failures {
        let _ = writeln!(text, "  {}: {}", failure.key, failure.reason);
    }
    Ok(text)
}

/// A run as [`database`] needs it.
struct RunRow {
    experiment: String,
    synthetic: bool,
    method: String,
    config: String,
    epsilon: Option<f64>,
    mark: Option<String>,
    certified: bool,
    accuracy: Option<f64>,
}

impl RunRow {
    /// Records from before marks say only whether there is a proof.
    fn mark(&self) -> Mark {
        let mark = self.mark.as_ref().and_then(|mark| serde_json::from_value(mark.as_str().into()).ok());
        mark.unwrap_or(if self.certified { Mark::Conditional } else { Mark::Nominal })
    }

    fn is_like(&self, other: &Self) -> bool {
        (&self.experiment, self.synthetic, &self.method, &self.config)
            == (&other.experiment, other.synthetic, &other.method, &other.config)
    }
}

fn rows(database: &Database) -> anyhow::Result<Vec<RunRow>> {
    // An infinite ε is stored as text, which SQLite would read as 0.
    database.query(
        "SELECT experiment, synthetic, method, config_hash, iif(epsilon = 'inf', 9e999, epsilon), test_accuracy,
             (SELECT json_extract(method.record, '$.privacy.epsilons[0].mark') FROM method
              WHERE (method.experiment, method.name, method.config_hash)
                  = (run_summary.experiment, run_summary.method, run_summary.config_hash)),
             ifnull(certified, 0)
         FROM run_summary ORDER BY experiment, synthetic, method, config_hash, seed_index",
        |row| {
            Ok(RunRow {
                experiment: row.get(0)?,
                synthetic: row.get(1)?,
                method: row.get(2)?,
                config: row.get(3)?,
                epsilon: row.get(4)?,
                accuracy: row.get(5)?,
                mark: row.get(6)?,
                certified: row.get(7)?,
            })
        },
    )
}

/// Everything about one run, as JSON.
///
/// # Errors
/// If there is no such run.
pub fn run(database: &Database, id: i64) -> anyhow::Result<String> {
    let found = database.query(
        "SELECT run.id, json_object('summary', json_object('experiment', run.experiment, 'method', run.method,
             'config_hash', run.config_hash, 'data_digest', run.data_digest, 'finished', run.finished,
             'seed', study.seed, 'private', json(iif(study.seed IS NULL, 'true', 'false')),
             'code_revision', session.code_revision, 'host', session.host, 'command', json(session.command)),
             'method', json(method.record), 'ledger', json(run.ledger), 'run', json(run.record))
         FROM run JOIN study JOIN session ON session.id = run.session
         JOIN method ON (method.experiment, method.name, method.config_hash)
                      = (run.experiment, run.method, run.config_hash)",
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)),
    )?;
    let (_, text) = found
        .into_iter()
        .find(|(found, _)| *found == id)
        .with_context(|| format!("--run {id}: no such run in {}", database.path().display()))?;
    let value: serde_json::Value = serde_json::from_str(&text)?;
    serde_json::to_string_pretty(&value).context("a run as JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use crate::fixture::{fill, source};

    #[test]
    fn a_database_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.db");
        fill(&path, &source(), &crate::made_up::study());
        let stored = Database::read(&path).unwrap();
        insta::assert_snapshot!("a_database_in_words", database(&stored).unwrap());
        let one: serde_json::Value = serde_json::from_str(&run(&stored, 7).unwrap()).unwrap();
        assert_eq!(one["summary"]["method"], "dpsgd");
        assert_eq!(one["run"]["index"], 1);
        assert_eq!(
            (&one["summary"]["seed"], &one["summary"]["private"]),
            (&u64::MAX.to_string().into(), &false.into())
        );
        let private = folder.path().join("private.db");
        fill(&private, &Source { seed: None, ..source() }, &crate::made_up::study());
        let private = Database::read(&private).unwrap();
        let text = database(&private).unwrap();
        assert!(text.contains("(certified)") && !text.to_lowercase().contains("not private"), "{text}");
        let one: serde_json::Value = serde_json::from_str(&run(&private, 7).unwrap()).unwrap();
        assert_eq!((&one["summary"]["seed"], &one["summary"]["private"]), (&serde_json::Value::Null, &true.into()));
        let error = run(&stored, 26).unwrap_err().to_string();
        assert!(error.starts_with("--run 26: no such run in "), "{error}");
    }
}
