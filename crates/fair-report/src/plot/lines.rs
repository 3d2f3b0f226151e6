//! Lines over epochs or steps, each with a band.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::element::{PathElement, Polygon};
use plotters::prelude::SVGBackend;
use plotters::style::Color;

use super::panel::{Area, Drawn, Key, draw_marker, head, head_height, n_legend_rows, text_style};
use super::theme::{self, px, size};
use crate::error::{Context, ReportError};

/// Lines with standard-error bands on common axes.
#[derive(Debug, Clone, PartialEq)]
pub struct LinePanel {
    /// Above the panel.
    pub title: String,
    /// Below its axis.
    pub x_label: String,
    /// Beside its axis.
    pub y_label: String,
    /// In the order of the legend.
    pub series: Vec<Series>,
    /// Range of the y axis; `None` fits the panel's own values.
    pub y_range: Option<(f64, f64)>,
    /// Whether equal ratios of `x`, which is then positive, are equally far apart, with ticks at
    /// powers of two.
    pub log2_x: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// In order of `x`.
    pub points: Vec<Point>,
}

/// A mean and the ends of its band.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Where it is.
    pub x: f64,
    /// The value.
    pub mean: f64,
    /// Lower end of its band.
    pub low: f64,
    /// Upper end of its band.
    pub high: f64,
}

/// Values that span more than this factor are drawn on a logarithmic axis.
const LOG_FACTOR: f64 = 10.0;

/// Rows of legend that the usual height has room for.
const LEGEND_ROWS: usize = 2;

impl LinePanel {
    /// The usual height, and more for a long legend: the chart keeps its size.
    pub(super) fn height(&self) -> u32 {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let n_rows = n_legend_rows(&names, Key::Line).max(LEGEND_ROWS);
        theme::PANEL.1 + head_height(n_rows) - head_height(LEGEND_ROWS)
    }

    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let body = head(area, &self.title, &names, Key::Line)?;
        let points = || self.series.iter().flat_map(|series| &series.points);
        let (x_low, x_high) = extent(points().map(|p| self.position(p.x))).ok_or(ReportError::Empty)?;
        let x_range = x_low..if x_high > x_low { x_high } else { x_low + 1.0 };
        let (low, high) = match self.y_range {
            Some(range) => range,
            None => y_range(points().copied()).ok_or(ReportError::Empty)?,
        };
        if is_logarithmic(low, high) {
            self.draw_chart(&body, x_range, (low..high).log_scale().with_key_points(log_ticks(low, high)))
        } else {
            self.draw_chart(&body, x_range, low..high)
        }
    }

    /// Where on the axis an `x` lies.
    fn position(&self, x: f64) -> f64 {
        if self.log2_x { x.log2() } else { x }
    }

    fn draw_chart<Y>(&self, area: &Area<'_>, x_range: std::ops::Range<f64>, y_range: Y) -> Drawn
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .margin_left(size(6))
            .margin_right(size(18))
            .margin_top(size(6))
            .margin_bottom(size(6))
            .x_label_area_size(size(40))
            .y_label_area_size(size(58))
            .build_cartesian_2d(x_range, y_range)
            .context("setting up a chart")?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .bold_line_style(theme::GRID.stroke_width(theme::HAIRLINE))
            .axis_style(theme::MUTED.stroke_width(theme::HAIRLINE))
            .set_all_tick_mark_size(px(4))
            .label_style(text_style(theme::LABEL_SIZE, theme::INK))
            .axis_desc_style(text_style(theme::LABEL_SIZE, theme::INK))
            .x_desc(self.x_label.as_str())
            .y_desc(self.y_label.as_str())
            .x_labels(6)
            .y_labels(6)
            .x_label_formatter(&|x| tick(if self.log2_x { x.exp2() } else { *x }))
            .y_label_formatter(&|y| tick(*y))
            .draw()
            .context("drawing axes")?;
        for (index, series) in self.series.iter().enumerate() {
            let points: Vec<Point> =
                series.points.iter().map(|point| Point { x: self.position(point.x), ..*point }).collect();
            draw_series(&mut chart, area, index, &points)?;
        }
        Ok(())
    }
}

type Chart<'a, 'b, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, Y>>;

fn draw_series<Y: Ranged<ValueType = f64>>(
    chart: &mut Chart<'_, '_, Y>,
    area: &Area<'_>,
    index: usize,
    points: &[Point],
) -> Drawn {
    let colour = theme::series_colour(index);
    let upper = points.iter().map(|p| (p.x, p.high));
    let lower = points.iter().rev().map(|p| (p.x, p.low));
    let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
    chart.draw_series(std::iter::once(Polygon::new(outline, colour.mix(0.22).filled()))).context("drawing a band")?;
    let line: Vec<(f64, f64)> = points.iter().map(|p| (p.x, p.mean)).collect();
    chart
        .draw_series(std::iter::once(PathElement::new(line, colour.stroke_width(theme::LINE))))
        .context("drawing a line")?;
    // About six markers a line, staggered between series so that lines on top of each other still
    // show both shapes.
    let spacing = points.len().div_ceil(6).max(1);
    let (x0, y0) = area.get_base_pixel();
    for point in points.iter().skip((index * spacing / 2).min(points.len() / 2)).step_by(spacing) {
        let (x, y) = chart.plotting_area().map_coordinate(&(point.x, point.mean));
        draw_marker(area, index, (x - x0, y - y0))?;
    }
    Ok(())
}

