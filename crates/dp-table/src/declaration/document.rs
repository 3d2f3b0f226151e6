//! All mistakes of a document at once: each is put right in a copy, so that the next one can be found.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::entry_error::EntryError;
use super::nearest::did_you_mean;

/// More are not looked for.
const MOST: usize = 100;

/// A mistake of a configuration, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Mistake {
    /// 1-based line.
    pub line: usize,
    /// 1-based column of the line, in letters.
    pub column: usize,
    /// Key, value and what is accepted.
    pub message: String,
}

impl Mistake {
    fn at(text: &str, start: usize, message: String) -> Self {
        let before = text.get(..start).unwrap_or(text);
        let (line, column) = match before.rsplit_once('\n') {
            Some((lines, last)) => (lines.matches('\n').count() + 2, last.chars().count() + 1),
            None => (1, before.chars().count() + 1),
        };
        Self { line, column, message }
    }
}

/// A document that declares a table, and more.
pub trait Declaration: DeserializeOwned {
    /// A value that is accepted where this key is missing, so that what comes after it can be read;
    /// `None` where reading ends.
    fn stand_in(key: &str) -> Option<&'static str>;

    /// Everything that is out of range or contradicts something else; `is_whole` unless parts of the text are
    /// not what was written, and are not to be compared.
    fn mistakes(&self, is_whole: bool) -> Vec<EntryError>;
}

/// Reads a document.
///
/// # Errors
/// All of its mistakes, in the order of the text.
pub fn read<D: Declaration>(text: &str) -> Result<D, Vec<Mistake>> {
    let mut document = Document::parse(text);
    let config: Option<D> = if document.mistakes.is_empty() { document.declaration() } else { None };
    if let Some(config) = &config {
        for error in config.mistakes(document.mistakes.is_empty()) {
            document.note_entry(&error);
        }
    }
    match config {
        Some(config) if document.mistakes.is_empty() => Ok(config),
        _ => Err(document.mistakes.into_iter().collect()),
    }
}

/// Mistakes of entries, with their places in the text.
pub fn located(text: &str, errors: &[EntryError]) -> Vec<Mistake> {
    let mut document = Document::parse(text);
    for error in errors {
        document.note_entry(error);
    }
    document.mistakes.into_iter().collect()
}

struct Document<'a> {
    text: &'a str,
    table: Spanned<DeTable<'a>>,
    mistakes: BTreeSet<Mistake>,
    /// Entries that are not as they were written: other mistakes in them may follow from that.
    mended: BTreeSet<String>,
}

impl<'a> Document<'a> {
    fn parse(text: &'a str) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let of_syntax = |error: &toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            Mistake::at(text, start, error.message().replace('\n', ", "))
        };
        let mistakes = errors.iter().take(MOST).map(of_syntax).collect();
        Self { text, table, mistakes, mended: BTreeSet::new() }
    }

    /// Reads it, and puts right what cannot be read until the rest can be.
    fn declaration<D: Declaration>(&mut self) -> Option<D> {
        loop {
            let document = toml::Deserializer::from(self.table.clone());
            let error = match serde_path_to_error::deserialize(document) {
                Ok(config) => return Some(config),
                Err(error) => error,
            };
            let place = error.path().to_string();
            let error = error.into_inner();
            if self.mistakes.len() == MOST || !self.mend(D::stand_in, &place, error.span(), error.message()) {
                return None;
            }
        }
    }

    /// Notes what is wrong, and puts it right. False if it is not known how.
    fn mend(
        &mut self,
        stand_in: fn(&str) -> Option<&'static str>,
        place: &str,
        span: Option<Range<usize>>,
        message: &str,
    ) -> bool {
        let span = span.unwrap_or(0..0);
        let named = if place == "." { String::new() } else { format!("{place}: ") };
        if let Some(key) = quoted_behind(message, "missing field `") {
            let is_noted = self.mended.contains(&format!("{}.{key}", steps(place)));
            if !is_noted {
                self.note(span.start, format!("{named}`{key}` is missing"));
            }
            self.mended.insert(entry(place));
            return insert(stand_in(key), self.table.get_mut(), &steps(place), key);
        }
        if let Some(key) = quoted_behind(message, "unknown field `") {
            let known = known(message);
            let within = named.strip_suffix(&format!("{key}: ")).unwrap_or(&named);
            let within = within.strip_suffix('.').map_or_else(|| within.to_owned(), |within| format!("{within}: "));
            let meant = did_you_mean(key, known.iter().copied());
            self.note(span.start, format!("{within}unknown key `{key}`: {}", hint(meant, &known)));
            return replace(&mut DeValueMut::Table(self.table.get_mut()), &span, &mut |key, value| {
                meant.map(|meant| (Spanned::new(key.span(), Cow::Owned(meant.to_owned())), value))
            });
        }
        let (message, meant) = match quoted_behind(message, "unknown variant `") {
            Some(name) => {
                let known = known(message);
                let meant = did_you_mean(name, known.iter().copied()).map(str::to_owned);
                (format!("unknown name `{name}`: {}", hint(meant.as_deref(), &known)), meant)
            }
            None => (message.replace('\n', ", "), None),
        };
        self.note(span.start, format!("{named}{message}"));
        if meant.is_none() {
            self.mended.insert(entry(place));
            self.mended.insert(steps(place));
        }
        replace(&mut DeValueMut::Table(self.table.get_mut()), &span, &mut |key, value| {
            // Where a value was read as a whole, the span is that of a table around the name.
            let meant = meant.clone().filter(|_| matches!(value.get_ref(), DeValue::String(_)))?;
            Some((key, Spanned::new(value.span(), DeValue::String(Cow::Owned(meant)))))
        })
    }

    fn note(&mut self, start: usize, message: String) {
        self.mistakes.insert(Mistake::at(self.text, start, message));
    }

    /// Notes a mistake of an entry that is as it was written.
    fn note_entry(&mut self, error: &EntryError) {
        if !self.mended.contains(&entry(&error.place)) && self.mistakes.len() < MOST {
            let start = error.start(self.table.get_ref());
            self.note(start, error.message.clone());
        }
    }
}

