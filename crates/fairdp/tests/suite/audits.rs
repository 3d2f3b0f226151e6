//! Attacks on runs of configurations.

use std::fs;

use serde_json::Value;

use crate::program::{declared, done, json, refused};

/// `[method]` and `[model]` in the place of the proposed ones, at ε = 4.
fn with(model: &'static str, method: &'static str) -> impl Fn(String) -> String {
    move |config: String| {
        let lines = config.lines().filter(|line| !line.starts_with("decision = "));
        let lines = lines.map(|line| if line.starts_with("epsilon = ") { "epsilon = 4" } else { line });
        let config = lines.collect::<Vec<_>>().join("\n");
        config
            .replace("kind = \"auto\"", &format!("kind = {model}"))
            .replace("name = \"auto\"", &format!("name = {method}"))
    }
}

fn audited(model: &'static str, method: &'static str, more: &[&str]) -> (Value, i32) {
    let folder = declared(3_000, with(model, method));
    let here = folder.path();
    let args = ["audit", "fairdp.toml", "--out", "attacked", "--seed", "1", "-q", "--threads", "1"];
    let (code, _) = refused(here, &[&args[..], more].concat());
    assert!(!here.join("attacked/release").exists(), "an audit releases nothing");
    (json(here.join("attacked/private/audit.json")), code)
}

const MLP: &str = "\"mlp\"\nhidden = [8]";
const METHODS: [(&str, &str); 6] = [
    ("\"auto\"", "\"auto\""),
    ("\"additive\"", "\"dpsgd-f\"\nsampling_rate = 0.2\nsteps = 60"),
    (MLP, "\"auto\"\nsampling_rate = 0.2\nsteps = 60"),
    (MLP, "\"group-dro\"\nsampling_rate = 0.2\nsteps = 60"),
    (MLP, "\"asc\"\nsampling = { by = \"group\", rates = [0.2, 0.1, 0.2, 0.2] }\nsteps = 60"),
    (MLP, "\"asc-by-loss\"\nsampling = { by = \"loss\", least = 0.1, largest = 0.3 }\nsteps = 60"),
];

/// An honest run stands, and a good part of its ε is found where there are weights for many canaries.
/// Seeds are fixed.
#[test]
fn honest_runs_stand() {
    for (model, method) in METHODS {
        let (report, code) = audited(model, method, &[]);
        assert_eq!((code, &report["refuted"]), (0, &false.into()), "{method}: {report}");
        let white_box = &report["white_box"];
        let (canaries, weights) = (&white_box["bounds"]["canaries"], &white_box["weights"]);
        assert!(canaries.as_u64() <= weights.as_u64(), "{white_box}");
        let is_plain = model == MLP && method.starts_with("\"auto");
        assert!(!is_plain || white_box["share"].as_f64().unwrap() > 0.4, "{white_box}");
        assert!(white_box["by_group"].as_array().unwrap().len() >= 2);
        let releases = report["releases"].as_array().unwrap();
        assert!(releases.iter().any(|release| release["release"] == "class counts"), "{releases:?}");
        assert!(releases.iter().all(|release| release["finds_half_the_noise"] == true), "{releases:?}");
    }
}

/// Each fault is refuted. Seeds are fixed.
#[test]
fn faults_are_refuted() {
    for fault in ["noise", "uncharged", "group-rate"] {
        let (model, method) = METHODS[0];
        let (report, code) = audited(model, method, &["--plant", fault]);
        assert_eq!((code, &report["plant"]), (4, &fault.into()), "{fault}: {report}");
    }
    for (model, method) in &METHODS[4..] {
        for fault in ["group-rate", "group-threshold"] {
            let (report, code) = audited(model, method, &["--plant", fault]);
            assert_eq!((code, &report["white_box"]["refuted"]), (4, &true.into()), "{method}, {fault}: {report}");
        }
    }
    for (model, method) in &METHODS[1..4] {
        let (report, code) = audited(model, method, &["--plant", "noise"]);
        assert_eq!((code, &report["white_box"]["refuted"]), (4, &(*model == MLP).into()), "{method}: {report}");
    }
}

/// With `--release` a run on made-up records is attacked, and the release has a line on it; with a fault
/// it is refused, and nothing is written.
#[test]
fn what_was_found_may_stand_in_the_statement() {
    let folder = declared(3_000, with("\"auto\"", "\"auto\""));
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q", "--seed", "1"]);
    let audit = ["audit", "fairdp.toml", "--release", "run", "--out", "attacked", "--seed", "1", "-q"];
    let (code, message) = refused(here, &[&audit[..], &["--plant", "noise"]].concat());
    assert!(code == 2 && !here.join("attacked").exists(), "{message}");
    let (code, message) = refused(here, &audit);
    assert_eq!(code, 0, "{message}");
    let statement = json(here.join("attacked/release/statement.json"));
    let found = &statement["attacked"];
    assert!(found["canaries"].as_u64() > Some(30) && found["found"].as_f64() <= found["epsilon"].as_f64(), "{found}");
    let text = fs::read_to_string(here.join("attacked/release/statement.md")).unwrap();
    assert!(text.contains("canaries in one run on made-up records: at least"), "{text}");
    done(here, &["verify", "attacked"]);
    let old = fs::read(here.join("run/release/model.safetensors")).unwrap();
    assert!(old == fs::read(here.join("attacked/release/model.safetensors")).unwrap());
    // Of another configuration nothing can be said.
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    fs::write(here.join("other.toml"), config.replace("epsilon = 4", "epsilon = 3")).unwrap();
    let other = ["audit", "other.toml", "--release", "run", "--out", "other", "-q"];
    assert_eq!(refused(here, &other).0, 3);
}

/// Conditioned training has releases of its own, which are attacked too.
#[test]
fn means_and_covariances_are_attacked() {
    let (report, code) = audited("\"auto\"", "\"conditioned-fair\"", &[]);
    assert_eq!(code, 0, "{report}");
    let releases = report["releases"].as_array().unwrap();
    for part in ["mean of", "covariance of", "lengths of", "right answers"] {
        let is_there = |release: &Value| release["release"].as_str().is_some_and(|name| name.starts_with(part));
        let found = releases.iter().filter(|release| is_there(release)).map(|release| release["mu"].as_f64().unwrap());
        assert!(found.fold(0.0, f64::max) > 0.0, "{part}: {releases:?}");
    }
}

#[test]
fn what_cannot_be_attacked_is_refused() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    assert_eq!(refused(here, &["audit", "fairdp.toml", "--canaries", "3", "-q"]).0, 2);
    assert_eq!(refused(here, &["audit", "fairdp.toml", "--repeats", "1", "-q"]).0, 2);
    assert_eq!(refused(here, &["audit", "fairdp.toml", "--plant", "other", "-q"]).0, 2);
    let (code, message) = refused(here, &["audit", "fairdp.toml", "--plant", "group-threshold", "-q"]);
    assert!(code == 2 && message.contains("expected with method.name = \"asc\" or \"asc-by-loss\" alone"), "{message}");
    fs::create_dir(here.join("taken")).unwrap();
    assert_eq!(refused(here, &["audit", "fairdp.toml", "--out", "taken", "-q"]).0, 3);
}
