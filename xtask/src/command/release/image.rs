//! The container image: the program alone, from an archive of a release.

use std::process::Command;

use anyhow::ensure;

use super::VERSION;
use super::artefacts::Artefacts;
use super::program;
use super::summary::Summary;
use super::tools::output;
use crate::paths;

/// Builds the image of a program that needs no C library of the system's, and runs it.
///
/// # Errors
/// If Docker is there, and the image cannot be built or does not run.
pub(super) fn check(target: &str, artefacts: &Artefacts, summary: &mut Summary) -> anyhow::Result<()> {
    if output(Command::new("docker").arg("info")).is_err() {
        return summary.skipped(format_args!("container image of {target}"), "no Docker daemon answers");
    }
    let mut build = Command::new("docker");
    build.args(["build", "--quiet", "--file"]).arg(paths::workspace_root().join(".github/Dockerfile"));
    build.arg("--build-arg").arg(format!("ARCHIVE={}", program::folder_in_archive(target)));
    let image = output(build.arg(artefacts.folder()))?;
    let version = output(Command::new("docker").args(["run", "--rm", image.trim(), "--version"]))?;
    ensure!(version.trim().ends_with(VERSION), "the program in the image says {version:?}");
    summary.done(format_args!("container image of {target}: built, and the program in it runs"))
}
