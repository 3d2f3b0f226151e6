//! `curves.json`: what each column adds to an answer, how much of that is noise, and what was too rare to
//! be learnt. All of it follows from what is released.

use std::fmt;
use std::path::Path;

use dp_linear::WeightNoise;
use dp_table::{BlockKind, Column, Encoding, FeatureBlock, Level};
use serde::{Deserialize, Serialize};

use crate::error::{FairdpError, Result};
use crate::model::FittedModel;

/// Its name in a release.
pub(crate) const CURVES: &str = "curves.json";
/// The version that this program writes and reads.
const VERSION: u32 = 1;

/// The curves of an additive model, the most important column first; none of a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Curves {
    version: u32,
    /// Each column's, of each output.
    pub curves: Vec<Curve>,
}

/// What a column adds to an output: to the predicted number, to the log-odds of the second class, or of
/// more than two classes to the score of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Curve {
    /// The column, or a part of its dates.
    pub column: String,
    /// The unit of its numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The class whose score it is, of more than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Standard deviation of what it adds, by the released frequencies where there are any.
    pub importance: f64,
    /// Whether noise alone could have made it; `None` where the noise is not known.
    pub is_within_noise: Option<bool>,
    /// Its values, in order.
    pub points: Vec<CurvePoint>,
}

/// What one value of a column adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CurvePoint {
    /// Which value.
    pub at: CurvePlace,
    /// What it adds.
    pub effect: f64,
    /// Standard deviation of the noise in it; `None` where it is not known.
    pub noise: Option<f64>,
    /// Whether it was too rare to be learnt, and adds 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_too_rare: bool,
}

/// A place on a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CurvePlace {
    /// A number, or days.
    Number(f64),
    /// A value of a category, `(other)` or `(missing)`.
    Value(String),
    /// A place in a vector.
    Entry(usize),
}

/// What is known of the noise in a model's weights.
pub(crate) struct CurveNoise<'a> {
    pub(crate) weights: WeightNoise<'a>,
    /// What the weights were multiplied by.
    pub(crate) unit: f64,
}

impl CurveNoise<'_> {
    fn std(&self, output: usize, terms: &[(usize, f64)]) -> f64 {
        self.unit * self.weights.std(output, terms)
    }
}

/// A value of a column as features: what it adds is `Σ c w`.
struct Value {
    at: CurvePlace,
    terms: Vec<(usize, f64)>,
    /// The feature that occurs as often as the value.
    cell: Option<usize>,
}

impl Curves {
    /// Those of a model, with the noise of its weights and how often each feature is there, where training tells
    /// them.
    pub(crate) fn of(model: &FittedModel, noise: Option<&CurveNoise<'_>>, shares: Option<&[f64]>) -> Self {
        let encoding = model.encoding();
        let [layer] = model.layers() else { return Self { version: VERSION, curves: Vec::new() } };
        let scale = f64::from(encoding.scale());
        let mut curves = Vec::new();
        for block in encoding.blocks() {
            let values = values(block, scale);
            let shares = shares_of(&values, shares);
            for (output, weights) in layer.weights.chunks_exact(encoding.width()).enumerate() {
                let point = |value: &Value| CurvePoint {
                    at: value.at.clone(),
                    effect: value.terms.iter().map(|&(j, factor)| f64::from(weights[j]) * factor).sum(),
                    noise: noise.map(|noise| noise.std(output, &value.terms)),
                    is_too_rare: value.cell.is_some_and(|cell| model.is_too_rare(cell)),
                };
                let points: Vec<CurvePoint> = values.iter().map(point).collect();
                if !points.is_empty() {
                    curves.push(Curve {
                        column: block.column.clone(),
                        unit: unit(model, &block.column),
                        class: (layer.biases.len() > 1).then(|| model.classes()[output].clone()),
                        importance: importance(&points, &shares),
                        is_within_noise: noise.map(|_| is_within_noise(&points, &shares)),
                        points,
                    });
                }
            }
        }
        curves.sort_by(|a, b| b.importance.total_cmp(&a.importance));
        Self { version: VERSION, curves }
    }

    /// Reads a release's.
    ///
    /// # Errors
    /// [`FairdpError::File`] for one that is damaged.
    pub(crate) fn from_json(bytes: &[u8]) -> Result<Self> {
        let refuse = |problem: String| FairdpError::file(Path::new(CURVES), problem);
        let file: Self = serde_json::from_slice(bytes).map_err(|error| refuse(error.to_string()))?;
        if file.version != VERSION {
            return Err(refuse(format!("version {}: this program reads {VERSION}", file.version)));
        }
        Ok(file)
    }
}

impl FittedModel {
    /// Whether a value's feature was too rare to be learnt: it adds 0 to every output. A weight that was learnt
    /// has noise, and is not exactly 0.
    pub(crate) fn is_too_rare(&self, feature: usize) -> bool {
        let [layer] = self.layers() else { return false };
        layer.weights.chunks_exact(self.encoding().width()).all(|weights| weights[feature] == 0.0)
    }

    /// Values that were too rare to be learnt, each with its column.
    pub(crate) fn too_rare(&self) -> Vec<String> {
        let of_block = |block: &FeatureBlock| {
            let rare =
                values(block, 1.0).into_iter().filter(|value| value.cell.is_some_and(|cell| self.is_too_rare(cell)));
            let texts: Vec<String> = rare.map(|value| format!("`{}`", value.at)).collect();
            (!texts.is_empty()).then(|| format!("`{}`: {}", block.column, texts.join(", ")))
        };
        self.encoding().blocks().iter().filter_map(of_block).collect()
    }
}

