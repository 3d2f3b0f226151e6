//! ε over steps.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::ensure;
use dp_accounting::case::CheckedCase;
use dp_accounting::{Accountant, Delta, Epsilon};
use fair_report::plot::{LinePanel, Panel, Plot, Point, Series, png};
use run_records::output::Output;

/// Points of each line.
const POINTS: u64 = 24;

/// Draws the RDP bound and the PLD bracket from the first step to the last.
pub(super) fn draw(case: &CheckedCase, path: &Path) -> anyhow::Result<()> {
    let is_drawing = |extension: &OsStr| extension == "svg" || extension == "png";
    ensure!(path.extension().is_some_and(is_drawing), "--plot {} must end in .svg or .png", path.display());
    let output = Output::new(path, &[])?;
    let delta = case.delta().map_or_else(|| Delta::new(super::DELTA), Ok)?;
    let event = case.event()?;
    let mut rdp = Series { name: "RDP".to_owned(), points: Vec::new() };
    let mut pld = Series { name: "PLD bracket".to_owned(), points: Vec::new() };
    for i in 0..=POINTS {
        let steps = (u128::from(case.steps()) * u128::from(i)).div_ceil(u128::from(POINTS)) as u64;
        let mut accountant = case.rdp();
        accountant.compose(&event, steps)?;
        let bound = accountant.epsilon(delta)?.epsilon.get();
        rdp.points.push(Point { x: steps as f64, mean: bound, low: bound, high: bound });
        let mut accountant = case.pld()?;
        accountant.compose(&event, steps)?;
        let bound = accountant.epsilon(delta)?;
        let (low, high) = (bound.lower.map_or(0.0, Epsilon::get), bound.epsilon.get());
        pld.points.push(Point { x: steps as f64, mean: high, low, high });
    }
    let panel = LinePanel {
        title: "ε over steps".to_owned(),
        x_label: "steps".to_owned(),
        y_label: "ε".to_owned(),
        series: vec![rdp, pld],
        y_range: None,
        log2_x: false,
    };
    let svg = Plot { title: case.to_string(), panels: vec![Panel::Lines(panel)], n_columns: 1 }.svg()?;
    let is_png = path.extension().is_some_and(|extension| extension == "png");
    output.write_bytes(&if is_png { png(&svg)? } else { svg.into_bytes() })
}
