//! The features of a column.

use std::ops::Range;

use crate::codes::Width;
use crate::date_format::Instant;
use crate::inputs::Input;
use crate::schema::Column;
use crate::vector::VectorBound;

/// The features of one column, or of one part of its dates.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FeatureBlock {
    /// The column; of dates with the part in parentheses, such as `admitted (days from 2020-01-01)`
    /// and `admitted (month)`; empty for the constant.
    pub column: String,
    /// Positions of its features.
    pub features: Range<usize>,
    /// Their kind.
    pub kind: BlockKind,
}

/// The features of a column, in order and before they are scaled.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockKind {
    /// The scaled value; with more than two knots a hat function per knot; with `missing` an
    /// indicator.
    Number {
        /// The edges of the bins, both bounds included.
        knots: Vec<f32>,
        /// The position, from 0 to the number of bins, that stands for a missing value.
        missing: Option<f32>,
    },
    /// 1 for the second value; with `missing` an indicator.
    Boolean {
        /// The two values.
        values: [String; 2],
        /// Whether there is a feature for missing values.
        missing: bool,
    },
    /// One feature per value, then `other`, then `missing`.
    Category {
        /// The listed values.
        values: Vec<String>,
        /// Whether there is a feature for all other texts.
        other: bool,
        /// Whether there is a feature for missing values.
        missing: bool,
    },
    /// The numbers of a vector of norm at most 1; with `missing` an indicator.
    Vector {
        /// How many.
        length: usize,
        /// The bound that brought it there.
        bound: VectorBound,
        /// Whether there is a feature for missing vectors.
        missing: bool,
    },
    /// The features of an image, of norm 1, or its pixels, each from 0 to 1; with `missing` an
    /// indicator.
    Image {
        /// How many.
        length: usize,
        /// The fixed filters that make them, in words; `None` of pixels.
        filters: Option<String>,
        /// Whether there is a feature for missing images.
        missing: bool,
    },
    /// Always 1.
    Constant,
}

impl BlockKind {
    /// The blocks of a column, with their names.
    pub(crate) fn of(name: &str, column: &Column, input: &Input) -> Vec<(String, Self)> {
        let kind = match (column, input) {
            (Column::Category { values, other, missing }, _) => {
                Self::Category { values: values.clone(), other: *other, missing: *missing }
            }
            (Column::Boolean { values, missing }, _) => Self::Boolean { values: values.clone(), missing: *missing },
            (_, Input::Number { knots, missing, .. }) => {
                Self::Number { knots: knots.as_slice().to_vec(), missing: *missing }
            }
            (_, Input::Date(date)) => {
                let knots = date.knots.as_slice().to_vec();
                let days = Self::Number { knots, missing: date.missing.then_some(0.0) };
                let first = Instant::text_of_day(date.origin);
                let parts = date.parts.iter().map(|part| {
                    let values = date.values(*part);
                    let part = format!("{part:?}").to_lowercase();
                    (format!("{name} ({part})"), Self::Category { values, other: false, missing: date.missing })
                });
                return std::iter::once((format!("{name} (days from {first})"), days)).chain(parts).collect();
            }
            (_, Input::Vector { length, bound, missing }) => {
                Self::Vector { length: *length, bound: *bound, missing: *missing }
            }
            #[cfg(feature = "images")]
            (_, Input::Image(image)) => {
                Self::Image { length: image.n_features(), filters: image.filters(), missing: image.missing }
            }
            // The input of a list is that of its column.
            (_, Input::Boolean(_) | Input::Category(_)) => return Vec::new(),
        };
        vec![(name.to_owned(), kind)]
    }

    pub(crate) fn n_features(&self) -> usize {
        match self {
            Self::Number { knots, missing } => {
                1 + if knots.len() > 2 { knots.len() } else { 0 } + usize::from(missing.is_some())
            }
            Self::Boolean { missing, .. } => 1 + usize::from(*missing),
            Self::Category { values, other, missing } => values.len() + usize::from(*other) + usize::from(*missing),
            Self::Vector { length, missing, .. } | Self::Image { length, missing, .. } => {
                length + usize::from(*missing)
            }
            Self::Constant => 1,
        }
    }

    /// How its code is stored.
    pub(crate) fn stored_width(&self) -> Width {
        match self {
            Self::Number { .. } | Self::Constant => Width::Single,
            Self::Boolean { .. } => Width::Byte,
            Self::Category { .. } if self.n_features() <= 256 => Width::Byte,
            Self::Category { .. } => Width::Two,
            Self::Vector { length, .. } => Width::Vector(*length),
            Self::Image { length, .. } => Width::Image(*length),
        }
    }

    /// The largest sum of squares before scaling.
    pub fn largest_square(&self) -> f64 {
        match self {
            Self::Number { knots, missing } if knots.len() > 2 || missing.is_some() => 2.0,
            Self::Image { length, filters: None, .. } => *length as f64,
            Self::Number { .. }
            | Self::Boolean { .. }
            | Self::Category { .. }
            | Self::Vector { .. }
            | Self::Image { .. }
            | Self::Constant => 1.0,
        }
    }

    /// The largest sum of fourth powers before scaling, of which the sensitivity of released mean
    /// squares is the root.
    pub fn largest_fourth_power(&self) -> f64 {
        match self {
            // Each of n numbers is at most 1/√n.
            Self::Vector { length, bound: VectorBound::Range { .. }, missing: false } => 1.0 / *length as f64,
            kind => kind.largest_square(),
        }
    }

    /// Sets of features that exclude each other: as many numbers at most differ from 0 in one row.
    pub fn n_sets(&self) -> usize {
        match self {
            Self::Number { knots, missing } => 1 + usize::from(knots.len() > 2 || missing.is_some()),
            Self::Boolean { .. } | Self::Category { .. } => 1,
            Self::Vector { length, .. } | Self::Image { length, .. } => *length,
            Self::Constant => 0,
        }
    }

    pub(crate) fn most_entries(&self) -> usize {
        match self {
            Self::Number { knots, .. } if knots.len() > 2 => 3,
            Self::Number { missing: Some(_), .. } => 2,
            Self::Vector { length, .. } | Self::Image { length, .. } => *length,
            Self::Number { .. } | Self::Boolean { .. } | Self::Category { .. } | Self::Constant => 1,
        }
    }
}

impl FeatureBlock {
    pub(crate) fn names(&self) -> Vec<String> {
        let column = &self.column;
        match &self.kind {
            BlockKind::Number { knots, missing } => {
                let hats = if knots.len() > 2 { &knots[..] } else { &[] };
                let mut names = vec![column.clone()];
                names.extend(hats.iter().map(|knot| format!("{column} @ {knot}")));
                names.extend(missing.map(|_| format!("{column} missing")));
                names
            }
            BlockKind::Boolean { values: [_, second], missing } => {
                let mut names = vec![format!("{column} = {second}")];
                names.extend(missing.then(|| format!("{column} missing")));
                names
            }
            BlockKind::Category { values, other, missing } => {
                let mut names: Vec<String> = values.iter().map(|value| format!("{column} = {value}")).collect();
                names.extend(other.then(|| format!("{column} other")));
                names.extend(missing.then(|| format!("{column} missing")));
                names
            }
            BlockKind::Vector { length, missing, .. } | BlockKind::Image { length, missing, .. } => {
                let mut names: Vec<String> = (0..*length).map(|place| format!("{column}[{place}]")).collect();
                names.extend(missing.then(|| format!("{column} missing")));
                names
            }
            BlockKind::Constant => vec!["constant".into()],
        }
    }
}
