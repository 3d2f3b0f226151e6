//! Several records of one person, and groups on short tables.

use std::fs;
use std::path::Path;

use crate::program::{declared, done, json, refused};
use dp_table::Example;

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

/// A table in which every patient has two records.
fn patients_of_two(folder: &Path, rows: u64) {
    let mut csv = Vec::new();
    Example { rows, ..Example::default() }.write(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let (header, lines) = csv.split_once('\n').unwrap();
    let lines = lines.lines().enumerate().map(|(row, line)| format!("p{},{line}\n", row / 2));
    fs::write(folder.join("table.csv"), format!("patient_id,{header}\n{}", lines.collect::<String>())).unwrap();
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
    assert_eq!(
        statement["unit"]["what"],
        "all records with one value of `patient_id` (which records share one is public)"
    );
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

    let by_group = "name = \"adaptive\"\nsampling = { by = \"group\", rates = [0.5, 1] }";
    fs::write(here.join("bad.toml"), named.replace("name = \"adaptive\"", by_group)).unwrap();
    let (code, message) = refused(here, &["fit", "bad.toml", "--plan"]);
    assert!(code == 2 && message.contains("method.sampling = by group: expected none where [unit]"), "{message}");

    // Another outcome of every patient's third record moves nothing.
    patients(here, 12_000, |row, line| match (row % 3, line.rsplit_once(',')) {
        (2, Some((rest, outcome))) => format!("{rest},{}", if outcome == "yes" { "no" } else { "yes" }),
        _ => line.to_owned(),
    });
    assert!(model == fit("fairdp.toml", "c"));
    assert!(by_name == fit("named.toml", "d"));
}

/// A patient of the training table is in no other part, whatever the test table has of it.
#[test]
fn a_patient_in_both_tables_is_trained_on_alone() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    patients(here, 6_000, |_, line| line.to_owned());
    let config = done(here, &["init", "table.csv", "--label", "outcome", "--group", "group", "--unit", "patient_id"]);
    let config = config.replace("from = \"data\"", "public = true");
    let rows = fs::read_to_string(here.join("table.csv")).unwrap();
    let (header, rows) = rows.split_once('\n').unwrap();
    // Of the first 2,000 patients 1,000 are trained on, and all are in the test table.
    let of_patients = |name: &str, most: usize| {
        let number = |line: &str| line[1..].split_once(',').unwrap().0.parse::<usize>().unwrap();
        let lines: Vec<_> = rows.lines().filter(|line| number(line) < most).collect();
        fs::write(here.join(name), format!("{header}\n{}\n", lines.join("\n"))).unwrap();
    };
    of_patients("training.csv", 1_000);
    of_patients("test.csv", 2_000);
    let start = config.find("files = [").unwrap();
    let end = start + config[start..].find(']').unwrap() + 1;
    let with = |training: &str| {
        let config = format!("{}files = [\"{training}\"]{}", &config[..start], &config[end..]);
        fs::write(here.join("fairdp.toml"), config.replace("fraction = 0.2", "files = [\"test.csv\"]")).unwrap();
    };
    with("training.csv");
    let fairness = |out: &str| {
        done(here, &["fit", "fairdp.toml", "--out", out, "--seed", "1", "-q"]);
        fs::read_to_string(here.join(out).join("release/fairness.json")).unwrap()
    };
    let before = fairness("a");
    // Other outcomes of the patients that are trained on, in the test table alone.
    let test = fs::read_to_string(here.join("test.csv")).unwrap();
    let other = |line: &str| match line.rsplit_once(',') {
        Some((rest, "yes")) => format!("{rest},no"),
        Some((rest, "no")) => format!("{rest},yes"),
        _ => line.to_owned(),
    };
    let changed: Vec<_> =
        test.lines().enumerate().map(|(row, line)| if row <= 3_000 { other(line) } else { line.into() }).collect();
    fs::write(here.join("test.csv"), changed.join("\n")).unwrap();
    assert_eq!(fairness("b"), before);
    let changed: Vec<_> = test.lines().map(other).collect();
    fs::write(here.join("test.csv"), changed.join("\n")).unwrap();
    assert_ne!(fairness("c"), before, "the others are tested on");

    with("test.csv");
    let (code, message) = refused(here, &["fit", "fairdp.toml", "--out", "d", "-q"]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("test.files = ") && message.contains("never both"), "{message}");
}

