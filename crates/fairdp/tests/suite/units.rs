//! Several records of one person, and groups on short tables.

use std::fs;
use std::path::Path;

use crate::program::{declared, done, json, refused};
use dp_data::table::example::Example;

/// A table in which every patient has three records, one behind the other.
fn patients(folder: &Path, rows: u64, change: impl Fn(usize, &str) -> String) {
    let mut csv = Vec::new();
    Example { rows, ..Example::default() }.write(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let mut lines = csv.lines();
    let mut table = format!("patient_id,{}\n", lines.next().unwrap());
    for (row, line) in lines.enumerate() {
        table.push_str(&format!("p{},{}\n", row / 3, change(row, line)));
    }
    fs::write(folder.join("table.csv"), table).unwrap();
}

#[test]
fn all_records_of_a_patient_are_protected_together_and_the_third_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    patients(here, 12_000, |_, line| line.to_owned());
    let init = ["init", "table.csv", "--label", "outcome", "--group", "group", "--unit", "patient_id"];
    let config = done(here, &[&init[..], &["--max-records-per-unit", "2", "--epsilon", "2"]].concat());
    fs::write(here.join("fairdp.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
    let fit = |config: &str, out: &str| {
        done(here, &["fit", config, "--out", out, "--seed", "1", "-q"]);
        done(here, &["verify", out]);
        fs::read(here.join(out).join("release/model.safetensors")).unwrap()
    };
    let model = fit("fairdp.toml", "a");
    let statement = json(here.join("a/release/statement.json"));
    assert_eq!(statement["unit"]["what"], "all records with one value of `patient_id`");
    assert_eq!(statement["unit"]["max_records"], 2);
    assert!(statement["epsilon"].as_f64().unwrap() <= 2.0);
    assert!(json(here.join("a/private/diagnostics.json"))["auc"].as_f64().unwrap() > 0.65);

    // The same by a method by name: all records in every step.
    let named = fs::read_to_string(here.join("fairdp.toml")).unwrap().replace("name = \"auto\"", "name = \"adaptive\"");
    fs::write(here.join("named.toml"), &named).unwrap();
    let by_name = fit("named.toml", "b");
    let (code, message) = {
        fs::write(
            here.join("bad.toml"),
            named.replace("name = \"adaptive\"", "name = \"adaptive\"\nsampling_rate = 0.5"),
        )
        .unwrap();
        refused(here, &["fit", "bad.toml", "--plan"])
    };
    assert!(code == 2 && message.contains("expected 1 where a unit has several records"), "{message}");

    // Another outcome of every patient's third record moves nothing.
    patients(here, 12_000, |row, line| match (row % 3, line.rsplit_once(',')) {
        (2, Some((rest, outcome))) => format!("{rest},{}", if outcome == "yes" { "no" } else { "yes" }),
        _ => line.to_owned(),
    });
    assert!(model == fit("fairdp.toml", "c"));
    assert!(by_name == fit("named.toml", "d"));
}

#[test]
fn thresholds_on_a_short_table_are_refused_with_what_would_do() {
    let folder = declared(1_500, |config| config.replace("fairness = \"none\"", "fairness = \"equalized-odds\""));
    let (code, message) = refused(folder.path(), &["fit", "fairdp.toml", "--out", "run", "-q"]);
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("training records are too few for thresholds by group at ε = 1"), "{message}");
    assert!(message.contains("fairness = \"none\" would do"), "{message}");
    assert!(!folder.path().join("run/release").exists());
}
