//! Everything this program writes, apart from databases: files and folders that appear whole or not
//! at all, and never in the place of what belongs to the user.
//!
//! - [`Output`] is one file. It refuses to replace a database, an input, a device or a directory
//!   before any work starts.
//! - [`ReportFolder`] is a folder of a report. It replaces the files that an earlier report of the
//!   same study wrote, and no others.

mod file;
mod folder;

pub use self::file::Output;
pub use self::folder::{Contents, ReportFolder};
