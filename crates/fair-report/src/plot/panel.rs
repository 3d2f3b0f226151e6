//! A plot is a grid of panels; a panel is one chart with its title and legend.

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Text};
use plotters::prelude::Rectangle;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBColor, TextStyle};

use super::dots::DotPanel;
use super::font;
use super::heatmap::HeatPanel;
use super::lines::LinePanel;
use super::theme::{self, px, size};
use crate::error::{Context, Result};
use crate::superscript::{Span, spans};

/// Several panels that are read together.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Above the panels.
    pub title: String,
    /// In reading order.
    pub panels: Vec<Panel>,
    /// Panels side by side in the file.
    pub n_columns: usize,
}

/// One chart.
#[derive(Debug, Clone, PartialEq)]
pub enum Panel {
    /// Lines with bands.
    Lines(LinePanel),
    /// Dots by category.
    Dots(DotPanel),
    /// Colours on a grid.
    Heat(HeatPanel),
}

/// How a series is shown in the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Line,
    /// Of so many series; what comes after them is the published value.
    Dot {
        series: usize,
    },
}

impl Key {
    /// The room it takes before its name.
    fn width(self) -> i32 {
        match self {
            Self::Line => px(30),
            Self::Dot { .. } => px(18),
        }
    }
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<()>;

/// Space around text at the edges, in pixels.
const EDGE: i32 = 10;

impl Plot {
    /// The whole plot as one SVG document on white.
    ///
    /// # Errors
    /// If the plotting library fails.
    pub fn svg(&self) -> Result<String> {
        let n_columns = self.n_columns.clamp(1, self.panels.len().max(1));
        let n_rows = self.panels.len().div_ceil(n_columns);
        let width = theme::PANEL.0 * n_columns as u32;
        let title = wrap(&self.title, width)?;
        let title_height = 14 + 24 * title.len() as u32;
        let row_height = self.panels.iter().map(Panel::height).max().unwrap_or(theme::PANEL.1);
        let height = title_height + row_height * n_rows as u32;
        draw((width, height), |root| {
            root.fill(&theme::PAPER).context("drawing the background")?;
            let (head, body) = root.split_vertically(size(title_height));
            let mut y = px(EDGE);
            for line in title {
                let style = text_style(theme::TITLE_SIZE, theme::INK);
                head.draw(&Text::new(line, (px(EDGE), y), style)).context("drawing the title")?;
                y += px(24);
            }
            for (panel, area) in self.panels.iter().zip(body.split_evenly((n_rows, n_columns))) {
                panel.draw(&area)?;
            }
            Ok(())
        })
    }

    /// Each panel as an SVG element without a background, in the colours of the page around it.
    ///
    /// # Errors
    /// If the plotting library fails.
    pub fn panel_svgs(&self) -> Result<Vec<String>> {
        self.panels
            .iter()
            .map(|panel| {
                let svg = draw((theme::PANEL.0, panel.height()), |root| panel.draw(root))?;
                let element = svg.find("<svg").map_or(svg.as_str(), |start| &svg[start..]);
                let hidden = element.replacen("<svg ", "<svg aria-hidden=\"true\" ", 1);
                Ok(theme::adopt_page_colours(hidden.trim_end()))
            })
            .collect()
    }
}

impl Panel {
    fn height(&self) -> u32 {
        match self {
            Self::Lines(panel) => panel.height(),
            Self::Heat(_) => theme::PANEL.1,
            Self::Dots(panel) => panel.height(),
        }
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        match self {
            Self::Lines(panel) => panel.draw(area),
            Self::Dots(panel) => panel.draw(area),
            Self::Heat(panel) => panel.draw(area),
        }
    }
}

/// Draws in units and declares the size in pixels.
fn draw((width, height): (u32, u32), paint: impl FnOnce(&Area<'_>) -> Drawn) -> Result<String> {
    font::register()?;
    let (unit_width, unit_height) = (size(width), size(height));
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (unit_width, unit_height)).into_drawing_area();
        paint(&root)?;
        root.present().context("finishing the drawing")?;
    }
    let in_units = format!("width=\"{unit_width}\" height=\"{unit_height}\"");
    Ok(raise(&svg.replacen(&in_units, &format!("width=\"{width}\" height=\"{height}\""), 1)))
}

/// Raises the indices in the drawing's texts, each of which is on a separate line.
fn raise(svg: &str) -> String {
    let line = |line: &str| {
        if line.starts_with('<') {
            return line.to_owned();
        }
        let mut set = String::with_capacity(line.len());
        let mut is_raised = false;
        for span in spans(line) {
            set += &match span {
                // Back to the line: both shifts are the same, in units of either size.
                Span::Plain(plain) if is_raised => format!("<tspan dy=\"0.35em\">{plain}</tspan>"),
                Span::Plain(plain) => plain.to_owned(),
                Span::Raised(index) => format!("<tspan dy=\"-0.5em\" font-size=\"70%\">{index}</tspan>"),
            };
            is_raised = matches!(span, Span::Raised(_));
        }
        set
    };
    svg.split('\n').map(line).collect::<Vec<String>>().join("\n")
}

pub(super) fn text_style(pixels: u32, colour: RGBColor) -> TextStyle<'static> {
    FontDesc::new(FontFamily::Name(font::FAMILY), f64::from(size(pixels)), FontStyle::Normal).color(&colour)
}

