//! Reads the tables beside the tests: comments, a header, tab-separated fields.

#![allow(dead_code, reason = "each test uses the columns that it needs")]

use std::collections::HashMap;

/// One row by column name.
pub(crate) struct Row(HashMap<&'static str, &'static str>);

impl Row {
    /// A field that must be there.
    pub(crate) fn number(&self, column: &str) -> f64 {
        self.optional(column).unwrap_or_else(|| panic!("no {column} in {:?}", self.0))
    }

    /// A field that may be empty.
    pub(crate) fn optional(&self, column: &str) -> Option<f64> {
        let text = self.0.get(column).unwrap_or_else(|| panic!("no column {column}"));
        (!text.is_empty()).then(|| text.parse().unwrap())
    }

    /// A field as it stands.
    pub(crate) fn text(&self, column: &str) -> &'static str {
        self.0.get(column).unwrap_or_else(|| panic!("no column {column}"))
    }

    /// The whole row, for messages.
    pub(crate) fn describe(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Rows of a table.
pub(crate) fn rows(table: &'static str) -> Vec<Row> {
    let mut lines = table.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<&str> = lines.next().unwrap().split('\t').collect();
    lines.map(|line| Row(header.iter().copied().zip(line.split('\t')).collect())).collect()
}
