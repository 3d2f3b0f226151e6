//! The script that installs the program: it knows the checksum of every archive.

use std::path::Path;

use anyhow::ensure;
use run_records::output::Output;

use super::artefacts::Artefacts;
use super::summary::Summary;
use super::tools::output;
use super::{REPOSITORY, VERSION};

/// The script before version, address and checksums are put into it.
const TEMPLATE: &str = include_str!("install.sh");

/// The script's name among the files of a release.
const NAME: &str = "install.sh";

/// Writes the script that installs one of the archives that were built.
///
/// # Errors
/// If there is none, or the script cannot be written.
pub(super) fn write(artefacts: &Artefacts, summary: &mut Summary) -> anyhow::Result<()> {
    let prefix = format!("fairdp-{VERSION}-");
    let mut sums = String::new();
    for name in artefacts.names()? {
        let target = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".tar.gz"));
        // The package of sources has no system.
        if let Some(target) = target {
            sums += &format!("{target} {}\n", artefacts.sha256(&name)?);
        }
    }
    ensure!(!sums.is_empty(), "{}: no archive of the program was built yet", artefacts.folder().display());
    let script = TEMPLATE
        .replace("@VERSION@", VERSION)
        .replace("@REPOSITORY@", REPOSITORY)
        .replace("@CHECKSUMS@", sums.trim_end());
    let path = artefacts.path(NAME);
    Output::new(&path, &[])?.write_bytes(script.as_bytes())?;
    if cfg!(target_os = "linux") {
        try_it(&path, artefacts, summary)?;
    }
    Ok(())
}

/// Installs the program by the script, from the folder of the archives.
fn try_it(script: &Path, artefacts: &Artefacts, summary: &mut Summary) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let from = format!("file://{}", artefacts.folder().display());
    let mut command = std::process::Command::new("sh");
    command.arg(script).env("FAIRDP_DOWNLOAD", from).env("FAIRDP_FOLDER", place.path());
    let told = output(&mut command)?;
    let version = output(std::process::Command::new(place.path().join("fairdp")).arg("--version"))?;
    ensure!(version.trim().ends_with(VERSION), "the installed program says {version:?}");
    summary.done(format_args!("{NAME}: {}", told.lines().next().unwrap_or_default()))
}
