//! The characters that divide texts into columns.

use dp_table::{Csv, TableFiles, TableFormat};
use serde::{Deserialize, Serialize};

use crate::error::{FairdpError, Result};
use crate::printable::printable;

/// What stands between and around the fields of text files, where it is not found by ending and first line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextMarks {
    /// Between two fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delimiter: Option<char>,
    /// Around a field that holds delimiters; an empty text for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quote: Option<String>,
}

/// A mark that cannot be one.
pub(crate) struct WrongMark {
    pub(crate) key: &'static str,
    pub(crate) value: String,
    pub(crate) expected: &'static str,
}

impl TextMarks {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Text with these marks, and with its own where none is given.
    pub(crate) fn of_csv(&self, csv: Csv) -> Result<Csv, WrongMark> {
        let delimiter = match self.delimiter {
            Some(letter) => Some(byte("delimiter", letter)?),
            None => csv.delimiter,
        };
        let quote = match self.quote.as_deref() {
            None => csv.quote,
            Some("") => None,
            Some(text) => Some(match *text.chars().collect::<Vec<_>>() {
                [letter] => byte("quote", letter)?,
                _ => return Err(WrongMark { key: "quote", value: text.into(), expected: "one character, or none" }),
            }),
        };
        if delimiter.is_some() && delimiter == quote {
            let value = self.quote.clone().unwrap_or_else(|| "\"".into());
            return Err(WrongMark { key: "quote", value, expected: "another character than the delimiter" });
        }
        Ok(Csv { delimiter, quote, ..csv })
    }

    /// A table with the marks of a command's options.
    ///
    /// # Errors
    /// [`FairdpError::InvalidParameter`] for what is no mark, or for a table that is no text.
    pub(crate) fn of_options(&self, files: TableFiles) -> Result<TableFiles> {
        match *files.format() {
            TableFormat::Csv(csv) => {
                let csv = self.of_csv(csv).map_err(|WrongMark { key, value, expected }| {
                    FairdpError::invalid(format!("--{key}"), value, expected)
                })?;
                Ok(files.with_csv(csv))
            }
            _ => match (self.delimiter, &self.quote) {
                (None, None) => Ok(files),
                (Some(delimiter), _) => Err(FairdpError::invalid("--delimiter", delimiter, "a table that is text")),
                (None, Some(quote)) => Err(FairdpError::invalid("--quote", quote, "a table that is text")),
            },
        }
    }

    /// A new table as the run's was written, unless an option or the file's ending says otherwise.
    ///
    /// # Errors
    /// As [`of_options`](Self::of_options).
    pub(crate) fn of_new_table(&self, run: &Self, files: TableFiles) -> Result<TableFiles> {
        let TableFormat::Csv(csv) = *files.format() else { return self.of_options(files) };
        let of_run = if csv.delimiter.is_some() { None } else { run.delimiter };
        let delimiter = self.delimiter.or(of_run);
        Self { delimiter, quote: self.quote.clone().or_else(|| run.quote.clone()) }.of_options(files)
    }
}

fn byte(key: &'static str, letter: char) -> Result<u8, WrongMark> {
    let byte = u8::try_from(letter).ok().filter(|byte| byte.is_ascii() && !b"\r\n".contains(byte));
    byte.ok_or_else(|| WrongMark {
        key,
        value: printable(&letter.to_string()).into_owned(),
        expected: "an ASCII character",
    })
}
