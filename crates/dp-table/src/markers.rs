//! Texts that stand for a missing value.

use std::collections::HashSet;

use crate::value::Value;
use crate::value_list::ValueList;

/// Markers that are meant as they are written: in other letters they are common values.
const EXACT: [&str; 1] = ["None"];

/// A list of markers, each in every spelling ([`Value`](crate::Value)) and in small and capital
/// letters alike. `None`, as Python writes it, is only itself: `none` is a common value.
#[derive(Debug, Clone)]
pub(crate) struct Markers {
    list: ValueList,
    /// In small letters.
    folded: HashSet<String>,
    longest: usize,
    /// Whether some spelling of a marker may begin with a byte: most texts begin with another one.
    beginnings: Beginnings,
}

#[derive(Debug, Clone)]
struct Beginnings([bool; 256]);

impl Beginnings {
    fn of(markers: &[String]) -> Self {
        // Small and capital letters beyond ASCII are alike in many ways.
        let mut known: [bool; 256] = std::array::from_fn(|byte| byte >= 128);
        for marker in markers {
            let meaning = match Value::of(marker) {
                Value::Number(_) => "+-.0123456789",
                Value::Truth(true) => "Tt",
                Value::Truth(false) => "Ff",
                Value::Text(_) => "",
            };
            let first = marker.bytes().next();
            let letters = first.iter().flat_map(|byte| [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]);
            letters.chain(meaning.bytes()).for_each(|byte| known[usize::from(byte)] = true);
        }
        Self(known)
    }

    fn may_begin(&self, text: &str) -> bool {
        text.as_bytes().first().is_none_or(|byte| self.0[usize::from(*byte)])
    }
}

impl Markers {
    pub(crate) fn new<S: AsRef<str>>(markers: &[S]) -> Self {
        let texts: Vec<String> = markers.iter().map(|marker| marker.as_ref().to_owned()).collect();
        let folded = texts.iter().filter(|text| !EXACT.contains(&text.as_str()));
        let folded: HashSet<String> = folded.map(|text| text.to_lowercase()).collect();
        let longest = folded.iter().map(String::len).max().unwrap_or(0);
        Self { list: ValueList::of_markers(&texts), folded, longest, beginnings: Beginnings::of(&texts) }
    }

    /// Whether a text stands for a missing value.
    pub(crate) fn contain(&self, text: &str) -> bool {
        self.beginnings.may_begin(text) && (self.contain_as_written(text) || self.contain_folded(text))
    }

    /// Whether it does as it is written, or as another spelling of a number or a truth value.
    pub(crate) fn contain_as_written(&self, text: &str) -> bool {
        self.list.find(text).is_some()
    }

    fn contain_folded(&self, text: &str) -> bool {
        // Most texts are numbers, or longer.
        let is_like_one = text.len() <= self.longest && text.contains(|letter: char| letter.is_alphabetic());
        is_like_one && self.folded.contains(&text.to_lowercase())
    }
}

/// Spellings of a marker in small and capital letters: all of a short one, of a longer one those that
/// are common.
pub fn spellings_of_marker(marker: &str) -> Vec<String> {
    const MOST_LETTERS: usize = 6;
    let n_letters = marker.chars().filter(char::is_ascii_alphabetic).count();
    if n_letters == 0 || EXACT.contains(&marker) {
        return vec![marker.to_owned()];
    }
    let (lower, upper) = (marker.to_lowercase(), marker.to_uppercase());
    if n_letters > MOST_LETTERS || !marker.is_ascii() {
        let first = marker.chars().next().map_or(0, char::len_utf8);
        let capitalised = marker[..first].to_uppercase() + &lower[lower.chars().next().map_or(0, char::len_utf8)..];
        return vec![marker.to_owned(), lower, upper, capitalised];
    }
    (0..1_u32 << n_letters)
        .map(|choice| {
            let mut place = 0;
            let spelled = lower.chars().map(|letter| {
                let is_capital = letter.is_ascii_alphabetic() && choice >> place & 1 == 1;
                place += u32::from(letter.is_ascii_alphabetic());
                if is_capital { letter.to_ascii_uppercase() } else { letter }
            });
            spelled.collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_by_hand() {
        let mut spelled = spellings_of_marker("n/a");
        spelled.sort_unstable();
        assert_eq!(spelled, ["N/A", "N/a", "n/A", "n/a"]);
        assert_eq!(spellings_of_marker("None"), ["None"]);
        assert_eq!(spellings_of_marker("unbekannt"), ["unbekannt", "unbekannt", "UNBEKANNT", "Unbekannt"]);
    }

    #[test]
    fn markers_are_meant_in_any_case() {
        let markers = Markers::new(&["", "NA", "n/a", "None", "-9", "unbekannt"]);
        for text in ["", "na", "Na", "N/A", "None", "-9.0", "Unbekannt", "UNBEKANNT"] {
            assert!(markers.contain(text), "{text}");
        }
        for text in ["none", "NONE", "nan", "9", "unbekannte"] {
            assert!(!markers.contain(text), "{text}");
        }
        // Other spellings begin with other letters.
        let markers = Markers::new(&["0.5", "TRUE", "ärger", "kein"]);
        for text in [".5", "5e-1", "+0.50", "true", "Ärger", "KEIN", "\u{212a}ein"] {
            assert!(markers.contain(text), "{text}");
        }
        assert!(!markers.contain("") && !markers.contain("0.6") && !markers.contain("false"));
    }
}
