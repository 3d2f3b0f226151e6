//! ε over steps.

use std::path::Path;

use anyhow::{Context, bail};
use dp_accounting::{Accountant, Delta, PldAccountant, RdpAccountant};

use super::composed;
use super::setting::Setting;
use crate::plot::{LinePanel, Panel, Plot, Point, Series, png};

/// Points of each line.
const POINTS: u64 = 24;

/// Draws the RDP bound and the PLD bracket from the first step to the last.
pub(super) fn draw(setting: &Setting, relative_width: f64, path: &Path) -> anyhow::Result<()> {
    let (event, relation, delta) = (setting.event()?, setting.relation(), Delta::new(setting.delta)?);
    let mut rdp = Series { name: "RDP".to_owned(), points: Vec::new() };
    let mut pld = Series { name: "PLD bracket".to_owned(), points: Vec::new() };
    for i in 0..=POINTS {
        let steps = (setting.steps * i).div_ceil(POINTS);
        let bound = composed(RdpAccountant::new(relation), &event, steps)?.epsilon(delta)?.epsilon.get();
        rdp.points.push(Point { x: steps as f64, mean: bound, low: bound, high: bound });
        let accountant = PldAccountant::new(relation).with_relative_width(relative_width)?;
        let bound = composed(accountant, &event, steps)?.epsilon(delta)?;
        let (low, high) = (bound.lower.map_or(0.0, dp_accounting::Epsilon::get), bound.epsilon.get());
        pld.points.push(Point { x: steps as f64, mean: high, low, high });
    }
    let panel = LinePanel {
        title: setting.to_string(),
        x_label: "steps".to_owned(),
        y_label: "ε".to_owned(),
        series: vec![rdp, pld],
        y_range: None,
    };
    let svg =
        Plot { title: "Privacy loss over steps".to_owned(), panels: vec![Panel::Lines(panel)], n_columns: 1 }.svg()?;
    let bytes = match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => svg.into_bytes(),
        Some("png") => png(&svg)?,
        _ => bail!("--plot {} must end in .svg or .png", path.display()),
    };
    std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}
