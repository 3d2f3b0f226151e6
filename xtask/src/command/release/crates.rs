//! The crates, in the order of what they need.

use super::tools::{Tools, finish};

/// Packages the crates, builds each from its package, and publishes them unless this is a dry run.
///
/// # Errors
/// If one cannot be packaged, built or published.
pub(super) fn publish(tools: &Tools, is_dry_run: bool) -> anyhow::Result<()> {
    let mut command = tools.cargo();
    command.args(["publish", "--workspace", "--locked"]);
    if is_dry_run {
        command.arg("--dry-run");
    }
    finish(&mut command)
}
