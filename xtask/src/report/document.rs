//! A report as headings, paragraphs, tables and figures, before it becomes Markdown or HTML.

/// A whole report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    /// Top heading.
    pub(crate) title: String,
    /// Set when no figure may be compared with a paper.
    pub(crate) mark: Option<Mark>,
    /// In order.
    pub(crate) sections: Vec<Section>,
}

/// Why figures are not comparable; printed on every table and plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Generated records.
    pub(crate) synthetic: bool,
    /// Fewer epochs or seeds than the paper.
    pub(crate) quick: bool,
}

impl Mark {
    /// `None` if neither applies.
    pub(crate) fn new(synthetic: bool, quick: bool) -> Option<Self> {
        (synthetic || quick).then_some(Self { synthetic, quick })
    }

    /// The mark as it is printed.
    pub(crate) fn label(self) -> &'static str {
        match (self.synthetic, self.quick) {
            (true, true) => "SYNTHETIC, QUICK",
            (true, false) => "SYNTHETIC",
            (false, _) => "QUICK",
        }
    }

    /// What the mark means.
    pub(crate) fn meaning(self) -> &'static str {
        match (self.synthetic, self.quick) {
            (true, true) => {
                "Generated records and a shortened run: the figures show that the software works and say nothing about \
                 the paper. No verdict is given."
            }
            (true, false) => {
                "Generated records: the figures show that the software works and say nothing about the paper. No verdict \
                 is given."
            }
            (false, _) => {
                "A shortened run with fewer epochs or seeds than the paper: the figures are not comparable and no verdict \
                 is given."
            }
        }
    }
}

/// Prefixes a caption with the mark, if there is one.
pub(crate) fn marked(mark: Option<Mark>, caption: &str) -> String {
    mark.map_or_else(|| caption.to_owned(), |mark| format!("{}: {caption}", mark.label()))
}

/// One section with its heading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Section {
    /// Anchor.
    pub(crate) id: String,
    /// Heading.
    pub(crate) title: String,
    /// 2 for a section, 3 for a part of it.
    pub(crate) level: u8,
    /// In order.
    pub(crate) blocks: Vec<Block>,
}

/// A piece of a section. All text is plain: escaping is the renderer's business.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Paragraph(String),
    List(Vec<String>),
    Table(Table),
    Figure(Figure),
}

/// A table whose first column heads its rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    /// Above the table.
    pub(crate) caption: String,
    /// Header cells, the first above the row headers.
    pub(crate) columns: Vec<String>,
    /// In order.
    pub(crate) rows: Vec<Row>,
    /// Below the table.
    pub(crate) notes: Vec<String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Header cell.
    pub(crate) header: String,
    /// The rest.
    pub(crate) cells: Vec<Cell>,
}

/// One cell: one or several lines, and how it is tinted. Colour only repeats what the text says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) lines: Vec<String>,
    pub(crate) tone: Tone,
    /// Words that may wrap, rather than figures that may not.
    pub(crate) prose: bool,
}

/// Tint of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Middling,
    Bad,
}

impl Cell {
    /// Several lines of figures.
    pub(crate) fn lines(lines: Vec<String>, tone: Tone) -> Self {
        Self { lines, tone, prose: false }
    }

    /// One line without a tint.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// One tinted line.
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self::lines(vec![text.into()], tone)
    }

    /// Words.
    pub(crate) fn prose(text: impl Into<String>) -> Self {
        Self { prose: true, ..Self::plain(text) }
    }
}

/// A plot: one file pair on disk; its panels are shown one by one in HTML, so that they reflow on a narrow screen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    /// File name without extension, and anchor.
    pub(crate) stem: String,
    /// Below the plot.
    pub(crate) caption: String,
    /// What the plot shows, for those who cannot see it.
    pub(crate) alt: String,
    /// Inline SVG of each panel.
    pub(crate) panels: Vec<String>,
}
