//! MIMIC-III's study on generated summaries with a tiny encoder.
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::tiny::{Kind, Tiny};

fn reproduce(folder: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .current_dir(folder)
        .env_remove("DP_DATA_DIR")
        .args(["reproduce", "mimic", "--quick", "--seeds", "1", "--methods", "dpsgd", "--seed", "1", "--offline"])
        .args(["--cache-dir", "cache", "--out", "out"])
        .args(more)
        .output()
        .unwrap()
}

/// What is printed, and the report.
fn report(folder: &Path, more: &[&str]) -> (String, String) {
    let output = reproduce(folder, more);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed} {}", String::from_utf8_lossy(&output.stderr));
    (printed, fs::read_to_string(folder.join("out/report.md")).unwrap())
}

fn results(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join("out/results.json")).unwrap()).unwrap()
}

#[test]
fn features_are_computed_once_and_named_in_report_and_records() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    Tiny::new(Kind::Distilbert, 1).write(&folder.join("encoder"));

    let (printed, report_md) = report(folder, &["--encoder", "encoder"]);
    assert!(printed.contains("Inputs: 16 features of distilbert-"), "{printed}");
    assert!(report_md.contains("SYNTHETIC") && report_md.contains("Inputs: 16 from distilbert-"), "{report_md}");
    assert!(report_md.contains("Model: distilbert-head"), "{report_md}");
    let first = results(folder);
    let dataset = &first["experiments"][0]["dataset"];
    assert!(dataset["encoding"].as_str().unwrap().starts_with("distilbert-"), "{dataset}");
    let cached: Vec<_> = fs::read_dir(folder.join("cache/mimic")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(cached.len(), 1, "{cached:?}");

    // From the cache, then from a damaged one: the same figures.
    let metrics = |results: &serde_json::Value| results["experiments"][0]["methods"][0]["runs"][0]["test"].clone();
    let (printed, _) = report(folder, &["--encoder", "encoder"]);
    assert!(!printed.contains("encoded again"), "{printed}");
    assert_eq!(metrics(&results(folder)), metrics(&first));
    fs::write(&cached[0], "{").unwrap();
    let (printed, _) = report(folder, &["--encoder", "encoder"]);
    assert!(printed.contains("encoded again"), "{printed}");
    assert_eq!(metrics(&results(folder)), metrics(&first));

    // Another encoder's features are not this one's; without one there are none.
    Tiny::new(Kind::Bert, 1).write(&folder.join("encoder"));
    report(folder, &["--encoder", "encoder"]);
    assert_ne!(metrics(&results(folder)), metrics(&first));
    assert_eq!(fs::read_dir(folder.join("cache/mimic")).unwrap().count(), 2);
    let (_, report_md) = report(folder, &[]);
    assert!(
        report_md.contains("Encoding: hashed-words") && report_md.contains("counts of hashed words"),
        "{report_md}"
    );
}

#[test]
fn a_folder_without_an_encoder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = reproduce(folder.path(), &["--encoder", "nowhere"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("nowhere/config.json: no such file; "), "{error}");
}
