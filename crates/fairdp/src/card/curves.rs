//! What each column does, drawn from the release: all on one scale, with a line at 0 and the noise as a band.

use std::fmt::Write as _;

use super::escaped;
use crate::curves::{Curve, CurvePlace, CurvePoint, Curves};
use crate::model::FittedModel;

const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 120.0;
/// Bars of a category that are drawn.
const BARS: usize = 12;
/// Half of a band, in standard deviations of the noise: of 95 of 100 points the noise is within it.
const BAND: f64 = 1.96;
/// Names of values that are listed.
const NAMED: usize = 8;

pub(super) fn curves(page: &mut String, model: &FittedModel, curves: &Curves) {
    if model.layers().len() != 1 {
        page.push_str("<p>A network has no curve of one column: what a column does depends on the others.</p>\n");
        return;
    }
    let of_what = match (model.number(), model.classes().len()) {
        (Some(range), _) => {
            let unit = range.format.unit.as_ref().map_or(String::new(), |unit| format!(", in {}", escaped(unit)));
            format!("the predicted number{unit}")
        }
        (None, 2) => "the log-odds".to_owned(),
        _ => "a class's score, of which only differences matter".to_owned(),
    };
    let is_known = curves.curves.iter().any(|curve| curve.is_within_noise.is_some());
    let bands = if is_known {
        " The band, or the grey line of a bar, is the noise: about 95 of 100 of its values are as small. It does not say \
         what other records would change."
    } else {
        ""
    };
    let _ = writeln!(
        page,
        "<h2>What each column does</h2>\n<p>Change of {of_what}, all on one scale, the most important first; the line is at \
         0.{bands}</p>\n<div class=\"curves\">"
    );
    let is_flat = |curve: &&Curve| curve.is_within_noise == Some(true);
    let largest = curves.curves.iter().filter(|curve| !is_flat(curve)).flat_map(|curve| &curve.points);
    let largest = largest.map(|point| point.effect.abs()).fold(1e-9, f64::max);
    for curve in curves.curves.iter().filter(|curve| !is_flat(curve)) {
        let (drawing, note) = drawing(curve, largest);
        let of = curve.class.as_ref().map_or(String::new(), |class| format!(" → {}", escaped(class)));
        let name = escaped(&curve.column);
        let _ = writeln!(page, "<figure><figcaption><b>{name}</b>{of}{note}</figcaption>{drawing}</figure>");
    }
    page.push_str("</div>\n");
    let flat: Vec<String> = curves.curves.iter().filter(is_flat).map(named).collect();
    if !flat.is_empty() {
        let names = escaped(&flat.join(", "));
        let _ = writeln!(page, "<p>Flat, since what they add cannot be told from the noise: {names}.</p>");
    }
}

fn named(curve: &Curve) -> String {
    curve.class.as_ref().map_or_else(|| curve.column.clone(), |class| format!("{} → {class}", curve.column))
}

/// A drawing, and what it does not show.
fn drawing(curve: &Curve, largest: f64) -> (String, String) {
    let place = |point: &CurvePoint| if let CurvePlace::Number(at) = point.at { Some(at) } else { None };
    let (line, others): (Vec<&CurvePoint>, Vec<&CurvePoint>) =
        curve.points.iter().partition(|point| place(point).is_some());
    let rare: Vec<String> =
        curve.points.iter().filter(|point| point.is_too_rare).map(|point| point.at.to_string()).collect();
    let mut note = String::new();
    if !line.is_empty() {
        for point in others.iter().filter(|point| !point.is_too_rare) {
            let _ = write!(note, "; {}: {}", escaped(&point.at.to_string()), effect_in_words(point));
        }
    } else if others.iter().filter(|point| !point.is_too_rare).count() > BARS {
        let _ = write!(note, "; the largest {BARS} of {}", others.len());
    }
    if !line.is_empty() && !rare.is_empty() {
        let _ = write!(note, "; straight at {} of {} places, too rare to learn", rare.len(), curve.points.len());
    } else if !rare.is_empty() {
        let more = if rare.len() > NAMED { format!(" and {} more", rare.len() - NAMED) } else { String::new() };
        let names = escaped(&rare[..rare.len().min(NAMED)].join(", "));
        let _ = write!(note, "; too rare to learn: {names}{more}");
    }
    let drawing = if line.is_empty() { bars(&others, largest) } else { drawn_line(curve, &line, largest) };
    (drawing, note)
}

