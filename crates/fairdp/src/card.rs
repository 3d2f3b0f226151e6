//! A page about a model: figures, groups, and each column's curve, drawn from the released weights
//! alone.

use std::fmt::Write as _;

use dp_table::{BlockKind, FeatureBlock, Level};

use crate::fairness::{Difference, FairnessReport, GroupRates, Rate};
use crate::model::FittedModel;
use crate::printable::{printable, rounded_up};
use crate::statement::{ReleaseStatement, capitalised};
use crate::thresholds::Thresholds;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
table{border-collapse:collapse}td,th{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #ccc}\
td{white-space:nowrap}td:first-child,th:first-child{text-align:left;white-space:normal}figure{display:inline-block;margin:.5rem}figcaption{font-size:.85rem}\
svg{background:#fafafa}";

const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 120.0;
/// Bars of a category that are drawn.
const BARS: usize = 12;

/// The page.
pub(crate) fn html(model: &FittedModel, statement: &ReleaseStatement, fairness: &FairnessReport) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Model card</title><style>{STYLE}</style>\
         </head><body>\n<h1>Model card</h1>\n"
    );
    answer(&mut page, fairness);
    let schema = model.encoding().schema();
    let _ = writeln!(
        page,
        "<p>Predicts <b>{}</b> ({}) from {} columns. ({}, {:e})-differentially private ({}), {} training records.{}</p>",
        escaped(&schema.label.column),
        escaped(&schema.label.classes.join(", ")),
        model.encoding().blocks().len() - 1,
        rounded_up(statement.epsilon),
        statement.delta,
        statement.mark,
        statement.records["training"],
        if statement.private { "" } else { " <b>Not private: run with a seed.</b>" },
    );
    if !statement.given.is_empty() {
        let _ = writeln!(page, "<p><b>Not covered:</b> {}.</p>", escaped(&statement.given.join("; ")));
    }
    let _ = writeln!(page, "<p>Model: {}. Method: {}.</p>", escaped(&statement.model), escaped(&statement.method));
    groups(&mut page, fairness);
    curves(&mut page, model);
    page.push_str("</body></html>\n");
    page
}

/// How good the model is, for whom it is worst, and what to beware of.
fn answer(page: &mut String, fairness: &FairnessReport) {
    let Some(overall) = &fairness.overall else {
        page.push_str("<p>Not tested: all records were trained on.</p>\n");
        return;
    };
    let _ = writeln!(
        page,
        "<p>Accuracy {}, balanced accuracy {} on records that were not trained on.</p>",
        cell(overall.accuracy),
        cell(overall.balanced_accuracy)
    );
    let mut say = |text: String| {
        let _ = writeln!(page, "<p>{text}</p>");
    };
    if let Some(class) = &fairness.answers_one_class {
        say(format!("<b>Warning: the model answers {} for nearly everyone.</b>", escaped(class)));
    }
    if let Some(lowest) = fairness.lowest() {
        say(format!("{}.", escaped(&capitalised(&lowest))));
    }
    let differences = [
        ("accuracy", &fairness.accuracy_difference),
        ("answers of the positive class", &fairness.demographic_parity_difference),
        ("equalised odds", &fairness.equalized_odds_difference),
    ];
    let in_words = |difference: &Difference| escaped(&difference.in_words(points));
    let known: Vec<String> = differences
        .iter()
        .filter_map(|(name, difference)| Some(format!("{name} {}", in_words(difference.as_ref()?))))
        .collect();
    if !known.is_empty() {
        say(format!("Largest differences between groups: {}.", known.join("; ")));
    }
    for remark in fairness.thresholds.iter().flat_map(Thresholds::remarks) {
        say(format!("{}.", escaped(&capitalised(&remark))));
    }
}

