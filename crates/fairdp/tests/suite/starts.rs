//! Training that starts from a release.

use std::fs;
use std::path::Path;

use dp_table::Example;
use sha2::{Digest as _, Sha256};

use crate::program::{declared, done, json, refused};

/// A run `a`, and a table of other people in its place.
fn begun() -> tempfile::TempDir {
    let folder = declared(4_000, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "a", "-q", "--seed", "1"]);
    let mut csv = Vec::new();
    Example { rows: 4_000, seed: 2, ..Example::default() }.write(&mut csv).unwrap();
    fs::write(here.join("table.csv"), csv).unwrap();
    folder
}

fn config(here: &Path) -> String {
    fs::read_to_string(here.join("fairdp.toml")).unwrap()
}

#[test]
fn a_fit_goes_on_from_a_release_and_says_so() {
    let folder = begun();
    let here = folder.path();
    let digest = hex::encode(Sha256::digest(fs::read(here.join("a/release/statement.json")).unwrap()));
    let plan = done(here, &["fit", "fairdp.toml", "--plan", "--from", "a"]);
    assert!(
        plan.contains(&format!("starts from: the model of the release whose statement has sha256 {digest}")),
        "{plan}"
    );
    let plan = done(here, &["fit", "fairdp.toml", "--plan", "--no-data", "--json", "--from", "a/release"]);
    assert!(plan.contains(&digest), "{plan}");

    let capped = config(here).replace("epsilon = 1\n", "epsilon = 1\ntotal_epsilon = 2\n");
    fs::write(here.join("fairdp.toml"), capped).unwrap();
    let from = ["fit", "fairdp.toml", "-q", "--seed", "3", "--epsilon", "0.3", "--ledger", "l.json"];
    done(here, &[&from[..], &["--from", "a", "--out", "b"]].concat());
    done(here, &["verify", "b"]);
    let statement = json(here.join("b/release/statement.json"));
    assert_eq!(statement["started_from"]["statement"], digest);
    assert_eq!(statement["started_from"]["private"], false);
    assert!(statement["epsilon"].as_f64().unwrap() <= 0.3);
    let read = |name: &str| fs::read_to_string(here.join("b").join(name)).unwrap();
    assert!(read("release/card.html").contains(&digest) && read("release/statement.md").contains(&digest));
    assert!(read("private/config.toml").ends_with(&format!("whose statement has sha256 {digest}\n")));
    let auc = |run: &str| json(here.join(run).join("private/diagnostics.json"))["auc"].as_f64().unwrap();
    done(here, &[&from[..], &["--out", "anew"]].concat());
    assert!(auc("b") > auc("anew"), "{} {}", auc("b"), auc("anew"));
    done(here, &[&from[..], &["--from", "b", "--out", "c"]].concat());
    // One person in both tables: a ledger of both composes.
    assert!(done(here, &["ledger", "show", "l.json"]).starts_with("3 fits"));
}

#[test]
fn a_start_that_does_not_fit_is_refused_before_a_record_is_read() {
    let folder = begun();
    let here = folder.path();
    let whole = config(here);
    let refusal = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        fs::write(here.join("fairdp.toml"), whole.replacen(from, to, 1)).unwrap();
        let (code, message) = refused(here, &["fit", "fairdp.toml", "--plan", "--no-data", "--from", "a"]);
        assert_eq!(code, 2, "{message}");
        message
    };
    let low = whole.lines().find(|line| line.starts_with("low = ")).unwrap();
    let message = refusal(low, "low = -7");
    assert!(
        message.contains("column `age` = ") && message.contains("as the release that --from names has it"),
        "{message}"
    );
    let message = refusal("name = \"auto\"", "name = \"dpsgd\"");
    assert!(message.contains("others begin anew"), "{message}");
    let message = refusal("kind = \"auto\"", "kind = \"mlp\"");
    assert!(
        message.contains("hidden layers = [32]: expected [], as the release that --from names has it"),
        "{message}"
    );
    fs::write(here.join("fairdp.toml"), &whole).unwrap();
    let statement = here.join("a/release/statement.md");
    fs::write(&statement, "changed").unwrap();
    assert_eq!(refused(here, &["fit", "fairdp.toml", "--out", "b", "--from", "a"]).0, 4);
    assert!(!here.join("b").exists());
}

#[test]
fn a_network_goes_on_from_a_network() {
    let folder = declared(4_000, |config| config.replace("kind = \"auto\"", "kind = \"mlp\"\nhidden = [6]"));
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "a", "-q", "--seed", "1", "--epsilon", "4"]);
    let mut csv = Vec::new();
    Example { rows: 4_000, seed: 2, ..Example::default() }.write(&mut csv).unwrap();
    fs::write(here.join("table.csv"), csv).unwrap();
    let fit = ["fit", "fairdp.toml", "-q", "--seed", "3", "--epsilon", "0.5", "--out"];
    done(here, &[&fit[..], &["b", "--from", "a"]].concat());
    done(here, &["verify", "b"]);
    done(here, &[&fit[..], &["anew"]].concat());
    let auc = |run: &str| json(here.join(run).join("private/diagnostics.json"))["auc"].as_f64().unwrap();
    assert!(auc("b") > auc("anew"), "{} {}", auc("b"), auc("anew"));
    let other = config(here).replace("hidden = [6]", "hidden = [5]");
    fs::write(here.join("fairdp.toml"), other).unwrap();
    let (code, message) = refused(here, &[&fit[..], &["c", "--from", "a"]].concat());
    assert!(code == 2 && message.contains("hidden layers = [5]: expected [6]"), "{message}");
}

/// An audit attacks a run with its start, and a release that had one names it.
#[test]
fn an_audit_has_the_start_of_the_run() {
    let folder = begun();
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "b", "-q", "--seed", "3", "--from", "a"]);
    let audit = ["audit", "fairdp.toml", "--seed", "5", "-q"];
    done(here, &[&audit[..], &["--from", "a"]].concat());
    assert_eq!(refused(here, &[&audit[..], &["--from", "a", "--plant", "noise"]].concat()).0, 4);
    let again = [&audit[..], &["--release", "b", "--out"]].concat();
    let (code, message) = refused(here, &[&again[..], &["c"]].concat());
    assert!(
        code == 2 && message.contains("--from = none: expected the release whose statement has sha256"),
        "{message}"
    );
    done(here, &[&again[..], &["c", "--from", "a/release"]].concat());
    assert!(json(here.join("c/release/statement.json"))["attacked"]["canaries"].as_u64().unwrap() > 30);
    done(here, &["verify", "c"]);
}
