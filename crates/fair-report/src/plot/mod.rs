//! Plots as SVG, and PNG from the same SVG. One embedded font serves both, so no system font is
//! needed.

mod dots;
mod font;
mod heatmap;
mod lines;
mod panel;
mod raster;
mod theme;

pub use dots::{Dot, DotPanel, DotSeries};
pub use heatmap::HeatPanel;
pub use lines::{LinePanel, Point, Series, linear_range, y_range};
pub use panel::{Panel, Plot};
pub use raster::png;
