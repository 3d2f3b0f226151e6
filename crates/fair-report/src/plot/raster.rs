//! SVG to PNG.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::font;
use crate::error::{Context, ReportError, Result};

/// Pixels per unit of the SVG: sharp on a screen of high density.
const SCALE: f32 = 2.0;

/// Rasterises a plot with the embedded font.
///
/// # Errors
/// If the SVG is not valid or has no size.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    let options = Options { fontdb: font::database(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).context("reading the plot's own SVG")?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or(ReportError::Empty)?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or(ReportError::Empty)?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().context("encoding the plot as PNG")
}
