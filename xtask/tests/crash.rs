//! The crash test itself, in short.

use std::process::Command;

/// Three kills, moments from a seed. When a kill falls depends on the machine; that the run ends
/// the same must not.
#[test]
fn killed_runs_end_as_if_they_had_not_been() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["crash-test", "--kills", "3", "--steps", "40", "--seed", "1", "--json"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    let tally: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(tally["kills"].as_u64().unwrap() >= 3, "{tally}");
    assert_eq!(tally["identical"], tally["runs"], "{tally}");
}
