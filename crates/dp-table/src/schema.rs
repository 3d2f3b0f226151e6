//! The declaration of a table, made before any record is read.

use serde::{Deserialize, Serialize};

use crate::date_format::{DateFormat, DatePart};
use crate::number_format::NumberFormat;
use crate::vector::VectorBound;

/// Every column of a table and what it is for.
///
/// Every entry is a constant that shapes the features of every record. It must be declared, or
/// released with noise. The order of `columns` is the order of the features; the order of the
/// table's columns does not matter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Inputs by name, in order. A column of the table that is named nowhere in the schema is
    /// refused in training.
    pub columns: Vec<(String, Column)>,
    /// The column to predict.
    pub label: Label,
    /// Columns whose values make up the groups; several make their intersections.
    pub groups: Vec<GroupColumn>,
    /// Whether a group's column may be among the inputs too.
    pub group_as_input: bool,
    /// The column that says whose record it is, where a person may have several.
    pub unit: Option<String>,
    /// The column that says how much a record counts in training, where they do not count alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<Weight>,
    /// The treatment of a row that does not fit.
    pub bad_rows: BadRows,
    /// Values that stand for a missing one, after blanks around them were removed; mostly the empty
    /// text. Each is meant in every spelling ([`Value`](crate::Value)).
    pub missing: Vec<String>,
}

/// How a column becomes features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Column {
    /// A number. Values outside the bounds are set to the nearest bound, and counted. Between
    /// bounds of 0 and 1 a truth value is a number too.
    Number {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
        /// The division of the range.
        bins: Bins,
        /// The value that stands for a missing one, beside an indicator; `None` if a missing value
        /// is an error.
        missing: Option<f64>,
        /// How it is written.
        #[serde(default, skip_serializing_if = "NumberFormat::is_plain")]
        format: NumberFormat,
    },
    /// A date or a point in time: a number of days from the lower bound on.
    Date {
        /// The first day, in ISO format. Earlier dates are set to it, and counted.
        low: String,
        /// The end, in ISO format. Later dates are set to it, and counted.
        high: String,
        /// The division of the range, in days.
        bins: Bins,
        /// Whether a missing value has an indicator beside the features of the first day; otherwise
        /// it is an error.
        missing: bool,
        /// How it is written.
        format: DateFormat,
        /// Parts that become features too.
        parts: Vec<DatePart>,
    },
    /// One of two values, as one feature: 0 for the first, 1 for the second.
    Boolean {
        /// The two, each in every spelling ([`Value`](crate::Value)): of 1 and 0 or of truth
        /// values, both are meant.
        values: [String; 2],
        /// Whether a missing value has an indicator; otherwise it is an error.
        missing: bool,
    },
    /// A vector of numbers, as one linear feature for each number: a column of lists, or, where the
    /// name ends in `*`, all columns whose names go on with a number there, in its order.
    Vector {
        /// Numbers of each vector.
        length: usize,
        /// The bound on it. A vector beyond it is brought to it, and counted.
        bound: VectorBound,
        /// Whether a missing vector has an indicator beside zeros; otherwise it is an error.
        missing: bool,
    },
    /// An image, as features that fixed filters make of it (`scattering`, with the options of its rule
    /// for the size), or as its pixels. The column holds paths relative to the table's folder or, in Parquet, the bytes
    /// of PNG and JPEG files. Needs the feature `images`.
    Image {
        /// Rows of pixels, 8 to 128.
        height: usize,
        /// Pixels in a row, 8 to 128.
        width: usize,
        /// 1, or 3 for colours.
        channels: usize,
        /// Whether an image of another size or with other channels is brought to these; otherwise
        /// it is an error.
        resize: bool,
        /// Whether a missing image has an indicator beside zeros; otherwise it is an error.
        missing: bool,
        /// Whether its features are its pixels, from 0 to 1, row by row with the channels of a pixel
        /// side by side.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pixels: bool,
    },
    /// One of a list of values, each in every spelling ([`Value`](crate::Value)).
    Category {
        /// The list. In a list of truth values, or of 1 and 0 alone, `true` is 1 and `false` is 0.
        values: Vec<String>,
        /// Whether all other values share a feature; otherwise they are errors.
        other: bool,
        /// Whether a missing value has a feature; otherwise it is an error, or `other`.
        missing: bool,
    },
    /// Not used.
    Dropped,
}

