//! A first configuration, read from a table to spare typing. Everything that comes from the records
//! says so.

use std::fmt::Write as _;

use dp_table::{
    Bins, Column, ColumnGuess, Guess, GuessedKind, MISSING_MARKERS, StrayTexts, TableFiles, Value, is_invisible,
    thousands,
};

use serde::Deserialize as _;
use serde::de::value::StrDeserializer;

use crate::config::read::absolute;
use crate::config::{LEAST_DELTA, MethodEntry, ModelEntry, ModelKind};
use crate::error::{FairdpError, Result};
use crate::printable::is_hidden;
use crate::recipe::Recipe;

/// Declarations of a person about the table.
#[derive(Debug, Clone, Default)]
pub struct InitOptions {
    /// The column to predict.
    pub label: String,
    /// Its positive value, of two.
    pub positive: Option<String>,
    /// Columns whose values are groups.
    pub groups: Vec<String>,
    /// Whether they are inputs too.
    pub group_as_input: bool,
    /// The column that says whose record it is.
    pub unit: Option<String>,
    /// Records of a unit that are used.
    pub max_records_per_unit: Option<u64>,
    /// ε; 1 unless given.
    pub epsilon: Option<f64>,
    /// δ; at most 1e-5 and half of one over the number of records unless given.
    pub delta: Option<f64>,
    /// Share of the records for the test; a fifth unless given.
    pub test_fraction: Option<f64>,
    /// `model.kind`; `auto` unless given.
    pub model: Option<String>,
    /// `method.name`; `auto` unless given.
    pub method: Option<String>,
    /// Whether training goes ahead on what was read here.
    pub accept_uncovered: bool,
}

impl InitOptions {
    /// All that can be said before the table is read.
    fn check(&self) -> Result<()> {
        let refuse = |option: &str, value: String, expected: &str| Err(FairdpError::invalid(option, value, expected));
        match (self.epsilon, self.delta, self.test_fraction) {
            (Some(epsilon), ..) if !(epsilon.is_finite() && epsilon > 0.0) => {
                return refuse("--epsilon", epsilon.to_string(), "a finite number above 0");
            }
            (_, Some(delta), _) if !(LEAST_DELTA..1.0).contains(&delta) => {
                return refuse("--delta", delta.to_string(), &format!("a number from {LEAST_DELTA:e} to below 1"));
            }
            (.., Some(fraction)) if !(0.0..=0.9).contains(&fraction) => {
                return refuse("--test-fraction", fraction.to_string(), "0 to 0.9");
            }
            _ => {}
        }
        if self.max_records_per_unit == Some(0) {
            return refuse("--max-records-per-unit", "0".into(), "at least 1");
        }
        if self.unit.as_ref() == Some(&self.label) {
            return refuse("--unit", self.label.clone(), "another column than the label");
        }
        for (place, group) in self.groups.iter().enumerate() {
            if *group == self.label || self.groups[..place].contains(group) {
                return refuse("--group", group.clone(), "a column that is neither the label nor another group");
            }
        }
        let kind = self.model.as_deref().map_or(Ok(ModelKind::Auto), |kind| {
            ModelKind::deserialize(StrDeserializer::<serde::de::value::Error>::new(kind))
                .map_err(|_| FairdpError::invalid("--model", kind, "auto, additive or mlp"))
        })?;
        let method = MethodEntry { name: self.method.clone(), ..MethodEntry::default() };
        let model = ModelEntry { kind, ..ModelEntry::default() };
        let records = self.max_records_per_unit.unwrap_or(1);
        let name = self.method.as_deref().unwrap_or("auto");
        Recipe::new(&model, &method, !self.groups.is_empty(), records).map(drop).map_err(|error| {
            let reason = error.message;
            let reason = reason.strip_prefix(&format!("method.name = \"{name}\": ")).unwrap_or(&reason);
            FairdpError::invalid("--method", name, format!("a method that fits: {reason}"))
        })
    }
}

