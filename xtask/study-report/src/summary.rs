//! What an index says of a report.

use fair_report::{Block, Document, Tone};
use run_records::StudyResults;
use serde::{Deserialize, Serialize};

/// A report in a few facts, written beside it as `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Summary {
    /// Title of the report.
    pub(super) title: String,
    /// `QUICK`, `SYNTHETIC` or both.
    pub(super) mark: Option<String>,
    /// Rows of published tables, by verdict.
    pub(super) rows: Tally,
    /// Claims of the papers, by verdict.
    pub(super) claims: Tally,
    /// Trained models.
    pub(super) n_runs: usize,
    /// Training time in seconds.
    pub(super) wall_seconds: f64,
    /// The report's first plot.
    pub(super) plot: Option<Plot>,
}

/// Verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Agrees, or is reproduced.
    pub(super) good: usize,
    /// Has the same ordering, or is not decidable.
    pub(super) middling: usize,
    /// Differs, or is not reproduced.
    pub(super) bad: usize,
    /// Has no verdict.
    pub(super) none: usize,
}

/// What a report says of rows of published tables that are good, middling and bad.
pub(super) const ROWS: [&str; 3] = ["agree", "in the same order or too wide to tell", "differ"];
/// The same of claims.
pub(super) const CLAIMS: [&str; 3] = ["reproduced", "not decidable", "not reproduced"];

/// A plot by its file and in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plot {
    pub(super) file: String,
    pub(super) alt: String,
}

impl Summary {
    /// The facts of a finished report.
    pub(super) fn new(results: &StudyResults, document: &Document) -> Self {
        let blocks = || document.sections.iter().flat_map(|section| &section.blocks);
        let plot = blocks().find_map(|block| match block {
            Block::Figure(figure) => Some(Plot { file: format!("plots/{}.svg", figure.stem), alt: figure.alt.clone() }),
            _ => None,
        });
        Self {
            title: document.title.clone(),
            mark: document.mark.map(|mark| mark.label.to_owned()),
            rows: Tally::of(document, "verdicts"),
            claims: Tally::of(document, "claims"),
            n_runs: results.experiments.iter().flat_map(|e| &e.methods).map(|method| method.runs.len()).sum(),
            wall_seconds: results.wall_seconds(),
            plot,
        }
    }
}

impl Tally {
    /// Counts the rows of a section's tables by the tint of their first cell, which is the verdict.
    pub(super) fn of(document: &Document, section: &str) -> Self {
        let mut tally = Self::default();
        let blocks = document.sections.iter().filter(|candidate| candidate.id == section).flat_map(|s| &s.blocks);
        for block in blocks {
            let Block::Table(table) = block else { continue };
            for cell in table.rows.iter().filter_map(|row| row.cells.first()) {
                *match cell.tone {
                    Tone::Good => &mut tally.good,
                    Tone::Middling => &mut tally.middling,
                    Tone::Bad => &mut tally.bad,
                    Tone::Plain => &mut tally.none,
                } += 1;
            }
        }
        tally
    }

    /// How many there are.
    pub(super) fn total(self) -> usize {
        self.good + self.middling + self.bad + self.none
    }
}
