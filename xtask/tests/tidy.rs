//! Rules of the code that no lint knows.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

/// Where files are written: beside their places, then renamed; and in temporary folders, for
/// faults.
const WRITERS: [&str; 9] = [
    "crates/dp-data/src/download.rs",
    // Pipes and devices, and what was read from them until a command ends.
    "crates/fairdp/src/commands/stream.rs",
    "crates/fairdp/src/output.rs",
    "crates/whole-file/src",
    "xtask/faults/src",
    "xtask/run-records/src/output",
    "xtask/src/command/faults/operations.rs",
    // The table of a reader of the README, and the contents of an archive, in temporary folders.
    "xtask/src/command/release/install.rs",
    "xtask/src/command/release/program.rs",
];

/// Our crates from top to bottom: one names those below it, and no other. The last are leaves.
const FLOORS: [&[&str]; 11] = [
    &["xtask"],
    &["simulations"],
    &["benchmarks", "study-report", "fairdp-python"],
    &["run-records", "fairdp"],
    &["dp-audit"],
    &["dp-linear"],
    &["dp-train"],
    &["dp-engine"],
    &["fault-shim", "book"],
    &["dp-data", "dp-table", "fair-decisions"],
    &["dp-accounting", "dp-clipping", "fair-metrics", "fair-report", "faults", "scattering", "whole-file"],
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The folders of our crates.
fn members() -> Vec<PathBuf> {
    let mut members = vec![workspace().join("xtask")];
    for folder in ["crates", "xtask"] {
        let entries = fs::read_dir(workspace().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        members.extend(entries.filter(|path| path.join("Cargo.toml").exists()));
    }
    members
}

/// The crates of ours that a crate is built from, by its manifest.
fn named_crates(folder: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let mut named = Vec::new();
    let mut is_dependency = false;
    for line in manifest.lines() {
        if let Some(table) = line.strip_prefix('[') {
            is_dependency = table.ends_with("dependencies]") && !table.contains("dev-");
        } else if is_dependency && let Some((name, _)) = line.split_once(['.', ' ']) {
            named.push(name.to_owned());
        }
    }
    named
}

#[test]
fn no_crate_names_one_above_it() {
    let floor = |name: &str| FLOORS.iter().position(|floor| floor.contains(&name));
    let mut n_named = 0;
    for member in members() {
        let name = member.file_name().unwrap().to_str().unwrap();
        let own = floor(name).unwrap_or_else(|| panic!("{name} has no floor"));
        for named in named_crates(&member) {
            if let Some(other) = floor(&named) {
                assert!(other > own, "{name} names {named}, which is not below it");
                n_named += 1;
            }
        }
    }
    assert!(n_named > 20, "{n_named}: manifests name crates in another way than this test looks for");
}

/// Every source of the libraries and of this program without its tests, by its name in the
/// workspace.
fn code() -> Vec<(String, String)> {
    let workspace = workspace();
    let mut files = Vec::new();
    for member in members() {
        sources(&member.join("src"), &mut files);
    }
    let mut code = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(workspace).unwrap().to_string_lossy().into_owned();
        let is_test = [
            "fixture.rs",
            "accessibility/mod.rs",
            "made_up.rs",
            "resume_tests.rs",
            "cuda/testing.rs",
            "dp-table/src/defects.rs",
            "fit/tests.rs",
            "onnx/tests.rs",
            "unit_means/tests.rs",
            "bounds/tests.rs",
            "shared_ledger/tests.rs",
            "new_records/attacks.rs",
            "new_records/tests.rs",
            "comparison/tests.rs",
        ];
        if is_test.iter().all(|end| !name.ends_with(end)) {
            let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
            code.push((name, text[..end].to_owned()));
        }
    }
    assert!(code.len() > 200);
    code
}

fn assert_absent(words: &[&str], except: &[&str]) {
    let mut found = Vec::new();
    for (name, text) in code() {
        if except.iter().any(|exception| name.starts_with(exception)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let line = line.replace("eprint", "to standard error: ").replace("WholeFile::create", "");
            if !line.trim_start().starts_with("//") && words.iter().any(|word| line.contains(word)) {
                found.push(format!("{name}:{}: {}", index + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn files_are_written_by_the_output_types_alone() {
    let words =
        ["File::create", "fs::write(", "OpenOptions", "serialize_to_file", "fs::copy(", "NamedTempFile", ".persist("];
    assert_absent(&words, &WRITERS);
}

/// `println!` panics where standard output is full.
#[test]
fn standard_output_may_be_full() {
    assert_absent(&["println!(", "print!("], &["xtask/faults/src"]);
}

/// Faults enter the guarantee's code through a hook, which does not know them.
#[test]
fn faults_are_planted_by_audits_alone() {
    let mut files = Vec::new();
    for member in members() {
        if member.parent().is_some_and(|parent| parent.ends_with("crates")) && !member.ends_with("dp-audit") {
            sources(&member.join("src"), &mut files);
        }
    }
    assert!(files.len() > 200);
    let found: Vec<_> = files.iter().filter(|file| fs::read_to_string(file).unwrap().contains("planted")).collect();
    assert!(found.is_empty(), "{found:?}");
}
