//! The entry of the label: classes or a number.

use std::fmt::Write as _;

use dp_table::{ColumnGuess, GuessedKind, Value};

use super::MARK;
use super::columns::number_format;
use super::remarks::remarks;
use super::toml_text::{list, number, quoted};
use crate::error::{FairdpError, Result};

/// A column of numbers with more values than this is a number where it is the label.
const MOST_NUMERIC_CLASSES: usize = 20;

pub(super) fn label_entry(
    text: &mut String,
    label: &ColumnGuess,
    range: Option<(f64, f64)>,
    positive: Option<&str>,
) -> Result<()> {
    if let Some((low, high)) = range {
        number_entry(text, label, [low, high]);
    } else {
        let classes = list(&classes(label, positive)?);
        let column = quoted(&label.name);
        let _ =
            writeln!(text, "\n[label]\ncolumn = {column}\nclasses = {classes}  # of two, the last is positive\n{MARK}");
    }
    remarks(text, label);
    if label.missing > 0 {
        let _ = writeln!(
            text,
            "# {} rows have no label: set table.bad_rows = \"drop\" to train on the others, or leave them out of the table",
            label.missing
        );
    }
    Ok(())
}

/// The range of a label that is a number: one with many values, and no positive one asked for.
pub(super) fn number_range(label: &ColumnGuess, positive: Option<&str>) -> Option<(f64, f64)> {
    let is_number = matches!(label.kind, GuessedKind::Integer | GuessedKind::Number);
    let has_many = label.distinct.is_none_or(|n| n > MOST_NUMERIC_CLASSES);
    label.range.filter(|(low, high)| is_number && has_many && positive.is_none() && low < high)
}

/// The entry of such a label.
fn number_entry(text: &mut String, label: &ColumnGuess, [low, high]: [f64; 2]) {
    let _ = writeln!(
        text,
        "\n[label]\ncolumn = {}\nkind = \"number\"  # for classes: classes = [\"…\", \"…\"] in place of kind, low and high\n\
         low = {}\nhigh = {}  # values beyond are set to the nearer end; a narrow range has less noise",
        quoted(&label.name),
        number(low),
        number(high)
    );
    number_format(text, &label.format);
    let _ = writeln!(text, "{MARK}");
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
