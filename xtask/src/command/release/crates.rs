//! The crates, in the order of what they need.

use super::summary::Summary;
use super::tools::{Tools, finish};

/// Packages the crates, builds each from its package, and publishes them unless this is a dry run.
///
/// # Errors
/// If one cannot be packaged, built or published.
pub(super) fn publish(tools: &Tools, is_dry_run: bool, summary: &mut Summary) -> anyhow::Result<()> {
    let mut command = tools.cargo();
    command.args(["publish", "--workspace", "--locked"]);
    if is_dry_run {
        // What is not committed is named by the summary.
        command.args(["--dry-run", "--allow-dirty"]);
    }
    finish(&mut command)?;
    let how = if is_dry_run { "were packaged and built from their packages" } else { "are published" };
    summary.done(format_args!("crates: all that are for users {how}"))
}
