//! The encoding as operators: from raw columns to features.

use std::collections::BTreeMap;

use dp_table::{BlockKind, Encoding, FeatureBlock, Value, VectorBound, spellings_of_marker};

use super::graph::{Attribute, Element, Graph, length};
use super::{numbers, vector};

/// Declares an input per column. Returns the names of the features without the constant, `[rows,
/// width − 1]`, and of whether a row is refused, `[rows, 1]`.
pub(super) fn features(graph: &mut Graph, encoding: &Encoding) -> (String, String) {
    for block in encoding.blocks() {
        match block.kind {
            BlockKind::Number { .. } => graph.input(&block.column, Element::Float, 1),
            BlockKind::Vector { length, .. } | BlockKind::Image { length, .. } => {
                graph.input(&block.column, Element::Float, length);
            }
            BlockKind::Boolean { .. } | BlockKind::Category { .. } => graph.input(&block.column, Element::Text, 1),
            BlockKind::Constant => {}
        }
    }
    let zero = graph.floats("zero", &[], &[0.0]);
    let one = graph.floats("one", &[], &[1.0]);
    let markers = &encoding.schema().missing;
    let (mut parts, mut refused) = (Vec::new(), Vec::new());
    for block in encoding.blocks() {
        let (part, is_refused) = match &block.kind {
            BlockKind::Number { knots, missing } => {
                number(graph, block, knots, *missing, markers, encoding.scale(), [&zero, &one])
            }
            BlockKind::Boolean { values, missing } => {
                let list = List { values, other: false, missing: *missing, has_baseline: true };
                category(graph, block, list, markers, encoding.scale())
            }
            BlockKind::Category { values, other, missing } => {
                let list = List { values, other: *other, missing: *missing, has_baseline: false };
                category(graph, block, list, markers, encoding.scale())
            }
            BlockKind::Vector { bound, missing, .. } => {
                vector::features(graph, block, *bound, *missing, encoding.scale())
            }
            // The features themselves, which fixed filters made of it.
            BlockKind::Image { missing, .. } => {
                vector::features(graph, block, VectorBound::Norm(1.0), *missing, encoding.scale())
            }
            BlockKind::Constant => continue,
        };
        parts.push(part);
        refused.push(is_refused);
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let features = graph.apply("Concat", "features", &parts, &[Attribute::Integer("axis", 1)]);
    (features, any(graph, "refused", refused))
}

/// Whether one of several conditions holds.
pub(super) fn any(graph: &mut Graph, name: &str, conditions: Vec<String>) -> String {
    conditions.into_iter().reduce(|one, other| graph.apply("Or", name, &[&one, &other], &[])).unwrap_or_default()
}

/// How far each bin is passed, from 0 to 1, gives every feature by a linear map: the scaled value
/// is `2/k` times their sum less 1, a hat is the share of the bin before its knot less that of the
/// bin behind it. Returns the features, and whether the number is refused.
fn number(
    graph: &mut Graph,
    block: &FeatureBlock,
    knots: &[f32],
    missing: Option<f32>,
    markers: &[String],
    scale: f32,
    [zero, one]: [&str; 2],
) -> (String, String) {
    let column = block.column.as_str();
    let (n_bins, width) = (knots.len() - 1, block.features.len());
    let mut map = vec![0.0; n_bins * width];
    let mut shift = vec![0.0; width];
    shift[0] = -scale;
    for bin in 0..n_bins {
        map[bin * width] = 2.0 / n_bins as f32 * scale;
        if n_bins > 1 {
            map[bin * width + 1 + bin] = -scale;
            map[bin * width + 2 + bin] = scale;
        }
    }
    if n_bins > 1 {
        shift[1] = scale;
    }
    let widths: Vec<f32> = knots.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let from = graph.floats(&format!("{column}: lower edges"), &[1, n_bins], &knots[..n_bins]);
    let by = graph.floats(&format!("{column}: widths"), &[1, n_bins], &widths);
    let map = graph.floats(&format!("{column}: map"), &[n_bins, width], &map);
    let shift = graph.floats(&format!("{column}: shift"), &[1, width], &shift);
    let above = graph.apply("Sub", &format!("{column}: above edges"), &[column, &from], &[]);
    let ratio = graph.apply("Div", &format!("{column}: ratio"), &[&above, &by], &[]);
    let passed = graph.apply("Clip", &format!("{column}: bins passed"), &[&ratio, zero, one], &[]);
    let mapped = graph.apply("MatMul", &format!("{column}: mapped"), &[&passed, &map], &[]);
    let present = graph.apply("Add", &format!("{column}: present"), &[&mapped, &shift], &[]);
    let mut is_missing = vec![graph.apply("IsNaN", &format!("{column}: is absent"), &[column], &[])];
    for (marker, _) in ValuePositions::new(&[], markers, 0).numbers {
        let marker = graph.floats(&format!("{column}: marker"), &[1, 1], &[marker as f32]);
        is_missing.push(graph.apply("Equal", &format!("{column}: is marked"), &[column, &marker], &[]));
    }
    let is_missing = any(graph, &format!("{column}: is missing"), is_missing);
    let is_infinite = graph.apply("IsInf", &format!("{column}: is infinite"), &[column], &[]);
    let Some(position) = missing else {
        return (present, any(graph, &format!("{column}: is refused"), vec![is_infinite, is_missing]));
    };
    let mut instead = vec![0.0; width];
    instead[0] = (2.0 * position / n_bins as f32 - 1.0) * scale;
    instead[width - 1] = scale;
    let instead = graph.floats(&format!("{column}: if missing"), &[1, width], &instead);
    let features = graph.apply("Where", &format!("{column}: features"), &[&is_missing, &instead, &present], &[]);
    (features, is_infinite)
}

/// A list of values, and whether the first of them is the baseline, which has no feature.
struct List<'a> {
    values: &'a [String],
    other: bool,
    missing: bool,
    has_baseline: bool,
}

