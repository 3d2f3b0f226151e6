//! The program `fairdp`, in an archive for each system.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::VERSION;
use super::artefacts::{Artefacts, check_size};
use super::summary::Summary;
use super::tools::{self, Tools, finish};
use crate::paths;

/// The oldest C library of GNU that programs and wheels for Linux need: that of 2012, which the
/// standard `manylinux2014` names.
pub(super) const GLIBC: &str = "2.17";

/// The systems of a release. `release.yml` builds for each on a runner of its own kind.
pub(super) const TARGETS: [&str; 7] = [
    "x86_64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
];

/// The program may have so many MB.
const LARGEST_MB: f64 = 25.0;

/// The system of this machine, and for Linux the one without a C library of the system's where
/// Rust's library for it is installed.
///
/// # Errors
/// If the compiler does not say what it builds for.
pub(super) fn targets_of_this_system(summary: &mut Summary) -> anyhow::Result<Vec<String>> {
    let told = tools::output(Command::new("rustc").arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let mut targets = vec![host.to_owned()];
    if let Some(processor) = host.strip_suffix("-unknown-linux-gnu") {
        let other = format!("{processor}-unknown-linux-musl");
        let library = tools::output(Command::new("rustc").args(["--print=target-libdir", "--target", &other]))?;
        if Path::new(library.trim()).is_dir() {
            targets.push(other);
        } else {
            summary.skipped(&other, format_args!("`rustup target add {other}` installs what it needs"))?;
        }
    }
    Ok(targets)
}

/// The name of the archive for a system.
pub(super) fn archive(target: &str) -> String {
    format!("{}.tar.gz", folder_in_archive(target))
}

/// The one folder in an archive.
pub(super) fn folder_in_archive(target: &str) -> String {
    format!("fairdp-{VERSION}-{target}")
}

/// Builds the program for a system and packs it with its licences.
///
/// # Errors
/// If it cannot be built or packed, or needs too new a C library.
pub(super) fn build(tools: &Tools, target: &str, artefacts: &Artefacts, summary: &mut Summary) -> anyhow::Result<()> {
    let options = ["--profile=dist", "--package=fairdp", "--bin=fairdp", "--locked"];
    if target.contains("-linux-") {
        let linked = if target.ends_with("-gnu") { format!("{target}.{GLIBC}") } else { target.to_owned() };
        let mut command = tools.python_tool("cargo-zigbuild")?;
        finish(command.arg("zigbuild").args(options).args(["--target", &linked]))?;
    } else {
        finish(tools.cargo().arg("build").args(options).args(["--target", target]))?;
    }
    let root = paths::workspace_root();
    let name = if target.contains("-windows-") { "fairdp.exe" } else { "fairdp" };
    let program = root.join("target").join(target).join("dist").join(name);
    check_size(&program, LARGEST_MB, summary)?;
    if target.ends_with("-linux-gnu") {
        check_c_library(&fs::read(&program)?)?;
    }

    let place = tempfile::tempdir()?;
    let folder = place.path().join(folder_in_archive(target));
    fs::create_dir(&folder)?;
    fs::copy(&program, folder.join(name))?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(root.join(licence), folder.join(licence))?;
    }
    let mut notices = tools.python_tool("python")?;
    notices.args(["crates/fairdp-python/notices.py", "--package", "fairdp", "--out"]);
    finish(notices.arg(folder.join("THIRD-PARTY-NOTICES.txt")))?;
    let archive = archive(target);
    let mut pack = Command::new("tar");
    pack.args(["--create", "--gzip", "--file", &archive, "--directory"]).arg(place.path());
    finish(pack.arg(folder_in_archive(target)).current_dir(artefacts.folder()))?;
    check_size(&artefacts.path(&archive), LARGEST_MB, summary)
}

/// Fails if a program asks for a newer C library than is promised.
fn check_c_library(program: &[u8]) -> anyhow::Result<()> {
    let minor = |version: &str| version.strip_prefix("2.").and_then(|minor| minor.parse::<u32>().ok());
    let newest = versions_of_c_library(program).filter_map(minor).max();
    let Some(newest) = newest else {
        bail!("the program names no version of the C library; expected one linked to it")
    };
    ensure!(Some(newest) <= minor(GLIBC), "the program needs glibc 2.{newest}; at most {GLIBC} is promised");
    Ok(())
}

/// The versions `GLIBC_…` that the symbols of a program name.
fn versions_of_c_library(program: &[u8]) -> impl Iterator<Item = &str> {
    const MARK: &[u8] = b"\0GLIBC_";
    let starts = (0..program.len()).filter(|&start| program[start..].starts_with(MARK));
    starts.filter_map(|start| {
        let rest = &program[start + MARK.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        std::str::from_utf8(&rest[..end]).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_a_newer_c_library_is_refused() {
        check_c_library(b"\x7fELF\0GLIBC_2.2.5\0GLIBC_2.17\0memcpy\0").unwrap();
        let newer = check_c_library(b"\0GLIBC_2.17\0GLIBC_2.34\0").unwrap_err();
        assert_eq!(newer.to_string(), "the program needs glibc 2.34; at most 2.17 is promised");
        assert!(check_c_library(b"GLIBC_2.17").is_err());
    }
}