/// `a[3].b` as `a.3.b`.
fn steps(place: &str) -> String {
    if place == "." { String::new() } else { place.replace('[', ".").replace(']', "") }
}

/// The table of a place: `column.3` of `column[3].low`, `label` of `label.column`.
fn entry(place: &str) -> String {
    let steps = steps(place);
    let mut steps = steps.split('.');
    let first = steps.next().unwrap_or_default();
    match steps.next().filter(|step| step.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(index) => format!("{first}.{index}"),
        None => first.to_owned(),
    }
}

fn quoted_behind<'m>(message: &'m str, start: &str) -> Option<&'m str> {
    message.strip_prefix(start)?.split('`').next()
}

/// Which name was meant, or which there are.
fn hint(meant: Option<&str>, known: &[&str]) -> String {
    meant.map_or_else(|| format!("expected {}", known.join(", ")), |meant| format!("did you mean `{meant}`?"))
}

/// The names that a message says are expected.
pub(super) fn known(message: &str) -> Vec<&str> {
    let expected = message.split_once("`, expected ").map_or("", |(_, expected)| expected);
    expected.split('`').skip(1).step_by(2).collect()
}

/// Puts a value that is accepted where a key is missing.
fn insert(value: Option<&'static str>, table: &mut DeTable<'_>, place: &str, key: &str) -> bool {
    let Some(value) = value else { return false };
    let Ok(value) = DeValue::parse(value) else { return false };
    let mut inner = DeValueMut::Table(table);
    for step in place.split('.').filter(|step| !step.is_empty()) {
        let Some(next) = inner.step(step) else { return false };
        inner = next;
    }
    match inner {
        DeValueMut::Table(table) => table.insert(Spanned::new(0..0, Cow::Owned(key.to_owned())), value).is_none(),
        DeValueMut::Array(_) => false,
    }
}

/// A key with its value.
type Item<'a> = (Spanned<Cow<'a, str>>, Spanned<DeValue<'a>>);

enum DeValueMut<'t, 'a> {
    Table(&'t mut DeTable<'a>),
    Array(&'t mut DeArray<'a>),
}

impl<'t, 'a> DeValueMut<'t, 'a> {
    fn of(value: &'t mut DeValue<'a>) -> Option<Self> {
        match value {
            DeValue::Table(table) => Some(Self::Table(table)),
            DeValue::Array(array) => Some(Self::Array(array)),
            _ => None,
        }
    }

    fn step(self, step: &str) -> Option<Self> {
        match self {
            Self::Table(table) => Self::of(table.get_mut(step)?.get_mut()),
            Self::Array(array) => Self::of(array.get_mut(step.parse::<usize>().ok()?)?.get_mut()),
        }
    }
}

/// Replaces the item whose key, or whose value, has this span, or leaves it out; an element of a list is
/// left out. False if there is none.
fn replace<'a>(
    within: &mut DeValueMut<'_, 'a>,
    span: &Range<usize>,
    make: &mut dyn FnMut(Spanned<Cow<'a, str>>, Spanned<DeValue<'a>>) -> Option<Item<'a>>,
) -> bool {
    match within {
        DeValueMut::Table(table) => {
            let is_it = |(key, value): &(&Spanned<Cow<'a, str>>, &Spanned<DeValue<'a>>)| {
                key.span() == *span || value.span() == *span
            };
            let found = table.iter().find(is_it).map(|(key, _)| key.get_ref().to_string());
            if let Some((key, value)) = found.and_then(|key| table.remove_entry(&*key)) {
                if let Some((key, value)) = make(key, value).filter(|(key, _)| !table.contains_key(&**key.get_ref())) {
                    table.insert(key, value);
                }
                return true;
            }
            let mut inner = table.iter_mut().filter_map(|(_, value)| DeValueMut::of(value.get_mut()));
            inner.any(|mut inner| replace(&mut inner, span, make))
        }
        DeValueMut::Array(array) => {
            if let Some(at) = array.iter().position(|value| value.span() == *span) {
                let kept = array.iter().enumerate().filter(|(place, _)| *place != at);
                **array = kept.map(|(_, value)| value.clone()).collect();
                return true;
            }
            let mut inner = array.iter_mut().filter_map(|value| DeValueMut::of(value.get_mut()));
            inner.any(|mut inner| replace(&mut inner, span, make))
        }
    }
}
