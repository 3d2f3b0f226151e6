//! The features that a run will have, column by column.

use dp_table::{BlockKind, VectorBound};
use serde::Serialize;

use crate::bounds;
use crate::config::{ColumnEntry, Config};
use crate::error::Result;

/// The features of one column, or of one part of its dates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlannedFeatures {
    /// The column.
    pub column: String,
    /// How many; private bounds may have fewer edges.
    pub n: usize,
    /// Their kind, in words.
    pub kind: String,
}

/// The features that follow from a configuration alone.
pub(super) fn planned_features(config: &Config) -> Result<Vec<PlannedFeatures>> {
    let encoding = bounds::widest(config)?;
    let features = encoding.blocks().iter().filter_map(|block| {
        let kind = in_words(&block.kind)?;
        // Days are counted from a bound that is not released yet.
        let is_of_dates = |entry: &&ColumnEntry| block.column.starts_with(&format!("{} (days from ", entry.name));
        let private = bounds::private_columns(config).filter(|entry| !entry.bins_are_released()).find(is_of_dates);
        let column = private.map_or_else(|| block.column.clone(), |entry| format!("{} (days)", entry.name));
        Some(PlannedFeatures { column, n: block.features.len(), kind })
    });
    Ok(features.collect())
}

/// `None` for the constant.
fn in_words(kind: &BlockKind) -> Option<String> {
    let missing = |has_missing: bool| if has_missing { ", missing values" } else { "" };
    Some(match kind {
        BlockKind::Number { knots, missing: constant } => {
            let n_bins = knots.len() - 1;
            let bins = if n_bins == 1 { "linear".to_owned() } else { format!("{n_bins} bins") };
            format!("number, {bins}{}", missing(constant.is_some()))
        }
        BlockKind::Boolean { missing: has_missing, .. } => format!("boolean{}", missing(*has_missing)),
        BlockKind::Category { values, other, missing: has_missing } => {
            let other = if *other { ", others" } else { "" };
            format!("category, {} values{other}{}", values.len(), missing(*has_missing))
        }
        BlockKind::Vector { bound, missing: has_missing, .. } => {
            let bound = match bound {
                VectorBound::Norm(norm) => format!("norm up to {norm}"),
                VectorBound::Range { low, high } => format!("numbers from {low} to {high}"),
            };
            format!("vector, {bound}{}", missing(*has_missing))
        }
        BlockKind::Image { filters, missing: has_missing, .. } => {
            let filters = filters.as_deref().unwrap_or("its pixels");
            format!("image, {filters}{}", missing(*has_missing))
        }
        BlockKind::Constant => return None,
    })
}