/// A row that cannot be used stays in its patient's part: numbers of records tell nothing of it.
#[test]
fn dropped_rows_stay_in_the_part_of_their_patient() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    patients(here, 3_000, |_, line| line.to_owned());
    let init = ["init", "table.csv", "--label", "outcome", "--unit", "patient_id"];
    let config = done(here, &init).replace("from = \"data\"", "public = true");
    fs::write(here.join("fairdp.toml"), config.replace("bad_rows = \"refuse\"", "bad_rows = \"drop\"")).unwrap();
    let sizes = |out: &str| {
        done(here, &["fit", "fairdp.toml", "--out", out, "--seed", "1", "-q"]);
        json(here.join(out).join("release/statement.json"))["records"].clone()
    };
    let whole = sizes("a");
    patients(here, 3_000, |row, line| match (row % 7, line.split_once(',')) {
        (0, Some((_, rest))) => format!("unreadable,{rest}"),
        _ => line.to_owned(),
    });
    assert_eq!(sizes("b"), whole);
}

/// Of 3,000 rows of two patients two are used, and two are what is said and judged.
#[test]
fn records_that_are_used_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let rows = (0..3_000).map(|row| format!("p{},{},{}\n", row % 2, row % 50, row % 3 % 2));
    fs::write(here.join("table.csv"), format!("person,x,y\n{}", rows.collect::<String>())).unwrap();
    let config = done(here, &["init", "table.csv", "--label", "y", "--unit", "person"]);
    fs::write(here.join("fairdp.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
    for arguments in [&["fit", "fairdp.toml", "--plan"][..], &["fit", "fairdp.toml", "--out", "run", "-q"]] {
        let (code, message) = refused(here, arguments);
        assert_eq!(code, 3, "{message}");
        assert!(
            message.contains("error: 2 training records (of each value of `person` at most 1 are used)"),
            "{message}"
        );
        assert!(!message.contains("features (fewer"), "{message}");
    }
    // With as many patients as rows all are used, with half as many half of them.
    for (most, used) in [("1", 2_000), ("2", 4_000), ("3", 4_000)] {
        patients_of_two(here, 4_000);
        let init = ["init", "table.csv", "--label", "outcome", "--unit", "patient_id", "--epsilon", "8"];
        let config = done(here, &[&init[..], &["--max-records-per-unit", most]].concat());
        fs::write(here.join("fairdp.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
        done(here, &["fit", "fairdp.toml", "--out", most, "--seed", "1", "-q"]);
        let records = json(here.join(most).join("release/statement.json"))["records"].clone();
        let sum = records["training"].as_u64().unwrap() + records["test"].as_u64().unwrap();
        assert_eq!(sum, used, "{records}");
        let diagnostics = json(here.join(most).join("private/diagnostics.json"));
        assert_eq!(diagnostics["training_records"], records["training"]);
        let tested: u64 =
            diagnostics["by_group"].as_object().unwrap().values().map(|group| group["records"].as_u64().unwrap()).sum();
        assert_eq!(tested, records["test"].as_u64().unwrap());
    }
}

/// What a row's budget is worth to a patient is not known from the ledger of another unit.
#[test]
fn a_ledger_is_for_one_unit() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    patients(here, 6_000, |_, line| line.to_owned());
    let config = |unit: &[&str], name: &str| {
        let text = done(here, &[&["init", "table.csv", "--label", "outcome"], unit].concat());
        fs::write(here.join(name), text.replace("from = \"data\"", "public = true")).unwrap();
    };
    config(&["--unit", "patient_id"], "patients.toml");
    config(&[], "rows.toml");
    done(here, &["fit", "patients.toml", "--out", "a", "--ledger", "shared.json", "-q"]);
    let (code, message) = refused(here, &["fit", "rows.toml", "--out", "b", "--ledger", "shared.json", "-q"]);
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("protects the values of `patient_id`, and the configuration rows"), "{message}");
    assert!(!here.join("b/release").exists());
}

#[test]
fn thresholds_on_a_short_table_are_refused_with_what_would_do() {
    let folder = declared(1_500, |config| {
        config.replace("fairness = \"none\"", "fairness = { mode = \"equalized-odds\", smallest = 10000 }")
    });
    let (code, message) = refused(folder.path(), &["fit", "fairdp.toml", "--out", "run", "-q"]);
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("training records are too few for thresholds by group at ε = 1"), "{message}");
    assert!(message.contains("fairness = \"none\" would do"), "{message}");
    assert!(!folder.path().join("run/release").exists());
}

