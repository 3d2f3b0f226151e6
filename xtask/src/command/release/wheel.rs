//! The Python package: a wheel for each system, and its sources.

use anyhow::ensure;

use super::artefacts::{Artefacts, check_size};
use super::summary::Summary;
use super::tools::{Tools, finish};

/// The wheel may have so many MB.
const LARGEST_MB: f64 = 6.0;

/// Builds the wheels and the package of sources.
///
/// # Errors
/// If one cannot be built.
pub(super) fn build(
    tools: &Tools,
    targets: &[String],
    artefacts: &Artefacts,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    for target in targets {
        let mut command = tools.python_tool("maturin")?;
        command.args(["build", "--manifest-path=crates/fairdp-python/Cargo.toml", "--profile=dist", "--locked"]);
        command.args(["--compression-level=9", "--target", target]).arg("--out").arg(artefacts.folder());
        if target.contains("-linux-") {
            let standard = if target.ends_with("-gnu") { "manylinux2014" } else { "musllinux_1_2" };
            command.args(["--zig", "--compatibility", standard]);
        }
        finish(&mut command)?;
    }
    let mut sources = tools.python_tool("maturin")?;
    finish(
        sources.args(["sdist", "--manifest-path=crates/fairdp-python/Cargo.toml", "--out"]).arg(artefacts.folder()),
    )?;
    let wheels = artefacts.wheels()?;
    ensure!(wheels.len() >= targets.len(), "{} wheels were built for {} systems", wheels.len(), targets.len());
    wheels.iter().try_for_each(|name| check_size(&artefacts.path(name), LARGEST_MB, summary))
}
