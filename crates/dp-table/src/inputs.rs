//! From the texts of an input's columns to its codes.

use std::collections::HashSet;

#[cfg(feature = "images")]
use scattering::ImageSize;

use crate::codes::{Code, Layout};
use crate::column_names::InputColumns;
use crate::counts::ReadOutcome;
use crate::date_format::{DateFormat, DatePart, Instant};
use crate::error::{Position, TableError};
#[cfg(feature = "images")]
use crate::images::ImageInput;
use crate::knots::Knots;
use crate::markers::Markers;
use crate::number_format::NumberFormat;
use crate::parse::Categories;
use crate::reader::TableRow;
use crate::schema::Column;
use crate::value::Value;
use crate::vector::{self, VectorBound};

/// More features for the years of a date than this are a mistake.
const MOST_YEARS: i16 = 200;

/// How an input is read.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Number {
        knots: Knots,
        missing: Option<f32>,
        has_truth: bool,
        format: NumberFormat,
    },
    Date(DateInput),
    Boolean(Categories),
    Category(Categories),
    Vector {
        length: usize,
        bound: VectorBound,
        missing: bool,
    },
    #[cfg(feature = "images")]
    Image(ImageInput),
}

/// How a date is read.
#[derive(Debug, Clone)]
pub(crate) struct DateInput {
    pub(crate) knots: Knots,
    /// Days from 1970 to the first one.
    pub(crate) origin: f64,
    pub(crate) missing: bool,
    format: DateFormat,
    pub(crate) parts: Vec<DatePart>,
    /// The first year and the last one.
    pub(crate) years: [i16; 2],
}

impl Input {
    /// `None` for a column that is not used.
    ///
    /// # Errors
    /// [`TableError::Schema`].
    pub(crate) fn new(name: &str, column: &Column, markers: &Markers) -> Result<Option<Self>, TableError> {
        let input = match column {
            Column::Number { low, high, bins, missing, format } => {
                format.check(name)?;
                let knots = Knots::new(name, *low, *high, bins)?;
                if let Some(constant) = missing.filter(|constant| !knots.contain(*constant as f32)) {
                    let reason = format!("the value for missing ones, {constant}, is not from {low} to {high}");
                    return Err(TableError::Schema { column: name.into(), reason });
                }
                let missing = missing.map(|constant| knots.position(constant as f32));
                let has_truth = (*low, *high) == (0.0, 1.0) && format.is_plain();
                Self::Number { knots, missing, has_truth, format: format.clone() }
            }
            Column::Date { .. } => Self::Date(DateInput::new(name, column)?),
            Column::Boolean { values, missing } => {
                Self::Boolean(Categories::new(name, values, false, *missing, markers)?)
            }
            Column::Category { values, other, missing } => {
                Self::Category(Categories::new(name, values, *other, *missing, markers)?)
            }
            Column::Vector { length, bound, missing } => {
                bound.check(name, *length)?;
                Self::Vector { length: *length, bound: *bound, missing: *missing }
            }
            #[cfg(feature = "images")]
            Column::Image { height, width, channels, resize, missing, pixels } => {
                let size = ImageSize { height: *height, width: *width, channels: *channels };
                Self::Image(ImageInput::new(name, size, *resize, *missing, *pixels)?)
            }
            #[cfg(not(feature = "images"))]
            Column::Image { .. } => {
                let reason = "is of images, which this program was built without: build it with the feature `images`";
                return Err(TableError::Schema { column: name.into(), reason: reason.into() });
            }
            Column::Dropped => return Ok(None),
        };
        Ok(Some(input))
    }

    /// Writes the codes of a row, from the layout's input `first` on.
    pub(crate) fn store(
        &self,
        row: &TableRow,
        (name, columns): (&str, &InputColumns),
        markers: &Markers,
        (layout, first, out): (&Layout, usize, &mut [u8]),
    ) -> Result<ReadOutcome, TableError> {
        let at = row.position();
        if let Self::Vector { length, bound, missing } = self {
            let mut numbers = Vec::with_capacity(*length);
            let is_missing = read_vector(row, (name, columns), markers, *length, &mut numbers)?;
            if is_missing && !missing {
                return Err(at.missing_value(name));
            }
            let is_beyond = !is_missing && bound.apply(&mut numbers);
            layout.set_vector(out, first, (!is_missing).then_some(&*numbers));
            return Ok(match (is_missing, is_beyond) {
                (true, _) => ReadOutcome::Missing,
                (_, true) => ReadOutcome::Clamped,
                _ => ReadOutcome::Declared,
            });
        }
        let InputColumns::One(column) = *columns else { return Err(at.missing_value(name)) };
        let text = row.field(column);
        let is_missing = markers.contain(text);
        let (code, met) = match self {
            #[cfg(feature = "images")]
            Self::Image(image) => return image.store(row, (name, column), is_missing, (layout, first, out)),
            Self::Number { missing: None, .. } if is_missing => return Err(at.missing_value(name)),
            Self::Number { .. } if is_missing => (Code::Position(None), ReadOutcome::Missing),
            Self::Number { knots, has_truth, format, .. } => {
                let value = number(row, (name, column), *has_truth, format)?;
                (Code::Position(Some(knots.position(value))), outcome(knots, value))
            }
            Self::Date(date) => {
                return date.store(at, name, text, is_missing, &mut |place, code| {
                    layout.set_input(out, first + place, code);
                });
            }
            Self::Boolean(list) | Self::Category(list) => {
                let (code, met) = list.find(at, name, text, is_missing)?;
                (Code::Index(code), met)
            }
            Self::Vector { .. } => return Err(at.missing_value(name)),
        };
        layout.set_input(out, first, code);
        Ok(met)
    }
}

