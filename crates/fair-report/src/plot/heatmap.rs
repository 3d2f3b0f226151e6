//! Values on a grid as colours, with a scale beside them.

use plotters::element::Text;
use plotters::prelude::Rectangle;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, RGBColor};

use super::lines::{extent, tick};
use super::panel::{Area, Drawn, text_style};
use super::theme::{self, px};
use crate::error::Context;

/// A cell per pair of values.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatPanel {
    /// Above the panel.
    pub title: String,
    /// Below its axis.
    pub x_label: String,
    /// Beside its axis.
    pub y_label: String,
    /// Ascending, from the left.
    pub x_values: Vec<f64>,
    /// Ascending, from the bottom.
    pub y_values: Vec<f64>,
    /// `[y][x]`; `None` where it is undefined, which leaves the cell empty.
    pub values: Vec<Vec<Option<f64>>>,
}

/// Dark to light, of growing lightness: it also reads without colour. After viridis.
const SCALE: [RGBColor; 6] = [
    RGBColor(68, 1, 84),
    RGBColor(65, 68, 135),
    RGBColor(42, 120, 142),
    RGBColor(34, 168, 132),
    RGBColor(122, 209, 81),
    RGBColor(253, 231, 37),
];

const LEFT: i32 = 66;
const TOP: i32 = 34;
const RIGHT: i32 = 70;
const BOTTOM: i32 = 52;
/// Most labels on an axis.
const MAX_LABELS: usize = 6;

impl HeatPanel {
    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        let (width, height) = area.dim_in_pixel();
        let (left, top) = (px(LEFT), px(TOP));
        let (right, bottom) = (width.cast_signed() - px(RIGHT), height.cast_signed() - px(BOTTOM));
        let title = text_style(theme::PANEL_TITLE_SIZE, theme::INK);
        area.draw(&Text::new(self.title.clone(), (px(10), px(6)), title)).context("drawing a panel's title")?;
        let (low, high) = extent(self.values.iter().flatten().flatten().copied()).unwrap_or((0.0, 1.0));
        let share = |value: f64| if high > low { (value - low) / (high - low) } else { 0.5 };
        let edge = |from: i32, to: i32, index: usize, n: usize| {
            from + (f64::from(to - from) * index as f64 / n.max(1) as f64).round() as i32
        };
        let x_edge = |index| edge(left, right, index, self.x_values.len());
        let y_edge = |index| edge(bottom, top, index, self.y_values.len());
        for (row, values) in self.values.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let Some(value) = value else { continue };
                let corners = [(x_edge(column), y_edge(row + 1)), (x_edge(column + 1), y_edge(row))];
                let cell = Rectangle::new(corners, colour(share(*value)).filled());
                area.draw(&cell).context("drawing a cell")?;
            }
        }
        let label = |text: String, at, anchor| {
            let style = text_style(theme::LABEL_SIZE, theme::INK).pos(anchor);
            area.draw(&Text::new(text, at, style)).context("drawing a label")
        };
        for index in labelled(self.x_values.len()) {
            let middle = i32::midpoint(x_edge(index), x_edge(index + 1));
            label(tick(self.x_values[index]), (middle, bottom + px(5)), Pos::new(HPos::Center, VPos::Top))?;
        }
        for index in labelled(self.y_values.len()) {
            let middle = i32::midpoint(y_edge(index), y_edge(index + 1));
            label(tick(self.y_values[index]), (left - px(5), middle), Pos::new(HPos::Right, VPos::Center))?;
        }
        let middle = i32::midpoint(left, right);
        label(self.x_label.clone(), (middle, bottom + px(26)), Pos::new(HPos::Center, VPos::Top))?;
        let style = text_style(theme::LABEL_SIZE, theme::INK)
            .transform(plotters::style::FontTransform::Rotate270)
            .pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(self.y_label.clone(), (px(6), i32::midpoint(top, bottom)), style))
            .context("drawing a label")?;
        Self::draw_scale(area, (right + px(10), top, bottom), (low, high))
    }

    /// The colours from the least to the greatest value, both named.
    fn draw_scale(area: &Area<'_>, (left, top, bottom): (i32, i32, i32), (low, high): (f64, f64)) -> Drawn {
        const STEPS: i32 = 48;
        for step in 0..STEPS {
            let edge = |index: i32| bottom - (bottom - top) * index / STEPS;
            // Each step reaches under the next one, or the edges between them would show.
            let corners = [(left, edge((step + 2).min(STEPS))), (left + px(12), edge(step))];
            let cell = Rectangle::new(corners, colour(f64::from(step) / f64::from(STEPS - 1)).filled());
            area.draw(&cell).context("drawing the scale")?;
        }
        for (value, y, anchor) in [(high, top, VPos::Top), (low, bottom, VPos::Bottom)] {
            let style = text_style(theme::LABEL_SIZE, theme::INK).pos(Pos::new(HPos::Left, anchor));
            area.draw(&Text::new(tick(value), (left + px(16), y), style)).context("drawing the scale")?;
        }
        Ok(())
    }
}

/// Positions of labels: all, or evenly spaced ones with the first and the last among them where
/// possible.
fn labelled(n: usize) -> impl Iterator<Item = usize> {
    let step = n.saturating_sub(1).div_ceil(MAX_LABELS - 1).max(1);
    (0..n).step_by(step)
}

/// The colour at a share of the scale.
fn colour(share: f64) -> RGBColor {
    let position = share.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
    let index = (position as usize).min(SCALE.len() - 2);
    let weight = position - index as f64;
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * weight).round() as u8;
    let (a, b) = (SCALE[index], SCALE[index + 1]);
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_ends_where_it_should_and_gets_lighter() {
        assert_eq!((colour(0.0), colour(1.0)), (SCALE[0], SCALE[5]));
        let lightness = |RGBColor(r, g, b)| 0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b);
        let steps: Vec<f64> = (0..=20).map(|step| lightness(colour(f64::from(step) / 20.0))).collect();
        assert!(steps.is_sorted(), "{steps:?}");
    }

    #[test]
    fn few_labels() {
        assert_eq!(labelled(4).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(labelled(20).collect::<Vec<_>>(), [0, 4, 8, 12, 16]);
        assert_eq!(labelled(0).count(), 0);
    }
}