/// The most remarks on one column, and texts in one; the most characters of a text.
const MOST_REMARKS: usize = 5;
const MOST_SHOWN: usize = 40;
/// The most groups that a column is proposed for: of more, each has few records.
const MOST_GROUPS: usize = 100;
/// From this number of rows on, which is public, finer bins are worth their noise.
const MANY_ROWS: u64 = 20_000;
const MARK: &str = "from = \"data\"  # read from the records: check it, and add public = true";
const COMMAS: &str = "# its values look like numbers with commas, which are texts here: to have them read as numbers, write 1234.5, \
                      neither 1234,5 nor 1,234.5";

/// A configuration for a table, as text.
///
/// # Errors
/// [`FairdpError::Table`] if the table cannot be read; [`FairdpError::InvalidParameter`] for
/// options out of range or that contradict each other, before the table is read, for columns that
/// it does not have, and for a label that is no category.
pub fn init(tables: &[String], options: &InitOptions) -> Result<String> {
    options.check()?;
    let files = TableFiles::new(tables)?;
    let guess = Guess::of(&mut files.open()?)?;
    if guess.rows == 0 {
        let expected =
            guess.first_broken.map_or("a table with rows".into(), |first| format!("rows that can be read: {first}"));
        return Err(FairdpError::invalid("the table", tables.join(" "), expected));
    }
    let find = |name: &str, option: &str| {
        guess.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let known: Vec<&str> = guess.columns.iter().map(|column| column.name.as_str()).collect();
            let cause = if guess.names_like_values().is_empty() {
                ""
            } else {
                "; the first line looks like a record, is the header missing?"
            };
            FairdpError::invalid(option, name, format!("a column of the table: {}{cause}", known.join(", ")))
        })
    };
    let mut text = String::from(
        "# Declares a table for `fairdp fit`. Entries with `from = \"data\"` were read from the records and are covered by no ε\n\
         # until you declare them: check that each is known without the records, then add `public = true`. For numbers\n\
         # `bounds = \"private\"` in place of low, high and bins pays for the bounds instead.\nversion = 1\n",
    );
    let _ = writeln!(
        text,
        "accept_uncovered = {}  # true: train all the same; the statement then names them first",
        options.accept_uncovered
    );
    let _ = writeln!(text, "group_as_input = {}  # whether columns of groups may be inputs", options.group_as_input);
    text.push_str("fairness = \"none\"  # or \"worst-group\", \"equalized-odds\": thresholds by group, paid for\n");

    let paths = tables.iter().map(|table| absolute(table)).collect::<Result<Vec<String>>>()?;
    let _ = writeln!(text, "\n[table]\nfiles = {}", list(&paths));
    let _ = writeln!(
        text,
        "missing = {}  # texts that stand for a missing value",
        list(&MISSING_MARKERS.map(str::to_owned))
    );
    text.push_str("bad_rows = \"refuse\"  # or \"drop\": rows that do not fit are blanked and counted, in private\n");
    remarks_on_rows(&mut text, &guess);

    let label = find(&options.label, "--label")?;
    let classes = classes(label, options.positive.as_deref())?;
    let _ = writeln!(
        text,
        "\n[label]\ncolumn = {}\nclasses = {}  # of two, the last is positive\n{MARK}",
        quoted(&options.label),
        list(&classes)
    );
    remarks(&mut text, label);
    if label.missing > 0 {
        let _ = writeln!(
            text,
            "# {} rows have no label: leave them out of the table, or set table.bad_rows = \"drop\"",
            label.missing
        );
    }

    if let Some(delta) = options.delta.filter(|delta| *delta >= 1.0 / guess.rows as f64) {
        let expected = format!("below one over the number of records, {:.1e}", 1.0 / guess.rows as f64);
        return Err(FairdpError::invalid("--delta", format!("{delta:e}"), expected));
    }
    let epsilon = options.epsilon.unwrap_or(1.0);
    let delta = options.delta.unwrap_or_else(|| default_delta(guess.rows));
    let _ =
        writeln!(text, "\n[privacy]\nepsilon = {epsilon}\ndelta = {delta:e}  # below one over the number of records");
    let fraction = options.test_fraction.unwrap_or(0.2);
    let _ = writeln!(text, "\n[test]\nfraction = {fraction}  # of the records; or files = [\"…\"]");
    if let Some(unit) = &options.unit {
        find(unit, "--unit")?;
        let most = options.max_records_per_unit.unwrap_or(1);
        let _ = writeln!(
            text,
            "\n[unit]\ncolumn = {}\nmax_records = {most}  # records of one unit that are used",
            quoted(unit)
        );
    }
    let model = quoted(options.model.as_deref().unwrap_or("auto"));
    let _ = writeln!(
        text,
        "\n[model]\nkind = {model}  # \"additive\": one curve per number, one value per category; \"mlp\""
    );
    text.push_str("decision = \"compromise\"  # or \"accuracy\", \"balanced\"\n");
    let method = quoted(options.method.as_deref().unwrap_or("auto"));
    let _ = writeln!(text, "\n[method]\nname = {method}  # or a name from `fairdp methods`");
    for name in &options.groups {
        group(&mut text, find(name, "--group")?)?;
    }
    for found in &guess.columns {
        let is_group = options.groups.contains(&found.name) && !options.group_as_input;
        if found.name != options.label && Some(&found.name) != options.unit.as_ref() && !is_group {
            column(&mut text, found, guess.rows >= MANY_ROWS);
        }
    }
    Ok(text)
}

