//! Predictions of a released model for a table, written to a file.

use std::fs;
use std::path::{Path, PathBuf};

use dp_table::{BadRows, TableCounts, TableFiles};
use serde::Serialize;

use crate::error::{FairdpError, Result};
use crate::output::{self, Readers};
use crate::predictions::Predictions;
use crate::predictor::Predictor;
use crate::release::{RELEASE, STATEMENT};
use crate::verify::model_of_statement;

/// Counts of a prediction, and values of the table that the model did not know. **Not private.**
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predicted {
    /// Rows of the table, and of the file.
    pub rows: u64,
    /// Rows with an answer.
    pub answered: u64,
    /// Values by column that are not declared, beyond bounds or missing.
    pub table: TableCounts,
    /// The same in words, a line each, without declared missing values;
    /// empty if the model knows all that is in the table.
    pub remarks: Vec<String>,
}

/// Writes one line per row of a table, in its order: `row` (from 1), `prediction`, and `p_<class>`
/// for every class; as Parquet if the name of the file ends so, else as CSV. The file is for this
/// user alone. Labels are not needed.
///
/// A row that does not fit has an empty answer if the model was fitted with `bad_rows = "drop"`. If
/// `is_strict`, a table is refused, and nothing is written, where there would be a remark.
///
/// # Errors
/// [`FairdpError::File`] for a release that is damaged, or a model other than that of its
/// statement; [`FairdpError::Table`] with file, line and column for a row that does not fit;
/// [`FairdpError::UnknownToModel`] with every remark; [`FairdpError::InvalidParameter`] for an
/// output that is a file of the table, or in a release.
pub fn predict(folder: &Path, tables: &[String], out: &Path, is_strict: bool) -> Result<Predicted> {
    let whole = folder.join(RELEASE);
    let release = if whole.is_dir() { &whole } else { folder };
    let model = model_of_statement(release)?;
    let files = TableFiles::new(tables)?;
    refuse_overwriting(out, files.paths())?;
    let mut predictor = Predictor::new(&model, &files)?;
    let drops_rows = model.encoding().schema().bad_rows == BadRows::Drop;
    let mut row = 0;
    let mut failed = None;
    let written = output::write_with(out, Readers::Owner, |file| {
        let mut predictions = Predictions::new(out, model.classes(), file)?;
        loop {
            row += 1;
            match predictor.answer() {
                Ok(Some((class, probabilities))) => predictions.push(row, Some((class, probabilities)))?,
                Ok(None) => break,
                Err(FairdpError::Table(error)) if drops_rows && error.is_of_one_row() => predictions.push(row, None)?,
                Err(error) => {
                    failed = Some(error);
                    return Err(std::io::Error::other("a row does not fit"));
                }
            }
        }
        let remarks = predictor.remarks();
        if is_strict && !remarks.is_empty() {
            failed = Some(FairdpError::UnknownToModel { remarks });
            return Err(std::io::Error::other("the table is refused"));
        }
        predictions.end()
    });
    if let Some(error) = failed {
        return Err(error);
    }
    written?;
    let (table, remarks) = (predictor.counts().clone(), predictor.remarks());
    Ok(Predicted { rows: table.rows, answered: table.rows - table.dropped, table, remarks })
}

/// An output has the name of a format, and is no file that is read, under whatever name, nor in a
/// release, where every file has an entry in the statement.
fn refuse_overwriting(out: &Path, inputs: &[PathBuf]) -> Result<()> {
    let refuse = |expected: &str| Err(FairdpError::invalid("--out", out.display(), expected));
    let is_out = |input: &PathBuf| {
        fs::canonicalize(input).is_ok_and(|input| fs::canonicalize(out).is_ok_and(|out| out == input))
    };
    if inputs.iter().any(is_out) {
        return refuse("another file than those that are read");
    }
    if out.with_file_name(STATEMENT).exists() {
        return refuse("a file outside of a release");
    }
    let is_of = |ending: &str| out.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
    if is_of("csv") || is_of("parquet") { Ok(()) } else { refuse("a name that ends in .csv or .parquet") }
}
