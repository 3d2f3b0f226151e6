//! What a released model says of a table's rows, in a file.

use std::fs;
use std::path::{Path, PathBuf};

use dp_data::table::TableFiles;

use crate::error::{FairdpError, Result};
use crate::output::{self, Readers};
use crate::predictions::Predictions;
use crate::predictor::Predictor;
use crate::release::{RELEASE, STATEMENT};
use crate::verify::model_of_statement;

/// Writes one line per row of a table, in its order: `row` (from 1), `prediction`, and `p_<class>`
/// for every class; as Parquet if the name of the file ends so, else as CSV. The file is for this
/// user alone. Labels are not needed. Returns the number of rows.
///
/// # Errors
/// [`FairdpError::File`] for a release that is damaged, or a model other than that of its statement;
/// [`FairdpError::Data`] with file, line and column for a row that does not fit;
/// [`FairdpError::InvalidParameter`] for an output that is a file of the table, or in a release.
pub fn predict(folder: &Path, tables: &[String], out: &Path) -> Result<u64> {
    let whole = folder.join(RELEASE);
    let release = if whole.is_dir() { &whole } else { folder };
    let model = model_of_statement(release)?;
    let files = TableFiles::new(tables)?;
    refuse_overwriting(out, files.paths())?;
    let mut predictor = Predictor::new(&model, &files)?;
    let mut n = 0;
    let mut failed = None;
    let written = output::write_with(out, Readers::Owner, |file| {
        let mut predictions = Predictions::new(out, model.classes(), file)?;
        loop {
            match predictor.answer() {
                Ok(Some((class, probabilities))) => {
                    n += 1;
                    predictions.push(n, class, probabilities)?;
                }
                Ok(None) => return predictions.end(),
                Err(error) => {
                    failed = Some(error);
                    return Err(std::io::Error::other("a row does not fit"));
                }
            }
        }
    });
    match failed {
        Some(error) => Err(error),
        None => written.map(|()| n),
    }
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
