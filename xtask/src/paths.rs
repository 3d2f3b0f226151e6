//! Where things are in the workspace.

use std::env;
use std::path::{Path, PathBuf};

/// Where reports and records go unless the command line says otherwise.
pub(crate) fn reports_root() -> PathBuf {
    workspace_root().join("target/reproduce")
}

/// Where reports from committed records go unless the command line says otherwise.
pub(crate) fn whole_reports_root() -> PathBuf {
    workspace_root().join("target/results")
}

/// Where reports and their records are committed.
pub(crate) fn exports_folder() -> PathBuf {
    workspace_root().join("docs/results")
}

/// The workspace that this program lies in, else the one that it was built from, else the current
/// folder: a program may be moved, to a machine with a GPU for example.
pub(crate) fn workspace_root() -> PathBuf {
    let program = env::current_exe().ok();
    let around = program.as_deref().and_then(enclosing);
    let built_from = || Path::new(env!("CARGO_MANIFEST_DIR")).parent().filter(|root| root.is_dir());
    around.or_else(built_from).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The innermost folder around a path that has this crate in it.
fn enclosing(path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).find(|folder| folder.join("xtask/Cargo.toml").is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_workspace_is_found_around_a_program() {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("target/release/xtask");
        assert_eq!(enclosing(&program), None);
        fs::create_dir(root.path().join("xtask")).unwrap();
        fs::write(root.path().join("xtask/Cargo.toml"), "").unwrap();
        assert_eq!(enclosing(&program), Some(root.path()));
    }
}
