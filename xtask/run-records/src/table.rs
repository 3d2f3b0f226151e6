//! The tables that are exported: views of the database with typed columns.

use rusqlite::types::ValueRef;

use crate::database::Database;
use crate::metrics;

/// A table to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// One row per run: what it was, whether its noise is secret, where and how long it was trained,
    /// its ε and its test accuracy
    Runs,
    /// One row per run, part (train, validation, test) and group: records, accuracy, loss; F1 and
    /// class means; gradient norms
    Metrics,
    /// One row per run, epoch and group: loss and gradient norms
    Epochs,
    /// One row per run, recorded step and threshold
    Thresholds,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Real,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Text(String),
    Integer(i64),
    Real(f64),
}

/// A column with its name in the view.
pub(super) type Column = (&'static str, Kind);

impl Table {
    fn view(self) -> &'static str {
        match self {
            Self::Runs => "run_summary",
            Self::Metrics => "metric",
            Self::Epochs => "epoch",
            Self::Thresholds => "threshold",
        }
    }

    /// Columns in order. None of them depends on the order in which runs finished, so that a merged
    /// database exports what a whole one does, clocks and hosts aside.
    pub(super) fn columns(self) -> &'static [Column] {
        use Kind::{Integer, Real, Text};
        match self {
            Self::Runs => &[
                ("study", Text),
                ("experiment", Text),
                ("method", Text),
                ("seed_index", Integer),
                ("quick", Integer),
                ("synthetic", Integer),
                ("seed", Text),
                ("split_seed", Text),
                ("private", Integer),
                ("config_hash", Text),
                ("data_digest", Text),
                ("code_revision", Text),
                ("host", Text),
                ("finished", Text),
                ("seconds", Real),
                ("noise_multiplier", Real),
                ("steps", Integer),
                ("delta", Real),
                ("epsilon", Real),
                ("mark", Text),
                ("n_non_finite", Integer),
                ("n_empty_batches", Integer),
                ("test_accuracy", Real),
                ("test_loss", Real),
            ],
            Self::Metrics => metrics::COLUMNS,
            Self::Epochs => &[
                ("experiment", Text),
                ("method", Text),
                ("config", Text),
                ("seed_index", Integer),
                ("epoch", Integer),
                ("step", Integer),
                ("group", Text),
                ("loss", Real),
                ("gradient_norm", Real),
                ("mean_gradient_norm", Real),
                ("synthetic", Integer),
                ("quick", Integer),
            ],
            Self::Thresholds => &[
                ("experiment", Text),
                ("method", Text),
                ("config", Text),
                ("seed_index", Integer),
                ("step", Integer),
                ("slot", Integer),
                ("value", Real),
                ("synthetic", Integer),
                ("quick", Integer),
            ],
        }
    }

    /// All rows, in an order that follows from their content.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(super) fn rows(self, database: &Database) -> anyhow::Result<Vec<Vec<Value>>> {
        if self == Self::Metrics {
            return metrics::of_database(database);
        }
        let columns = self.columns();
        let expression = |name: &str| if name == "mark" { MARK.to_owned() } else { format!("\"{name}\"") };
        let names: Vec<String> = columns.iter().map(|(name, _)| expression(name)).collect();
        let order: Vec<String> = (1..=columns.len()).map(|n| n.to_string()).collect();
        let sql = format!("SELECT {} FROM {} ORDER BY {}", names.join(", "), self.view(), order.join(", "));
        database.query(&sql, |row| {
            columns.iter().enumerate().map(|(index, (_, kind))| Ok(value(row.get_ref(index)?, *kind))).collect()
        })
    }
}

/// What the ε of a row of `run_summary` is worth; in records from before marks, what they are given
/// on reading.
const MARK: &str = "iif(epsilon IS NULL, NULL, ifnull(
    (SELECT json_extract(method.record, '$.privacy.epsilons[0].mark') FROM method
      WHERE (method.experiment, method.name, method.config_hash)
          = (run_summary.experiment, run_summary.method, run_summary.config_hash)),
    iif(ifnull(certified, 0), 'conditional', 'nominal')))";

/// A stored value as a column's kind. Numbers that JSON has no digits for are stored as text; see
/// `extended`.
fn value(stored: ValueRef<'_>, kind: Kind) -> Value {
    match (stored, kind) {
        (ValueRef::Integer(number), Kind::Real) => Value::Real(number as f64),
        (ValueRef::Integer(number), _) => Value::Integer(number),
        (ValueRef::Real(number), _) => Value::Real(number),
        (ValueRef::Text(text) | ValueRef::Blob(text), kind) => {
            let text = String::from_utf8_lossy(text);
            match (kind, text.parse()) {
                (Kind::Real, Ok(number)) => Value::Real(number),
                _ => Value::Text(text.into_owned()),
            }
        }
        (ValueRef::Null, _) => Value::Null,
    }
}
