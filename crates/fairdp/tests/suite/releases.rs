//! The program from a table to a release, on generated tables.

use std::fs;
use std::process::Command;

use crate::program::{declared, done, json, private_bounds, program, refused};
use dp_table::{TableFiles, TableRow};

#[test]
fn from_a_table_to_a_release_that_holds() {
    let folder = declared(6_000, |config| config);
    let here = folder.path();
    let summary = done(here, &["fit", "fairdp.toml", "--out", "run", "-q"]);
    assert!(summary.lines().count() <= 25, "{summary}");
    let statement = json(here.join("run/release/statement.json"));
    assert!(statement["epsilon"].as_f64().unwrap() <= 1.0 && statement["epsilon"].as_f64().unwrap() > 0.999_9);
    assert_eq!((&statement["mark"], &statement["private"]), (&"certified".into(), &true.into()));
    for key in ["delta", "covers", "not_covered", "unit", "relation", "events"] {
        assert!(!statement[key].is_null(), "{key}");
    }
    let diagnostics = json(here.join("run/private/diagnostics.json"));
    assert!(diagnostics["auc"].as_f64().unwrap() > 0.65, "{diagnostics}");
    assert_eq!(diagnostics["by_group"].as_object().unwrap().len(), 4);
    let fairness = json(here.join("run/release/fairness.json"));
    assert_eq!(fairness["groups"].as_array().unwrap().len(), 4);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(here.join("run/private")).unwrap().permissions().mode() & 0o777, 0o700);
    }
    // The key of the noise and the copy of the records are gone.
    let mut private: Vec<String> = fs::read_dir(here.join("run/private"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    private.sort();
    assert_eq!(private, ["config.toml", "diagnostics.json", "ledger.json", "log.txt"]);
    done(here, &["verify", "run"]);
    done(here, &["verify", "run/release"]);
    assert!(done(here, &["report", "run"]).contains("# Privacy statement"));

    done(here, &["predict", "run", "table.csv", "--out", "p.csv"]);
    let predictions = fs::read_to_string(here.join("p.csv")).unwrap();
    let mut lines = predictions.lines();
    assert_eq!(lines.next(), Some("row,prediction,p_no,p_yes"));
    for (line, number) in lines.zip(1..) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[0], number.to_string());
        let total: f64 = fields[2].parse::<f64>().unwrap() + fields[3].parse::<f64>().unwrap();
        assert!((total - 1.0).abs() < 1e-12);
    }
    assert_eq!(predictions.lines().count(), 6_001);
    assert_eq!(refused(here, &["fit", "fairdp.toml", "--out", "run"]).0, 3);
}

#[test]
fn what_was_read_from_the_records_is_refused_all_at_once() {
    let folder = declared(3_000, |config| config.replace("public = true", "from = \"data\""));
    let (code, message) = refused(folder.path(), &["fit", "fairdp.toml", "--out", "run"]);
    assert_eq!(code, 3);
    for name in ["label `outcome`", "group `group`", "column `age`", "column `income`", "column `region`"] {
        assert!(message.contains(name), "{message}");
    }
    assert!(!folder.path().join("run").exists());
}

#[test]
fn accepted_constants_make_the_statement_conditional() {
    let folder = declared(3_000, |config| {
        let config = config.replace("public = true", "from = \"data\"");
        config.replace("accept_uncovered = false", "accept_uncovered = true").replace("fraction = 0.2", "fraction = 0")
    });
    done(folder.path(), &["fit", "fairdp.toml", "--out", "run", "-q"]);
    let statement = json(folder.path().join("run/release/statement.json"));
    assert_eq!(statement["mark"], "conditional");
    let text = fs::read_to_string(folder.path().join("run/release/statement.md")).unwrap();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("**Not covered by ε**") && first.contains("column `age`"), "{first}");
    assert_eq!(statement["records"]["training"], 3_000);
    done(folder.path(), &["verify", "run"]);
}