fn groups(page: &mut String, fairness: &FairnessReport) {
    let Some(overall) = &fairness.overall else { return };
    let is_binary = overall.true_positive_rate.is_some();
    page.push_str(
        "<h2>Groups</h2>\n<table><tr><th>group</th><th>records</th><th>accuracy</th><th>balanced accuracy</th>",
    );
    page.push_str(if is_binary { "<th>true-positive rate</th><th>false-positive rate</th></tr>\n" } else { "</tr>\n" });
    let row = |rates: &GroupRates| {
        let cells =
            [Some(rates.accuracy), Some(rates.balanced_accuracy), rates.true_positive_rate, rates.false_positive_rate];
        let cells: Vec<String> = cells.iter().flatten().map(|rate| cell(*rate)).collect();
        let cells = cells.join("</td><td>");
        let name = escaped(&rates.group.to_string());
        let small = rates.shortage().map_or(String::new(), |shortage| format!(" ({})", escaped(&shortage)));
        format!("<tr><td>{name}{small}</td><td>{:.0}</td><td>{cells}</td></tr>\n", rates.records.max(0.0))
    };
    page.push_str(&row(overall));
    // One group is all records.
    if fairness.groups.len() > 1 {
        fairness.groups.iter().for_each(|group| page.push_str(&row(group)));
    }
    let _ = writeln!(
        page,
        "</table>\n<p>95 % intervals of sampling and of the noise (standard deviation {:.1} a count) in brackets.</p>",
        fairness.noise_std
    );
}

fn cell(rate: Rate) -> String {
    match rate.value {
        Some(value) => format!("{:.1} % [{:.1}, {:.1}]", 100.0 * value, 100.0 * rate.low, 100.0 * rate.high),
        None => "unknown".into(),
    }
}

fn points(difference: Rate) -> String {
    match difference.value {
        Some(value) => {
            format!("{:.1} points [{:.1}, {:.1}]", 100.0 * value, 100.0 * difference.low, 100.0 * difference.high)
        }
        None => "unknown".into(),
    }
}

fn curves(page: &mut String, model: &FittedModel) {
    let encoding = model.encoding();
    let classes = model.classes();
    let [layer] = model.layers() else {
        page.push_str("<p>A network has no curve of one column: what a column does depends on the others.</p>\n");
        return;
    };
    let n_outputs = layer.biases.len();
    let of_what = if n_outputs == 1 { "the log-odds" } else { "a class's score, of which only differences matter" };
    let _ = writeln!(
        page,
        "<h2>What each column does</h2>\n<p>Change of {of_what}, from the released weights: it costs nothing.</p>"
    );
    for block in encoding.blocks() {
        if block.kind == BlockKind::Constant {
            continue;
        }
        for (output, weights) in layer.weights.chunks_exact(encoding.width()).enumerate() {
            let scale = f64::from(encoding.scale());
            let effect: Vec<f64> =
                weights[block.features.clone()].iter().map(|&weight| f64::from(weight) * scale).collect();
            let (drawing, note) = drawing(block, &effect);
            let of = if n_outputs == 1 { String::new() } else { format!(" → {}", escaped(&classes[output])) };
            let name = escaped(&block.column);
            let _ = writeln!(page, "<figure>{drawing}<figcaption>{name}{of}{note}</figcaption></figure>");
        }
    }
}