/// Breaks a title into lines that fit.
fn wrap(title: &str, width: u32) -> Result<Vec<String>> {
    font::register()?;
    let style = text_style(theme::TITLE_SIZE, theme::INK);
    let limit = size(width) - size(2 * EDGE.unsigned_abs());
    let mut lines = vec![String::new()];
    for word in title.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        let (text_width, _) = style.font.box_size(&longer).context("measuring the title")?;
        if text_width <= limit || line.is_empty() {
            *line = longer;
        } else {
            lines.push(word.to_owned());
        }
    }
    Ok(lines)
}

/// Draws the panel's title and legend and returns the area below them.
pub(super) fn head<'a>(area: &Area<'a>, title: &str, series: &[&str], key: Key) -> Result<Area<'a>> {
    let (width, _) = area.dim_in_pixel();
    let rows = legend_rows(series, key, width.cast_signed())?;
    let (head, body) = area.split_vertically(size(head_height(rows.len())));
    let style = text_style(theme::PANEL_TITLE_SIZE, theme::INK);
    head.draw(&Text::new(title.to_owned(), (px(EDGE), px(6)), style)).context("drawing a panel's title")?;
    let label = text_style(theme::LABEL_SIZE, theme::INK).pos(Pos::new(HPos::Left, VPos::Center));
    for (row, entries) in (0..).zip(&rows) {
        let y = px(35 + LEGEND_ROW.cast_signed() * row);
        let mut x = px(EDGE + 2);
        for &(index, width) in entries {
            let text = x + draw_key(&head, index, (x, y), key)?;
            head.draw(&Text::new(series[index].to_owned(), (text, y), label.clone())).context("drawing a legend")?;
            x += width;
        }
    }
    Ok(body)
}

const LEGEND_ROW: u32 = 19;

/// Room for a title and this many rows of legend, in pixels.
pub(super) fn head_height(n_rows: usize) -> u32 {
    46 + LEGEND_ROW * (n_rows.max(1) as u32 - 1)
}

/// Positions in the legend and the room that each takes, in rows that fit.
fn legend_rows(series: &[&str], key: Key, width: i32) -> Result<Vec<Vec<(usize, i32)>>> {
    font::register()?;
    let style = text_style(theme::LABEL_SIZE, theme::INK);
    let mut rows: Vec<Vec<(usize, i32)>> = Vec::new();
    let mut x = width;
    for (index, name) in series.iter().enumerate() {
        let (text, _) = style.font.box_size(name).context("measuring a legend")?;
        let entry = key.width() + text.cast_signed() + px(16);
        match rows.last_mut() {
            Some(row) if x + entry <= width => row.push((index, entry)),
            _ => {
                rows.push(vec![(index, entry)]);
                x = px(EDGE + 2);
            }
        }
        x += entry;
    }
    Ok(rows)
}

/// Rows that the legend of a panel of the usual width takes.
pub(super) fn n_legend_rows(series: &[&str], key: Key) -> usize {
    // A font that cannot be registered is reported when the panel is drawn.
    legend_rows(series, key, size(theme::PANEL.0).cast_signed()).map_or(1, |rows| rows.len())
}

/// Draws the key of a series and returns the room it takes.
fn draw_key(area: &Area<'_>, index: usize, (x, y): (i32, i32), key: Key) -> Result<i32> {
    let colour = theme::series_colour(index);
    match key {
        Key::Line => {
            let line = vec![(x, y), (x + px(24), y)];
            area.draw(&PathElement::new(line, colour.stroke_width(theme::LINE))).context("drawing a legend")?;
            draw_marker(area, index, (x + px(12), y))?;
        }
        Key::Dot { series } if index < series => draw_marker(area, index, (x + px(6), y))?,
        Key::Dot { .. } => draw_published(area, (x + px(6), y))?,
    }
    Ok(key.width())
}

/// A published value: a hollow diamond.
pub(super) fn draw_published(area: &Area<'_>, (x, y): (i32, i32)) -> Drawn {
    let arm = px(6);
    let corners = vec![(x, y - arm), (x + arm, y), (x, y + arm), (x - arm, y), (x, y - arm)];
    area.draw(&Polygon::new(corners.clone(), theme::PAPER.mix(0.0))).context("drawing a diamond")?;
    area.draw(&PathElement::new(corners, theme::INK.stroke_width(theme::HAIRLINE))).context("drawing a diamond")
}

/// The marker of a series: circle, square, triangle or diamond, so that colour is never the only
/// difference.
pub(super) fn draw_marker(area: &Area<'_>, index: usize, (x, y): (i32, i32)) -> Drawn {
    let fill = theme::series_colour(index).filled();
    let (four, five) = (px(4), px(5));
    match index % 4 {
        0 => area.draw(&Circle::new((x, y), four, fill)),
        1 => area.draw(&Rectangle::new([(x - four, y - four), (x + four, y + four)], fill)),
        2 => area.draw(&Polygon::new(vec![(x, y - five), (x + five, y + four), (x - five, y + four)], fill)),
        _ => area.draw(&Polygon::new(vec![(x, y - five), (x + five, y), (x, y + five), (x - five, y)], fill)),
    }
    .context("drawing a marker")
}