/// A text's position in the list picks a row of a table; texts without a place pick its last one,
/// which is zero. Returns the features, and whether the text is refused.
fn category(
    graph: &mut Graph,
    block: &FeatureBlock,
    List { values, other, missing, has_baseline }: List<'_>,
    markers: &[String],
    scale: f32,
) -> (String, String) {
    let column = block.column.as_str();
    let width = block.features.len();
    let first = usize::from(has_baseline);
    let n_places = width + first;
    let mut rows = vec![0.0; (n_places + 1) * width];
    for feature in 0..width {
        rows[(feature + first) * width + feature] = scale;
    }
    let unlisted = if other { values.len() } else { n_places };
    let absent = if missing { n_places - 1 } else { unlisted };
    let known = ValuePositions::new(values, markers, absent);
    let (keys, positions): (Vec<String>, Vec<i64>) = known.texts.into_iter().unzip();
    let flat = graph.integers(&format!("{column}: flat"), &[-1]);
    let texts = graph.apply("Reshape", &format!("{column}: texts"), &[column, &flat], &[]);
    let mut position = graph.apply(
        "LabelEncoder",
        &format!("{column}: position"),
        &[&texts],
        &[
            Attribute::Texts("keys_strings", &keys),
            Attribute::Integers("values_int64s", &positions),
            Attribute::Integer("default_int64", length(unlisted)),
        ],
    );
    if !known.numbers.is_empty() {
        position = numbers::positions(graph, column, &texts, &position, &known.numbers);
    }
    let rows = graph.floats(&format!("{column}: rows"), &[n_places + 1, width], &rows);
    let axis = [Attribute::Integer("axis", 0)];
    let features = graph.apply("Gather", &format!("{column}: features"), &[&rows, &position], &axis);
    let nowhere = graph.integers(&format!("{column}: no place"), &[length(n_places)]);
    let is_refused = graph.apply("Equal", &format!("{column}: has no place"), &[&position, &nowhere], &[]);
    let upright = graph.integers(&format!("{column}: upright"), &[-1, 1]);
    let is_refused = graph.apply("Reshape", &format!("{column}: is refused"), &[&is_refused, &upright], &[]);
    (features, is_refused)
}

/// Declared values and markers with their positions: by text, and by number.
struct ValuePositions {
    texts: BTreeMap<String, i64>,
    numbers: Vec<(f64, i64)>,
}

impl ValuePositions {
    fn new(values: &[String], all_markers: &[String], absent: usize) -> Self {
        let mut known = Self { texts: BTreeMap::new(), numbers: Vec::new() };
        let meanings = values.iter().zip(Value::all_of(values)).enumerate();
        let markers = all_markers.iter().map(|marker| (absent, (marker, vec![Value::of(marker)])));
        for (position, (text, meanings)) in meanings.chain(markers) {
            let position = length(position);
            known.texts.insert(text.clone(), position);
            for meaning in meanings {
                match meaning {
                    Value::Number(number) => known.numbers.extend(number.as_double().map(|number| (number, position))),
                    Value::Truth(truth) => {
                        let spellings = Value::spellings_of_truth(truth).map(|text| (text.to_owned(), position));
                        known.texts.extend(spellings);
                    }
                    Value::Text(_) => {}
                }
            }
        }
        for marker in all_markers {
            for text in spellings_of_marker(marker) {
                // A declared value is no marker in other letters.
                known.texts.entry(text).or_insert(length(absent));
            }
        }
        known
    }
}