fn outcome(knots: &Knots, value: f32) -> ReadOutcome {
    if knots.contain(value) { ReadOutcome::Declared } else { ReadOutcome::Clamped }
}

/// A number that is finite in single precision. Where truth values are numbers, `true` is 1.
fn number(
    row: &TableRow,
    (name, column): (&str, usize),
    has_truth: bool,
    format: &NumberFormat,
) -> Result<f32, TableError> {
    if let Some(number) = row.number(column, format) {
        return Ok(number.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32);
    }
    let (at, text) = (row.position(), row.field(column));
    match Value::of(text) {
        Value::Truth(truth) if has_truth => Ok(f32::from(u8::from(truth))),
        _ if !format.is_plain() => Err(at.not_in_format(name, text, format)),
        _ => Err(at.not_a_number(name, text)),
    }
}

/// Reads the numbers of a vector. Returns whether it is missing.
fn read_vector(
    row: &TableRow,
    (name, columns): (&str, &InputColumns),
    markers: &Markers,
    length: usize,
    numbers: &mut Vec<f64>,
) -> Result<bool, TableError> {
    let at = row.position();
    match columns {
        InputColumns::One(column) => {
            let text = row.field(*column);
            if markers.contain(text) {
                return Ok(true);
            }
            if vector::parse(text, numbers).is_none() || numbers.len() != length {
                return Err(at.not_a_vector(name, text, numbers.len(), length));
            }
        }
        InputColumns::Several(columns) => {
            let n_missing = columns.iter().filter(|column| markers.contain(row.field(**column))).count();
            if n_missing == columns.len() {
                return Ok(true);
            }
            for column in columns {
                let text = row.field(*column);
                let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                numbers.push(number.ok_or_else(|| at.not_a_number(name, text))?);
            }
        }
    }
    Ok(false)
}

impl DateInput {
    fn new(name: &str, column: &Column) -> Result<Self, TableError> {
        let refuse = |reason: String| TableError::Schema { column: name.into(), reason };
        let Column::Date { low, high, bins, missing, format, parts } = column else {
            return Err(refuse("is no date".into()));
        };
        let bound = |text: &str| {
            let expected = || refuse(format!("`{text}` is no date: expected one such as 2024-01-31"));
            DateFormat::Iso.parse(text).ok_or_else(expected)
        };
        let [first, last] = [bound(low)?, bound(high)?];
        let days = last.days() - first.days();
        if days <= 0.0 {
            return Err(refuse(format!("bounds {low} and {high} are not two dates, the earlier one first")));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = parts.iter().find(|part| !seen.insert(**part)) {
            return Err(refuse(format!("parts = {parts:?}: {twice:?} is listed twice")));
        }
        let years = [first.year(), last.year()];
        if parts.contains(&DatePart::Year) && years[1] - years[0] >= MOST_YEARS {
            let n = years[1] - years[0] + 1;
            return Err(refuse(format!("parts: the range has {n} years, expected at most {MOST_YEARS}")));
        }
        Ok(Self {
            knots: Knots::new(name, 0.0, days, bins)?,
            origin: first.days(),
            missing: *missing,
            format: *format,
            parts: parts.clone(),
            years,
        })
    }

    /// Hands on the code of the days, then one for each part.
    fn store(
        &self,
        at: Position<'_>,
        column: &str,
        text: &str,
        is_missing: bool,
        set: &mut dyn FnMut(usize, Code),
    ) -> Result<ReadOutcome, TableError> {
        if is_missing {
            if !self.missing {
                return Err(at.missing_value(column));
            }
            set(0, Code::Position(None));
            for (place, part) in self.parts.iter().enumerate() {
                set(1 + place, Code::Index(self.values(*part).len() as u16));
            }
            return Ok(ReadOutcome::Missing);
        }
        let found = self.format.parse(text).ok_or_else(|| at.not_a_date(column, text, self.format))?;
        let days = (found.days() - self.origin) as f32;
        set(0, Code::Position(Some(self.knots.position(days))));
        for (place, part) in self.parts.iter().enumerate() {
            set(1 + place, Code::Index(self.part(*part, found) as u16));
        }
        Ok(outcome(&self.knots, days))
    }

    fn part(&self, part: DatePart, found: Instant) -> usize {
        let [first, last] = self.years;
        match part {
            DatePart::Year => usize::from((found.year().clamp(first, last) - first).unsigned_abs()),
            DatePart::Month => found.month(),
            DatePart::Weekday => found.weekday(),
        }
    }

    /// The values of a part, one feature each.
    pub(crate) fn values(&self, part: DatePart) -> Vec<String> {
        let [first, last] = self.years;
        match part {
            DatePart::Year => (first..=last).map(|year| year.to_string()).collect(),
            DatePart::Month => (1..=12).map(|month| month.to_string()).collect(),
            DatePart::Weekday => {
                ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"].map(str::to_owned).into()
            }
        }
    }
}
