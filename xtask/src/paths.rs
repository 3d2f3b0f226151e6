//! Where things are in the workspace that this program was built from.

use std::path::PathBuf;

/// Where reports and records go unless the command line says otherwise.
pub(crate) fn reports_root() -> PathBuf {
    workspace_root().join("target/reproduce")
}

/// Where small exports of records are committed.
pub(crate) fn exports_folder() -> PathBuf {
    workspace_root().join("docs/results")
}

/// The workspace this binary was built from.
pub(crate) fn workspace_root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or_else(|| manifest.clone(), std::path::Path::to_path_buf)
}
