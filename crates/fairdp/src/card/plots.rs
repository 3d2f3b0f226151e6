//! Groups on one axis, ROC curves, calibration, and the price of a smaller gap.

use std::fmt::Write as _;

use super::escaped;
use crate::fairness::{FairnessReport, GroupRates, Rate};
use crate::price::PricePoint;

/// Groups that are drawn; the others are in the table.
const DRAWN: usize = 24;
/// Curves in one plot.
const CURVES: usize = 6;
/// Strokes that tell curves apart without colour.
const DASHES: [&str; CURVES] = ["", "6 3", "2 3", "9 3 2 3", "12 4", "4 6"];
const SIDE: f64 = 240.0;

/// Balanced accuracy of every group with its interval, on one axis; those that may be served worst are marked.
pub(super) fn dots(report: &FairnessReport) -> String {
    let groups: Vec<&GroupRates> = report.groups.iter().take(DRAWN).collect();
    let known = groups.iter().map(|group| group.balanced_accuracy).filter(|rate| rate.value.is_some());
    let low = known.clone().map(|rate| rate.low).fold(1.0, f64::min);
    let high = known.map(|rate| rate.high).fold(0.0, f64::max);
    let (low, high) = if low < high { ((20.0 * low).floor() / 20.0, (20.0 * high).ceil() / 20.0) } else { (0.0, 1.0) };
    let at = |value: f64| 100.0 * (value - low) / (high - low);
    let mut rows = String::from("<div class=\"dots\">");
    for group in &groups {
        let is_worst = report.cannot_be_told_from_the_lowest.contains(&group.group);
        let class = if is_worst { " class=\"worst\"" } else { "" };
        let name = escaped(&group.group.to_string());
        let mark = match group.balanced_accuracy {
            Rate { value: Some(value), low, high } => format!(
                "<i style=\"left:{:.2}%;width:{:.2}%\"></i><b style=\"left:{:.2}%\"></b>",
                at(low),
                at(high) - at(low),
                at(value)
            ),
            _ => "<span class=\"soft\">unknown</span>".to_owned(),
        };
        let _ = write!(rows, "<div{class}><span>{name}</span><span class=\"track\">{mark}</span></div>");
    }
    let label = |value: f64| format!("{:.0} %", 100.0 * value);
    let _ = write!(
        rows,
        "<div><span></span><span class=\"axis\"><span>{}</span><span>{}</span><span>{}</span></span></div></div>",
        label(low),
        label(f64::midpoint(low, high)),
        label(high)
    );
    rows
}

