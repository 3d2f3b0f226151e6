//! Horizontal bars by category and series, with standard errors and the published value where there is one.

use anyhow::Context;
use plotters::chart::ChartBuilder;
use plotters::element::{PathElement, Text};
use plotters::prelude::Rectangle;
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::lines::{extent, tick};
use super::panel::{Area, Drawn, Key, head, head_height, n_legend_rows, text_style};
use super::theme::{self, px, size};

/// Bars from zero: one cluster per category, one bar per series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BarPanel {
    pub(crate) title: String,
    pub(crate) x_label: String,
    /// Names of the clusters, from the top.
    pub(crate) categories: Vec<String>,
    pub(crate) series: Vec<BarSeries>,
    /// End of the axis; `None` fits the longest bar.
    pub(crate) x_max: Option<f64>,
    /// Digits after the point of the value beside each bar.
    pub(crate) decimals: usize,
}

/// One bar of each category.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BarSeries {
    pub(crate) name: String,
    /// `None` where the value is undefined: the label says so.
    pub(crate) bars: Vec<Option<Bar>>,
}

/// A value with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bar {
    pub(crate) mean: f64,
    pub(crate) standard_error: Option<f64>,
}

const BAR_HEIGHT: u32 = 16;
const CLUSTER_GAP: u32 = 12;
/// Room for the names of the clusters: for long ones more, but no more than half the panel.
const NAME_WIDTHS: std::ops::RangeInclusive<u32> = 128..=190;
/// A letter, about.
const LETTER_WIDTH: u32 = 8;

impl BarPanel {
    pub(super) fn height(&self) -> u32 {
        let cluster = BAR_HEIGHT * self.series.len() as u32 + CLUSTER_GAP;
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        head_height(n_legend_rows(&names, Key::Bar)) + 52 + cluster * self.categories.len() as u32
    }

    fn name_width(&self) -> u32 {
        let longest = self.categories.iter().map(|name| name.chars().count()).max().unwrap_or(0) as u32;
        (longest * LETTER_WIDTH).clamp(*NAME_WIDTHS.start(), *NAME_WIDTHS.end())
    }

    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let body = head(area, &self.title, &names, Key::Bar)?;
        let bars = || self.series.iter().flat_map(|series| &series.bars).flatten();
        let (_, high) = extent(bars().map(|bar| bar.mean + bar.standard_error.unwrap_or(0.0))).unwrap_or((0.0, 1.0));
        let n = self.categories.len() as f64;
        let end = self.x_max.unwrap_or(high * 1.05).max(f64::MIN_POSITIVE);
        // The margin on the right has room for the value beside the longest bar.
        let mut chart = ChartBuilder::on(&body)
            .margin_right(size(48))
            .margin_top(size(4))
            .margin_bottom(size(6))
            .x_label_area_size(size(42))
            .y_label_area_size(size(self.name_width()))
            .build_cartesian_2d(0.0..end, n..0.0)
            .context("setting up a bar chart")?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .disable_x_mesh()
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
        let cluster_height = f64::from(BAR_HEIGHT * self.series.len() as u32 + CLUSTER_GAP);
        let bar_share = f64::from(BAR_HEIGHT) / cluster_height;
        let gap_share = f64::from(CLUSTER_GAP) / cluster_height / 2.0;
        let (x0, y0) = body.get_base_pixel();
        for (category, name) in self.categories.iter().enumerate() {
            let (left, middle) = plotting.map_coordinate(&(0.0, category as f64 + 0.5));
            let style = text_style(theme::LABEL_SIZE, theme::INK).pos(Pos::new(HPos::Right, VPos::Center));
            body.draw(&Text::new(name.clone(), (left - x0 - px(8), middle - y0), style)).context("drawing a name")?;
            for (index, series) in self.series.iter().enumerate() {
                let top = category as f64 + gap_share + bar_share * index as f64;
                let bottom = top + bar_share * 0.88;
                let centre = f64::midpoint(top, bottom);
                let bar = series.bars.get(category).copied().flatten();
                let (end, label) = match bar {
                    Some(bar) => {
                        let colour = theme::series_colour(index).filled();
                        plotting
                            .draw(&Rectangle::new([(0.0, top), (bar.mean.max(0.0), bottom)], colour))
                            .context("drawing a bar")?;
                        let error = bar.standard_error.unwrap_or(0.0);
                        let whisker = vec![(bar.mean - error, centre), (bar.mean + error, centre)];
                        plotting
                            .draw(&PathElement::new(whisker, theme::INK.stroke_width(theme::LINE)))
                            .context("drawing an error bar")?;
                        (bar.mean + error, format!("{:.*}", self.decimals, bar.mean))
                    }
                    None => (0.0, "undefined".to_owned()),
                };
                let (x, y) = plotting.map_coordinate(&(end.max(0.0), centre));
                let style = text_style(theme::LABEL_SIZE, theme::INK).pos(Pos::new(HPos::Left, VPos::Center));
                body.draw(&Text::new(label, (x - x0 + px(6), y - y0), style)).context("drawing a value")?;
            }
        }
        Ok(())
    }
}
