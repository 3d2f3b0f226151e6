//! A document with a block of every kind, for tests.

use crate::document::{Block, Cell, Document, Figure, Notice, Row, Section, Table, Tone};

pub(crate) fn document() -> Document {
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
    let words = Block::Paragraph("Words.".to_owned());
    let list = Block::List(vec!["a".to_owned(), "b".to_owned()]);
    Document {
        title: "Adult".to_owned(),
        mark: Some(Notice { label: "SYNTHETIC", meaning: "Generated records." }),
        sections: vec![
            Section::new("one", "One", vec![words.clone(), list, Block::Table(table)]),
            Section::new("two", "Two", Vec::new()).folded(),
            Section::part("two-plots", "Plots", vec![words, Block::Figure(figure)]),
        ],
    }
}
