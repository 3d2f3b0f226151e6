//! The crates, in the order of what they need.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use super::VERSION;
use super::summary::Summary;
use super::tools::{Tools, finish};

/// Packages the crates, builds each from its package, and publishes them unless this is a dry run.
///
/// # Errors
/// If one cannot be packaged, built or published.
pub(super) fn publish(tools: &Tools, is_dry_run: bool, summary: &mut Summary) -> anyhow::Result<()> {
    forget_unpacked()?;
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

/// Removes what Cargo has unpacked of packages of this version. It keeps them beside those of registries,
/// in a folder without a host's name, and would build an earlier run's sources again.
///
/// # Errors
/// If a folder cannot be read or removed.
fn forget_unpacked() -> anyhow::Result<()> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))) else { return Ok(()) };
    let sources = home.join("registry/src");
    if !sources.is_dir() {
        return Ok(());
    }
    for registry in fs::read_dir(&sources).with_context(|| format!("reading {}", sources.display()))? {
        let registry = registry?;
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for package in fs::read_dir(registry.path())? {
            let package = package?;
            if package.file_name().to_string_lossy().ends_with(&format!("-{VERSION}")) {
                fs::remove_dir_all(package.path()).with_context(|| format!("removing {}", package.path().display()))?;
            }
        }
    }
    Ok(())
}