/// A square with axes from 0 to 1, a diagonal and a curve of each group.
fn square(label: &str, axes: [&str; 2], curves: &[(String, Vec<[f64; 2]>)]) -> String {
    let (left, top) = (30.0, 6.0);
    let at = |[x, y]: [f64; 2]| (left + SIDE * x, top + SIDE * (1.0 - y));
    let height = top + SIDE + 30.0 + 16.0 * curves.len() as f64;
    let mut svg =
        format!("<svg role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {:.0} {height:.0}\">", left + SIDE + 10.0);
    let lines = [[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]];
    for [from, to] in lines {
        let ((x1, y1), (x2, y2)) = (at(from), at(to));
        let _ = write!(svg, "<line class=\"zero\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
    }
    let below = top + SIDE + 14.0;
    let _ = write!(
        svg,
        "<text class=\"soft\" x=\"{:.0}\" y=\"{below:.0}\" text-anchor=\"middle\">{}</text><text class=\"soft\" x=\"{left:.0}\" \
         y=\"{below:.0}\">0</text><text class=\"soft\" x=\"{:.0}\" y=\"{below:.0}\" text-anchor=\"end\">1</text><text class=\"soft\" \
         x=\"12\" y=\"{:.0}\" text-anchor=\"middle\" transform=\"rotate(-90 12 {2:.0})\">{}</text>",
        left + SIDE / 2.0,
        axes[0],
        left + SIDE,
        top + SIDE / 2.0,
        axes[1],
    );
    for (place, (name, points)) in curves.iter().enumerate() {
        let dash = DASHES[place % CURVES];
        let path: Vec<String> = points
            .iter()
            .map(|&point| {
                let (x, y) = at(point);
                format!("{x:.1},{y:.1}")
            })
            .collect();
        let y = top + SIDE + 32.0 + 16.0 * place as f64;
        let _ = write!(
            svg,
            "<polyline stroke-dasharray=\"{dash}\" points=\"{}\"/><line stroke-dasharray=\"{dash}\" x1=\"{left:.0}\" x2=\"{:.0}\" \
             y1=\"{2:.0}\" y2=\"{2:.0}\"/><text x=\"{3:.0}\" y=\"{4:.0}\">{5}</text>",
            path.join(" "),
            left + 40.0,
            y - 4.0,
            left + 48.0,
            y,
            escaped(name)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Groups whose curves are drawn: the largest.
fn drawn(report: &FairnessReport) -> Vec<&GroupRates> {
    let of_one = report.groups.len() < 2;
    let all = if of_one { report.overall.iter().collect::<Vec<_>>() } else { report.groups.iter().collect() };
    let mut groups: Vec<&GroupRates> =
        all.into_iter().filter(|group| group.auc.is_some_and(|a| a.value.is_some())).collect();
    groups.sort_by(|a, b| b.records.total_cmp(&a.records));
    groups.truncate(CURVES);
    groups
}

/// ROC curves, with their areas.
pub(super) fn roc(report: &FairnessReport) -> Option<String> {
    let curves: Vec<(String, Vec<[f64; 2]>)> = drawn(report)
        .iter()
        .filter(|group| !group.roc.is_empty())
        .map(|group| {
            let auc = group.auc.map_or(String::new(), |auc| {
                format!(": AUC {:.3} [{:.3}, {:.3}]", auc.value.unwrap_or_default(), auc.low, auc.high)
            });
            (format!("{}{auc}", group.group), group.roc.clone())
        })
        .collect();
    (!curves.is_empty()).then(|| square("ROC curves", ["false-positive rate", "true-positive rate"], &curves))
}

/// Share of positives over probability.
pub(super) fn calibration(report: &FairnessReport) -> Option<String> {
    let curves: Vec<(String, Vec<[f64; 2]>)> = drawn(report)
        .iter()
        .map(|group| {
            let points = group
                .calibration
                .iter()
                .filter_map(|bin| Some([f64::midpoint(bin.from, bin.to), bin.positive_rate.value?]));
            (group.group.to_string(), points.collect())
        })
        .filter(|(_, points): &(String, Vec<[f64; 2]>)| points.len() > 1)
        .collect();
    (!curves.is_empty()).then(|| square("calibration", ["probability", "share of positives"], &curves))
}

/// Accuracy over the gap of equalised odds.
pub(super) fn price(curve: &[PricePoint]) -> Option<String> {
    let points: Vec<(f64, f64, f64)> = curve
        .iter()
        .filter_map(|point| {
            let gap = point.equalized_odds_difference.known();
            Some((gap.value?, point.accuracy.value?, point.max_loss))
        })
        .collect();
    if points.len() < 2 {
        return None;
    }
    let range = |of: fn(&(f64, f64, f64)) -> f64, least: f64| {
        let (low, high) =
            points.iter().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        let spare = 0.5 * (least - (high - low)).max(0.0) + 0.1 * (high - low).max(least);
        ((low - spare).max(0.0), (high + spare).min(1.0))
    };
    let ((left, right), (low, high)) = (range(|point| point.0, 0.05), range(|point| point.1, 0.02));
    let at = |gap: f64, accuracy: f64| {
        (40.0 + (SIDE - 10.0) * (gap - left) / (right - left), 6.0 + SIDE * 0.8 * (high - accuracy) / (high - low))
    };
    let bottom = 6.0 + SIDE * 0.8;
    let mut svg = format!(
        "<svg role=\"img\" aria-label=\"accuracy over gap\" viewBox=\"0 0 {:.0} {:.0}\"><line class=\"zero\" x1=\"40\" x2=\"40\" \
         y1=\"6\" y2=\"{bottom:.0}\"/><line class=\"zero\" x1=\"40\" x2=\"{:.0}\" y1=\"{bottom:.0}\" y2=\"{bottom:.0}\"/>",
        SIDE + 40.0,
        bottom + 34.0,
        SIDE + 30.0
    );
    let _ = write!(
        svg,
        "<text class=\"soft\" x=\"0\" y=\"14\">{:.1} %</text><text class=\"soft\" x=\"0\" y=\"{bottom:.0}\">{:.1} %</text>\
         <text class=\"soft\" x=\"40\" y=\"{:.0}\">{:.1} points</text><text class=\"soft\" x=\"{:.0}\" y=\"{2:.0}\" \
         text-anchor=\"end\">{:.1} points</text><text class=\"soft\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">gap of equalised \
         odds</text>",
        100.0 * high,
        100.0 * low,
        bottom + 14.0,
        100.0 * left,
        SIDE + 30.0,
        100.0 * right,
        40.0 + SIDE / 2.0,
        bottom + 30.0,
    );
    for same in points.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
        let (Some(first), Some(last)) = (same.first(), same.last()) else { continue };
        let (x, y) = at(first.0, first.1);
        let label = if same.len() == 1 { first.2.to_string() } else { format!("{} to {}", first.2, last.2) };
        let (anchor, beside) = if x > SIDE / 2.0 + 40.0 { ("end", -7.0) } else { ("start", 7.0) };
        let _ = write!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}</text>",
            x + beside,
            y - 6.0
        );
    }
    svg.push_str("</svg>");
    Some(svg)
}
