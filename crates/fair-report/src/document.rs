//! A report as headings, paragraphs, tables and figures, before it becomes Markdown or HTML.

/// A whole report.
///
/// **Example**
/// ```
/// use fair_report::{Block, Cell, Document, Row, Section, Table};
/// let row = Row { header: "dpsgd".into(), cells: vec![Cell::plain("84.1")] };
/// let table = Table {
///     caption: "Accuracy in %".into(),
///     columns: vec!["method".into(), "mean".into()],
///     rows: vec![row],
///     notes: vec![],
/// };
/// let sections = vec![Section::new("accuracy", "Accuracy", vec![Block::Table(table)])];
/// let document = Document { title: "A study".into(), mark: None, sections };
/// assert!(fair_report::markdown(&document)?.contains("84.1"));
/// assert!(fair_report::html(&document)?.contains("<h2"));
/// # Ok::<(), fair_report::ReportError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Top heading.
    pub title: String,
    /// Where there is something to know before any figure.
    pub mark: Option<Notice>,
    /// In order.
    pub sections: Vec<Section>,
}

/// A notice that a reader must see before any figure; printed on every table and plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// In capitals, in front of captions.
    pub label: &'static str,
    /// In a sentence, at the head.
    pub meaning: &'static str,
}

/// One section with its heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Anchor.
    pub id: String,
    /// Heading.
    pub title: String,
    /// 2 for a section, 3 for a part of the section before it.
    pub level: u8,
    /// Details: a page shows them, and their parts, when asked to.
    pub folded: bool,
    /// In order.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section that is shown.
    pub fn new(id: impl Into<String>, title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { id: id.into(), title: title.into(), level: 2, folded: false, blocks }
    }

    /// A part of the section before it.
    pub fn part(id: impl Into<String>, title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { level: 3, ..Self::new(id, title, blocks) }
    }

    /// The same as details.
    #[must_use]
    pub fn folded(self) -> Self {
        Self { folded: true, ..self }
    }
}

/// A piece of a section. All text is plain: escaping is the renderer's business.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Sentences.
    Paragraph(String),
    /// Items with bullets.
    List(Vec<String>),
    /// Rows and columns.
    Table(Table),
    /// A plot.
    Figure(Figure),
}

/// A table whose first column heads its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Above the table.
    pub caption: String,
    /// Header cells, the first above the row headers.
    pub columns: Vec<String>,
    /// In order.
    pub rows: Vec<Row>,
    /// Below the table.
    pub notes: Vec<String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Header cell.
    pub header: String,
    /// The rest.
    pub cells: Vec<Cell>,
}

/// One cell: one or several lines, and how it is tinted. Colour only repeats what the text says.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// From above.
    pub lines: Vec<String>,
    /// Its tint.
    pub tone: Tone,
    /// Words that may wrap, rather than figures that may not.
    pub prose: bool,
}

/// Tint of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// None.
    Plain,
    /// As it should be.
    Good,
    /// In between.
    Middling,
    /// Not as it should be.
    Bad,
}

impl Cell {
    /// Several lines of figures.
    pub fn lines(lines: Vec<String>, tone: Tone) -> Self {
        Self { lines, tone, prose: false }
    }

    /// One line without a tint.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// One tinted line.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self::lines(vec![text.into()], tone)
    }

    /// Words.
    pub fn prose(text: impl Into<String>) -> Self {
        Self { prose: true, ..Self::plain(text) }
    }
}

/// A plot: one file pair on disk; its panels are shown one by one in HTML, so that they reflow on a
/// narrow screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// File name without extension, and anchor.
    pub stem: String,
    /// Below the plot.
    pub caption: String,
    /// The plot in words, for readers who cannot see it.
    pub alt: String,
    /// Inline SVG of each panel.
    pub panels: Vec<String>,
}
