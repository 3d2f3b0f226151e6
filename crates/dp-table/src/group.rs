//! Groups of records, named by values of a table.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Between the levels of an intersection.
const CROSS: char = '×';
const ALL: &str = "(all)";
const OTHER: &str = "(other)";
const MISSING: &str = "(missing)";

/// A group: one level of every column of groups. Without such a column it is all records.
///
/// As text it reads `Female × Black`. Names that no value gives stand in parentheses: `(all)`,
/// `(other)`, `(missing)`. A value that reads like one of them, or like a band or an intersection,
/// stands in quotation marks. So two groups never have one text, and the text says which group it
/// is.
///
/// ```
/// use dp_table::{Group, Level};
///
/// let group = Group::new(vec![Level::Value("other".into()), Level::Other]);
/// assert_eq!(group.to_string(), "other × (other)");
/// assert_eq!("other × (other)".parse(), Ok(group));
/// assert_eq!(Group::new(vec![Level::Value("(all)".into())]).to_string(), "\"(all)\"");
/// assert_eq!(Group::all().to_string(), "(all)");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Group(Vec<Level>);

/// The value, band or lack of a value that the records of a group share in one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Level {
    /// This text.
    Value(String),
    /// A number in this band.
    Band {
        /// From this edge on; from −∞ without one.
        from: Option<f64>,
        /// To below this edge; to ∞ without one.
        below: Option<f64>,
    },
    /// A text that is not listed.
    Other,
    /// A missing value.
    Missing,
}

/// A text that names no group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no group")]
pub struct ParseGroupError(String);

impl Group {
    /// The records that have all of these levels.
    pub fn new(levels: Vec<Level>) -> Self {
        Self(levels)
    }

    /// All records.
    pub fn all() -> Self {
        Self(Vec::new())
    }

    /// One level per column of groups.
    pub fn levels(&self) -> &[Level] {
        &self.0
    }

    /// The records of this group that have another level too.
    #[must_use]
    pub(crate) fn and(&self, level: &Level) -> Self {
        Self(self.0.iter().chain([level]).cloned().collect())
    }
}

impl Display for Group {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.0.split_first() else { return f.pad(ALL) };
        let text = rest.iter().fold(first.to_string(), |text, level| format!("{text} {CROSS} {level}"));
        f.pad(&text)
    }
}

impl Display for Level {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(text) if is_plain(text) => f.write_str(text),
            Self::Value(text) => write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            Self::Band { from: None, below: None } => f.write_str("any number"),
            Self::Band { from: None, below: Some(below) } => write!(f, "below {below}"),
            Self::Band { from: Some(from), below: Some(below) } => write!(f, "{from} to below {below}"),
            Self::Band { from: Some(from), below: None } => write!(f, "from {from}"),
            Self::Other => f.write_str(OTHER),
            Self::Missing => f.write_str(MISSING),
        }
    }
}

/// Whether a value without quotation marks is read as this value.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(['(', '"']) && !text.contains(CROSS) && band(text).is_none()
}

/// The band that a text names.
fn band(text: &str) -> Option<Level> {
    let edge = |text: &str| text.parse::<f64>().ok();
    if text == "any number" {
        return Some(Level::Band { from: None, below: None });
    }
    if let Some((from, below)) = text.split_once(" to below ") {
        return Some(Level::Band { from: Some(edge(from)?), below: Some(edge(below)?) });
    }
    if let Some(below) = text.strip_prefix("below ") {
        return Some(Level::Band { from: None, below: Some(edge(below)?) });
    }
    Some(Level::Band { from: Some(edge(text.strip_prefix("from ")?)?), below: None })
}

impl FromStr for Group {
    type Err = ParseGroupError;

    fn from_str(text: &str) -> Result<Self, ParseGroupError> {
        if text == ALL {
            return Ok(Self::all());
        }
        let refuse = || ParseGroupError(text.to_owned());
        let (mut levels, mut rest) = (Vec::new(), text);
        loop {
            let (level, after) = if let Some(quoted) = rest.strip_prefix('"') {
                let (value, after) = unquoted(quoted).ok_or_else(refuse)?;
                (Level::Value(value), after)
            } else {
                let end = rest.find(CROSS).map_or(rest.len(), |cross| cross.saturating_sub(1));
                let (level, after) = rest.split_at_checked(end).ok_or_else(refuse)?;
                let level = match level {
                    OTHER => Level::Other,
                    MISSING => Level::Missing,
                    text if is_plain(text) => Level::Value(text.to_owned()),
                    text => band(text).ok_or_else(refuse)?,
                };
                (level, after)
            };
            levels.push(level);
            if after.is_empty() {
                return Ok(Self(levels));
            }
            rest = after.strip_prefix(&format!(" {CROSS} ")).ok_or_else(refuse)?;
        }
    }
}

/// A value up to its closing quotation mark, and what follows.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[place + 1..])),
            '\\' => value.push(letters.next()?.1),
            letter => value.push(letter),
        }
    }
    None
}

impl From<Group> for String {
    fn from(group: Group) -> Self {
        group.to_string()
    }
}

impl TryFrom<String> for Group {
    type Error = ParseGroupError;

    fn try_from(text: String) -> Result<Self, ParseGroupError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn level() -> impl Strategy<Value = Level> {
        let text = prop_oneof![
            "[a-c×\"\\\\() ]{0,6}",
            prop::sample::select(vec![
                "other",
                "missing",
                "all",
                "(other)",
                "(missing)",
                "(all)",
                "below 18",
                "from x"
            ])
            .prop_map(str::to_owned),
            any::<String>(),
        ];
        let edge = prop::option::of(-1e6_f64..1e6);
        prop_oneof![
            4 => text.prop_map(Level::Value),
            1 => (edge.clone(), edge).prop_map(|(from, below)| Level::Band { from, below }),
            1 => Just(Level::Other),
            1 => Just(Level::Missing),
        ]
    }

    proptest! {
        /// So two groups never have one text.
        #[test]
        fn a_text_says_which_group_it_is(levels in prop::collection::vec(level(), 0..4)) {
            let group = Group::new(levels);
            prop_assert_eq!(group.to_string().parse(), Ok(group));
        }
    }

    #[test]
    fn texts_of_no_group_are_refused() {
        for text in ["", "(most)", "\"open", "a × ", "a× b", "\"a\"b"] {
            assert_eq!(text.parse::<Group>(), Err(ParseGroupError(text.to_owned())));
        }
    }
}
