//! A report as it is committed: what is read. Long tables and lists and most plots of the details
//! are in the whole report alone.

use std::collections::BTreeSet;

use fair_report::{Block, Document, Section};

/// A table of the details with more rows is left out, and a list with more entries.
const MAX_ROWS: usize = 30;

/// Leaves out of the details long tables and lists, and plots that are not among `kept`, and names
/// them.
pub(crate) fn shorten(document: &mut Document, study: &str, kept: &BTreeSet<String>) {
    let mut is_detail = false;
    for section in &mut document.sections {
        // Parts are folded with the section that they belong to.
        if section.level == 2 {
            is_detail = section.folded;
        }
        if is_detail {
            shorten_section(section, study, kept);
        }
    }
}

fn shorten_section(section: &mut Section, study: &str, kept: &BTreeSet<String>) {
    let mut left_out = Vec::new();
    section.blocks.retain(|block| {
        let named = match block {
            Block::Figure(figure) if !kept.contains(&figure.stem) => format!("Plot: {}", figure.caption),
            Block::Table(table) if table.rows.len() > MAX_ROWS => {
                format!("Table of {} rows: {}", table.rows.len(), table.caption)
            }
            Block::List(entries) if entries.len() > MAX_ROWS => format!("List of {} entries", entries.len()),
            _ => return true,
        };
        left_out.push(named);
        false
    });
    if !left_out.is_empty() {
        let where_it_is = format!("In the whole report, which cargo xtask results render {study} writes:");
        section.blocks.extend([Block::Paragraph(where_it_is), Block::List(left_out)]);
    }
}

/// The plots that a document shows, by their file names without extension.
pub(crate) fn shown(document: &Document) -> BTreeSet<&str> {
    let blocks = document.sections.iter().flat_map(|section| &section.blocks);
    let stems = blocks.filter_map(|block| match block {
        Block::Figure(figure) => Some(figure.stem.as_str()),
        _ => None,
    });
    stems.collect()
}

#[cfg(test)]
mod tests {
    use fair_report::{Figure, Row, Table};

    use super::*;

    fn figure(stem: &str) -> Block {
        let caption = format!("Caption of {stem}.");
        Block::Figure(Figure { stem: stem.to_owned(), caption, alt: String::new(), panels: Vec::new() })
    }

    fn table(n_rows: usize) -> Block {
        let row = Row { header: "a row".to_owned(), cells: Vec::new() };
        let caption = format!("{n_rows} rows");
        Block::Table(Table { caption, columns: vec!["head".to_owned()], rows: vec![row; n_rows], notes: Vec::new() })
    }

    #[test]
    fn details_lose_long_tables_and_plots_that_no_page_shows() {
        let list = Block::List(vec!["an entry".to_owned(); 31]);
        let sections = vec![
            Section::new("answer", "Answer", vec![figure("a"), table(31)]),
            Section::new("adult", "Adult", vec![table(30)]).folded(),
            Section::part("adult-plots", "Plots", vec![figure("b"), figure("c"), table(31), list]),
            Section::new("end", "End", vec![figure("d")]),
        ];
        let mut document = Document { title: "Title".to_owned(), mark: None, sections };
        let before = document.clone();
        shorten(&mut document, "adult", &BTreeSet::from(["c".to_owned()]));
        for unchanged in [0, 1, 3] {
            assert_eq!(document.sections[unchanged], before.sections[unchanged]);
        }
        let left_out = ["Plot: Caption of b.", "Table of 31 rows: 31 rows", "List of 31 entries"].map(str::to_owned);
        assert_eq!(
            document.sections[2].blocks,
            [
                figure("c"),
                Block::Paragraph("In the whole report, which cargo xtask results render adult writes:".to_owned()),
                Block::List(left_out.into()),
            ]
        );
        assert_eq!(shown(&document).into_iter().collect::<Vec<_>>(), ["a", "c", "d"]);
    }
}
