#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod readers;
mod target;
mod unfinished;
mod whole_file;

pub use readers::Readers;
pub use target::{is_database, open, parent, sync_folder};
pub use unfinished::Unfinished;
pub use whole_file::WholeFile;
