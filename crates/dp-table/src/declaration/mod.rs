//! The part of a TOML document that declares a table: `[table]`, `[label]`, `[[group]]`, `[[column]]`.
//!
//! `fairdp.toml` and the files of `cargo xtask compare` have these entries, read by the same code. A
//! document implements [`Declaration`], and [`read`] finds all of its mistakes at once, each with its
//! line.

mod columns;
mod declared;
mod document;
mod entry_error;
mod header_names;
mod kinds;
mod label;
mod names;
mod nearest;
mod origin;
mod table;
mod text_marks;
mod uncovered;

pub use columns::{BinsEntry, BoundEntry, Bounds, ColumnEntry, ColumnKind, GroupEntry, Missing};
pub use declared::Declared;
pub use document::{Declaration, Mistake, located, read};
pub use entry_error::EntryError;
pub use label::{LabelEntry, LabelKind};
pub use names::Names;
pub use nearest::{did_you_mean, question};
pub use origin::Origin;
pub use table::{ENCODINGS, TableEntry};
pub use text_marks::{TextMarks, WrongMark};
