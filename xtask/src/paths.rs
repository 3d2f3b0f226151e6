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

/// The workspace that this program lies in, else the one around the current folder, else this folder: a
/// program may be moved, to a machine with a GPU for example. Where it was built does not matter.
pub(crate) fn workspace_root() -> PathBuf {
    let (program, here) = (env::current_exe().ok(), env::current_dir().ok());
    // The folder itself may be the workspace.
    let within = here.as_ref().map(|here| here.join("here"));
    let around = [program, within].into_iter().flatten().find_map(|path| enclosing(&path).map(Path::to_path_buf));
    around.or(here).unwrap_or_else(|| PathBuf::from("."))
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
