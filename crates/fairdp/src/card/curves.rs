//! What each column does, drawn from the released weights: all on one scale, with a line at 0.

use std::fmt::Write as _;

use dp_table::{BlockKind, FeatureBlock, Level};

use super::escaped;
use crate::model::FittedModel;

const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 120.0;
/// Bars of a category that are drawn.
const BARS: usize = 12;

pub(super) fn curves(page: &mut String, model: &FittedModel) {
    let encoding = model.encoding();
    let classes = model.classes();
    let [layer] = model.layers() else {
        page.push_str("<p>A network has no curve of one column: what a column does depends on the others.</p>\n");
        return;
    };
    let n_outputs = layer.biases.len();
    let of_what = match n_outputs {
        _ if model.number().is_some() => "the predicted number",
        1 => "the log-odds",
        _ => "a class's score, of which only differences matter",
    };
    let _ = writeln!(
        page,
        "<h2>What each column does</h2>\n<p>Change of {of_what}, all on one scale; the line is at 0.</p>\n<div class=\"curves\">"
    );
    let scale = f64::from(encoding.scale());
    let effects = |block: &FeatureBlock, weights: &[f32]| -> Vec<f64> {
        weights[block.features.clone()].iter().map(|&weight| f64::from(weight) * scale).collect()
    };
    let rows = || layer.weights.chunks_exact(encoding.width());
    let blocks = || encoding.blocks().iter().filter(|block| block.kind != BlockKind::Constant);
    let largest = rows()
        .flat_map(|weights| blocks().flat_map(move |block| reach(block, &effects(block, weights))))
        .fold(1e-9, |largest: f64, effect| largest.max(effect.abs()));
    for block in blocks() {
        for (output, weights) in rows().enumerate() {
            let effect = effects(block, weights);
            let (drawing, note) = drawing(block, &effect, largest);
            let of = if n_outputs == 1 { String::new() } else { format!(" → {}", escaped(&classes[output])) };
            let name = escaped(&block.column);
            let _ = writeln!(page, "<figure><figcaption><b>{name}</b>{of}{note}</figcaption>{drawing}</figure>");
        }
    }
    page.push_str("</div>\n");
}

/// Effects that are drawn of a block.
fn reach(block: &FeatureBlock, effect: &[f64]) -> Vec<f64> {
    match &block.kind {
        BlockKind::Number { knots, .. } => points(knots, effect).into_iter().map(|(_, y)| y).collect(),
        BlockKind::Image { .. } => Vec::new(),
        _ => effect.to_vec(),
    }
}

/// A number's curve.
fn points(knots: &[f32], effect: &[f64]) -> Vec<(f64, f64)> {
    let last = (knots.len() - 1) as f64;
    let point = |(i, &knot): (usize, &f32)| {
        let hat = if knots.len() > 2 { effect[1 + i] } else { 0.0 };
        (f64::from(knot), effect[0] * (2.0 * i as f64 / last - 1.0) + hat)
    };
    knots.iter().enumerate().map(point).collect()
}

/// A drawing, and what it does not show.
fn drawing(block: &FeatureBlock, effect: &[f64], largest: f64) -> (String, String) {
    match &block.kind {
        BlockKind::Number { knots, missing } => {
            let last = (knots.len() - 1) as f64;
            let of_missing = missing.zip(effect.last()).map(|(position, indicator)| {
                format!("; missing: {:+.2}", effect[0] * (2.0 * f64::from(position) / last - 1.0) + indicator)
            });
            (line(&points(knots, effect), largest), of_missing.unwrap_or_default())
        }
        BlockKind::Boolean { values: [_, second], missing } => {
            let mut names = vec![Level::Value(second.clone()).to_string()];
            names.extend(missing.then(|| Level::Missing.to_string()));
            (bars(&names, effect, largest), String::new())
        }
        BlockKind::Vector { length, missing, .. } => {
            let mut names: Vec<String> = (0..*length).map(|place| format!("[{place}]")).collect();
            names.extend(missing.then(|| Level::Missing.to_string()));
            let note = if names.len() > BARS { format!("; {BARS} of {} numbers", names.len()) } else { String::new() };
            (bars(&names, effect, largest), note)
        }
        BlockKind::Image { length, .. } => {
            (String::new(), format!(": {length} features of an image, by fixed filters; not drawn"))
        }
        BlockKind::Category { values, other, missing } => {
            let mut names: Vec<String> = values.iter().map(|value| Level::Value(value.clone()).to_string()).collect();
            names.extend(other.then(|| Level::Other.to_string()));
            names.extend(missing.then(|| Level::Missing.to_string()));
            let note = if names.len() > BARS { format!("; {BARS} of {} values", names.len()) } else { String::new() };
            (bars(&names, effect, largest), note)
        }
        BlockKind::Constant => (String::new(), String::new()),
    }
}

fn line(points: &[(f64, f64)], largest: f64) -> String {
    let (left, right) = points.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, r), p| (l.min(p.0), r.max(p.0)));
    let middle = (HEIGHT - 20.0) / 2.0;
    let at = |y: f64| middle - (middle - 6.0) * y / largest;
    let path: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{:.1},{:.1}", 34.0 + (WIDTH - 44.0) * (x - left) / (right - left).max(1e-9), at(*y)))
        .collect();
    format!(
        "<svg role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\"><line class=\"zero\" x1=\"34\" x2=\"{:.0}\" y1=\"{middle}\" \
         y2=\"{middle}\"/><text x=\"0\" y=\"12\">{largest:+.1}</text><text x=\"0\" y=\"{:.0}\">{:+.1}</text>\
         <polyline points=\"{}\"/><text x=\"34\" y=\"{:.0}\">{}</text><text x=\"{:.0}\" y=\"{:.0}\" \
         text-anchor=\"end\">{}</text></svg>",
        WIDTH - 10.0,
        2.0 * middle,
        -largest,
        path.join(" "),
        HEIGHT - 4.0,
        left as f32,
        WIDTH - 10.0,
        HEIGHT - 4.0,
        // Knots are numbers of single precision.
        right as f32,
    )
}

fn bars(names: &[String], effect: &[f64], largest: f64) -> String {
    let mut order: Vec<usize> = (0..names.len().min(effect.len())).collect();
    order.sort_by(|&a, &b| effect[b].abs().total_cmp(&effect[a].abs()).then(a.cmp(&b)));
    order.truncate(BARS);
    let height = 16.0 * order.len() as f64 + 8.0;
    let mut drawing = format!(
        "<svg role=\"img\" viewBox=\"0 0 {WIDTH} {height}\"><line class=\"zero\" x1=\"195\" x2=\"195\" y1=\"0\" y2=\"{height}\"/>"
    );
    for (place, &index) in order.iter().enumerate() {
        let (y, length) = (4.0 + 16.0 * place as f64, 60.0 * effect[index].abs() / largest);
        let x = if effect[index] < 0.0 { 195.0 - length } else { 195.0 };
        let name: String = names[index].chars().take(18).collect();
        let _ = write!(
            drawing,
            "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"12\"/><text x=\"0\" y=\"{:.0}\">{} {:+.2}</text>",
            y + 10.0,
            escaped(&name),
            effect[index]
        );
    }
    drawing.push_str("</svg>");
    drawing
}
