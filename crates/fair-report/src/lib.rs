#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod document;
mod error;
#[cfg(test)]
mod fixture;
mod html;
mod markdown;
pub mod number;
pub mod plot;
mod superscript;
mod terminal;

pub use document::{Block, Cell, Document, Figure, Notice, Row, Section, Table, Tone};
pub use error::{ReportError, Result};
pub use html::{STYLE, html};
pub use markdown::markdown;
pub use terminal::aligned;
