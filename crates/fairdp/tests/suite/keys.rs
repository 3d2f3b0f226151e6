//! Runs that are killed, or fail, at every call that changes a file system, and whose folders are
//! then copied: noise belongs to one table.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use safetensors::SafeTensors;

use crate::program::{declared, done, private_bounds, program, text};

/// Enough for bounds that can be told from noise.
const N_ROWS: u64 = 8_000;
/// A [`distance`] that one noise on two tables keeps within, and unlike noise exceeds.
const ONE_NOISE: f64 = 0.03;
const FIT: [&str; 5] = ["fit", "fairdp.toml", "-q", "--threads", "1"];

/// The library that counts calls and puts faults into them; built here, as it is nobody's
/// dependency.
fn shim() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = ["build", "--release", "--locked", "--quiet", "--package=fault-shim"];
    let status = Command::new(cargo).args(build).current_dir(root).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "the preloaded library cannot be built");
    Path::new(env!("CARGO_BIN_EXE_fairdp")).with_file_name("libfault_shim.so")
}

/// Begins a run in `out` and puts a fault into its call of this number. Returns the calls that there
/// were.
fn strike(here: &Path, shim: &Path, out: &str, fault: &str, at: u64) -> u64 {
    let log = here.join("calls");
    let _ = fs::remove_file(&log);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairdp"));
    command
        .current_dir(here)
        .args(FIT)
        .args(["--ledger", &ledger(out), "--out", out])
        .env("LD_PRELOAD", shim)
        .env("FAULT_LOG", &log)
        .env("FAULT_AT", at.to_string())
        .env("FAULT_DO", fault);
    let output = command.output().unwrap();
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
    fs::metadata(&log).map_or(0, |log| log.len())
}

fn ledger(out: &str) -> String {
    format!("{out}.ledger")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Every file of a release but those with the total of a ledger.
fn release(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder.join("release")).unwrap().map(Result::unwrap);
    let files = files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()));
    files.filter(|(name, _)| !name.starts_with("statement") && name != "card.html").collect()
}

/// The distance of two releases' models over the length of the first.
///
/// Under one noise a label of 8,000 moves it by about 0.01, at ε = 1 and at ε = 8. Under unlike noise
/// 780 pairs were 0.31 to 0.84 apart, and with bounds that are found at ε = 8 0.09 to 0.23.
fn distance(one: &Path, other: &Path) -> f64 {
    let weights = [one, other].map(|folder| {
        let file = fs::read(folder.join("release/model.safetensors")).unwrap();
        let mut tensors = SafeTensors::deserialize(&file).unwrap().tensors();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        let values = tensors.iter().flat_map(|(_, tensor)| tensor.data().as_chunks().0);
        values.map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect::<Vec<_>>()
    });
    let [one, other] = &weights;
    assert_eq!(one.len(), other.len());
    let squares = one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    (squares / one.iter().map(|a| a.powi(2)).sum::<f64>()).sqrt()
}

