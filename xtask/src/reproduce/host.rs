//! What a study ran on, and which code.

use std::process::Command;

use sha2::{Digest, Sha256};

/// Processor, cores, system.
pub(crate) fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let processor = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{processor}, {cores} cores, {}", std::env::consts::OS)
}

/// What tells this code from other code: the revision of the checkout if no file differs from it; else `REVISION-dirty-DIGEST`, or
/// `unknown-DIGEST` outside git, with the first digits of the sha256 of the program.
pub(crate) fn code_revision() -> String {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").arg("-C").arg(super::options::workspace_root()).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match (git(&["rev-parse", "HEAD"]), git(&["status", "--porcelain"])) {
        (Some(revision), Some(changes)) if changes.is_empty() => revision,
        (Some(revision), _) => format!("{revision}-dirty-{}", program_digest()),
        (None, _) => format!("unknown-{}", program_digest()),
    }
}

/// The first 12 digits of the sha256 of the running program; `unreadable` if the file is gone.
fn program_digest() -> String {
    let program = std::env::current_exe().and_then(std::fs::read);
    program.map_or_else(|_| "unreadable".to_owned(), |bytes| hex::encode(&Sha256::digest(bytes)[..6]))
}
