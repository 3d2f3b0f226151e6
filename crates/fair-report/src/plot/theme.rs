//! Colours and sizes. Series colours are Okabe and Ito's, which stay apart for colour-blind
//! readers; markers differ too.

use plotters::style::RGBColor;

pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
pub(super) const INK: RGBColor = RGBColor(31, 35, 40);
pub(super) const MUTED: RGBColor = RGBColor(89, 99, 110);
pub(super) const GRID: RGBColor = RGBColor(221, 225, 230);

const SERIES: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// The plotting library rounds to whole units, so there are this many to a pixel: lines are smooth
/// instead of stepped.
pub(super) const UNITS_PER_PIXEL: u32 = 8;

/// Size of one panel, in pixels. Narrow enough for a phone.
pub(super) const PANEL: (u32, u32) = (360, 270);

/// Font sizes, in pixels.
pub(super) const TITLE_SIZE: u32 = 18;
pub(super) const PANEL_TITLE_SIZE: u32 = 15;
pub(super) const LABEL_SIZE: u32 = 13;

/// Width of lines, in units.
pub(super) const LINE: u32 = 2 * UNITS_PER_PIXEL;
/// Width of axes and grid lines, in units.
pub(super) const HAIRLINE: u32 = UNITS_PER_PIXEL;

/// Pixels in units, for positions.
pub(super) fn px(pixels: i32) -> i32 {
    pixels * UNITS_PER_PIXEL.cast_signed()
}

/// Pixels in units, for sizes.
pub(super) fn size(pixels: u32) -> u32 {
    pixels * UNITS_PER_PIXEL
}

/// Colour of the series at this position; they repeat after six.
pub(super) fn series_colour(index: usize) -> RGBColor {
    SERIES[index % SERIES.len()]
}

/// Replaces the fixed colours of an SVG by the custom properties of the page it is embedded in, so
/// that it follows the page into dark mode.
pub(super) fn adopt_page_colours(svg: &str) -> String {
    let named = [(INK, "var(--ink)"), (MUTED, "var(--muted)"), (GRID, "var(--grid)")];
    let series = SERIES.iter().enumerate().map(|(index, colour)| (*colour, format!("var(--series-{})", index + 1)));
    named
        .iter()
        .map(|(colour, name)| (*colour, (*name).to_owned()))
        .chain(series)
        .fold(svg.to_owned(), |svg, (colour, name)| svg.replace(&quoted_hex(colour), &format!("\"{name}\"")))
}

fn quoted_hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("\"#{red:02X}{green:02X}{blue:02X}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_properties_of_the_page() {
        assert_eq!(
            adopt_page_colours(r##"<text fill="#1F2328"/><path stroke="#0072B2"/>"##),
            r#"<text fill="var(--ink)"/><path stroke="var(--series-1)"/>"#
        );
    }
}
