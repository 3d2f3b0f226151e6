//! What the documentation says, beside what the records that are committed with it give.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

mod figures;
mod lists;
mod reports;

use std::path::{Path, PathBuf};

/// The folder of the documentation.
fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs")
}
