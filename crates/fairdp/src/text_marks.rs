//! The characters that divide texts into columns, as a command's options name them.

use dp_table::declaration::{TextMarks, WrongMark};
use dp_table::{TableFiles, TableFormat};

use crate::error::{FairdpError, Result};

/// A table with the marks of a command's options.
///
/// # Errors
/// [`FairdpError::InvalidParameter`] for what is no mark, or for a table that is no text.
pub(crate) fn with_options(marks: &TextMarks, files: TableFiles) -> Result<TableFiles> {
    match *files.format() {
        TableFormat::Csv(csv) => {
            let csv = marks.of_csv(csv).map_err(|WrongMark { key, value, expected }| {
                FairdpError::invalid(format!("--{key}"), value, expected)
            })?;
            Ok(files.with_csv(csv))
        }
        _ => match (marks.delimiter, &marks.quote) {
            (None, None) => Ok(files),
            (Some(delimiter), _) => Err(FairdpError::invalid("--delimiter", delimiter, "a table that is text")),
            (None, Some(quote)) => Err(FairdpError::invalid("--quote", quote, "a table that is text")),
        },
    }
}

/// A new table as the run's was written, unless an option or the file's ending says otherwise.
///
/// # Errors
/// As [`with_options`].
pub(crate) fn of_new_table(marks: &TextMarks, run: &TextMarks, files: TableFiles) -> Result<TableFiles> {
    let TableFormat::Csv(csv) = *files.format() else { return with_options(marks, files) };
    let of_run = if csv.delimiter.is_some() { None } else { run.delimiter };
    let delimiter = marks.delimiter.or(of_run);
    with_options(&TextMarks { delimiter, quote: marks.quote.clone().or_else(|| run.quote.clone()) }, files)
}
