//! Entries of columns and groups.

use std::fmt::Write as _;

use dp_table::{Bins, Column, ColumnGuess, DateFormat, GuessedKind, GuessedVectorColumns, NumberFormat, VectorBound};

use super::MARK;
use super::remarks::{remarks, shown};
use super::toml_text::{list, number, quoted};
use crate::error::{FairdpError, Result};

/// The most groups that a column is proposed for: of more, each has few records.
const MOST_GROUPS: usize = 100;

pub(super) fn group(text: &mut String, found: &ColumnGuess) -> Result<()> {
    let _ = writeln!(text, "\n[[group]]\ncolumn = {}", quoted(&found.name));
    let is_number =
        matches!(found.kind, GuessedKind::Integer | GuessedKind::Number) && found.distinct.is_none_or(|n| n > 20);
    match found.range {
        Some((low, high)) if is_number => {
            // Not by their difference, which may be infinite.
            let edges: Vec<String> =
                [0.25, 0.5, 0.75].iter().map(|share| number(low * (1.0 - share) + high * share)).collect();
            let _ = writeln!(text, "edges = [{}]  # bands of a number", edges.join(", "));
            number_format(text, &found.format);
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

/// Columns that are one vector.
pub(super) fn vector(text: &mut String, found: &GuessedVectorColumns) {
    let _ = writeln!(text, "\n[[column]]\nname = {}  # {} columns", quoted(&found.name), found.columns.len());
    kind(text, &found.vector.column(found.missing > 0), BinsOf::Some);
    let _ = writeln!(text, "{MARK}");
}

/// How fine the bins of numbers and dates are: by public numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BinsOf {
    /// One: a straight line.
    One,
    /// Four, or eight that grow.
    Few,
    /// As the range has it.
    Some,
    /// Twice as many.
    Many,
}

/// From this number of records on, and of records times ε, fine bins are worth their noise.
const MANY_BINS: u64 = 20_000;
/// Below this number of records times ε, few bins are: finer ones bring more noise than they tell. Found on Adult's
/// training records.
const FEW_BINS: f64 = 10_000.0;
/// Below this, none are where a number is predicted. Found on training folds of a generated table.
const NO_BINS: f64 = 2_500.0;

impl BinsOf {
    /// The rule, for this number of records, or of units where these have several; `is_number` where a number is
    /// predicted.
    pub(super) fn of(n_records: u64, epsilon: f64, is_number: bool) -> Self {
        let information = n_records as f64 * epsilon;
        if is_number && information < NO_BINS {
            Self::One
        } else if information < FEW_BINS {
            Self::Few
        } else if n_records < MANY_BINS || information < MANY_BINS as f64 {
            Self::Some
        } else {
            Self::Many
        }
    }

    /// More records than these change nothing.
    pub(super) fn enough(epsilon: f64) -> u64 {
        MANY_BINS.max((MANY_BINS as f64 / epsilon).ceil() as u64)
    }
}

pub(super) fn column(text: &mut String, found: &ColumnGuess, fineness: BinsOf) {
    let _ = writeln!(text, "\n[[column]]\nname = {}", quoted(&found.name));
    match found.column() {
        Column::Dropped => {
            let why = match found {
                ColumnGuess { kind: GuessedKind::Constant, .. } => "one value, or none",
                ColumnGuess { name, .. } if name.starts_with("Unnamed: 0") => "an index, as pandas names it",
                ColumnGuess { kind: GuessedKind::Image, .. } => "images",
                ColumnGuess { range: Some(_), .. } => {
                    "numbers of the rows, or too large or too close together to be told apart"
                }
                _ => "more than 100 different texts",
            };
            let _ = writeln!(text, "kind = \"drop\"  # {why}");
        }
        column => kind(text, &column, fineness),
    }
    remarks(text, found);
    remarks_on_format(text, found);
    let _ = writeln!(text, "{MARK}");
}

/// The kind and what belongs to it.
fn kind(text: &mut String, column: &Column, fineness: BinsOf) {
    match column {
        Column::Number { low, high, bins: division, missing, format } => {
            let _ = writeln!(text, "kind = \"number\"\nlow = {}\nhigh = {}", number(*low), number(*high));
            let of_quantiles = match division {
                _ if fineness == BinsOf::One => {
                    "  # a straight line: for so few records bins bring more noise than they tell"
                }
                _ if fineness == BinsOf::Few => "  # few: at this ε finer bins bring more noise than they tell",
                Bins::Log(_) | Bins::SignedLog(_) => "  # or \"private\": quantiles, paid for",
                _ => "",
            };
            let _ = writeln!(text, "bins = {}{of_quantiles}", bins(division, fineness));
            if let Some(missing) = missing {
                let _ =
                    writeln!(text, "missing = {}  # stands for a missing value, beside an indicator", number(*missing));
            }
            number_format(text, format);
        }
        Column::Date { low, high, bins: division, missing, format, .. } => {
            let _ = writeln!(text, "kind = \"date\"\nlow = {}\nhigh = {}", quoted(low), quoted(high));
            let _ = writeln!(text, "format = \"{}\"", name_of(*format));
            let _ = writeln!(text, "bins = {}", bins(division, fineness));
            text.push_str("parts = []  # or some of \"year\", \"month\", \"weekday\"\n");
            if *missing {
                text.push_str("missing = true\n");
            }
        }
        Column::Boolean { values, missing } => {
            let _ = writeln!(text, "kind = \"boolean\"\nvalues = {}", list(values));
            if *missing {
                text.push_str("missing = true\n");
            }
        }
        Column::Vector { length, bound, missing } => {
            let _ = writeln!(text, "kind = \"vector\"\nlength = {length}");
            let _ = match bound {
                VectorBound::Norm(norm) => {
                    writeln!(text, "norm = {}  # a longer one is shortened to it", number(*norm))
                }
                VectorBound::Range { low, high } => writeln!(text, "low = {}\nhigh = {}", number(*low), number(*high)),
            };
            if *missing {
                text.push_str("missing = true\n");
            }
        }
        Column::Image { height, width, channels, resize, missing, .. } => {
            let _ = writeln!(text, "kind = \"image\"\nheight = {height}\nwidth = {width}\nchannels = {channels}");
            let _ = writeln!(text, "resize = {resize}  # true: images of another size are brought to this one");
            if *missing {
                text.push_str("missing = true\n");
            }
        }
        Column::Category { values, other, missing } => {
            let _ =
                writeln!(text, "kind = \"category\"\nvalues = {}\nother = {other}\nmissing = {missing}", list(values));
        }
        Column::Dropped => text.push_str("kind = \"drop\"\n"),
    }
}

/// Finer where there are many records, coarser where ε leaves little of them.
fn bins(bins: &Bins, fineness: BinsOf) -> String {
    let of = |n: usize, few: usize| match fineness {
        BinsOf::Few => n.min(few),
        BinsOf::Many if n == 16 => 32,
        BinsOf::One | BinsOf::Some | BinsOf::Many => n,
    };
    match bins {
        _ if fineness == BinsOf::One => "1".to_owned(),
        Bins::Equal(n) => of(*n, 4).to_string(),
        Bins::Log(n) => format!("{{ log = {} }}", of(*n, 8)),
        Bins::SignedLog(n) => format!("{{ signed_log = {} }}", of(*n, 8)),
        Bins::Edges(edges) => format!("{{ edges = {edges:?} }}"),
    }
}

pub(super) fn number_format(text: &mut String, NumberFormat { decimal, thousands, unit }: &NumberFormat) {
    if *decimal != '.' {
        let _ = writeln!(text, "decimal = {}", quoted(&decimal.to_string()));
    }
    if let Some(thousands) = thousands {
        let _ = writeln!(text, "thousands = {}", quoted(&thousands.to_string()));
    }
    if let Some(unit) = unit {
        let _ = writeln!(text, "unit = {}", quoted(unit));
    }
}

/// How the values are read, where they could be read otherwise.
fn remarks_on_format(text: &mut String, found: &ColumnGuess) {
    let is_number = matches!(found.kind, GuessedKind::Integer | GuessedKind::Number);
    let NumberFormat { decimal, thousands, unit } = &found.format;
    if is_number && !found.format.is_plain() {
        let sign = thousands.map_or_else(String::new, String::from);
        let behind = unit.as_ref().map_or_else(String::new, |unit| format!(" {unit}"));
        let example = format!("1{sign}234{decimal}5{behind}");
        let _ = writeln!(text, "# its numbers are written with other signs: {} is read as 1234.5", shown(&example));
    }
    if is_number && found.is_ambiguous {
        text.push_str(
            "# every `,` stands before three digits: if it is a decimal comma, write decimal = \",\" and no thousands\n",
        );
    }
    if let Some(date) = found.date.as_ref().filter(|_| found.kind == GuessedKind::Date) {
        let _ = writeln!(text, "# dates written like {}; the bounds are the days found", shown(date.format.example()));
        if date.is_ambiguous {
            text.push_str("# no day is beyond 12, so that the month may stand first: then format = \"month-first\"\n");
        }
    }
    if let Some(format) = found.epoch.filter(|_| is_number) {
        let name = name_of(format);
        let unit = if format == DateFormat::EpochSeconds { "seconds" } else { "milliseconds" };
        let _ = writeln!(
            text,
            "# if these are {unit} since 1970: kind = \"date\", format = \"{name}\", low and high as dates"
        );
    }
}

/// As a configuration names it.
fn name_of(format: DateFormat) -> &'static str {
    match format {
        DateFormat::Iso => "iso",
        DateFormat::DayFirst => "day-first",
        DateFormat::MonthFirst => "month-first",
        DateFormat::EpochSeconds => "epoch-seconds",
        DateFormat::EpochMilliseconds => "epoch-milliseconds",
    }
}
