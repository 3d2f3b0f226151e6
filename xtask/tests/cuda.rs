//! Whole commands on a CUDA device, against the same on the CPU. Without a device, or in a build
//! without the feature `cuda`, each test says that it was skipped.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Map, Value};

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
    let absent = ["built without the feature `cuda`", "it cannot be used"];
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
    // A card is done with a few steps before anything can kill it, and the emulation takes long.
    let steps = if env::var_os("EMULATED_CUDA").is_some() { "20" } else { "2000" };
    let text = printed(&["crash-test", "--kills", "3", "--steps", steps, "--seed", "1", "--json", "--device", "cuda"]);
    let tally: Value = serde_json::from_str(&text).unwrap();
    assert!(tally["kills"].as_u64().unwrap() >= 3, "{tally}");
    assert_eq!(tally["identical"], tally["runs"], "{tally}");
}

/// A small study: its metrics by column, one map a line.
fn study(out: &Path, device: &str, noise: &str) -> Vec<Map<String, Value>> {
    let folder = out.join(format!("{device}-{noise}"));
    let table = ["--quick", "--seeds", "1", "--table", "xu2021-table-1", "--seed", "5", "--offline"];
    let place = ["--threads", "1", "--device", device, "--noise", noise, "--out", folder.to_str().unwrap()];
    printed(&[&["reproduce", "adult"], &table[..], &place].concat());
    let records = folder.join("records.db");
    let metrics = printed(&["results", "export", "--table", "metrics", "--format", "json", records.to_str().unwrap()]);
    serde_json::from_str(&metrics).unwrap()
}

/// How far a column on a device may be from the CPU's.
///
/// - *Losses and norms of gradients*, which are below 1. The model is a logistic regression of 40
///   inputs, its gradient a sum over pieces of 128 records. Both sums round by `γ₁₂₈ √128` at most,
///   relatively (`Rounding` in the tests of `dp-train`), on both devices: `4 · 128 · 2⁻²⁴ · √128 <
///   3.5e-4`. A step of a convex loss brings parameters no further apart than its gradients do, so
///   that they end as near to each other, compared with the way they went, and so do losses and
///   gradients.
/// - *Shares of records*: one near the boundary may change sides.
/// - The rest is the same.
fn tolerance(column: &str) -> f64 {
    match column {
        "loss" | "epoch_loss" | "gradient_norm" | "clipped_gradient_norm" | "mean_gradient_norm" => 3.5e-4,
        "accuracy" | "macro_accuracy" | "worst_class_accuracy" | "f1" => 1e-3,
        _ => 0.0,
    }
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
    for (on_device, on_cpu) in on_device.iter().zip(&on_cpu) {
        assert!(on_cpu["loss"].is_f64() && on_cpu["accuracy"].is_f64(), "{on_cpu:?}");
        for (column, expected) in on_cpu {
            let (found, tolerance) = (&on_device[column], tolerance(column));
            let is_close = match (found.as_f64(), expected.as_f64()) {
                (Some(found), Some(expected)) => (found - expected).abs() <= tolerance,
                _ => found == expected,
            };
            assert!(is_close, "{column}: {found} {expected}: {on_device:?}");
        }
    }
}