/// A range of the y axis that shows all these points with their bands; several panels may have it
/// in common.
pub fn y_range(points: impl Iterator<Item = Point> + Clone) -> Option<(f64, f64)> {
    let (low, high) = extent(points.clone().flat_map(|p| [p.low, p.high, p.mean]))?;
    let (smallest_mean, _) = extent(points.clone().map(|p| p.mean))?;
    if is_logarithmic(smallest_mean, high) {
        // A band may reach below zero, where no logarithm is: the axis starts just under the
        // smallest mean.
        return Some((low.max(smallest_mean * 0.5), high * 1.3));
    }
    linear_range(points)
}

/// The same for a quantity that is never drawn on a logarithmic axis, such as a share of records.
pub fn linear_range(points: impl Iterator<Item = Point>) -> Option<(f64, f64)> {
    let (low, high) = extent(points.flat_map(|p| [p.low, p.high, p.mean]))?;
    let margin = 0.08 * (high - low).max(1e-3 * high.abs().max(1e-9));
    let floor = if low >= 0.0 { (low - margin).max(0.0) } else { low - margin };
    // The panel would make this range logarithmic: it starts at zero.
    Some((if is_logarithmic(floor, high + margin) { 0.0 } else { floor }, high + margin))
}

/// Whether an axis from `low` to `high` is logarithmic.
fn is_logarithmic(low: f64, high: f64) -> bool {
    low > 0.0 && high / low > LOG_FACTOR
}

/// Least and greatest of finite values.
pub(super) fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// Ticks of a logarithmic axis: 1, 2 and 5 times powers of ten, or powers of ten alone, or every
/// second, third or later one of them, where more would crowd.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    const MAX_TICKS: usize = 7;
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let ticks = |multiples: &[f64]| -> Vec<f64> {
        decades
            .clone()
            .flat_map(|exponent| multiples.iter().map(move |multiple| multiple * 10.0_f64.powi(exponent)))
            .filter(|tick| (low..=high).contains(tick))
            .collect()
    };
    let fine = ticks(&[1.0, 2.0, 5.0]);
    if fine.len() <= MAX_TICKS {
        return fine;
    }
    let powers = ticks(&[1.0]);
    let every = powers.len().div_ceil(MAX_TICKS).max(1);
    powers.into_iter().step_by(every).collect()
}

/// An axis label: at most three significant digits, no trailing zeros; small round values as
/// powers of ten.
pub(super) fn tick(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = (value.abs() * (1.0 + 1e-9)).log10().floor();
    let factor = value / 10.0_f64.powf(exponent);
    // Other values as small are what rounding leaves of 0.
    if exponent < -4.0 && [1.0, 2.0, 5.0].iter().any(|round| (factor - round).abs() < 1e-9) {
        return format!("{}e−{}", factor.round(), -exponent);
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    // A rounded value just below 0 would keep its sign.
    if text == "-0" { "0".to_owned() } else { text.replace('-', "−") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        let labels: Vec<String> = [0.0, 0.05, 0.123_46, 12.5, 1840.0, -0.5, 1e-4, 1e-7, 5e-8, 2e-6, 5.6e-17, -1.1e-17]
            .into_iter()
            .map(tick)
            .collect();
        assert_eq!(labels, ["0", "0.05", "0.123", "12.5", "1840", "−0.5", "0.0001", "1e−7", "5e−8", "2e−6", "0", "0"]);
    }

    #[test]
    fn logarithmic_ticks_are_round() {
        assert_eq!(log_ticks(2.5, 65.0), [5.0, 10.0, 20.0, 50.0]);
        assert_eq!(log_ticks(0.5, 2_000.0), [1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!(log_ticks(0.5, 2e9).len(), 5);
    }

    #[test]
    fn a_common_range_shows_every_point() {
        let point = |mean: f64, error: f64| Point { x: 0.0, mean, low: mean - error, high: mean + error };
        let (low, high) = y_range([point(0.2, 0.1), point(0.8, 0.1)].into_iter()).unwrap();
        assert!(low == 0.0 && high > 0.9 && !is_logarithmic(low, high), "{low} {high}");
        let (low, high) = y_range([point(0.7, 0.1), point(0.8, 0.1)].into_iter()).unwrap();
        assert!(0.5 < low && low < 0.6 && high > 0.9, "{low} {high}");
        // The band of the smallest reaches below zero.
        let (low, high) = y_range([point(0.2, 0.3), point(80.0, 1.0)].into_iter()).unwrap();
        assert!(low == 0.1 && high > 81.0 && is_logarithmic(low, high), "{low} {high}");
        assert_eq!(y_range(std::iter::empty()), None);
    }

    #[test]
    fn extent_skips_what_is_not_finite() {
        assert_eq!(extent([1.0, f64::NAN, -1.0].into_iter()), Some((-1.0, 1.0)));
        assert_eq!(extent(std::iter::empty()), None);
    }
}
