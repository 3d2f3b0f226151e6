//! `[table]`: the files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::entry_error::EntryError;
use super::names::Names;
use super::text_marks::{TextMarks, WrongMark};
use crate::files::Csv;
use crate::schema::BadRows;
use crate::text_encoding::TextEncoding;

/// `[table]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TableEntry {
    /// Paths, or patterns with `*`.
    pub files: Vec<String>,
    /// Columns of vectors that are in files of NumPy, and of images that are in IDX files, by name: a
    /// file for each of the table's.
    #[serde(default)]
    pub vectors: BTreeMap<String, Vec<String>>,
    /// Between two fields of a text file; by the file's ending and its first line unless given.
    pub delimiter: Option<char>,
    /// Around a field that holds delimiters; an empty text for none.
    pub quote: Option<String>,
    /// The encoding of text files, such as `latin1`; UTF-8, or UTF-16 where a text begins with its mark,
    /// unless given.
    pub encoding: Option<String>,
    /// Texts that stand for a missing value.
    #[serde(default = "empty_text")]
    pub missing: Vec<String>,
    /// The treatment of a row that does not fit.
    #[serde(default)]
    #[schemars(with = "Names<BadRows>")]
    pub bad_rows: BadRows,
}

/// Labels of encodings, in words.
pub const ENCODINGS: &str = "a label of the WHATWG, such as utf-8, utf-16le, latin1 or windows-1252";

impl TableEntry {
    /// The characters that divide its texts.
    pub fn marks(&self) -> TextMarks {
        TextMarks { delimiter: self.delimiter, quote: self.quote.clone() }
    }

    /// How its texts are written, where that is not `by_ending`.
    ///
    /// # Errors
    /// Names the key whose value is no mark or encoding.
    pub fn csv(&self, by_ending: Csv) -> Result<Csv, EntryError> {
        let csv = self.marks().of_csv(by_ending).map_err(|WrongMark { key, value, expected }| {
            EntryError::value(&format!("table.{key}"), value, expected)
        })?;
        let encoding = match &self.encoding {
            None => by_ending.encoding,
            Some(label) => {
                TextEncoding::of(label).ok_or_else(|| EntryError::value("table.encoding", label, ENCODINGS))?
            }
        };
        Ok(Csv { encoding, ..csv })
    }
}

fn empty_text() -> Vec<String> {
    vec![String::new()]
}
