//! Dots by category and series, with standard errors and the published value where there is one.

use plotters::chart::ChartBuilder;
use plotters::element::{PathElement, Text};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::lines::{extent, tick};
use super::panel::{Area, Drawn, Key, draw_marker, draw_published, head, head_height, n_legend_rows, text_style};
use super::theme::{self, px, size};
use crate::error::Context;

/// One cluster of rows per category, one row per series. The axis begins where the values do, not
/// at zero: a dot says where a value is, and no length claims more.
#[derive(Debug, Clone, PartialEq)]
pub struct DotPanel {
    /// Above the panel.
    pub title: String,
    /// Below its axis.
    pub x_label: String,
    /// Names of the clusters, from the top.
    pub categories: Vec<String>,
    /// In the order of the legend.
    pub series: Vec<DotSeries>,
    /// A range that no value leaves.
    pub limits: (f64, f64),
    /// Digits after the point of the value beside each dot.
    pub decimals: usize,
}

/// One dot of each category.
#[derive(Debug, Clone, PartialEq)]
pub struct DotSeries {
    /// In the legend.
    pub name: String,
    /// `None` where the value is undefined: the label says so.
    pub dots: Vec<Option<Dot>>,
}

/// A value with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dot {
    /// The value.
    pub mean: f64,
    /// Half the width of its whisker.
    pub standard_error: Option<f64>,
    /// The published value, drawn as a hollow diamond.
    pub published: Option<f64>,
}

impl Dot {
    /// Everything that is drawn of it.
    fn values(self) -> impl Iterator<Item = f64> {
        let error = self.standard_error.unwrap_or(0.0);
        [self.mean - error, self.mean + error].into_iter().chain(self.published)
    }
}

const ROW_HEIGHT: u32 = 16;
const CLUSTER_GAP: u32 = 12;
/// Room for the names of the clusters: for long ones more, but no more than half the panel.
const NAME_WIDTHS: std::ops::RangeInclusive<u32> = 128..=190;
/// A letter, about.
const LETTER_WIDTH: u32 = 8;
/// Margin on each side, as a share of the range of values.
const MARGIN: f64 = 0.05;

impl DotPanel {
    pub(super) fn height(&self) -> u32 {
        let cluster = ROW_HEIGHT * self.series.len() as u32 + CLUSTER_GAP;
        head_height(n_legend_rows(&self.names(), self.key())) + 52 + cluster * self.categories.len() as u32
    }

    /// What the legend names: the series, and the hollow diamonds if there are any.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let mut dots = self.series.iter().flat_map(|series| &series.dots).flatten();
        if dots.any(|dot| dot.published.is_some()) {
            names.push("published");
        }
        names
    }

    fn key(&self) -> Key {
        Key::Dot { series: self.series.len() }
    }

    fn name_width(&self) -> u32 {
        let longest = self.categories.iter().map(|name| name.chars().count()).max().unwrap_or(0) as u32;
        (longest * LETTER_WIDTH).clamp(*NAME_WIDTHS.start(), *NAME_WIDTHS.end())
    }

    /// Where the axis begins and ends.
    fn range(&self) -> (f64, f64) {
        let dots = self.series.iter().flat_map(|series| &series.dots).flatten();
        let Some((low, high)) = extent(dots.flat_map(|dot| dot.values())) else { return self.limits };
        let margin = if high > low { MARGIN * (high - low) } else { 1.0 };
        let (low, high) = ((low - margin).max(self.limits.0), (high + margin).min(self.limits.1));
        if low < high { (low, high) } else { self.limits }
    }

    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        let body = head(area, &self.title, &self.names(), self.key())?;
        let (low, high) = self.range();
        let n = self.categories.len() as f64;
        // The margin on the right has room for the values.
        let mut chart = ChartBuilder::on(&body)
            .margin_right(size(48))
            .margin_top(size(4))
            .margin_bottom(size(6))
            .x_label_area_size(size(42))
            .y_label_area_size(size(self.name_width()))
            .build_cartesian_2d(low..high, n..0.0)
            .context("setting up a chart of dots")?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .light_line_style(theme::GRID.stroke_width(0))
            .bold_line_style(theme::GRID.stroke_width(theme::HAIRLINE))
            .axis_style(theme::MUTED.stroke_width(theme::HAIRLINE))
            .set_all_tick_mark_size(px(4))
            .label_style(text_style(theme::LABEL_SIZE, theme::INK))
            .axis_desc_style(text_style(theme::LABEL_SIZE, theme::INK))
            .x_desc(self.x_label.as_str())
            .x_labels(5)
            .x_label_formatter(&|x| tick(*x))
            .draw()
            .context("drawing axes")?;
        let plotting = chart.plotting_area();
        let cluster_height = f64::from(ROW_HEIGHT * self.series.len() as u32 + CLUSTER_GAP);
        let row_share = f64::from(ROW_HEIGHT) / cluster_height;
        let gap_share = f64::from(CLUSTER_GAP) / cluster_height / 2.0;
        let (x0, y0) = body.get_base_pixel();
        let place = |x: f64, y: f64| {
            let (x, y) = plotting.map_coordinate(&(x, y));
            (x - x0, y - y0)
        };
        let label = |text: String, at, side| {
            let style = text_style(theme::LABEL_SIZE, theme::INK).pos(Pos::new(side, VPos::Center));
            body.draw(&Text::new(text, at, style))
        };
        let line = |ends: Vec<(i32, i32)>, style| body.draw(&PathElement::new(ends, style)).context("drawing a line");
        for (category, name) in self.categories.iter().enumerate() {
            let (left, middle) = place(low, category as f64 + 0.5);
            label(name.clone(), (left - px(8), middle), HPos::Right).context("drawing a name")?;
            for (index, series) in self.series.iter().enumerate() {
                let centre = category as f64 + gap_share + row_share * (index as f64 + 0.5);
                let (right, y) = place(high, centre);
                let dot = series.dots.get(category).copied().flatten();
                let value = dot.map_or_else(|| "undefined".to_owned(), |dot| format!("{:.*}", self.decimals, dot.mean));
                label(value, (right + px(6), y), HPos::Left).context("drawing a value")?;
                let Some(dot) = dot else { continue };
                let error = dot.standard_error.unwrap_or(0.0);
                line(vec![place(low, centre), (right, y)], theme::GRID.stroke_width(theme::HAIRLINE))?;
                let ends = vec![place(dot.mean - error, centre), place(dot.mean + error, centre)];
                line(ends, theme::INK.stroke_width(theme::LINE))?;
                draw_marker(&body, index, place(dot.mean, centre))?;
                if let Some(published) = dot.published {
                    draw_published(&body, place(published, centre))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(means: &[f64]) -> DotPanel {
        let dot = |mean: &f64| Some(Dot { mean: *mean, standard_error: Some(0.5), published: None });
        DotPanel {
            title: String::new(),
            x_label: String::new(),
            categories: means.iter().map(f64::to_string).collect(),
            series: vec![DotSeries { name: "a".to_owned(), dots: means.iter().map(dot).collect() }],
            limits: (0.0, 100.0),
            decimals: 1,
        }
    }

    #[test]
    fn the_axis_begins_where_values_do_and_stays_within_limits() {
        let (low, high) = panel(&[80.0, 93.0]).range();
        assert!((78.0..79.5).contains(&low) && (93.5..95.0).contains(&high), "{low} {high}");
        assert_eq!(panel(&[0.5, 99.5]).range(), (0.0, 100.0));
        assert_eq!(panel(&[]).range(), (0.0, 100.0));
    }
}
