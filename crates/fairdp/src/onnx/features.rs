//! The encoding as operators: from raw columns to features.

use dp_data::table::{BlockKind, Encoding, FeatureBlock};

use super::graph::{Attribute, Element, Graph, length};

/// Declares an input per column and returns the name of the features without the constant, `[rows,
/// width − 1]`.
pub(super) fn features(graph: &mut Graph, encoding: &Encoding) -> String {
    for block in encoding.blocks() {
        match block.kind {
            BlockKind::Number { .. } => graph.input(&block.column, Element::Float),
            BlockKind::Category { .. } => graph.input(&block.column, Element::Text),
            BlockKind::Constant => {}
        }
    }
    let zero = graph.floats("zero", &[], &[0.0]);
    let one = graph.floats("one", &[], &[1.0]);
    let mut parts = Vec::new();
    for block in encoding.blocks() {
        match &block.kind {
            BlockKind::Number { knots, missing } => {
                parts.push(number(graph, block, knots, *missing, encoding.scale(), [&zero, &one]));
            }
            BlockKind::Category { values, other, missing } => {
                let markers = &encoding.schema().missing;
                parts.push(category(graph, block, values, (*other, *missing), markers, encoding.scale()));
            }
            BlockKind::Constant => {}
        }
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    graph.apply("Concat", "features", &parts, &[Attribute::Integer("axis", 1)])
}

/// How far each bin is passed, from 0 to 1, gives every feature by a linear map: the scaled value
/// is `2/k` times their sum less 1, a hat is the share of the bin before its knot less that of the
/// bin behind it.
fn number(
    graph: &mut Graph,
    block: &FeatureBlock,
    knots: &[f32],
    missing: Option<f32>,
    scale: f32,
    [zero, one]: [&str; 2],
) -> String {
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
    // Where nothing is declared for a missing value, the answer is NaN too.
    let mut instead = vec![if missing.is_some() { 0.0 } else { f32::NAN }; width];
    if let Some(position) = missing {
        instead[0] = (2.0 * position / n_bins as f32 - 1.0) * scale;
        instead[width - 1] = scale;
    }
    let instead = graph.floats(&format!("{column}: if missing"), &[1, width], &instead);
    let is_missing = graph.apply("IsNaN", &format!("{column}: is missing"), &[column], &[]);
    graph.apply("Where", &format!("{column}: features"), &[&is_missing, &instead, &present], &[])
}

/// A text's position in the list picks a row of a table; texts without a place pick one of NaN.
fn category(
    graph: &mut Graph,
    block: &FeatureBlock,
    values: &[String],
    (other, missing): (bool, bool),
    markers: &[String],
    scale: f32,
) -> String {
    let column = block.column.as_str();
    let width = block.features.len();
    let mut rows = vec![0.0; width * width];
    for position in 0..width {
        rows[position * width + position] = scale;
    }
    rows.extend(vec![f32::NAN; width]);
    let unlisted = if other { values.len() } else { width };
    let absent = if missing { width - 1 } else { unlisted };
    let keys: Vec<String> = values.iter().chain(markers).cloned().collect();
    let positions: Vec<i64> = (0..values.len()).chain(markers.iter().map(|_| absent)).map(length).collect();
    let flat = graph.integers(&format!("{column}: flat"), &[-1]);
    let texts = graph.apply("Reshape", &format!("{column}: texts"), &[column, &flat], &[]);
    let position = graph.apply(
        "LabelEncoder",
        &format!("{column}: position"),
        &[&texts],
        &[
            Attribute::Texts("keys_strings", &keys),
            Attribute::Integers("values_int64s", &positions),
            Attribute::Integer("default_int64", length(unlisted)),
        ],
    );
    let rows = graph.floats(&format!("{column}: rows"), &[width + 1, width], &rows);
    graph.apply("Gather", &format!("{column}: features"), &[&rows, &position], &[Attribute::Integer("axis", 0)])
}
