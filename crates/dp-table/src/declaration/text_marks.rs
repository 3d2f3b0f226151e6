//! The characters that divide texts into columns.

use serde::{Deserialize, Serialize};

use crate::files::Csv;
use crate::look_alikes::is_invisible;

/// What stands between and around the fields of text files, where it is not found by ending and first line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextMarks {
    /// Between two fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// Around a field that holds delimiters; an empty text for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

/// A mark that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongMark {
    /// Which of the two.
    pub key: &'static str,
    /// What it was.
    pub value: String,
    /// What is accepted.
    pub expected: &'static str,
}

impl TextMarks {
    /// Whether none is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Text with these marks, and with its own where none is given.
    ///
    /// # Errors
    /// Names the mark that is none.
    pub fn of_csv(&self, csv: Csv) -> Result<Csv, WrongMark> {
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
}

fn byte(key: &'static str, letter: char) -> Result<u8, WrongMark> {
    let byte = u8::try_from(letter).ok().filter(|byte| byte.is_ascii() && !b"\r\n".contains(byte));
    byte.ok_or_else(|| WrongMark {
        key,
        value: if letter.is_control() || is_invisible(letter) {
            letter.escape_unicode().to_string()
        } else {
            letter.to_string()
        },
        expected: "an ASCII character",
    })
}
