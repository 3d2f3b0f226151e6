//! A document as HTML and as Markdown.

use anyhow::Context;
use askama::Template;

use super::document::{Block, Cell, Document, Section, Tone};

#[derive(Template)]
#[template(path = "report.html")]
struct Html<'a> {
    document: &'a Document,
}

#[derive(Template)]
#[template(path = "report.md", escape = "none")]
struct Markdown<'a> {
    document: &'a Document,
}

/// A self-contained page: no script, no request.
pub(crate) fn html(document: &Document) -> anyhow::Result<String> {
    Html { document }.render().context("rendering the report as HTML")
}

/// The same as Markdown with tables; plots are links to their files.
pub(crate) fn markdown(document: &Document) -> anyhow::Result<String> {
    Markdown { document }.render().context("rendering the report as Markdown")
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

impl Section {
    fn hashes(&self) -> String {
        "#".repeat(usize::from(self.level))
    }
}

impl Markdown<'_> {
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
    use super::super::document::{Figure, Mark, Row, Table};
    use super::*;

    fn document() -> Document {
        let table = Table {
            caption: "SYNTHETIC: A | B".to_owned(),
            columns: ["Method", "Loss <nats>", "Cause"].map(str::to_owned).into(),
            rows: vec![Row {
                header: "dpsgd_f".to_owned(),
                cells: vec![Cell::lines(vec!["0.1".to_owned(), "paper 0.2".to_owned()], Tone::Bad), Cell::prose("x")],
            }],
            notes: vec!["A note.".to_owned()],
        };
        let figure = Figure {
            stem: "x-loss".to_owned(),
            caption: "Loss.".to_owned(),
            alt: "A \"line\".".to_owned(),
            panels: vec!["<svg></svg>".to_owned()],
        };
        Document {
            title: "Adult".to_owned(),
            mark: Mark::new(true, false),
            sections: vec![Section {
                id: "one".to_owned(),
                title: "One".to_owned(),
                level: 2,
                blocks: vec![
                    Block::Paragraph("Words.".to_owned()),
                    Block::List(vec!["a".to_owned(), "b".to_owned()]),
                    Block::Table(table),
                    Block::Figure(figure),
                ],
            }],
        }
    }

    #[test]
    fn markdown_of_every_block() {
        insta::assert_snapshot!(markdown(&document()).unwrap(), @r#"
        # Adult

        > **SYNTHETIC** Generated records: the figures show that the software works and say nothing about the paper. No verdict is given.

        ## One

        Words.

        - a
        - b

        **SYNTHETIC: A \| B**

        | Method | Loss \<nats\> | Cause |
        |---|---|---|
        | **dpsgd\_f** | 0.1<br>paper 0.2 | x |

        - A note.

        ![A "line".](plots/x-loss.svg)

        Loss.
        "#);
    }

    #[test]
    fn html_of_every_block() {
        let html = html(&document()).unwrap();
        let main = html.split("<main>").nth(1).unwrap();
        insta::assert_snapshot!(main, @r#"

        <section aria-labelledby="one">
        <h2 id="one">One</h2>
        <p>Words.</p>
        <ul>
        <li>a</li>
        <li>b</li>
        </ul>
        <div class="table" role="region" aria-label="SYNTHETIC: A | B" tabindex="0">
        <table>
        <caption>SYNTHETIC: A | B</caption>
        <thead>
        <tr><th scope="col">Method</th><th scope="col">Loss &#60;nats&#62;</th><th scope="col">Cause</th></tr>
        </thead>
        <tbody>
        <tr><th scope="row">dpsgd_f</th><td class="bad"><span>0.1</span><br><span>paper 0.2</span></td><td class="prose"><span>x</span></td></tr>
        </tbody>
        </table>
        </div>
        <ul class="notes">
        <li>A note.</li>
        </ul>
        <figure id="x-loss">
        <div class="panels" role="img" aria-label="A &#34;line&#34;.">
        <div><svg></svg></div>
        </div>
        <figcaption>Loss. <a href="plots/x-loss.svg">SVG</a>, <a href="plots/x-loss.png">PNG</a>.</figcaption>
        </figure>
        </section>
        </main>
        </body>
        </html>
        "#);
    }

    #[test]
    fn html_asks_for_nothing() {
        let html = html(&document()).unwrap();
        for forbidden in ["<script", "http://", "https://", "@import", "url("] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
    }
}
