//! A checkpoint: the run is continued for a step, or refused.
#![no_main]

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fairdp::{FairdpError, FitOptions, Progress, fit};
use fairdp_fuzz::sealed;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const CONFIG: &str = r#"
version = 1
[table]
files = ["t.csv"]
[label]
column = "y"
classes = ["0", "1"]
[privacy]
epsilon = 1000.0
delta = 1e-5
[[column]]
name = "x"
kind = "number"
low = 0
high = 9
bins = 3
"#;

/// A folder with a configuration and its table, and the checkpoint of a run that was interrupted at
/// its first step.
fn begun() -> &'static (TempDir, String) {
    static BEGUN: OnceLock<(TempDir, String)> = OnceLock::new();
    BEGUN.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rows: String = (0..100).map(|row| format!("{},{}\n", row % 10, u8::from(row % 10 > 4))).collect();
        fs::write(folder.path().join("t.csv"), format!("x,y\n{rows}")).expect("writable");
        fs::write(folder.path().join("fairdp.toml"), CONFIG).expect("writable");
        let out = folder.path().join("run");
        let ended = step(folder.path(), out.clone());
        assert!(matches!(ended, Err(FairdpError::Interrupted)), "{ended:?}");
        let checkpoint = fs::read_to_string(out.join("private/checkpoint.json")).expect("a checkpoint");
        (folder, checkpoint)
    })
}

/// Begins or continues a run, and interrupts it at its first step.
fn step(folder: &Path, out: PathBuf) -> Result<(), FairdpError> {
    let options = FitOptions { resume: true, ..FitOptions::new(out) };
    let mut progress = |progress: Progress<'_>| match progress {
        Progress::Step { .. } => ControlFlow::Break(()),
        Progress::Stage(_) => ControlFlow::Continue(()),
    };
    fit(&folder.join("fairdp.toml"), &options, &mut progress).map(drop)
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let (folder, checkpoint) = begun();
    let contents = match choice % 3 {
        0 => input.to_vec(),
        1 => sealed(input),
        // Of this run, but somewhere else in it.
        _ => {
            let (before, _) = checkpoint.split_once("\"state\": ").expect("a state");
            sealed(&[before.as_bytes(), b"\"state\": ", input].concat())
        }
    };
    let out = tempfile::tempdir_in(folder).expect("a temporary folder");
    fs::create_dir(out.path().join("private")).expect("writable");
    fs::write(out.path().join("private/checkpoint.json"), contents).expect("writable");
    // One whose last step was the last one is not interrupted.
    let _ = step(folder.path(), out.path().to_path_buf());
});