fn effect_in_words(point: &CurvePoint) -> String {
    let noise = point.noise.map_or(String::new(), |noise| format!(" ± {}", small(BAND * noise)));
    format!("{}{noise}", signed(point.effect))
}

/// Three digits.
fn signed(value: f64) -> String {
    if value < 0.0 { format!("-{}", small(-value)) } else { format!("+{}", small(value)) }
}

fn small(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn drawn_line(curve: &Curve, points: &[&CurvePoint], largest: f64) -> String {
    let x_of = |point: &CurvePoint| if let CurvePlace::Number(at) = point.at { at } else { 0.0 };
    let (left, right) = points
        .iter()
        .map(|point| x_of(point))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, r), x| (l.min(x), r.max(x)));
    let middle = (HEIGHT - 20.0) / 2.0;
    let at = |point: &CurvePoint, more: f64| {
        let x = 34.0 + (WIDTH - 44.0) * (x_of(point) - left) / (right - left).max(1e-9);
        let y = middle - (middle - 6.0) * (point.effect + more) / largest;
        format!("{x:.1},{:.1}", y.clamp(0.0, 2.0 * middle))
    };
    let path = |of: &dyn Fn(&CurvePoint) -> f64, is_back: bool| -> String {
        let mut places: Vec<String> = points.iter().map(|point| at(point, of(point))).collect();
        if is_back {
            places.reverse();
        }
        places.join(" ")
    };
    let band = if points.iter().all(|point| point.noise.is_some()) {
        let half = |point: &CurvePoint| BAND * point.noise.unwrap_or_default();
        format!("<polygon points=\"{} {}\"/>", path(&half, false), path(&|point| -half(point), true))
    } else {
        String::new()
    };
    let unit = curve.unit.as_ref().map_or(String::new(), |unit| format!(" {}", escaped(unit)));
    format!(
        "<svg role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">{band}<line class=\"zero\" x1=\"34\" x2=\"{:.0}\" y1=\"{middle}\" \
         y2=\"{middle}\"/><text x=\"0\" y=\"12\">{}</text><text x=\"0\" y=\"{:.0}\">{}</text>\
         <polyline points=\"{}\"/><text x=\"34\" y=\"{:.0}\">{}</text><text x=\"{:.0}\" y=\"{:.0}\" \
         text-anchor=\"end\">{}{unit}</text></svg>",
        WIDTH - 10.0,
        signed(largest),
        2.0 * middle,
        signed(-largest),
        path(&|_| 0.0, false),
        HEIGHT - 4.0,
        // Knots are numbers of single precision.
        left as f32,
        WIDTH - 10.0,
        HEIGHT - 4.0,
        right as f32,
    )
}

fn bars(points: &[&CurvePoint], largest: f64) -> String {
    let mut order: Vec<&CurvePoint> = points.iter().copied().filter(|point| !point.is_too_rare).collect();
    order.sort_by(|a, b| b.effect.abs().total_cmp(&a.effect.abs()));
    order.truncate(BARS);
    let height = 16.0 * order.len() as f64 + 8.0;
    let mut drawing = format!(
        "<svg role=\"img\" viewBox=\"0 0 {WIDTH} {height}\"><line class=\"zero\" x1=\"195\" x2=\"195\" y1=\"0\" y2=\"{height}\"/>"
    );
    for (place, point) in order.iter().enumerate() {
        let (y, length) = (4.0 + 16.0 * place as f64, 60.0 * point.effect.abs() / largest);
        let x = if point.effect < 0.0 { 195.0 - length } else { 195.0 };
        let name: String = point.at.to_string().chars().take(18).collect();
        let _ = write!(
            drawing,
            "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"12\"/><text x=\"0\" y=\"{:.0}\">{} {}</text>",
            y + 10.0,
            escaped(&name),
            signed(point.effect)
        );
        if let Some(noise) = point.noise {
            let end = 195.0 + 60.0 * point.effect / largest;
            let half = 60.0 * BAND * noise / largest;
            let (from, to, y) = ((end - half).max(130.0), (end + half).min(WIDTH), y + 6.0);
            let _ =
                write!(drawing, "<line class=\"noise\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y:.0}\" y2=\"{y:.0}\"/>");
        }
    }
    drawing.push_str("</svg>");
    drawing
}
