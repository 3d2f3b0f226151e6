//! `fit --plan` is the fit: it says what is then released, and refuses what is then refused.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use fairdp::config::Config;
use fairdp::{FitOptions, FitPlan, Release, TableSize};

use crate::program::{declared, done, private_bounds, program, refused, text};

fn planned(folder: &Path) -> FitPlan {
    let options = FitOptions::new(folder.join("run"));
    fairdp::plan(&folder.join("fairdp.toml"), &options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn releases(plan: &FitPlan) -> Vec<Release> {
    let of = |planned: &fairdp::Planned| Release {
        part: planned.part,
        purpose: planned.purpose.clone(),
        event: planned.event.clone(),
        count: planned.count,
    };
    plan.releases.iter().map(of).collect()
}

type Change<'a> = &'a dyn Fn(&str) -> String;

/// Over numbers of records, ε, δ, methods, fairness, units, bounds and tests.
#[test]
fn what_is_planned_is_what_the_ledger_has() {
    let with = |from: &'static str, to: &'static str| move |config: &str| config.replace(from, to);
    let method = |method: &'static str| {
        move |config: &str| config.replace("[method]\nname = \"auto\"", &format!("[method]\nname = {method}"))
    };
    // With a budget that always finds the bounds.
    let private = |config: &str| private_bounds(&config.replace("epsilon = 1", "epsilon = 8"));
    let network = |config: &str| {
        let config = config.replace("kind = \"auto\"", "kind = \"mlp\"\nhidden = [4]");
        config.replace(
            "[method]\nname = \"auto\"",
            "[method]\nname = \"dpsgd-global-adapt\"\nsteps = 5\nsampling_rate = 0.2",
        )
    };
    let tuning = |config: &str| {
        format!(
            "{config}\n[tuning]\nmean_trials = 1.5\n[[tuning.candidate]]\n[[tuning.candidate]]\nkind = \"additive\"\n\
             method = {{ name = \"dpsgd\", steps = 10 }}\n"
        )
    };
    let cases: [(u64, Change<'_>); 14] = [
        (3_000, &|config| config.to_owned()),
        (3_217, &with("epsilon = 1", "epsilon = 0.7")),
        (2_500, &with("delta = 1e-5", "delta = 3e-4")),
        (4_000, &with("epsilon = 1", "epsilon = 8")),
        (3_000, &with("fraction = 0.2", "fraction = 0")),
        (3_000, &with("fraction = 0.2", "files = [\"other.csv\"]")),
        (3_000, &method("\"dpsgd\"\nsteps = 7")),
        (3_000, &method("\"dpsgd-f\"\nsteps = 7\nsampling_rate = 0.1")),
        (3_000, &method("\"adaptive\"\nsteps = 7")),
        (3_000, &network),
        (4_000, &tuning),
        (9_000, &with("fairness = \"none\"", "fairness = \"worst-group\"")),
        (4_000, &private),
        (6_000, &with("[model]", "[unit]\ncolumn = \"region\"\nmax_records = 1500\n[model]")),
    ];
    for (place, (rows, change)) in cases.into_iter().enumerate() {
        let folder = declared(rows, |config| {
            let config = change(&config);
            assert!(place == 0 || config.contains("[model]"), "{config}");
            config
        });
        let here = folder.path();
        fs::copy(here.join("table.csv"), here.join("other.csv")).unwrap();
        if place == 13 {
            // A column is a unit or an input.
            let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
            let parts: Vec<&str> =
                config.split("[[column]]").filter(|part| !part.contains("name = \"region\"")).collect();
            fs::write(here.join("fairdp.toml"), parts.join("[[column]]").replace("epsilon = 1", "epsilon = 1000"))
                .unwrap();
        }
        let plan = planned(here);
        assert!(!here.join("run").exists(), "{place}");
        let mut options = FitOptions::new(here.join("run"));
        options.seed = Some(1);
        let fitted = fairdp::fit(&here.join("fairdp.toml"), &options, &mut |_| ControlFlow::Continue(()))
            .unwrap_or_else(|error| panic!("case {place}: {error}"));
        assert_eq!(releases(&plan), fitted.statement.events, "case {place}");
        let table = plan.table.unwrap();
        let n: usize = fitted.statement.records.values().sum();
        assert_eq!(table.records + table.test_records.unwrap_or(0), n, "case {place}");
    }
}

/// 2,081,213 training records take 60 steps, and a plan without them cannot know.
#[test]
fn steps_are_those_of_the_number_of_records() {
    let folder = declared(2_000, |config| config.replace("delta = 1e-5", "delta = 1e-7"));
    let path = folder.path().join("fairdp.toml");
    let config = Config::read(&path).unwrap();
    let steps = |records| {
        let plan = FitPlan::of_table(&config, &path, TableSize { records, test_records: None, features: 60 }).unwrap();
        plan.releases.iter().find(|release| release.purpose == "gradients").unwrap().count
    };
    // A fifth is for the test.
    assert_eq!([steps(2_601_516), steps(2_499_998), steps(2_500_000)], [60, 100, 60]);
    let without = done(folder.path(), &["fit", "fairdp.toml", "--plan", "--no-data"]);
    assert!(without.contains("the table was not read"), "{without}");
    let with = done(folder.path(), &["fit", "fairdp.toml", "--plan", "-q"]);
    assert!(with.contains("2000 records of") && with.contains("about 1600 of them to train on"), "{with}");
    // 400 test records are no two groups of 200 of each class.
    assert!(with.contains("this table has no two such groups: about 400 test records"), "{with}");
}

/// Whatever a fit refuses before its first release, its plan does, with the same words.
#[test]
fn a_plan_refuses_what_the_fit_refuses() {
    let folder = declared(2_000, |config| config);
    let here = folder.path();
    let declared = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    let table = fs::read_to_string(here.join("table.csv")).unwrap();
    fs::write(here.join("bad.csv"), table.replacen('\n', "\nx,", 1)).unwrap();
    fs::write(here.join("header.csv"), table.lines().next().unwrap().to_owned() + "\n").unwrap();
    done(here, &["fit", "fairdp.toml", "--out", "first", "--ledger", "shared.json", "-q"]);
    let thresholds = "fairness = { mode = \"worst-group\", smallest = 10000 }";
    let other_table = |name: &str| declared.replace("table.csv", name);
    let cases: [(&str, String, &[&str], i32); 15] = [
        ("uncovered", declared.replace("public = true", "from = \"data\""), &[], 3),
        ("a δ of one over n", declared.replace("delta = 1e-5", "delta = 1e-3"), &[], 3),
        ("too little ε", declared.replace("epsilon = 1", "epsilon = 0.001"), &[], 3),
        ("thresholds", declared.replace("fairness = \"none\"", thresholds), &[], 3),
        ("a row that does not fit", other_table("bad.csv"), &[], 1),
        ("the same with bounds to release", private_bounds(&other_table("bad.csv")), &[], 1),
        ("no rows", other_table("header.csv"), &[], 1),
        ("no rows, bounds to release", private_bounds(&other_table("header.csv")), &[], 1),
        ("no table", other_table("none.csv"), &[], 1),
        ("an unknown key", declared.replace("[privacy]", "[privacy]\nx = 1"), &[], 2),
        ("a cap without a ledger", declared.replace("epsilon = 1", "epsilon = 1\ntotal_epsilon = 2"), &[], 2),
        ("beyond the cap", declared.clone(), &["--ledger", "shared.json"], 3),
        ("another δ", declared.replace("delta = 1e-5", "delta = 1e-6"), &["--ledger", "shared.json"], 3),
        ("a test on the training table", declared.replace("fraction = 0.2", "files = [\"table.csv\"]"), &[], 2),
        ("nothing to continue", declared.clone(), &["--resume"], 3),
    ];
    for (what, config, options, expected) in cases {
        fs::write(here.join("c.toml"), config).unwrap();
        let plan = refused(here, &[&["fit", "c.toml", "--out", "run", "-q", "--plan"], options].concat());
        assert!(!here.join("run").exists(), "{what}");
        let fit = refused(here, &[&["fit", "c.toml", "--out", "run", "-q"], options].concat());
        assert_eq!((fit.0, &fit), (expected, &plan), "{what}");
        let _ = fs::remove_dir_all(here.join("run"));
    }
    let taken = refused(here, &["fit", "fairdp.toml", "--out", "first", "--plan", "-q"]);
    assert!(taken.0 == 3 && taken.1.contains("holds a release"), "{taken:?}");
    let output = program(here, &["fit", "fairdp.toml", "--no-data", "--out", "x"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn a_release_that_was_changed_ends_every_command_alike() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q"]);
    for name in ["pipeline.json", "model.safetensors", "statement.json"] {
        let path = here.join("run/release").join(name);
        let whole = fs::read(&path).unwrap();
        for place in [0, whole.len() / 3, whole.len() - 2] {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            fs::write(&path, changed).unwrap();
            for command in
                [&["verify", "run"][..], &["report", "run"], &["predict", "run", "table.csv", "--out", "p.csv"]]
            {
                let (code, message) = refused(here, command);
                assert!(code == 4 && message.contains(name), "{name} {place} {command:?}: {code} {message}");
            }
        }
        fs::remove_file(&path).unwrap();
        if name != "statement.json" {
            assert_eq!(refused(here, &["predict", "run", "table.csv", "--out", "p.csv"]).0, 4, "{name}");
        }
        fs::write(&path, whole).unwrap();
    }
    let (code, message) = refused(here, &["predict", "run", "table.csv", "--out", "p.txt"]);
    assert!(code == 2 && message.contains("--out = p.txt: expected a name that ends in .csv or .tsv"), "{message}");
    let help = done(here, &["--help"]);
    for exit in fairdp::Exit::ALL {
        assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(&format!(
            "{} {}",
            exit.code(),
            exit.meaning()
        )));
    }
}

/// All that has to go is named at once.
#[test]
fn what_released_bounds_take_the_place_of_is_named() {
    let folder = declared(2_000, |config| config.replacen("high = ", "bounds = \"private\"\nhigh = ", 1));
    let (code, message) = refused(folder.path(), &["fit", "fairdp.toml", "--plan"]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("low, high, bins: expected none with bounds = \"private\""), "{message}");
    let lines = |config: &str| {
        config
            .lines()
            .filter(|line| !line.starts_with("low = ") && !line.starts_with("high = "))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let config = fs::read_to_string(folder.path().join("fairdp.toml")).unwrap();
    fs::write(folder.path().join("fairdp.toml"), lines(&config)).unwrap();
    let (_, message) = refused(folder.path(), &["fit", "fairdp.toml", "--plan"]);
    assert!(
        message.contains(": bins: expected none with bounds = \"private\"") && message.contains(": delete it"),
        "{message}"
    );
}
