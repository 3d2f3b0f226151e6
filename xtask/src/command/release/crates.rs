//! The crates, in the order of what they need.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::VERSION;
use super::summary::Summary;
use super::tools::{Tools, finish};
use crate::paths;

/// Packages the crates, builds each from its package, and publishes them unless this is a dry run.
///
/// # Errors
/// If one cannot be packaged, built or published.
pub(super) fn publish(tools: &Tools, is_dry_run: bool, summary: &mut Summary) -> anyhow::Result<()> {
    let built = paths::workspace_root().join("target/release-packages");
    forget_packages(&built)?;
    let mut command = tools.cargo();
    command.args(["publish", "--workspace", "--locked", "--target-dir"]).arg(&built);
    if is_dry_run {
        // What is not committed is named by the summary.
        command.args(["--dry-run", "--allow-dirty"]);
    }
    finish(&mut command)?;
    let how = if is_dry_run { "were packaged and built from their packages" } else { "are published" };
    summary.done(format_args!("crates: all that are for users {how}"))
}

/// Removes what Cargo has of an earlier run's packages, which have this version too: what it built from
/// them, and their sources, beside those of registries in a folder without a host's name. It takes both
/// for those of today's packages.
///
/// # Errors
/// If a folder cannot be read or removed.
fn forget_packages(built: &Path) -> anyhow::Result<()> {
    if built.exists() {
        fs::remove_dir_all(built).with_context(|| format!("removing {}", built.display()))?;
    }
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