/// Oddities in the rows and the header of a table.
fn remarks_on_rows(text: &mut String, guess: &Guess) {
    if guess.broken > 0 {
        let _ = writeln!(
            text,
            "# rows of another number of fields, or that are not UTF-8: {}; `fit` names the first",
            guess.broken
        );
    }
    if guess.not_utf8 > 0 {
        let _ = writeln!(
            text,
            "# {} of {} rows are not UTF-8 text and were not read here: convert the file, from Latin-1 for example by \
             iconv -f ISO-8859-1 -t UTF-8",
            thousands(guess.not_utf8),
            thousands(guess.rows + guess.broken)
        );
    }
    if let [first, ..] = guess.names_like_values()[..] {
        let _ = writeln!(
            text,
            "# the first line looks like a record, not like a header: {} is a value of its column. Without a header the table \
             needs one",
            shown(first)
        );
    }
}

/// Oddities in the texts of a column.
fn remarks(text: &mut String, found: &ColumnGuess) {
    if let Some(StrayTexts { count, of, first, line }) = &found.words {
        let what = if *count == 1 {
            format!("is no number: {} in line {line}", shown(first))
        } else {
            format!("are no numbers, the first {} in line {line}", shown(first))
        };
        let advice = "correct it, list it in table.missing, or set table.bad_rows = \"drop\"";
        let _ = writeln!(text, "# {} of {} values {what}: {advice}", thousands(*count), thousands(*of));
    }
    for alike in found.alike.iter().take(MOST_REMARKS) {
        let texts: Vec<String> = alike.texts.iter().take(MOST_REMARKS).map(|text| shown(text)).collect();
        let differences: Vec<String> = alike.differ_by.iter().map(ToString::to_string).collect();
        let is_one = alike.texts.iter().all(|other| Value::of(other) == Value::of(&alike.texts[0]));
        let meaning = if is_one { "they are one value" } else { "each is a value of its own" };
        let _ = writeln!(text, "# {} differ by {} alone; {meaning}", texts.join(", "), differences.join(" and "));
    }
    if found.alike.len() > MOST_REMARKS {
        let _ = writeln!(text, "# and {} more values have such twins", found.alike.len() - MOST_REMARKS);
    }
}

/// A text for a comment, in which everything can be seen.
fn shown(text: &str) -> String {
    let mut shown = String::from("`");
    for letter in text.chars().take(MOST_SHOWN) {
        match letter {
            ' ' => shown.push(' '),
            letter if is_invisible(letter) || letter.is_whitespace() || letter.is_control() => {
                let _ = write!(shown, "{}", letter.escape_unicode());
            }
            letter => shown.push(letter),
        }
    }
    if text.chars().nth(MOST_SHOWN).is_some() {
        shown.push('…');
    }
    shown + "`"
}