/// A drawing, and what it does not show.
fn drawing(block: &FeatureBlock, effect: &[f64]) -> (String, String) {
    match &block.kind {
        BlockKind::Number { knots, missing } => {
            let last = (knots.len() - 1) as f64;
            let of_missing = missing.zip(effect.last()).map(|(position, indicator)| {
                format!("; missing: {:+.2}", effect[0] * (2.0 * f64::from(position) / last - 1.0) + indicator)
            });
            let points: Vec<(f64, f64)> = knots
                .iter()
                .enumerate()
                .map(|(i, &knot)| {
                    let hat = if knots.len() > 2 { effect[1 + i] } else { 0.0 };
                    (f64::from(knot), effect[0] * (2.0 * i as f64 / last - 1.0) + hat)
                })
                .collect();
            (line(&points), of_missing.unwrap_or_default())
        }
        BlockKind::Boolean { values: [_, second], missing } => {
            let mut names = vec![Level::Value(second.clone()).to_string()];
            names.extend(missing.then(|| Level::Missing.to_string()));
            (bars(&names, effect), String::new())
        }
        BlockKind::Vector { length, missing, .. } => {
            let mut names: Vec<String> = (0..*length).map(|place| format!("[{place}]")).collect();
            names.extend(missing.then(|| Level::Missing.to_string()));
            let note = if names.len() > BARS { format!("; {BARS} of {} numbers", names.len()) } else { String::new() };
            (bars(&names, effect), note)
        }
        BlockKind::Category { values, other, missing } => {
            let mut names: Vec<String> = values.iter().map(|value| Level::Value(value.clone()).to_string()).collect();
            names.extend(other.then(|| Level::Other.to_string()));
            names.extend(missing.then(|| Level::Missing.to_string()));
            let note = if names.len() > BARS { format!("; {BARS} of {} values", names.len()) } else { String::new() };
            (bars(&names, effect), note)
        }
        BlockKind::Constant => (String::new(), String::new()),
    }
}

fn line(points: &[(f64, f64)]) -> String {
    let range = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let (low, high) = points
            .iter()
            .map(of)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        (low, (high - low).max(1e-9))
    };
    let ((left, width), (low, height)) = (range(&|point| point.0), range(&|point| point.1));
    let path: Vec<String> = points
        .iter()
        .map(|(x, y)| {
            let x = 10.0 + (WIDTH - 20.0) * (x - left) / width;
            let y = HEIGHT - 25.0 - (HEIGHT - 45.0) * (y - low) / height;
            format!("{x:.1},{y:.1}")
        })
        .collect();
    format!(
        "<svg role=\"img\" width=\"{WIDTH}\" height=\"{HEIGHT}\"><polyline fill=\"none\" stroke=\"#06c\" stroke-width=\"2\" \
         points=\"{}\"/><text x=\"10\" y=\"{:.0}\" font-size=\"11\">{left}</text><text x=\"{:.0}\" y=\"{:.0}\" font-size=\"11\" \
         text-anchor=\"end\">{}</text><text x=\"10\" y=\"13\" font-size=\"11\">{low:+.2} to {:+.2}</text></svg>",
        path.join(" "),
        HEIGHT - 8.0,
        WIDTH - 10.0,
        HEIGHT - 8.0,
        // Knots are numbers of single precision.
        (left + width) as f32,
        low + height,
        left = left as f32,
    )
}

fn bars(names: &[String], effect: &[f64]) -> String {
    let mut order: Vec<usize> = (0..names.len().min(effect.len())).collect();
    order.sort_by(|&a, &b| effect[b].abs().total_cmp(&effect[a].abs()).then(a.cmp(&b)));
    order.truncate(BARS);
    let largest = order.first().map_or(1e-9, |&first| effect[first].abs().max(1e-9));
    let height = 16.0 * order.len() as f64 + 8.0;
    let mut drawing = format!("<svg role=\"img\" width=\"{WIDTH}\" height=\"{height}\">");
    for (place, &index) in order.iter().enumerate() {
        let (y, length) = (4.0 + 16.0 * place as f64, 60.0 * effect[index].abs() / largest);
        let x = if effect[index] < 0.0 { 190.0 - length } else { 190.0 };
        let name: String = names[index].chars().take(18).collect();
        let _ = write!(
            drawing,
            "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"12\" fill=\"#06c\"/><text x=\"2\" y=\"{:.0}\" \
             font-size=\"11\">{} {:+.2}</text>",
            y + 10.0,
            escaped(&name),
            effect[index]
        );
    }
    drawing.push_str("</svg>");
    drawing
}

fn escaped(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
