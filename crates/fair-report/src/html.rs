//! A document as one page.

use askama::Template;
use askama::filters::{Html, escape};

use crate::document::{Block, Cell, Document, Row, Section, Tone};
use crate::error::{Context, Result};
use crate::superscript::superscript;

/// The style sheet of every page; it is part of what [`html`] makes.
pub const STYLE: &str = include_str!("../templates/page.css");

const SCRIPT: &str = include_str!("../templates/page.js");

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    document: &'a Document,
    chapters: Vec<Chapter<'a>>,
}

/// A section with its parts.
struct Chapter<'a> {
    section: &'a Section,
    parts: &'a [Section],
}

/// A page in one file: it follows the reader into dark mode, asks for nothing over a network, and
/// reads the same without its script, which sorts tables.
///
/// # Errors
/// If the template fails.
pub fn html(document: &Document) -> Result<String> {
    Page { document, chapters: chapters(&document.sections) }.render().context("rendering a document as HTML")
}

fn chapters(mut sections: &[Section]) -> Vec<Chapter<'_>> {
    let mut chapters = Vec::new();
    while let Some((section, rest)) = sections.split_first() {
        let n_parts = rest.iter().take_while(|part| part.level > section.level).count();
        let (parts, rest) = rest.split_at(n_parts);
        chapters.push(Chapter { section, parts });
        sections = rest;
    }
    chapters
}

impl Page<'_> {
    /// Text as HTML: escaped, with indices raised.
    fn set(text: &str) -> String {
        superscript(text, |text| {
            let Ok(escaped) = escape(text, Html);
            escaped.to_string()
        })
    }
}

impl Row {
    /// Whether its header is a sentence, which wraps, rather than a name.
    fn is_long(&self) -> bool {
        self.header.chars().count() > 32
    }
}

impl Cell {
    /// Its classes in the style sheet.
    fn classes(&self) -> String {
        let tone = match self.tone {
            Tone::Plain => None,
            Tone::Good => Some("good"),
            Tone::Middling => Some("middling"),
            Tone::Bad => Some("bad"),
        };
        [self.prose.then_some("prose"), tone].into_iter().flatten().collect::<Vec<&str>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::document;

    #[test]
    fn every_block() {
        let page = html(&document()).unwrap();
        let main = page.split("<main>").nth(1).unwrap().split("<script>").next().unwrap();
        insta::assert_snapshot!(main);
    }

    #[test]
    fn a_page_asks_for_nothing() {
        let page = html(&document()).unwrap();
        for forbidden in [" src=", "http://", "https://", "@import", "url(", "fetch(", "XMLHttpRequest"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }
}
