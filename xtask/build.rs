//! Builds the revision of the code into the program: what runs a study may differ from what lies in
//! the working directory by then.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// What the program is made from, relative to the workspace.
const SOURCES: [&str; 5] = ["Cargo.toml", "Cargo.lock", "crates", "datasets", "xtask"];
/// Ends of names of sources; what is trained on or built is none.
const ENDS: [&str; 12] = ["rs", "toml", "lock", "cu", "cuh", "html", "md", "css", "tsv", "c", "json", "txt"];
/// Folders of what is not built in: tests, downloads, and what fuzzing builds.
const NOT_SOURCES: [&str; 6] = ["tests", "benches", "fuzz", "snapshots", "target", "cache"];

fn main() {
    // Cargo runs it in its package's folder. The path that was built in may be that of another checkout
    // with the same build folder.
    let workspace = Path::new("..");
    for source in SOURCES.iter().filter(|source| **source != "datasets") {
        println!("cargo:rerun-if-changed={}", workspace.join(source).display());
    }
    println!("cargo:rustc-env=XTASK_CODE_REVISION={}", revision(workspace));
}

fn revision(workspace: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(workspace).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let excluded: Vec<String> = NOT_SOURCES.iter().map(|name| format!(":(exclude,glob)**/{name}/**")).collect();
    let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
    let changes = git(&[&["status", "--porcelain", "--"], &SOURCES[..], &excluded[..]].concat());
    match (git(&["rev-parse", "HEAD"]), changes) {
        (Some(revision), Some(changes)) if changes.is_empty() => revision,
        (Some(revision), _) => format!("{revision}-dirty-{}", digest(workspace)),
        (None, _) => format!("unknown-{}", digest(workspace)),
    }
}

/// The first digits of a sha256 over names and contents.
fn digest(workspace: &Path) -> String {
    let mut files = Vec::new();
    for source in SOURCES {
        collect(&workspace.join(source), &mut files);
    }
    files.sort();
    let mut hasher = Sha256::new();
    for file in files {
        let name = file.strip_prefix(workspace).unwrap_or(&file).to_string_lossy().into_owned();
        let contents = fs::read(&file).unwrap_or_default();
        for part in [name.as_bytes(), &contents] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    let digest = hasher.finalize();
    digest.iter().take(6).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        if path.extension().is_some_and(|end| ENDS.iter().any(|known| end == *known)) {
            files.push(path.to_owned());
        }
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if NOT_SOURCES.iter().all(|excluded| name != *excluded) {
            collect(&entry.path(), files);
        }
    }
}
