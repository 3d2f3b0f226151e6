//! Declared values, found by what a text means.

use std::collections::HashMap;

use crate::text_hash::TextMap;
use crate::value::Value;

/// A list of values with their positions, each in every spelling ([`Value::all_of`]).
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueList {
    /// As they are written.
    texts: TextMap<u16>,
    /// Bytes of the longest text.
    longest: usize,
    /// Positions of values with several spellings, by their meaning.
    meanings: HashMap<Value<'static>, u16>,
}

impl ValueList {
    /// A list of at most 2¹⁶ values.
    ///
    /// # Errors
    /// The positions of two texts that are one value, the earlier one first.
    pub(crate) fn new(values: &[String]) -> Result<Self, (usize, usize)> {
        let mut list = Self::default();
        for (place, (text, meanings)) in values.iter().zip(Value::all_of(values)).enumerate() {
            if let Some(earlier) = list.find(text) {
                return Err((usize::from(earlier), place));
            }
            list.insert(text, meanings, place as u16);
        }
        Ok(list)
    }

    /// Texts that stand for a missing value. Several may be one value, and 1 is never `true`.
    pub(crate) fn of_markers(markers: &[String]) -> Self {
        let mut list = Self::default();
        for text in markers {
            list.insert(text, vec![Value::of(text)], 0);
        }
        list
    }

    /// The position of the value that a text means.
    pub(crate) fn find(&self, text: &str) -> Option<u16> {
        // A long text need not be looked for.
        if text.len() <= self.longest
            && let Some(place) = self.texts.get(text)
        {
            return Some(*place);
        }
        // Most lists are of texts alone.
        if self.meanings.is_empty() { None } else { self.meanings.get(&Value::of(text)).copied() }
    }

    fn insert(&mut self, text: &str, meanings: Vec<Value<'_>>, place: u16) {
        self.texts.insert(text.to_owned(), place);
        self.longest = self.longest.max(text.len());
        for meaning in meanings {
            let meaning = match meaning {
                Value::Number(number) => Value::Number(number),
                Value::Truth(truth) => Value::Truth(truth),
                Value::Text(_) => continue,
            };
            self.meanings.insert(meaning, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(values: &[&str]) -> Result<ValueList, (usize, usize)> {
        ValueList::new(&values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_value_is_found_in_every_spelling() {
        type Case = (&'static [&'static str], &'static [(&'static str, Option<u16>)]);
        let cases: [Case; 6] = [
            (&["1", "2", "10"], &[("1.0", Some(0)), ("1e1", Some(2)), ("01", None), ("true", None), ("3", None)]),
            (&["false", "true"], &[("True", Some(1)), ("1", Some(1)), ("0.0", Some(0)), ("2", None), ("yes", None)]),
            (&["1", "0"], &[("TRUE", Some(0)), ("false", Some(1)), ("1.0", Some(0)), ("-0", Some(1))]),
            (&["true", "1", "x"], &[("True", Some(0)), ("1.0", Some(1)), ("X", None)]),
            (&["a", "b", "01"], &[("a", Some(0)), ("A", None), ("01", Some(2)), ("1", None)]),
            (
                &["9007199254740992", "9007199254740993"],
                &[("9007199254740993.0", Some(1)), ("9007199254740992", Some(0)), ("9007199254740994", None)],
            ),
        ];
        for (values, texts) in cases {
            let list = list(values).unwrap();
            for (text, place) in texts {
                assert_eq!(list.find(text), *place, "{text} in {values:?}");
            }
        }
    }

    #[test]
    fn two_texts_of_one_value_are_no_list() {
        assert_eq!(list(&["a", "1", "1.0"]).unwrap_err(), (1, 2));
        assert_eq!(list(&["True", "x", "true"]).unwrap_err(), (0, 2));
        assert_eq!(list(&["true", "1"]).unwrap_err(), (0, 1));
        assert_eq!(list(&["a", "a"]).unwrap_err(), (0, 1));
        assert!(list(&["1", "01", "a", "A", "true"]).is_ok());
    }

    #[test]
    fn a_marker_stands_for_all_spellings_of_its_value() {
        let markers = ValueList::of_markers(&["", "99", "99.0", "0"].map(str::to_owned));
        let found = ["", "99.00", "-0", "false", "9"].map(|text| markers.find(text).is_some());
        assert_eq!(found, [true, true, true, false, false]);
    }
}