/// Sorted, numbers as numbers; the positive one last.
fn classes(label: &ColumnGuess, positive: Option<&str>) -> Result<Vec<String>> {
    let mut classes: Vec<String> = label.values.iter().map(|(value, _)| value.clone()).collect();
    if !(2..=100).contains(&classes.len()) {
        let found = match label.distinct {
            None => "more than a thousand values".to_owned(),
            Some(1) => "one value".to_owned(),
            Some(n) => format!("{n} values"),
        };
        return Err(FairdpError::invalid(
            "--label",
            format!("{} ({found})", label.name),
            "a column of 2 to 100 values",
        ));
    }
    if let Some(positive) = positive {
        if classes.len() > 2 {
            let found = format!("{positive} (of {} classes)", classes.len());
            return Err(FairdpError::invalid("--positive", found, "a value of a column that has two"));
        }
        let is_positive = |class: &String| Value::of(class) == Value::of(positive);
        let Some(place) = classes.iter().position(is_positive) else {
            return Err(FairdpError::invalid("--positive", positive, format!("one of {}", classes.join(", "))));
        };
        let positive = classes.remove(place);
        classes.push(positive);
    }
    Ok(classes)
}

/// The δ that stands where none is given: a power of ten, at most 1e-5, below half of one over the
/// number of records.
pub fn default_delta(rows: u64) -> f64 {
    // A quotient is the number that is printed; tenths of tenths are not.
    let mut inverse = 1e5;
    while 1.0 / inverse > 0.5 / rows.max(1) as f64 {
        inverse *= 10.0;
    }
    1.0 / inverse
}

fn group(text: &mut String, found: &ColumnGuess) -> Result<()> {
    let _ = writeln!(text, "\n[[group]]\ncolumn = {}", quoted(&found.name));
    let is_number =
        matches!(found.kind, GuessedKind::Integer | GuessedKind::Number) && found.distinct.is_none_or(|n| n > 20);
    match found.range {
        Some((low, high)) if is_number => {
            // Not by their difference, which may be infinite.
            let edges: Vec<String> =
                [0.25, 0.5, 0.75].iter().map(|share| number(low * (1.0 - share) + high * share)).collect();
            let _ = writeln!(text, "edges = [{}]  # bands of a number", edges.join(", "));
        }
        _ if found.distinct.is_none_or(|n| n > MOST_GROUPS) => {
            let n = found.distinct.map_or_else(|| "more than a thousand".to_owned(), |n| n.to_string());
            let expected = format!("a column of at most {MOST_GROUPS} different texts, or of numbers");
            return Err(FairdpError::invalid("--group", format!("{} ({n} values)", found.name), expected));
        }
        _ => {
            let values: Vec<String> = found.values.iter().map(|(value, _)| value.clone()).collect();
            let _ = writeln!(text, "values = {}\nother = true  # all other texts are a group", list(&values));
        }
    }
    remarks(text, found);
    let _ = writeln!(text, "missing = {}  # missing values are a group\n{MARK}", found.missing > 0);
    Ok(())
}

fn column(text: &mut String, found: &ColumnGuess, is_long: bool) {
    let _ = writeln!(text, "\n[[column]]\nname = {}", quoted(&found.name));
    match found.column() {
        Column::Number { low, high, bins, missing } => {
            let _ = writeln!(text, "kind = \"number\"\nlow = {}\nhigh = {}", number(low), number(high));
            let bins = match bins {
                Bins::Equal(16) if is_long => "32".to_owned(),
                Bins::Equal(n) => n.to_string(),
                Bins::Log(16) if is_long => "{ log = 32 }".to_owned(),
                Bins::Log(n) => format!("{{ log = {n} }}"),
                Bins::Edges(edges) => format!("{{ edges = {edges:?} }}"),
            };
            let _ = writeln!(text, "bins = {bins}");
            if let Some(missing) = missing {
                let _ =
                    writeln!(text, "missing = {}  # stands for a missing value, beside an indicator", number(missing));
            }
        }
        Column::Category { values, other, missing } => {
            let _ =
                writeln!(text, "kind = \"category\"\nvalues = {}\nother = {other}\nmissing = {missing}", list(&values));
        }
        Column::Dropped => {
            let why = match found {
                ColumnGuess { kind: GuessedKind::Constant, .. } => "one value, or none",
                ColumnGuess { name, .. } if name.starts_with("Unnamed: 0") => "an index, as pandas names it",
                ColumnGuess { range: Some(_), .. } => {
                    "numbers of the rows, or too large or too close together to be told apart"
                }
                _ => "more than 100 different texts",
            };
            let _ = writeln!(text, "kind = \"drop\"  # {why}");
        }
    }
    remarks(text, found);
    if found.has_commas {
        let _ = writeln!(text, "{COMMAS}");
    }
    let _ = writeln!(text, "{MARK}");
}

