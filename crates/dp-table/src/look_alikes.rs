//! Texts that a reader takes for one value and a program does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::value::Value;

/// A way in which texts that look alike can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpellingDifference {
    /// Small and capital letters.
    Case,
    /// Blanks, their number and their kind.
    Blanks,
    /// Characters without a width, and signs of direction.
    Invisible,
    /// Letters with marks, as one character or as several.
    Composition,
    /// The spelling of a number.
    Number,
}

/// Different texts that a reader takes for one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LookAlikes {
    /// The texts, sorted.
    pub texts: Vec<String>,
    /// The ways in which they differ.
    pub differ_by: Vec<SpellingDifference>,
}

const ALL: [SpellingDifference; 5] = [
    SpellingDifference::Invisible,
    SpellingDifference::Blanks,
    SpellingDifference::Composition,
    SpellingDifference::Case,
    SpellingDifference::Number,
];

impl SpellingDifference {
    /// Removes the difference from a text.
    fn remove(self, text: &str) -> String {
        match self {
            Self::Invisible => text.chars().filter(|letter| !is_invisible(*letter)).collect(),
            Self::Blanks => text.chars().filter(|letter| !letter.is_whitespace()).collect(),
            Self::Composition => text.nfc().collect(),
            // Twice, for capital letters that have no small one: ẞ and SS.
            Self::Case => text.to_uppercase().to_lowercase(),
            Self::Number => Value::of_identifier(text).canonical(),
        }
    }
}

impl fmt::Display for SpellingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Case => "small and capital letters",
            Self::Blanks => "blanks",
            Self::Invisible => "invisible characters",
            Self::Composition => "composed and decomposed letters",
            Self::Number => "the spelling of a number",
        })
    }
}

/// Groups of different texts that look alike.
pub(crate) fn look_alikes<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<LookAlikes> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for text in texts {
        groups.entry(without(text, &ALL)).or_default().push(text);
    }
    let groups = groups.into_values().filter(|texts| texts.len() > 1);
    groups
        .map(|mut texts| {
            texts.sort_unstable();
            // A difference is needed if the texts stay different without it.
            let is_needed = |difference: &SpellingDifference| {
                let others: Vec<SpellingDifference> = ALL.into_iter().filter(|other| other != difference).collect();
                texts.iter().map(|text| without(text, &others)).collect::<BTreeSet<_>>().len() > 1
            };
            let mut differ_by: Vec<SpellingDifference> = ALL.into_iter().filter(is_needed).collect();
            if differ_by.is_empty() {
                // Two differences are about the same letters.
                let is_all = |difference: &SpellingDifference| {
                    texts.iter().map(|text| difference.remove(text)).collect::<BTreeSet<_>>().len() == 1
                };
                differ_by.extend(ALL.into_iter().find(is_all));
            }
            differ_by.sort_unstable();
            LookAlikes { texts: texts.into_iter().map(str::to_owned).collect(), differ_by }
        })
        .collect()
}

fn without(text: &str, differences: &[SpellingDifference]) -> String {
    differences.iter().fold(text.to_owned(), |text, difference| difference.remove(&text))
}

/// Whether a character leaves no trace on paper: soft hyphens, joiners, marks of direction and of
/// byte order, variation selectors, fillers, control characters.
pub fn is_invisible(letter: char) -> bool {
    let is_blank = letter.is_whitespace();
    matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
    ) || letter.is_control() && !is_blank
}

#[cfg(test)]
mod tests {
    use super::SpellingDifference::{Blanks, Case, Composition, Invisible, Number};
    use super::*;

    #[test]
    fn texts_that_look_alike_are_told_with_their_difference() {
        let found = |texts: &[&str]| {
            let mut found = look_alikes(texts.iter().copied()).into_iter().map(|alike| alike.differ_by);
            (found.next(), found.next())
        };
        for (texts, expected) in [
            (&["clerk", "Clerk", "cook"][..], &[Case][..]),
            (&["STRASSE", "Straße"], &[Case]),
            (&["New York", "New  York"], &[Blanks]),
            (&["New York", "New\u{a0}York", "NewYork"], &[Blanks]),
            (&["clerk", "cl\u{200b}erk"], &[Invisible]),
            (&["clerk\u{feff}", "clerk"], &[Invisible]),
            (&["caf\u{e9}", "cafe\u{301}"], &[Composition]),
            (&["1", "1.0", "2"], &[Number]),
            (&["1", "01"], &[Number]),
            (&["True", "true"], &[Case]),
            (&["Caf\u{e9} A", "cafe\u{301}A"], &[Case, Blanks, Composition]),
        ] {
            assert_eq!(found(texts), (Some(expected.to_vec()), None), "{texts:?}");
        }
        let apart = ["a", "b", "ab", "1", "2", "10", "-1", "cafe", "caf\u{e9}", "", "clerk 1", "clerk 2"];
        assert_eq!(found(&apart), (None, None));
        let two = look_alikes(["b", "A", "B", "a", "c"].into_iter());
        assert_eq!(two.iter().map(|alike| alike.texts.join(" ")).collect::<Vec<_>>(), ["A a", "B b"]);
    }
}
