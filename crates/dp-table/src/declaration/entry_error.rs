//! Faults of a configuration, each with its key.

use std::fmt::Display;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A fault at a key of the document.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryError {
    /// Keys and positions from the top, between points: `column.3.low`.
    pub place: String,
    /// Key, value and what is accepted.
    pub message: String,
}

impl EntryError {
    /// A fault at this key.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }

    /// A value that is not accepted; the place is what it is called.
    pub fn value(place: &str, value: impl Display, expected: impl Display) -> Self {
        Self::new(place, format!("{place} = {value}: expected {expected}"))
    }

    /// The same fault, seen from an enclosing document.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self { place: format!("{place}.{}", self.place), message: self.message }
    }

    /// Offset of the key in a document, or of the innermost enclosing table that exists.
    pub(super) fn start(&self, document: &DeTable<'_>) -> usize {
        let mut steps = self.place.split('.');
        let item = |table: &'_ DeTable<'_>, step: &str| table.get_key_value(step).map(|(key, _)| key.span().start);
        let first = steps.next().unwrap_or_default();
        let mut start = item(document, first).unwrap_or(0);
        let mut value = document.get(first);
        for step in steps {
            let (span, inner) = match value.map(Spanned::get_ref) {
                Some(DeValue::Table(table)) => (item(table, step), table.get(step)),
                Some(DeValue::Array(values)) => {
                    let found = step.parse().ok().and_then(|index: usize| values.get(index));
                    (found.map(|value| value.span().start), found)
                }
                _ => break,
            };
            let Some(span) = span else { break };
            (start, value) = (span, inner);
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_they_are() {
        let text = "steps = 1\n[method]\nname = \"x\"\n# steps = 2\nsteps = 3\n[[column]]\nname = \"steps\"\n\
                    [[column]]\nlow = 1\n";
        let document = DeTable::parse(text).unwrap();
        let start = |place: &str| EntryError::new(place, "").start(document.get_ref());
        let rest = |place: &str| text[start(place)..].lines().next().unwrap_or_default();
        assert_eq!((rest("steps"), rest("method.steps")), ("steps = 1", "steps = 3"));
        assert_eq!((rest("column.1.low"), rest("column.0.low"), rest("method")), ("low = 1", "[[column]]", "method]"));
        assert_eq!(EntryError::new("low", "").within("column.1"), EntryError::new("column.1.low", ""));
        assert_eq!(rest("nowhere"), "steps = 1");
    }
}
