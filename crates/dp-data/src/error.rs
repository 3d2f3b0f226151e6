//! Every way in which data can be unusable, with the file and the line.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why data could not be used. File errors name the path, row errors also the line (1-based).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system refused to read or write.
    #[error("cannot {action} `{}`: {reason}", path.display())]
    Io {
        /// The action, for example `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer; in the message, so that it is no source besides.
        reason: std::io::Error,
    },
    /// A folder or file that generated records may not replace.
    #[error("`{}` {reason}; generated files go to an empty folder, or replace generated ones", path.display())]
    NotReplaced {
        /// The folder or file.
        path: PathBuf,
        /// The file or folder that is there, in words.
        reason: &'static str,
    },
    /// A table has another number of records than the published one.
    #[error("`{}` has {found} records, the published file {expected}: it is cut short, or another file", path.display())]
    WrongCount {
        /// The file.
        path: PathBuf,
        /// Records found.
        found: usize,
        /// Records published.
        expected: usize,
    },
    /// A folder that was named explicitly is not there.
    #[error("`{}`, given by {given_by}, is not a folder", path.display())]
    MissingFolder {
        /// The folder.
        path: PathBuf,
        /// `--data-dir` or `DP_DATA_DIR`.
        given_by: &'static str,
    },
    /// A folder holds some files of a data set but not this one.
    #[error("`{}` is missing, although other files of `{dataset}` are there", path.display())]
    MissingFile {
        /// Expected path.
        path: PathBuf,
        /// The data set.
        dataset: String,
    },
    /// The file has no content, or no record in it.
    #[error("`{}` has no records", path.display())]
    EmptyFile {
        /// The file.
        path: PathBuf,
    },
    /// A gzip stream ends before its end mark, or is damaged.
    #[error("`{}` is not a complete gzip file: {reason} (after line {line})", path.display())]
    BrokenGzip {
        /// The file.
        path: PathBuf,
        /// Complete lines that could be decompressed.
        line: usize,
        /// The decoder's answer.
        reason: String,
    },
    /// The content is not the published one.
    #[error(
        "`{}` is not the published file: sha256 {actual} ({actual_bytes} bytes), expected {expected}{}; replace or remove it",
        path.display(),
        expected_bytes.map(|bytes| format!(" ({bytes} bytes)")).unwrap_or_default()
    )]
    WrongChecksum {
        /// The file.
        path: PathBuf,
        /// sha256 of what is there.
        actual: String,
        /// Its size.
        actual_bytes: u64,
        /// sha256 in the manifest or in the publisher's list.
        expected: String,
        /// Its size, where that is published.
        expected_bytes: Option<u64>,
    },
    /// A header lacks a column of the schema.
    #[error("{}:{line}: column `{column}` is missing from the header", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The header's line.
        line: usize,
        /// The absent column.
        column: String,
    },
    /// A row has too few or too many fields.
    #[error("{}:{line}: {found} fields, expected {expected}", path.display())]
    WrongArity {
        /// The file.
        path: PathBuf,
        /// The row's line.
        line: usize,
        /// Fields found.
        found: usize,
        /// Fields of the schema.
        expected: usize,
    },
    /// A value is not in its column's fixed list.
    #[error("{}:{line}: column `{column}`: `{value}` is not one of {accepted}", path.display())]
    UnknownCategory {
        /// The file.
        path: PathBuf,
        /// The row's line.
        line: usize,
        /// The column.
        column: String,
        /// Text of the value, shortened if long.
        value: String,
        /// The list.
        accepted: String,
    },
    /// A value is not a number, not finite, or out of range.
    #[error("{}:{line}: column `{column}`: `{value}` is not {accepted}", path.display())]
    InvalidNumber {
        /// The file.
        path: PathBuf,
        /// The row's line.
        line: usize,
        /// The column.
        column: String,
        /// Text of the value, shortened if long.
        value: String,
        /// Accepted values, in words.
        accepted: &'static str,
    },
    /// The file breaks its format in another way.
    #[error("{}:{line}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The fault.
        reason: String,
    },
    /// A list lacks an entry that another file has.
    #[error("`{}` does not list `{entry}`", path.display())]
    NotListed {
        /// The list.
        path: PathBuf,
        /// The entry.
        entry: String,
    },
    /// An image cannot be decoded.
    #[error("`{}` is not a readable JPEG image: {reason}", path.display())]
    BrokenImage {
        /// The file.
        path: PathBuf,
        /// The decoder's answer.
        reason: String,
    },
    /// A binary file breaks its format.
    #[error("`{}`, byte {offset}: {reason}", path.display())]
    MalformedBinary {
        /// The file.
        path: PathBuf,
        /// Where, counted from 0 in the decompressed content.
        offset: usize,
        /// The fault.
        reason: String,
    },
    /// No place held the real files, and a stand-in was refused.
    #[error("no real data for `{dataset}`:{}", list(attempts))]
    NotFound {
        /// The data set.
        dataset: String,
        /// Every place that was tried, in order.
        attempts: Vec<Attempt>,
    },
    /// The manifest of a data set cannot be read.
    #[error("manifest of `{dataset}`: {reason}")]
    InvalidManifest {
        /// The data set.
        dataset: String,
        /// The parser's answer.
        reason: String,
    },
    /// A name that is not in its list.
    #[error("{what} `{value}` is not one of {accepted}")]
    UnknownName {
        /// For example `encoding`.
        what: &'static str,
        /// Value received.
        value: String,
        /// The names.
        accepted: String,
    },
    /// An option is out of range.
    #[error("{parameter} = {value}: expected {expected}")]
    InvalidParameter {
        /// The option.
        parameter: &'static str,
        /// Value received.
        value: String,
        /// The range.
        expected: String,
    },
}

