#![doc = include_str!("../README.md")]

mod part;
mod readers;
mod target;
mod whole_file;

pub use part::Part;
pub use readers::Readers;
pub use target::{is_database, open, parent, sync_folder};
pub use whole_file::WholeFile;
