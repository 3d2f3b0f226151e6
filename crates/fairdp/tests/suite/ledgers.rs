//! Ledgers over years: what is left, plans, scopes, and a witness.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::program::{declared, done, json, refused};

const MONTHS: [&str; 12] = [
    "2026-01", "2026-02", "2026-03", "2026-04", "2026-05", "2026-06", "2026-07", "2026-08", "2026-09", "2026-10",
    "2026-11", "2026-12",
];

/// The configuration of a month, with this ε and more.
fn month(here: &Path, name: &str, epsilon: f64, more: &str) {
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    let config = config.replace("epsilon = 1\n", &format!("epsilon = {epsilon}\ntotal_epsilon = 1\n"));
    fs::write(here.join(format!("{name}.toml")), config + more).unwrap();
}

/// The fit of a month, in its own folder.
fn fit<'a>(config: &'a str, ledger: &[&'a str]) -> Vec<&'a str> {
    let out = config.strip_suffix(".toml").unwrap();
    [&["fit", config, "--out", out, "-q", "--ledger"][..], ledger].concat()
}

/// Twelve monthly tables under one cap: by the plan's ε all fit and the thirteenth does not; with
/// scopes each has the whole cap.
#[test]
fn twelve_months_keep_one_cap() {
    let folder = declared(3_000, |config| config);
    let here = folder.path();
    let plan = ["ledger", "plan", "year.json", "--cap", "1", "--delta", "1e-5", "--fits", "12", "--json"];
    let planned: serde_json::Value = serde_json::from_str(&done(here, &plan)).unwrap();
    let epsilon = planned["epsilon"].as_f64().unwrap();
    assert!(epsilon > 0.25 && epsilon < 0.32, "{planned}");
    for name in MONTHS {
        month(here, name, epsilon, "");
        done(here, &fit(&format!("{name}.toml"), &["year.json", "--witness", "seen.json"]));
    }
    let last = json(here.join("2026-12/release/statement.json"));
    let total = last["total_epsilon"].as_f64().unwrap();
    assert!(total > 0.99 && total <= 1.0, "{total}");
    month(here, "2027-01", epsilon, "");
    let (code, message) = refused(here, &fit("2027-01.toml", &["year.json"]));
    assert!(code == 3 && message.contains("12 fits have spent ε = "), "{message}");
    let shown = done(here, &["ledger", "show", "year.json", "--witness", "seen.json", "--delta", "1e-6"]);
    assert!(
        shown.starts_with("12 fits, protecting rows, at delta 1e-5\n") && shown.contains(" at delta 1e-6\n"),
        "{shown}"
    );

    for name in MONTHS {
        month(here, &format!("s{name}"), 1.0, &format!("\n[records]\nscope = \"{name}\"\n"));
        done(here, &fit(&format!("s{name}.toml"), &["scopes.json"]));
    }
    let last = json(here.join("s2026-12/release/statement.json"));
    assert_eq!((&last["scope"], &last["mark"]), (&"2026-12".into(), &"certified".into()));
    assert!(last["total_epsilon"].as_f64().unwrap() <= 1.0, "{last}");
    let text = fs::read_to_string(here.join("s2026-12/release/statement.md")).unwrap();
    assert!(
        text.contains("for a person who is in one scope alone") && text.contains("is the word of whoever ran"),
        "{text}"
    );
    done(here, &["verify", "s2026-12"]);
    // A second one of a month is refused, and one about anybody.
    month(here, "again", 1.0, "\n[records]\nscope = \"2026-12\"\n");
    assert_eq!(refused(here, &fit("again.toml", &["scopes.json"])).0, 3);
    month(here, "all", 1.0, "");
    assert_eq!(refused(here, &fit("all.toml", &["scopes.json"])).0, 3);
    let shown = done(here, &["ledger", "show", "scopes.json"]);
    assert!(
        shown.contains("Scopes compose in parallel.") && shown.contains("a new scope: left epsilon 1\n"),
        "{shown}"
    );
}

/// The refusal names an ε that fits, the plan counts the ledger, and `rest` spends what is left, also
/// when the run is continued.
#[test]
fn the_rest_of_a_ledger_can_be_spent() {
    let folder = declared(3_000, |config| config.replace("epsilon = 1\n", "epsilon = 0.6\ntotal_epsilon = 1\n"));
    let here = folder.path();
    let fit = ["fit", "fairdp.toml", "-q", "--ledger", "l.json", "--out"];
    done(here, &[&fit[..], &["a"]].concat());
    let (code, message) = refused(here, &[&fit[..], &["b", "--epsilon", "0.9"]].concat());
    let named = message.rsplit_once("with ε = ").unwrap().1.split(' ').next().unwrap().to_owned();
    assert!(code == 3 && message.contains("beyond the cap of 1"), "{message}");
    let plan = done(here, &["fit", "fairdp.toml", "--plan", "--ledger", "l.json", "--epsilon", "rest"]);
    assert!(plan.starts_with(&format!("epsilon {named} at delta 1e-5")), "{plan}");
    assert!(plan.contains("ledger: 1 fits have spent epsilon 0.6000, with this one "), "{plan}");
    done(here, &[&fit[..], &["b", "--epsilon", "rest"]].concat());
    let statement = json(here.join("b/release/statement.json"));
    assert!(statement["epsilon"].as_f64().unwrap() <= named.parse().unwrap());
    assert!(statement["total_epsilon"].as_f64().unwrap() > 0.99);
    let config = fs::read_to_string(here.join("b/private/config.toml")).unwrap();
    assert!(config.contains(&format!("epsilon = {named}\n")), "{config}");
    let (code, message) = refused(here, &[&fit[..], &["c", "--epsilon", "rest"]].concat());
    assert!(code == 3, "{message}");
    let alone = refused(here, &["fit", "fairdp.toml", "--out", "d", "--epsilon", "rest"]);
    assert!(alone.0 == 2 && alone.1.contains("--epsilon = rest: expected --ledger FILE"), "{}", alone.1);
    let wrong = refused(here, &["fit", "fairdp.toml", "--out", "d", "--epsilon", "all"]);
    assert!(wrong.0 == 2 && wrong.1.contains("expected a finite number above 0, or rest"), "{}", wrong.1);
    assert_eq!(refused(here, &["fit", "fairdp.toml", "--out", "d", "--witness", "w.json"]).0, 2);
}

/// A ledger without its last line is whole; the witness tells.
#[test]
fn a_shortened_ledger_is_refused() {
    let folder = declared(2_000, |config| config.replace("epsilon = 1\n", "epsilon = 0.9\ntotal_epsilon = 3\n"));
    let here = folder.path();
    let fit = ["fit", "fairdp.toml", "-q", "--ledger", "l.json", "--witness", "w.json", "--out"];
    done(here, &[&fit[..], &["a"]].concat());
    done(here, &[&fit[..], &["b"]].concat());
    let text = fs::read_to_string(here.join("l.json")).unwrap();
    let cut: String = text.split_inclusive('\n').take(2).collect();
    fs::write(here.join("l.json"), cut).unwrap();
    done(here, &["ledger", "show", "l.json"]);
    for command in [
        &["ledger", "show", "l.json", "--witness", "w.json"][..],
        &[&fit[..], &["c"]].concat(),
        &["ledger", "plan", "l.json", "--fits", "2", "--witness", "w.json"],
    ] {
        let (code, message) = refused(here, command);
        assert!(code == 4 && message.contains("was shortened or replaced: it has 1 fits"), "{code} {message}");
    }
    assert!(!here.join("c").exists());
    fs::write(here.join("l.json"), text.replacen("\"cap\":3", "\"cap\":9", 1)).unwrap();
    let (code, message) = refused(here, &["ledger", "show", "l.json"]);
    assert!(code == 4 && message.contains("line 1 was changed"), "{message}");
    assert_eq!(refused(here, &["ledger", "show", "none.json"]).0, 1);
    fs::write(here.join("l.json"), &text).unwrap();
    let split = done(here, &["ledger", "split", "l.json", "--shares", "3,1", "--witness", "w.json"]);
    assert!(
        split.starts_with("a share of 3: epsilon ") && split.contains("together they keep the cap of 3"),
        "{split}"
    );
    assert_eq!(refused(here, &["ledger", "split", "l.json", "--shares", "3,-1"]).0, 2);
    assert_eq!(refused(here, &["ledger", "plan", "l.json", "--fits", "0"]).0, 2);
}

/// Two programs at once: every fit that ended well is in the ledger, below the cap.
#[test]
fn two_programs_share_a_ledger() {
    let folder = declared(2_000, |config| config.replace("epsilon = 1\n", "epsilon = 0.9\ntotal_epsilon = 2\n"));
    let here = folder.path();
    let start = |out: &str| -> Child {
        let arguments =
            ["fit", "fairdp.toml", "-q", "--ledger", "l.json", "--witness", "w.json", "--threads", "1", "--out", out];
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairdp"));
        command.current_dir(here).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<Child> = ["a", "b", "c", "d", "e", "f"].into_iter().map(start).collect();
    let n = children.into_iter().map(|mut child| child.wait().unwrap()).filter(ExitStatus::success).count();
    let shown = done(here, &["ledger", "show", "l.json", "--witness", "w.json", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["fits"].as_array().unwrap().len(), n, "{shown}");
    assert!((3..6).contains(&n) && shown["spent"].as_f64().unwrap() <= 2.0, "{n} {shown}");
}

/// A run that is killed after it took the rest has it again when it is continued, and is entered once.
#[test]
fn a_killed_run_keeps_the_rest_that_it_took() {
    let folder = declared(60_000, |config| config.replace("epsilon = 1\n", "epsilon = 0.6\ntotal_epsilon = 1\n"));
    let here = folder.path();
    let fit = ["fit", "fairdp.toml", "-q", "--ledger", "l.json", "--witness", "w.json", "--out"];
    done(here, &[&fit[..], &["a"]].concat());
    let rest = [&fit[..], &["b", "--epsilon", "rest"]].concat();
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairdp")).current_dir(here).args(&rest).spawn().unwrap();
    let n_lines = || fs::read_to_string(here.join("l.json")).unwrap().lines().count();
    while n_lines() < 3 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Where it was faster than the kill, there is nothing to continue.
    if !here.join("b/release").exists() {
        done(here, &[&rest[..], &["--resume"]].concat());
    }
    assert_eq!(n_lines(), 3);
    let total = json(here.join("b/release/statement.json"))["total_epsilon"].as_f64().unwrap();
    assert!(total > 0.99 && total <= 1.0 + 1e-9, "{total}");
    done(here, &["ledger", "show", "l.json", "--witness", "w.json"]);
}
