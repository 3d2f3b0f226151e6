//! Runs the program on generated tables.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dp_table::Example;

pub(crate) fn program(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairdp")).current_dir(folder).args(arguments).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it, and fails with what it said unless it ends well.
pub(crate) fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = program(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Runs it, and returns the exit code and the message.
pub(crate) fn refused(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = program(folder, arguments);
    (output.status.code().unwrap(), text(&output.stderr))
}

/// Runs `fit` with these arguments, kills it behind its first checkpoint, and continues it unless it had ended.
pub(crate) fn killed_and_resumed(here: &Path, arguments: &[&str], out: &str) {
    let run = here.join(out);
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairdp")).current_dir(here).args(arguments).spawn().unwrap();
    while !run.join("private/checkpoint.json").exists() && !run.join("release").exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if !run.join("release").exists() {
        done(here, &[arguments, &["--resume"]].concat());
    }
}

/// A folder with `table.csv` and a configuration whose entries are declared public.
pub(crate) fn declared(rows: u64, change: impl Fn(String) -> String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut csv = Vec::new();
    Example { rows, ..Example::default() }.write(&mut csv).unwrap();
    fs::write(folder.path().join("table.csv"), csv).unwrap();
    let config = done(folder.path(), &["init", "table.csv", "--label", "outcome", "--group", "group"]);
    let config = change(config.replace("from = \"data\"", "public = true"));
    fs::write(folder.path().join("fairdp.toml"), config).unwrap();
    folder
}

/// The configuration with bounds of numbers that are paid for.
pub(crate) fn private_bounds(config: &str) -> String {
    let lines = config.lines().map(|line| if line.starts_with("low = ") { "bounds = \"private\"" } else { line });
    lines.filter(|line| !line.starts_with("high = ") && !line.starts_with("bins = ")).collect::<Vec<_>>().join("\n")
}

pub(crate) fn json(path: PathBuf) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
