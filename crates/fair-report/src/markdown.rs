//! A document as Markdown.

use askama::Template;

use crate::document::{Block, Document, Section};
use crate::error::{Context, Result};
use crate::superscript::superscript;

#[derive(Template)]
#[template(path = "page.md", escape = "none")]
struct Page<'a> {
    document: &'a Document,
}

/// Markdown with tables; plots are links to `plots/STEM.svg`.
///
/// # Errors
/// If the template fails.
pub fn markdown(document: &Document) -> Result<String> {
    Page { document }.render().context("rendering a document as Markdown")
}

impl Section {
    fn hashes(&self) -> String {
        "#".repeat(usize::from(self.level))
    }
}

impl Page<'_> {
    /// Text as Markdown: escaped, with indices raised.
    fn set(text: &str) -> String {
        superscript(text, Self::md)
    }

    /// Escapes what Markdown would read as markup inside a line.
    fn md(text: &str) -> String {
        let mut escaped = String::with_capacity(text.len());
        for character in text.chars() {
            if matches!(character, '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\') {
                escaped.push('\\');
            }
            escaped.push(if character == '\n' { ' ' } else { character });
        }
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::document;

    #[test]
    fn every_block() {
        insta::assert_snapshot!(markdown(&document()).unwrap());
    }
}
