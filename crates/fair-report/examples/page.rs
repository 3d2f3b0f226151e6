//! One document, as a page and as Markdown.

use fair_report::plot::{LinePanel, Panel, Plot, Point, Series};
use fair_report::{Block, Cell, Document, Figure, ReportError, Row, Section, Table, html, markdown};

pub(crate) fn main() -> Result<(), ReportError> {
    let point = |x, mean: f64| Point { x, mean, low: mean - 0.5, high: mean + 0.5 };
    let of = |name: &str, means: [f64; 2]| Series {
        name: name.into(),
        points: [1.0, 2.0].into_iter().zip(means).map(|(x, mean)| point(x, mean)).collect(),
    };
    let panel = LinePanel {
        title: "Accuracy".into(),
        x_label: "ε".into(),
        y_label: "%".into(),
        series: vec![of("women", [88.0, 90.0]), of("men", [76.0, 79.0])],
        y_range: None,
        log2_x: true,
    };
    let plot = Plot { title: "Accuracy over ε".into(), panels: vec![Panel::Lines(panel)], n_columns: 1 };
    let row = |epsilon: &str, cells: [&str; 2]| Row { header: epsilon.into(), cells: cells.map(Cell::plain).into() };
    let table = Table {
        caption: "Accuracy, %".into(),
        columns: vec!["ε".into(), "women".into(), "men".into()],
        rows: vec![row("1", ["88.0", "76.0"]), row("2", ["90.0", "79.0"])],
        notes: Vec::new(),
    };
    let figure = Figure {
        stem: "accuracy".into(),
        caption: "Accuracy over ε, by sex.".into(),
        alt: "Accuracy rises with ε: of women from 88 to 90 %, of men from 76 to 79 %.".into(),
        panels: plot.panel_svgs()?,
    };
    let blocks = vec![Block::Table(table), Block::Figure(figure)];
    let sections = vec![Section::new("answer", "Men gain more", blocks)];
    let document = Document { title: "Two values of ε".into(), mark: None, sections };
    let (page, text) = (html(&document)?, markdown(&document)?);
    println!("{text}\n{} bytes of HTML", page.len());
    assert!(page.contains("Men gain more") && text.contains("| **2** | 90.0 | 79.0 |"));
    Ok(())
}