/// How a number's range is divided. A linear model is piecewise linear in the number, with a bend
/// at every edge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bins {
    /// This many of equal width. With one, the scaled number is the only feature.
    Equal(usize),
    /// This many whose width grows by a constant factor from the lower bound on: the last begins at
    /// about two thirds of the range. For amounts.
    Log(usize),
    /// This many whose width grows to both sides of 0, which the bounds include. For amounts of both
    /// signs.
    SignedLog(usize),
    /// Between these edges, which lie strictly within the bounds and ascend: for example released
    /// quantiles.
    Edges(Vec<f64>),
}

/// A column of weights, such as those of a survey: numbers of at least 0. It may be an input too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// Its name.
    pub column: String,
    /// The largest weight. Larger ones are set to it, and counted. A record's part in a sum is its
    /// weight divided by this one, so that no record counts more than one without weights would.
    pub high: f64,
}

/// The column to predict: classes or a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// Its name.
    pub column: String,
    /// Its values in order; of two, the last is the positive one. None of a number.
    pub classes: Vec<String>,
    /// The range, if it is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<NumberLabel>,
}

/// A label that is a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberLabel {
    /// Lower bound. Smaller values are set to it, and counted.
    pub low: f64,
    /// Upper bound. Larger values are set to it, and counted.
    pub high: f64,
    /// How it is written.
    #[serde(default, skip_serializing_if = "NumberFormat::is_plain")]
    pub format: NumberFormat,
}

impl NumberLabel {
    /// The middle of the range.
    pub fn middle(&self) -> f64 {
        self.low + self.half()
    }

    /// Half of the width of the range.
    pub fn half(&self) -> f64 {
        0.5 * (self.high - self.low)
    }
}

impl Label {
    /// A label of classes.
    pub fn of_classes(column: impl Into<String>, classes: Vec<String>) -> Self {
        Self { column: column.into(), classes, number: None }
    }

    /// A label that is a plainly written number in this range.
    pub fn of_number(column: impl Into<String>, low: f64, high: f64) -> Self {
        let number = NumberLabel { low, high, format: NumberFormat::default() };
        Self { column: column.into(), classes: Vec::new(), number: Some(number) }
    }
}

/// A column whose values are groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupColumn {
    /// Its name.
    pub column: String,
    /// Its groups.
    pub groups: GroupValues,
}

/// The groups of one column, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum GroupValues {
    /// One per value of a list, in every spelling, as of a category.
    Values {
        /// The list.
        values: Vec<String>,
        /// Whether all other values are a group; otherwise they are errors.
        other: bool,
        /// Whether missing values are a group; otherwise they are errors, or other texts.
        missing: bool,
    },
    /// Bands of a number: below the first edge, from each edge to below the next, from the last
    /// edge on.
    Bands {
        /// The edges, ascending.
        edges: Vec<f64>,
        /// Whether missing values are a group, named `missing`; otherwise they are errors.
        missing: bool,
        /// How the number is written.
        #[serde(default, skip_serializing_if = "NumberFormat::is_plain")]
        format: NumberFormat,
    },
}

/// The treatment of a row that does not fit the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BadRows {
    /// The first one is an error.
    #[default]
    Refuse,
    /// It keeps its place and has no features: all zeros, so that no other row moves and the number
    /// of rows stays what it is.
    Drop,
}

impl Bins {
    /// A division of a number's declared range that needs no look at the data: 16 bins; one per
    /// step for integers of at most 48 values; growing widths where the range begins at 0 or near it
    /// and spans three decades, to both sides of 0 where it has both signs and spans more than 1,000.
    ///
    /// ```
    /// use dp_table::Bins;
    /// assert_eq!(Bins::for_bounds(17.0, 90.0, true), Bins::Equal(16));
    /// assert_eq!(Bins::for_bounds(1.0, 16.0, true), Bins::Equal(15));
    /// assert_eq!(Bins::for_bounds(0.0, 99_999.0, true), Bins::Log(16));
    /// assert_eq!(Bins::for_bounds(-500.0, 99_999.0, true), Bins::SignedLog(16));
    /// ```
    pub fn for_bounds(low: f64, high: f64, integer: bool) -> Self {
        let width = high - low;
        if integer && (1.0..48.0).contains(&width) {
            Self::Equal(width as usize)
        } else if low >= 0.0 && width > 1_000.0 && low < 0.001 * high {
            Self::Log(16)
        } else if low < 0.0 && high > 0.0 && width > 1_000.0 {
            Self::SignedLog(16)
        } else {
            Self::Equal(16)
        }
    }
}