impl DataError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |reason| Self::Io { action, path, reason }
    }
}

/// One place where real files were looked for, and why they were not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// A folder with how it was named, or an address.
    pub place: String,
    /// Why it did not serve.
    pub reason: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

fn list(attempts: &[Attempt]) -> String {
    attempts.iter().fold(String::new(), |list, attempt| list + "\n  - " + &attempt.to_string())
}

/// A place in a text file, from which row errors are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position<'a> {
    pub(crate) path: &'a Path,
    pub(crate) line: usize,
}

impl Position<'_> {
    pub(crate) fn wrong_arity(self, found: usize, expected: usize) -> DataError {
        DataError::WrongArity { path: self.path.into(), line: self.line, found, expected }
    }

    pub(crate) fn missing_column(self, column: &str) -> DataError {
        DataError::MissingColumn { path: self.path.into(), line: self.line, column: column.into() }
    }

    pub(crate) fn unknown_category(self, column: &str, value: &str, accepted: &[&str]) -> DataError {
        DataError::UnknownCategory {
            path: self.path.into(),
            line: self.line,
            column: column.into(),
            value: printable(value),
            accepted: accepted.join(", "),
        }
    }

    pub(crate) fn malformed(self, reason: impl Into<String>) -> DataError {
        DataError::Malformed { path: self.path.into(), line: self.line, reason: reason.into() }
    }

    /// A number in a range, both ends included; `accepted` is the range in words.
    pub(crate) fn within(
        self,
        column: &str,
        value: &str,
        (low, high): (f64, f64),
        accepted: &'static str,
    ) -> Result<f64, DataError> {
        match value.parse::<f64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(DataError::InvalidNumber {
                path: self.path.into(),
                line: self.line,
                column: column.into(),
                value: printable(value),
                accepted,
            }),
        }
    }

    /// A number that arithmetic on many of its kind keeps finite.
    pub(crate) fn measurement(self, column: &str, value: &str) -> Result<f64, DataError> {
        self.within(column, value, (-1e9, 1e9), "a number between -1e9 and 1e9")
    }

    /// A finite number of at least zero.
    pub(crate) fn non_negative(self, column: &str, value: &str) -> Result<f64, DataError> {
        self.within(column, value, (0.0, f64::MAX), "a finite number of at least 0")
    }
}

/// At most 40 characters, control characters escaped: a broken file must not flood a terminal.
pub(crate) fn printable(value: &str) -> String {
    let mut short: String = value.chars().take(40).flat_map(char::escape_debug).collect();
    if value.chars().nth(40).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_unprintable_values_are_shortened() {
        assert_eq!(printable("abc"), "abc");
        assert_eq!(printable("a\u{7}b"), "a\\u{7}b");
        assert_eq!(printable(&"x".repeat(50)), format!("{}…", "x".repeat(40)));
    }

    #[test]
    fn not_found_lists_every_place() {
        let error = DataError::NotFound {
            dataset: "adult".into(),
            attempts: vec![
                Attempt { place: "--data-dir `data`".into(), reason: "no file of this data set".into() },
                Attempt { place: "https://example.org/adult.data".into(), reason: "answered 404".into() },
            ],
        };
        insta::assert_snapshot!(error, @r"
        no real data for `adult`:
          - --data-dir `data`: no file of this data set
          - https://example.org/adult.data: answered 404
        ");
    }
}