/// The table with another label of its first record.
fn with_a_turned_label(table: &str) -> String {
    let (header, rows) = table.split_once('\n').unwrap();
    let (first, rest) = rows.split_once('\n').unwrap();
    let (features, label) = first.rsplit_once(',').unwrap();
    format!("{header}\n{features},{}\n{rest}", if label == "yes" { "no" } else { "yes" })
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What is left of a run that has ended.
fn is_tidy(folder: &Path) {
    assert_eq!(names(folder), ["private", "release"], "{}", folder.display());
    let private = names(&folder.join("private"));
    assert_eq!(private, ["config.toml", "diagnostics.json", "ledger.json", "log.txt"], "{}", folder.display());
    done(folder.parent().unwrap(), &["verify", folder.to_str().unwrap()]);
}

/// A run killed at this call, and what becomes of its folder and of copies of it. Returns whether
/// its key was bound.
fn copies(here: &Path, shim: &Path, at: u64) -> Option<bool> {
    let [run, same, other, alone] = ["run", "same", "other", "alone"].map(|name| format!("{name}{at}"));
    strike(here, shim, &run, "kill", at);
    let ledger = ledger(&run);
    if !here.join(&run).join("private").exists() {
        return None;
    }
    let resume = |out: &str, ledger: &[&str]| program(here, &[&FIT[..], &["--resume", "--out", out], ledger].concat());
    if here.join(&run).join("release").exists() {
        // Killed in its last acts: what was left of its key is removed.
        assert!(resume(&run, &["--ledger", &ledger]).status.success());
        is_tidy(&here.join(&run));
        return None;
    }
    let is_bound = here.join(&run).join("private/checkpoint.json").exists();
    for name in [&same, &other, &alone] {
        copy(&here.join(&run), &here.join(name));
    }
    let ends_well = |out: &str, ledger: &[&str]| {
        let output = resume(out, ledger);
        assert!(output.status.success(), "call {at}, {out}: {}", text(&output.stderr));
        is_tidy(&here.join(out));
    };
    ends_well(&run, &["--ledger", &ledger]);
    // The same table: the same bits under the same entry, or another fit, beyond the cap.
    let again = resume(&same, &["--ledger", &ledger]);
    assert_eq!(again.status.success(), is_bound, "call {at}: {}", text(&again.stderr));
    if is_bound {
        assert!(release(&here.join(&run)) == release(&here.join(&same)), "call {at}");
    } else {
        assert!(text(&again.stderr).contains("beyond the cap"), "call {at}: {}", text(&again.stderr));
    }
    // Another table: refused under the same ledger; without it, unlike noise at least.
    let table = fs::read_to_string(here.join("table.csv")).unwrap();
    fs::write(here.join("table.csv"), with_a_turned_label(&table)).unwrap();
    let output = resume(&other, &["--ledger", &ledger]);
    assert_eq!(output.status.code(), Some(3), "call {at}: {}", text(&output.stderr));
    let output = resume(&alone, &[]);
    if is_bound {
        assert!(text(&output.stderr).contains("is not the one that the run began with"), "{}", text(&output.stderr));
    } else {
        assert!(output.status.success(), "call {at}: {}", text(&output.stderr));
        let distance = distance(&here.join(&run), &here.join(&alone));
        assert!(distance > ONE_NOISE, "call {at}: one noise on two tables: {distance}");
    }
    fs::write(here.join("table.csv"), table).unwrap();
    Some(is_bound)
}

/// Runs with one seed have one noise.
#[test]
fn one_noise_on_two_tables_is_told_from_two() {
    let with_more = |config: &str| config.replace("epsilon = 1", "epsilon = 8");
    for change in [str::to_owned as fn(&str) -> String, with_more, found_bounds] {
        let folder = declared(N_ROWS, |config| change(&config));
        let here = folder.path();
        let fit = |out: &str, seed: &str| {
            done(here, &[&FIT[..], &["--out", out, "--seed", seed]].concat());
        };
        fit("one", "1");
        fit("two", "2");
        let table = fs::read_to_string(here.join("table.csv")).unwrap();
        fs::write(here.join("table.csv"), with_a_turned_label(&table)).unwrap();
        fit("other", "1");
        let to = |out: &str| distance(&here.join("one"), &here.join(out));
        assert!(to("other") < ONE_NOISE && to("two") > 0.2, "{} {}", to("other"), to("two"));
    }
}

fn copied_folders(step: u64, change: impl Fn(&str) -> String) {
    let folder = declared(N_ROWS, |config| change(&config.replace("fraction = 0.2", "fraction = 0.0")));
    let (here, shim) = (folder.path(), shim());
    let n_calls = strike(here, &shim, "whole", "nothing", u64::MAX);
    assert!(n_calls > 20, "{n_calls} calls");
    is_tidy(&here.join("whole"));
    // All of the first ones, up to the binding, the last ones, and some of the others.
    let calls = (1..=n_calls).filter(|at| *at <= 8 || at + 4 > n_calls || at.is_multiple_of(step));
    let found: Vec<bool> = calls.filter_map(|at| copies(here, &shim, at)).collect();
    // Kills met runs on either side of the binding.
    assert!(found.contains(&true) && found.contains(&false), "{found:?}");
}

/// With a budget that always finds them.
fn found_bounds(config: &str) -> String {
    private_bounds(&config.replace("epsilon = 1", "epsilon = 8"))
}

#[test]
fn copied_folders_never_share_noise_on_two_tables() {
    copied_folders(50, str::to_owned);
    copied_folders(75, found_bounds);
}

/// `.ci/run faults`
#[test]
#[ignore = "takes minutes"]
fn copied_folders_never_share_noise_on_two_tables_at_many_calls() {
    copied_folders(10, str::to_owned);
    copied_folders(15, found_bounds);
}

/// `cargo test --release -p fairdp --test suite every_call -- --ignored`
#[test]
#[ignore = "takes a quarter of an hour"]
fn copied_folders_never_share_noise_on_two_tables_at_every_call() {
    copied_folders(1, str::to_owned);
    copied_folders(1, found_bounds);
}

/// A call that fails leaves no release but a whole one in its place, and no second one anywhere.
#[test]
fn a_run_that_fails_leaves_no_release_behind() {
    runs_that_fail(20);
}

/// `.ci/run faults`
#[test]
#[ignore = "takes minutes"]
fn a_run_that_fails_leaves_no_release_behind_at_many_calls() {
    runs_that_fail(3);
}

/// A failure at every `step`th call.
fn runs_that_fail(step: usize) {
    let folder = declared(N_ROWS, |config| config);
    let (here, shim) = (folder.path(), shim());
    let n_calls = strike(here, &shim, "whole", "nothing", u64::MAX);
    for (number, at) in (1..=n_calls).rev().step_by(step).enumerate() {
        let out = format!("run{at}");
        strike(here, &shim, &out, ["error", "full", "read-only"][number % 3], at);
        let place = here.join(&out);
        if place.join("release").exists() {
            done(here, &["verify", &out]);
            continue;
        }
        let private = place.join("private");
        if private.exists() {
            let left = names(&private);
            // A disk that lets nothing be removed keeps what was written.
            let is_kept = number % 3 == 2;
            assert!(is_kept || left.iter().all(|name| !name.contains("release") && name != "ledger.json"), "{left:?}");
            assert!(names(&place) == ["private"], "call {at}: {:?}", names(&place));
        }
        let resume: &[&str] = if private.exists() { &["--resume"] } else { &[] };
        done(here, &[&FIT[..], resume, &["--out", &out, "--ledger", &ledger(&out)]].concat());
        is_tidy(&place);
    }
}

/// Two processes: the second is refused while the first one lives, whatever it asks for.
#[test]
fn two_processes_do_not_share_a_folder() {
    let folder = declared(60_000, |config| config);
    let here = folder.path();
    let mut first = Command::new(env!("CARGO_BIN_EXE_fairdp"));
    let mut first = first.current_dir(here).args(FIT).args(["--out", "run"]).stdout(Stdio::null()).spawn().unwrap();
    // Written behind the lock.
    while !here.join("run/private/checkpoint.json").exists() {
        assert!(first.try_wait().unwrap().is_none(), "the first run ended");
        std::thread::yield_now();
    }
    let table = fs::read_to_string(here.join("table.csv")).unwrap();
    let mut n_refused = 0;
    while first.try_wait().unwrap().is_none() {
        let output = program(here, &[&FIT[..], &["--resume", "--out", "run"]].concat());
        let message = text(&output.stderr);
        // One that has ended is left as it is.
        let is_refused = output.status.code() == Some(3);
        assert!(is_refused || output.status.success() && here.join("run/release").exists(), "{message}");
        n_refused += usize::from(message.contains("run is in use: another process fits in it"));
    }
    assert!(first.wait().unwrap().success() && n_refused > 0, "{n_refused}");
    is_tidy(&here.join("run"));
    // The one that comes too late does not publish in its place.
    let before = release(&here.join("run"));
    fs::write(here.join("table.csv"), with_a_turned_label(&table)).unwrap();
    done(here, &[&FIT[..], &["--resume", "--out", "run"]].concat());
    assert!(before == release(&here.join("run")));
    is_tidy(&here.join("run"));
}
