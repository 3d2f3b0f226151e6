//! Whole commands on a CUDA device, against the same on the CPU. Without a device, or in a build
//! without the feature `cuda`, each test says that it was skipped.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

/// The program is named when the test runs: on a machine with a GPU it lies elsewhere than where it
/// was built.
fn xtask(args: &[&str]) -> Output {
    let program = env::var_os("CARGO_BIN_EXE_xtask").unwrap_or_else(|| OsString::from(env!("CARGO_BIN_EXE_xtask")));
    Command::new(program).args(args).output().unwrap()
}

/// What a command that must succeed prints.
fn printed(args: &[&str]) -> String {
    let output = xtask(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Whether there is a device, or a line that says why there is none; a failure where `REQUIRE_CUDA`
/// is set.
fn has_device() -> bool {
    let output =
        xtask(&["bench", "step", "--model", "lr", "--mode", "plain", "--steps", "1", "--json", "--device", "cuda"]);
    if output.status.success() {
        return true;
    }
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let absent = ["built without the feature `cuda`", "no such CUDA device answers"];
    assert!(absent.iter().any(|reason| error.contains(reason)), "{error}");
    assert!(env::var_os("REQUIRE_CUDA").is_none(), "{error}");
    println!("skipped: {}", error.lines().next().unwrap_or_default());
    false
}

#[test]
fn killed_runs_on_a_device_end_as_if_they_had_not_been() {
    if !has_device() {
        return;
    }
    let text = printed(&["crash-test", "--kills", "3", "--steps", "20", "--seed", "1", "--json", "--device", "cuda"]);
    let tally: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(tally["kills"].as_u64().unwrap() >= 3, "{tally}");
    assert_eq!(tally["identical"], tally["runs"], "{tally}");
}

/// A small study: its metrics, one a line.
fn study(out: &Path, device: &str, noise: &str) -> Vec<String> {
    let folder = out.join(format!("{device}-{noise}"));
    let table = ["--quick", "--seeds", "1", "--table", "xu2021-table-1", "--seed", "5", "--offline"];
    let place = ["--threads", "1", "--device", device, "--noise", noise, "--out", folder.to_str().unwrap()];
    printed(&[&["reproduce", "adult"], &table[..], &place].concat());
    let records = folder.join("records.db");
    printed(&["results", "export", "--table", "metrics", records.to_str().unwrap()])
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_study_on_a_device_is_that_on_the_cpu() {
    if !has_device() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let [on_cpu, on_device, with_noise_of_the_host] = [("cpu", "device"), ("cuda", "device"), ("cuda", "host")]
        .map(|(device, noise)| study(out.path(), device, noise));
    assert_eq!(on_device, with_noise_of_the_host);
    assert_eq!(on_device.len(), on_cpu.len());
    assert!(on_cpu.len() > 10, "{on_cpu:?}");
    // What a line is about, then accuracy and loss.
    let parsed = |line: &str| -> (String, f64, f64) {
        let mut fields = line.rsplitn(3, ',');
        let (loss, accuracy) = (fields.next().unwrap().parse().unwrap(), fields.next().unwrap().parse().unwrap());
        (fields.next().unwrap().to_owned(), accuracy, loss)
    };
    for (on_device, on_cpu) in on_device.iter().zip(&on_cpu).skip(1) {
        let ((name, accuracy, loss), (cpu_name, cpu_accuracy, cpu_loss)) = (parsed(on_device), parsed(on_cpu));
        assert_eq!(name, cpu_name);
        // Sums are rounded in another order: a record near the boundary may change sides.
        assert!((accuracy - cpu_accuracy).abs() < 1e-3, "{on_device} {on_cpu}");
        assert!((loss / cpu_loss - 1.0).abs() < 1e-5, "{on_device} {on_cpu}");
    }
}
