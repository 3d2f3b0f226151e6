//! Plots as SVG, and PNG from the same SVG. One embedded font serves both, so no system font is needed.

mod bars;
mod font;
mod heatmap;
mod lines;
mod panel;
mod raster;
mod theme;

pub(crate) use bars::{Bar, BarPanel, BarSeries};
pub(crate) use heatmap::HeatPanel;
pub(crate) use lines::{LinePanel, Point, Series, y_range};
pub(crate) use panel::{Panel, Plot};
pub(crate) use raster::png;
