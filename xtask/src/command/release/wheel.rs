//! The Python package: a wheel for each system, and its sources.

use std::fs;

use anyhow::Context;
use run_records::output::Output;

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
        let place = tempfile::tempdir()?;
        let mut command = tools.python_tool("maturin")?;
        command.args(["build", "--manifest-path=crates/fairdp-python/Cargo.toml", "--profile=dist", "--locked"]);
        command.args(["--target", target]).arg("--out").arg(place.path());
        if target.contains("-linux-") {
            let standard = if target.ends_with("-gnu") { "manylinux2014" } else { "musllinux_1_2" };
            command.args(["--zig", "--compatibility", standard]);
        }
        finish(&mut command)?;
        let built = fs::read_dir(place.path())?.next().with_context(|| format!("{target}: no wheel was built"))??;
        finish(tools.python_tool("python")?.arg("crates/fairdp-python/smaller.py").arg(built.path()))?;
        let wheel = artefacts.path(&built.file_name().to_string_lossy());
        let bytes = fs::read(built.path()).with_context(|| format!("reading {}", built.path().display()))?;
        Output::new(&wheel, &[])?.write_bytes(&bytes)?;
        check_size(&wheel, LARGEST_MB, summary)?;
    }
    let mut sources = tools.python_tool("maturin")?;
    finish(sources.args(["sdist", "--manifest-path=crates/fairdp-python/Cargo.toml", "--out"]).arg(artefacts.folder()))
}