impl fmt::Display for CurvePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{}", *number as f32),
            Self::Value(text) => f.write_str(text),
            Self::Entry(place) => write!(f, "[{place}]"),
        }
    }
}

/// Features that are 0 in most records, never below 0, and far from it for some value: what is rare in them can
/// be told.
pub(crate) fn cells(encoding: &Encoding) -> Vec<usize> {
    encoding.blocks().iter().flat_map(|block| values(block, 1.0)).filter_map(|value| value.cell).collect()
}

/// The values of a column that a curve has. Features of images have none.
fn values(block: &FeatureBlock, scale: f64) -> Vec<Value> {
    let first = block.features.start;
    let of_feature = |feature: usize| vec![(feature, scale)];
    let named = |text: String, feature: usize| Value {
        at: CurvePlace::Value(text),
        terms: of_feature(feature),
        cell: Some(feature),
    };
    let missing = |has: bool| has.then(|| named(Level::Missing.to_string(), block.features.end - 1));
    match &block.kind {
        BlockKind::Number { knots, missing } => {
            let last = (knots.len() - 1) as f64;
            let has_hats = knots.len() > 2;
            let line = |place: f64| (first, scale * (2.0 * place / last - 1.0));
            let knot = |(i, &knot): (usize, &f32)| {
                let hat = has_hats.then_some(first + 1 + i);
                let terms = std::iter::once(line(i as f64)).chain(hat.map(|hat| (hat, scale))).collect();
                Value { at: CurvePlace::Number(f64::from(knot)), terms, cell: hat }
            };
            let of_missing = missing.map(|place| {
                let indicator = block.features.end - 1;
                let terms = vec![line(f64::from(place)), (indicator, scale)];
                Value { at: CurvePlace::Value(Level::Missing.to_string()), terms, cell: Some(indicator) }
            });
            knots.iter().enumerate().map(knot).chain(of_missing).collect()
        }
        BlockKind::Boolean { values: [_, second], missing: has_missing } => {
            let second = named(Level::Value(second.clone()).to_string(), first);
            std::iter::once(second).chain(missing(*has_missing)).collect()
        }
        BlockKind::Category { values, other, missing: has_missing } => {
            let listed = values.iter().enumerate();
            let listed = listed.map(|(i, value)| named(Level::Value(value.clone()).to_string(), first + i));
            let other = other.then(|| named(Level::Other.to_string(), first + values.len()));
            listed.chain(other).chain(missing(*has_missing)).collect()
        }
        BlockKind::Vector { length, missing: has_missing, .. } => {
            let entry = |i| Value { at: CurvePlace::Entry(i), terms: of_feature(first + i), cell: None };
            (0..*length).map(entry).chain(missing(*has_missing)).collect()
        }
        BlockKind::Image { missing: has_missing, .. } => missing(*has_missing).into_iter().collect(),
        BlockKind::Constant => Vec::new(),
    }
}

/// How often each value is there: where no feature tells it, all alike.
fn shares_of(values: &[Value], shares: Option<&[f64]>) -> Vec<f64> {
    let share = |value: &Value| match (value.cell, shares) {
        (Some(cell), Some(shares)) => shares[cell].clamp(0.0, 1.0),
        _ => 1.0 / values.len() as f64,
    };
    values.iter().map(share).collect()
}

/// Standard deviation of what a column adds: of values whose shares are below 1 together the rest adds 0.
fn importance(points: &[CurvePoint], shares: &[f64]) -> f64 {
    let total: f64 = shares.iter().sum::<f64>().max(1.0);
    let moment = |of: &dyn Fn(f64) -> f64| -> f64 {
        points.iter().zip(shares).map(|(point, share)| share / total * of(point.effect)).sum()
    };
    (moment(&|effect| effect * effect) - moment(&|effect| effect).powi(2)).max(0.0).sqrt()
}

/// Whether effects, less their mean, are within 1.5 standard deviations of their noise on average: the mean of
/// squares in units of the noise is at most about 1 of noise alone, and more by what differs between samples of
/// records.
fn is_within_noise(points: &[CurvePoint], shares: &[f64]) -> bool {
    let known = || {
        let learnt = points.iter().zip(shares).filter(|(point, share)| !point.is_too_rare && **share > 0.0);
        learnt.filter_map(|(point, share)| Some((share, point.effect, point.noise.filter(|noise| *noise > 0.0)?)))
    };
    let total: f64 = known().map(|(share, ..)| share).sum();
    // Of values whose shares are below 1 together the rest adds 0.
    let mean = known().map(|(share, effect, _)| share * effect).sum::<f64>() / total.max(1.0);
    let square = known().map(|(share, effect, noise)| share * ((effect - mean) / noise).powi(2)).sum::<f64>() / total;
    square.is_nan() || square <= 1.5 * 1.5
}

/// The unit of a column's numbers.
fn unit(model: &FittedModel, column: &str) -> Option<String> {
    let columns = &model.encoding().schema().columns;
    columns.iter().find_map(|(name, kind)| match kind {
        Column::Number { format, .. } if name == column => format.unit.clone(),
        _ => None,
    })
}