/// Every row of a patient enters the mean, at the noise of one record.
#[test]
fn the_mean_of_a_patients_rows_is_one_record() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let third_turned = |row: usize, line: &str| match (row % 3, line.rsplit_once(',')) {
        (2, Some((rest, "yes"))) => format!("{rest},no"),
        (2, Some((rest, "no"))) => format!("{rest},yes"),
        _ => line.to_owned(),
    };
    patients(here, 12_000, |_, line| line.to_owned());
    let init = ["init", "table.csv", "--label", "outcome", "--group", "group", "--unit", "patient_id"];
    let first = done(here, &init).replace("from = \"data\"", "public = true");
    let start = first.find("max_records").unwrap();
    let end = start + first[start..].find('\n').unwrap();
    let with = |keys: &str| format!("{}{keys}{}", &first[..start], &first[end..]);
    let fit = |keys: &str, out: &str| {
        fs::write(here.join("fairdp.toml"), with(keys)).unwrap();
        done(here, &["fit", "fairdp.toml", "--out", out, "--seed", "1", "-q"]);
        done(here, &["verify", out]);
        let release = here.join(out).join("release");
        (fs::read(release.join("model.safetensors")).unwrap(), json(release.join("statement.json")))
    };
    let (_, of_first) = fit("max_records = 1", "first");
    let means = ["last", "maximum", "each-class"].map(|target| {
        let keys = format!("rows = \"mean\"\ntarget = \"{target}\"");
        let (model, statement) = fit(&keys, target);
        // As many records, and the same releases with the same noise.
        for key in ["records", "events", "epsilon"] {
            assert_eq!(statement[key], of_first[key], "{target}: {key}");
        }
        assert_eq!(statement["unit"]["rows"], "mean");
        model
    });
    assert!(means[0] != means[1] && means[1] != means[2]);
    let text = fs::read_to_string(here.join("last/release/statement.md")).unwrap();
    assert!(text.contains("(which records share one is public); the mean of its rows was one record"), "{text}");

    // The same rows in another order within a patient: equal counts, other last rows. Another
    // outcome of the third row moves each.
    patients(here, 12_000, third_turned);
    for (target, before) in ["last", "maximum", "each-class"].iter().zip(&means) {
        let (model, _) = fit(&format!("rows = \"mean\"\ntarget = \"{target}\""), &format!("{target}2"));
        assert!(model != *before, "{target}");
    }

    // A method by name has no weights, and takes a mean as the one record that it is.
    let named = |keys: &str| with(keys).replace("name = \"auto\"", "name = \"dpsgd\"\nsampling_rate = 0.5\nsteps = 5");
    fs::write(here.join("named.toml"), named("rows = \"mean\"")).unwrap();
    done(here, &["fit", "named.toml", "--out", "named", "--seed", "1", "-q"]);
    done(here, &["verify", "named"]);
    for (config, expected) in [
        (
            named("rows = \"mean\"\ntarget = \"each-class\""),
            "unit.target = \"each-class\": expected with the additive model",
        ),
        (with("rows = \"mean\"\nmax_records = 2"), "unit.max_records: not with rows = \"mean\""),
        (with("target = \"last\"\nmax_records = 2"), "unit.target: only with rows = \"mean\""),
        (with(""), "unit.max_records: expected the most rows of a unit that are used, or rows = \"mean\""),
        (with("rows = \"median\""), "unit.rows: unknown name `median`"),
    ] {
        fs::write(here.join("bad.toml"), config).unwrap();
        let (code, message) = refused(here, &["fit", "bad.toml", "--plan"]);
        assert!(code == 2 && message.contains(expected), "{message}");
    }
}