/// A number as TOML reads it: always with a fraction or an exponent, since integers end at 2⁶³.
fn number(value: f64) -> String {
    format!("{value:?}")
}

fn list(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[{}]", values.join(", "))
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            letter if is_hidden(letter) => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_quoting() {
        for name in [
            "plain",
            "with \"quotes\"",
            "back\\slash",
            "line\nbreak",
            "tab\t",
            "é",
            "\u{1b}[31m",
            "\u{202e}x",
            "\u{e0041}",
        ] {
            let document: toml::Table = format!("x = {}", quoted(name)).parse().unwrap();
            assert_eq!(document["x"].as_str(), Some(name));
        }
    }

    #[test]
    fn groups_of_huge_numbers_are_read_back() {
        for (low, high) in [("4", "7e37"), ("0", "99999999999999999999")] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("t.csv");
            let mut rows = vec!["g,a,y".to_owned()];
            rows.extend((0..40).map(|i| format!("{},x{},{}", [low, high, "5", "6"][i % 4], i % 3, i % 2)));
            rows.extend((0..30).map(|i| format!("{}.5,x1,1", i + 7)));
            std::fs::write(&path, rows.join("\n") + "\n").unwrap();
            let options = InitOptions { label: "y".into(), groups: vec!["g".into()], ..InitOptions::default() };
            let text = init(&[path.to_str().unwrap().to_owned()], &options).unwrap();
            assert!(text.contains("edges = ["), "{text}");
            crate::config::Config::from_toml(&text, std::path::Path::new("fairdp.toml")).unwrap();
        }
    }

    #[test]
    fn numbers_with_commas_are_pointed_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let mut rows = vec!["income;few;thousands;note;y".to_owned()];
        rows.extend(
            (0..300).map(|i| format!("{i},5;{}{};{},{i:03}.5;a, {i};{}", i % 9, [",5", ""][i % 2], i % 7, i % 2)),
        );
        std::fs::write(&path, rows.join("\n") + "\n").unwrap();
        let options = InitOptions { label: "y".into(), ..InitOptions::default() };
        let text = init(&[path.to_str().unwrap().to_owned()], &options).unwrap();
        let marked: Vec<bool> = text.split("[[column]]").skip(1).map(|column| column.contains(COMMAS)).collect();
        assert_eq!(marked, [true, true, true, false], "{text}");
    }

    #[test]
    fn what_cannot_be_fitted_is_said_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let mut rows = vec!["y,kind,person".to_owned()];
        rows.extend((0..300).map(|i| format!("{},{},p{i}", ["a", "b", ""][i % 3], i % 3)));
        std::fs::write(&path, rows.join("\n") + "\n").unwrap();
        let propose = |options: InitOptions| init(&[path.to_str().unwrap().to_owned()], &options);
        let of = |label: &str| InitOptions { label: label.into(), ..InitOptions::default() };
        assert!(propose(of("y")).unwrap().contains("\n# 100 rows have no label"));
        for (options, expected) in [
            (InitOptions { delta: Some(0.01), ..of("y") }, "--delta = 1e-2: expected below one over"),
            (InitOptions { positive: Some("1".into()), ..of("kind") }, "--positive = 1 (of 3 classes)"),
            (InitOptions { groups: vec!["person".into()], ..of("y") }, "--group = person (300 values)"),
        ] {
            let message = propose(options).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn deltas_are_below_one_over_n() {
        assert_eq!((default_delta(100), default_delta(45_222)), (1e-5, 1e-5));
        assert_eq!((default_delta(60_000).to_string(), default_delta(10_000_000)), ("0.000001".into(), 1e-8));
    }
}
