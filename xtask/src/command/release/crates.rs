//! The crates, in the order of what they need.

use std::path::Path;
use std::process::Command;

use super::tools::finish;

/// Packages the crates, builds each from its package, and publishes them unless this is a dry run.
///
/// # Errors
/// If one cannot be packaged, built or published.
pub(super) fn publish(root: &Path, is_dry_run: bool) -> anyhow::Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(["publish", "--workspace", "--locked"]);
    if is_dry_run {
        command.arg("--dry-run");
    }
    finish(&mut command)
}