/// Every byte of every file that is covered, at many places.
#[test]
fn one_changed_byte_is_named() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q"]);
    let names = [
        "release/model.safetensors",
        "release/model.onnx",
        "release/pipeline.json",
        "release/statement.json",
        "release/statement.md",
        "release/fairness.json",
        "release/scores.json",
        "release/card.html",
        "release/curves.json",
        "private/ledger.json",
    ];
    for name in names {
        let path = here.join("run").join(name);
        let whole = fs::read(&path).unwrap();
        for place in (0..whole.len()).step_by(whole.len().div_ceil(7)).chain([whole.len() - 1]) {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            fs::write(&path, changed).unwrap();
            let (code, message) = refused(here, &["verify", "run"]);
            assert_eq!(code, 4, "{name} byte {place}");
            assert!(message.contains(name.rsplit('/').next().unwrap()), "{name} byte {place}: {message}");
            if name.starts_with("release") {
                assert_eq!(refused(here, &["verify", "run/release"]).0, 4, "{name} byte {place}");
            }
        }
        fs::write(&path, whole).unwrap();
    }
    done(here, &["verify", "run"]);
    fs::write(here.join("run/release/extra.txt"), "x").unwrap();
    assert!(refused(here, &["verify", "run/release"]).1.contains("extra.txt"));
    #[cfg(unix)]
    {
        fs::remove_file(here.join("run/release/extra.txt")).unwrap();
        // A folder within itself.
        std::os::unix::fs::symlink(".", here.join("run/release/inner")).unwrap();
        let (code, message) = refused(here, &["verify", "run/release"]);
        assert!(code == 4 && message.contains("inner`: is a link"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        fs::remove_file(here.join("run/release/inner")).unwrap();
        // A link in the place of a file accuses no other file.
        fs::rename(here.join("run/release/card.html"), here.join("card.html")).unwrap();
        std::os::unix::fs::symlink(here.join("card.html"), here.join("run/release/card.html")).unwrap();
        let (code, message) = refused(here, &["verify", "run"]);
        assert!(code == 4 && message.contains("card.html`: is a link"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn a_seed_gives_the_same_model_on_any_number_of_threads_and_is_not_private() {
    let folder = declared(3_000, |config| config);
    let here = folder.path();
    let model = |out: &str, threads: &str, seed: &str| {
        done(here, &["fit", "fairdp.toml", "--out", out, "--threads", threads, "--seed", seed, "-q"]);
        fs::read(here.join(out).join("release/model.safetensors")).unwrap()
    };
    let first = model("a", "1", "1");
    assert!(first == model("b", "2", "1"));
    assert!(first != model("c", "1", "2"));
    let statement = fs::read_to_string(here.join("a/release/statement.json")).unwrap();
    assert!(statement.lines().next().unwrap().contains("\"private\": false"), "{statement}");
    assert!(fs::read_to_string(here.join("a/release/statement.md")).unwrap().starts_with("**Not private**"));
}

/// A run without its key is another run; one that was killed has its key and ends as the run left
/// alone.
#[cfg(unix)]
#[test]
fn a_killed_run_ends_as_the_run_left_alone() {
    let folder = declared(20_000, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "alone", "--seed", "3", "-q"]);
    let alone = fs::read(here.join("alone/release/model.safetensors")).unwrap();
    for milliseconds in [20, 120, 250, 400] {
        let _ = fs::remove_dir_all(here.join("killed"));
        let arguments = ["fit", "fairdp.toml", "--out", "killed", "--seed", "3", "-q"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_fairdp")).current_dir(here).args(arguments).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        // Killed before it began, or after it had ended: there is nothing to continue.
        if !here.join("killed/release").exists() {
            let resume = if here.join("killed/private").exists() { &["--resume"][..] } else { &[] };
            done(here, &[&["fit", "fairdp.toml", "--out", "killed", "--seed", "3", "-q"], resume].concat());
        }
        assert!(alone == fs::read(here.join("killed/release/model.safetensors")).unwrap(), "{milliseconds} ms");
        done(here, &["verify", "killed"]);
    }
}

#[test]
fn thresholds_by_group_are_paid_for_and_used_in_prediction() {
    let folder = declared(8_000, |config| config.replace("fairness = \"none\"", "fairness = \"equalized-odds\""));
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let statement = json(here.join("run/release/statement.json"));
    assert!(statement["epsilon"].as_f64().unwrap() <= 1.0);
    let purposes: Vec<&str> =
        statement["events"].as_array().unwrap().iter().map(|event| event["purpose"].as_str().unwrap()).collect();
    assert!(purposes.contains(&"cumulative scores by group and class"), "{purposes:?}");
    let fairness = json(here.join("run/release/fairness.json"));
    assert_eq!(fairness["thresholds"]["by_group"].as_array().unwrap().len(), 4);
    done(here, &["predict", "run", "table.csv", "--out", "p.csv"]);
    done(here, &["verify", "run"]);
}

/// Another release from the scores of the first: the same weights and ε, other decisions, and both digests.
#[test]
fn another_notion_of_fairness_costs_nothing() {
    // Groups of 3,000 records each, in one of which scores are lower.
    let rows: Vec<String> = (0..12_000)
        .map(|i| {
            let (sex, place) = (["f", "m"][i % 2], (i / 2 * 37) % 100);
            let positive = (i / 200 * 61 + i / 2 * 13) % 100 < place;
            let x = if sex == "f" { place / 2 } else { place };
            format!("{x},{sex},{}", u8::from(positive))
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    crate::groups::declare(here, "x,sex,y", &rows, "sex", |config| config.replace("other = true", "other = false"));
    let summary = done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    assert_eq!(summary.lines().filter(|line| line.starts_with("price of ")).count(), 3, "{summary}");
    let fairness = json(here.join("run/release/fairness.json"));
    assert!(fairness["thresholds"].is_null() && fairness["price_list"].as_array().unwrap().len() == 5);
    assert!(fairness["groups"][0]["auc"]["value"].as_f64().unwrap() > 0.6, "{fairness}");
    assert_eq!(json(here.join("run/release/pipeline.json"))["offsets"].as_array().unwrap().len(), 1);

    let change = |from: &str, mode: &str, out: &str| {
        done(here, &["fairness", from, "--mode", mode, "--max-loss", "0.05", "--out", out])
    };
    change("run", "equalized-odds", "odds");
    done(here, &["verify", "odds"]);
    done(here, &["verify", "odds/release"]);
    let [run, odds] = ["run", "odds"].map(|out| json(here.join(out).join("release/statement.json")));
    assert_eq!((&run["epsilon"], &run["events"]), (&odds["epsilon"], &odds["events"]));
    assert_eq!(run["files"]["model.safetensors"], odds["files"]["model.safetensors"]);
    let digest = &json(here.join("run/private/ledger.json"))["release"]["statement.json"];
    assert_eq!((&odds["derived_from"]["fitted"], &odds["derived_from"]["from"]), (digest, digest));
    let gap = |out: &str| {
        let fairness = json(here.join(out).join("release/fairness.json"));
        fairness["equalized_odds_difference"]["value"].as_f64().unwrap()
    };
    assert!(gap("odds") < gap("run") - 0.1, "{} {}", gap("odds"), gap("run"));
    let listed = fairness["price_list"][2]["thresholds"]["by_group"].clone();
    assert!(listed.as_array().unwrap().len() == 2);

    // One threshold for all groups needs no group.
    let arguments = ["fairness", "run", "--mode", "equal-opportunity", "--max-loss", "0.2", "--one-threshold"];
    let said = done(here, &[&arguments[..], &["--out", "one"]].concat());
    assert!(said.contains("one threshold for all groups: a smaller gap takes another fit"), "{said}");
    let one = json(here.join("one/release/fairness.json"));
    let thresholds = &one["thresholds"];
    assert!(thresholds["kept"].is_null() && thresholds["gain"]["value"].as_f64().unwrap() > 0.0, "{thresholds}");
    assert_eq!(thresholds["by_group"][0], thresholds["by_group"][1]);
    assert_eq!(json(here.join("one/release/pipeline.json"))["offsets"].as_array().unwrap().len(), 1);
    assert_eq!(json(here.join("one/release/statement.json"))["derived_from"]["one_threshold"], true);

    // Back again: the decisions of the fit, and the group is not needed.
    change("odds", "none", "back");
    let [first, back] = ["run", "back"].map(|out| json(here.join(out).join("release/pipeline.json")));
    assert_eq!(first, back);
    assert_eq!(json(here.join("back/release/statement.json"))["derived_from"]["fitted"], *digest);
    fs::write(here.join("x.csv"), "x\n3\n60\n").unwrap();
    done(here, &["predict", "back", "x.csv", "--out", "p.csv"]);
    done(here, &["predict", "one", "x.csv", "--out", "q.csv"]);
    assert_eq!(refused(here, &["predict", "odds", "x.csv", "--out", "p.csv"]).0, 1);
    assert_eq!(refused(here, &["fairness", "run", "--mode", "fair", "--out", "other"]).0, 2);
    assert_eq!(refused(here, &["fairness", "run", "--mode", "none", "--out", "odds"]).0, 3);
}

/// Bounds within the budget, and a second fit beyond the cap of the ledger that both share.
#[test]
fn bounds_are_paid_for_and_fits_share_a_cap() {
    let folder = declared(8_000, |config| private_bounds(&config));
    let here = folder.path();
    let arguments = |out: &'static str| {
        ["fit", "fairdp.toml", "--out", out, "--ledger", "shared.json", "-q", "--reference", "--seed", "1"]
    };
    done(here, &arguments("a"));
    let statement = json(here.join("a/release/statement.json"));
    assert!(statement["epsilon"].as_f64().unwrap() <= 1.0);
    assert_eq!(statement["total_epsilon"], statement["epsilon"]);
    assert!(statement["events"][0]["purpose"].as_str().unwrap().starts_with("bounds of"), "{statement}");
    let diagnostics = json(here.join("a/private/diagnostics.json"));
    assert!(diagnostics["reference"]["auc"].as_f64().unwrap() > diagnostics["auc"].as_f64().unwrap() - 0.02);
    done(here, &["verify", "a"]);
    let (code, message) = refused(here, &arguments("b"));
    assert_eq!(code, 3);
    assert!(message.contains("beyond the cap of 1"), "{message}");
    assert!(!here.join("b/release").exists());

    // Bounds that cannot be released were drawn all the same: the fit is in the ledger.
    let table = fs::read_to_string(here.join("table.csv")).unwrap();
    let alike = table.lines().enumerate().map(|(row, line)| match (row, line.split_once(',')) {
        (1.., Some((_, rest))) => format!("0,{rest}"),
        _ => line.to_owned(),
    });
    fs::write(here.join("table.csv"), alike.collect::<Vec<_>>().join("\n")).unwrap();
    let arguments =
        |out: &'static str| ["fit", "fairdp.toml", "--out", out, "--ledger", "other.json", "-q", "--seed", "1"];
    let (code, message) = refused(here, &arguments("c"));
    assert!(code == 3 && message.contains("to release its bounds"), "{message}");
    let (code, message) = refused(here, &arguments("d"));
    assert!(code == 3 && message.contains("beyond the cap of 1"), "{message}");

    // A row that does not fit is found before anything is spent on it.
    fs::write(here.join("table.csv"), table.replacen('\n', "\nx,", 1)).unwrap();
    let (_, message) = refused(here, &["fit", "fairdp.toml", "--out", "e", "--ledger", "unspent.json", "-q"]);
    assert!(message.contains("table.csv:2: "), "{message}");
    assert!(!here.join("unspent.json").exists() && !here.join("e").exists());
}

/// What `init` read from the records stands nowhere in a release whose bounds are paid for, and
/// texts that stand for a missing value are no numbers.
#[test]
fn paid_bounds_leave_no_constant_of_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let rows = (0..8_000).map(|row| match row {
        77 => "1234.56,1\n".to_owned(),
        row if row % 10 == 3 => format!(",{}\n", row % 2),
        row if row % 10 == 4 => format!("-999,{}\n", row % 2),
        row => format!("{},{}\n", 1_240.0 + f64::from(row % 97) / 7.0, u8::from(row % 97 > 40)),
    });
    fs::write(here.join("table.csv"), format!("wage,y\n{}", rows.collect::<Vec<_>>().concat())).unwrap();
    let config = done(here, &["init", "table.csv", "--label", "y"]);
    let missing = config.lines().find(|line| line.starts_with("missing = [")).unwrap();
    let config = config.replace(missing, "missing = [\"\", \"-999\"]");
    let lines = config.lines().filter(|line| !line.starts_with("high = ") && !line.starts_with("bins = "));
    let lines = lines.map(|line| match line {
        _ if line.starts_with("low = ") => "bounds = \"private\"",
        _ if line.starts_with("missing = -") => "missing = 1234.56",
        _ => line,
    });
    fs::write(
        here.join("fairdp.toml"),
        lines
            .collect::<Vec<_>>()
            .join("\n")
            .replace("classes = [\"0\", \"1\"]", "classes = [\"0\", \"1\"]\npublic = true"),
    )
    .unwrap();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q", "--seed", "1"]);
    let pipeline = json(here.join("run/release/pipeline.json"));
    let wage = &pipeline["schema"]["columns"][0][1];
    assert!(wage["missing"] == wage["low"] && wage["missing"].as_f64() > Some(1_000.0), "{pipeline}");
    assert_ne!(wage["missing"], 1234.56);

    // Nor does a release say whether a record lacks its number.
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    fs::write(here.join("fairdp.toml"), config.replace("missing = 1234.56\n", "")).unwrap();
    done(here, &["fit", "fairdp.toml", "--out", "other", "-q", "--seed", "1"]);
    let other = json(here.join("other/release/pipeline.json"));
    assert!(other["schema"]["columns"][0][1]["missing"].is_number(), "{other}");
}

#[test]
fn a_ledger_counts_every_fit_and_keeps_the_smaller_cap() {
    let folder = declared(4_000, |config| config);
    let here = folder.path();
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    let with = |privacy: &str| fs::write(here.join("fairdp.toml"), config.replace("epsilon = 1\n", privacy)).unwrap();
    let arguments = |out: &'static str| ["fit", "fairdp.toml", "--out", out, "--seed", "7", "--ledger", "l.json", "-q"];
    with("epsilon = 1\ntotal_epsilon = 1.6\n");
    done(here, &arguments("a"));
    done(here, &["fit", "fairdp.toml", "--out", "again", "--seed", "7", "--ledger", "twice.json", "-q"]);
    // The same seed, and so the same name: another fit all the same.
    done(here, &["fit", "fairdp.toml", "--out", "and-again", "--seed", "7", "--ledger", "twice.json", "-q"]);
    // Nor does `--resume` make it the same where nothing is continued.
    let anew = ["fit", "fairdp.toml", "--out", "anew", "--seed", "7", "--ledger", "twice.json", "-q", "--resume"];
    assert!(refused(here, &anew).1.contains("anew does not exist"));
    fs::create_dir_all(here.join("anew/private")).unwrap();
    assert!(refused(here, &anew).1.contains("beyond the cap of 1.6"));
    let total = json(here.join("and-again/release/statement.json"))["total_epsilon"].as_f64().unwrap();
    assert!(total > 1.2 && total < 1.6, "{total}");
    let (code, message) = refused(here, &["fit", "fairdp.toml", "--out", "alone", "-q"]);
    assert!(code == 2 && message.contains("privacy.total_epsilon = 1.6: expected --ledger FILE"), "{message}");
    with("epsilon = 3\n");
    let (code, message) = refused(here, &arguments("b"));
    assert!(code == 3 && message.contains("1 fits have spent ε = 1.000"), "{message}");
    with("epsilon = 0.9\ntotal_epsilon = 1.2\n");
    let (code, message) = refused(here, &arguments("c"));
    assert!(code == 3 && message.contains("beyond the cap of 1.2"), "{message}");
    with("epsilon = 1\ntotal_epsilon = 0.5\n");
    let (code, message) = refused(here, &["fit", "fairdp.toml", "--plan"]);
    assert!(code == 2 && message.contains("privacy.total_epsilon = 0.5: expected at least epsilon, 1"), "{message}");
    with("epsilon = 1\n");
    let smaller = fs::read_to_string(here.join("fairdp.toml")).unwrap().replace("delta = 1e-5", "delta = 5e-13");
    fs::write(here.join("fairdp.toml"), smaller).unwrap();
    let (code, message) = refused(here, &["fit", "fairdp.toml", "--plan"]);
    assert!(
        code == 2 && message.contains("privacy.delta = 0.0000000000005: expected a number from 1e-12"),
        "{message}"
    );
    let twice = config.replace("files = [", "files = [\"table.csv\", ");
    fs::write(here.join("fairdp.toml"), twice).unwrap();
    let (_, message) = refused(here, &["fit", "fairdp.toml", "--out", "e", "-q"]);
    assert!(message.contains("is among the table's files twice"), "{message}");
}

#[test]
fn errors_name_the_place() {
    let folder = declared(2_000, |config| config);
    let here = folder.path();
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    let with = |from: &str, to: &str| {
        fs::write(here.join("bad.toml"), config.replacen(from, to, 1)).unwrap();
        refused(here, &["fit", "bad.toml", "--out", "bad"])
    };
    let (code, message) = with("epsilon = 1", "epsilom = 1");
    assert_eq!(code, 2);
    assert!(message.contains("did you mean `epsilon`?") && message.contains("bad.toml:"), "{message}");
    let (code, message) = with("delta = 1e-5", "delta = 0.01");
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("below one over the number of records"), "{message}");
    let (code, message) = with("epsilon = 1\n", "epsilon = 0.001\n");
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("too few for"), "{message}");
    let mut table = fs::read_to_string(here.join("table.csv")).unwrap();
    let (_, rest) = table.lines().nth(1).unwrap().split_once(',').unwrap();
    let broken = format!("thirty,{rest}\n");
    table.push_str(&broken);
    fs::write(here.join("table.csv"), &table).unwrap();
    let (code, message) = refused(here, &["fit", "fairdp.toml", "--out", "bad"]);
    assert_eq!(code, 1);
    assert!(message.contains("table.csv:2002") && message.contains("thirty"), "{message}");
    // Refused before anything was made of the records: the place is as it was.
    assert!(!here.join("bad").exists());
    fs::write(here.join("ledger.json"), "mine").unwrap();
    for (options, expected) in [
        (["--ledger", "ledger.json"], "has no seal at its end"),
        (["--ledger", "."], "is not a regular file"),
        (["--threads", "1000000"], "1000000 is not in 1..=1024"),
    ] {
        let message = refused(here, &[&["fit", "fairdp.toml", "--out", "bad"], &options[..]].concat()).1;
        assert!(message.contains(expected) && !message.contains("reading"), "{message}");
    }
    assert!(refused(here, &["fit", ".", "--out", "bad"]).1.contains("is not a regular file"));
    assert!(refused(here, &["example", "--columns", "7"]).1.contains("7 is not in 8..=10000"));
    assert!(!here.join("bad").exists());
}

#[test]
fn three_classes_are_a_softmax() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let rows: Vec<String> = (0..9_000)
        .map(|i| format!("{},{}\n", (i * 37) % 100, ["low", "middle", "high"][((i * 37) % 100 + (i * 7) % 20) / 40]))
        .collect();
    fs::write(here.join("t.csv"), format!("x,y\n{}", rows.concat())).unwrap();
    let config = done(here, &["init", "t.csv", "--label", "y", "--epsilon", "2"]);
    fs::write(here.join("c.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
    done(here, &["fit", "c.toml", "--out", "run", "-q", "--seed", "1"]);
    let diagnostics = json(here.join("run/private/diagnostics.json"));
    assert!(diagnostics["accuracy"].as_f64().unwrap() > 0.75, "{diagnostics}");
    done(here, &["predict", "run", "t.csv", "--out", "p.csv"]);
    assert!(fs::read_to_string(here.join("p.csv")).unwrap().starts_with("row,prediction,p_high,p_low,p_middle\n"));
}

/// As spreadsheets write tables: semicolons, quotes, a byte-order mark, lines that end in CRLF,
/// missing values in two ways.
#[test]
fn tables_of_spreadsheets_need_no_editing() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let row = |i: usize| {
        let (size, class) = ((i * 37) % 100, ["hoch", "mittel", "niedrig"][((i * 37) % 100 + (i * 7) % 20) / 40]);
        let size = if i.is_multiple_of(50) { "nan".to_owned() } else { size.to_string() };
        let town = ["\"He said \"\"hi\"\"; twice\"", "Köln", ""][i % 3];
        format!("{size};{town};fest;\"{class}\";{}\r\n", ["m", "w"][i % 2])
    };
    let rows: String = (0..4_000).map(row).collect();
    fs::write(here.join("short.csv"), "x,y\n1,a\n2\n3,b\n").unwrap();
    assert!(done(here, &["init", "short.csv", "--label", "y"]).contains("or that are not UTF-8: 1; `fit` names"));
    fs::write(here.join("t.csv"), format!("\u{feff}Größe;Stadt;\"fest;stehend\";Klasse;Geschlecht\r\n{rows}")).unwrap();
    let config = done(here, &["init", "t.csv", "--label", "Klasse", "--group", "Geschlecht", "--epsilon", "4"]);
    assert!(config.contains("kind = \"drop\"  # one value, or none"), "{config}");
    fs::write(here.join("c.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
    done(here, &["fit", "c.toml", "--out", "run", "-q", "--seed", "1"]);
    let diagnostics = json(here.join("run/private/diagnostics.json"));
    assert!(diagnostics["accuracy"].as_f64().unwrap() > 0.7, "{diagnostics}");
    done(here, &["verify", "run"]);
    done(here, &["predict", "run", "t.csv", "--out", "p.csv"]);
    let predictions = fs::read_to_string(here.join("p.csv")).unwrap();
    assert!(predictions.starts_with("row,prediction,p_hoch,p_mittel,p_niedrig\n"), "{predictions}");
    assert_eq!(predictions.lines().count(), 4_001);
}

/// Nothing that is read is written over, a link stays a link, and options are looked at before the
/// table.
#[test]
fn outputs_and_options_are_refused_before_any_work() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let table = fs::read(here.join("table.csv")).unwrap();
    let predict = |out: &str| ["predict", "run", "table.csv", "--out", out].map(str::to_owned);
    let refused = |arguments: &[String]| refused(here, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    fs::create_dir(here.join("folder.csv")).unwrap();
    fs::write(here.join("records.csv"), b"SQLite format 3\0 and the rest").unwrap();
    for (out, code, expected) in [
        ("table.csv", 2, "another file than those that are read"),
        ("./run/../table.csv", 2, "another file than those that are read"),
        ("run/release/model.onnx", 2, "outside of a release"),
        ("run/release/p.csv", 2, "outside of a release"),
        ("records.csv", 1, "a database"),
        ("folder.csv", 1, "is a directory"),
        ("records.db", 2, "ends in .csv or .tsv"),
        ("run", 2, "ends in .csv or .tsv"),
    ] {
        let (found, message) = refused(&predict(out));
        assert!(found == code && message.contains(expected) && message.contains(out), "{out}: {found} {message}");
    }
    assert!(table == fs::read(here.join("table.csv")).unwrap());
    done(here, &["verify", "run"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("table.csv", here.join("same.csv")).unwrap();
        assert_eq!(refused(&predict("same.csv")).0, 2);
        std::os::unix::fs::symlink("p.csv", here.join("link.csv")).unwrap();
        assert!(refused(&predict("link.csv")).1.contains("leads nowhere"));
        fs::write(here.join("p.csv"), "").unwrap();
        done(here, &["predict", "run", "table.csv", "--out", "link.csv"]);
        assert!(here.join("link.csv").is_symlink());
        assert_eq!(fs::read_to_string(here.join("p.csv")).unwrap().lines().count(), 2_501);
    }

    // A model that is not the one of the statement; a copy of the model alone has no statement.
    let weights = here.join("run/release/model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    let (code, message) = refused(&predict("other.csv"));
    assert!(code == 4 && message.contains("model.safetensors`: was changed"), "{code} {message}");
    fs::create_dir(here.join("copy")).unwrap();
    for name in ["model.safetensors", "pipeline.json"] {
        fs::copy(here.join("run/release").join(name), here.join("copy").join(name)).unwrap();
    }
    done(here, &["predict", "copy", "table.csv", "--out", "other.csv"]);

    // The table is not looked for: it would be the only complaint.
    for (options, expected) in [
        ("--epsilon 0", "--epsilon = 0: expected a finite number above 0"),
        ("--epsilon nan", "--epsilon = NaN: expected a finite number above 0"),
        ("--delta 2", "--delta = 2: expected a number from 1e-12 to below 1"),
        ("--test-fraction 2", "--test-fraction = 2: expected 0 to 0.9"),
        ("--unit y", "--unit = y: expected another column than the label"),
        ("--unit u --max-records-per-unit 0", "--max-records-per-unit = 0: expected at least 1"),
        ("--group y", "--group = y: expected a column that is neither the label nor another group"),
        ("--group g --group g", "--group = g: expected a column that is neither the label nor another group"),
        ("--model tree", "--model = tree: expected auto, additive, mlp or network"),
        (
            "--method dpsg",
            "--method = dpsg: expected a method that fits: unknown; `fairdp methods` lists the names; did you mean `dpsgd`?",
        ),
        ("--method dpsgd-f", "expected a method that fits: it treats groups differently"),
    ] {
        let arguments = "init absent.csv --label y ".to_owned() + options;
        let (code, message) = refused(&arguments.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(code == 2 && message.contains(expected), "{options}: {code} {message}");
    }
    for (contents, expected) in [
        ("x,y\n", "expected a table with rows"),
        ("x,y\n1,a,\n2,b,\n", "expected rows that can be read: t.csv:2: 3 fields, expected 2"),
    ] {
        fs::write(here.join("t.csv"), contents).unwrap();
        let (code, message) = refused(&["init", "t.csv", "--label", "y"].map(str::to_owned));
        assert!(code == 2 && message.contains(expected), "{message}");
    }
}

/// Predictions in Parquet are those in CSV, and a table in Parquet is predicted as the same one in
/// CSV.
#[test]
fn predictions_in_parquet_are_read_back() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    done(here, &["predict", "run", "table.csv", "--out", "p.csv"]);
    done(here, &["predict", "run", "table.csv", "--out", "p.parquet"]);
    let rows = |name: &str| {
        let files = TableFiles::new(&[here.join(name).to_str().unwrap().to_owned()]).unwrap();
        let mut reader = files.open().unwrap();
        let columns = reader.columns().to_vec();
        let (mut rows, mut row) = (vec![columns.clone()], TableRow::default());
        while reader.read(&mut row).unwrap() {
            rows.push((0..columns.len()).map(|column| row.field(column).to_owned()).collect());
        }
        rows
    };
    let found = rows("p.parquet");
    assert_eq!(found.len(), 2_501);
    assert_eq!(found, rows("p.csv"));
    // What is predicted from a Parquet table: the inputs of `p.parquet` are its own probabilities.
    let config = done(here, &["init", "p.parquet", "--label", "prediction", "--accept-uncovered"]);
    fs::write(here.join("c.toml"), config.replace("delta = 1e-5", "delta = 1e-6")).unwrap();
    done(here, &["fit", "c.toml", "--out", "again", "-q"]);
    done(here, &["predict", "again", "p.parquet", "--out", "q.parquet"]);
    assert_eq!(rows("q.parquet").len(), 2_501);
}

/// A bar is for terminals: elsewhere there are lines, and with `-q` none.
#[test]
fn progress_is_plain_lines_in_a_log() {
    let folder = declared(2_500, |config| config);
    let said = |out: &str, more: &[&str]| {
        let output = program(folder.path(), &[&["fit", "fairdp.toml", "--out", out], more].concat());
        String::from_utf8(output.stderr).unwrap()
    };
    let lines = said("a", &[]);
    let timed = |line: &str| line.as_bytes()[8] == b'Z' && line.as_bytes()[2] == b':';
    assert!(lines.lines().all(timed) && lines.ends_with("Z  done\n"), "{lines}");
    assert!(lines.lines().next().unwrap().contains("  reading "), "{lines}");
    assert!(!lines.contains(['\r', '\x1b']), "{lines}");
    assert_eq!(said("b", &["-q"]), "");
}
