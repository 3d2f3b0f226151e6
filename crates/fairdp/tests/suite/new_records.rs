//! A release and new records: drift, and outcomes.

use std::fs;
use std::path::Path;

use dp_table::Example;

use crate::program::{declared, done, json, program, refused, text};

/// A table of other people, line by line changed.
fn table(here: &Path, name: &str, rows: u64, change: impl Fn(usize, &str) -> String) {
    let mut csv = Vec::new();
    Example { rows, seed: 2, ..Example::default() }.write(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let lines = csv.lines().enumerate().map(|(row, line)| change(row, line) + "\n");
    fs::write(here.join(name), lines.collect::<String>()).unwrap();
}

fn fitted() -> tempfile::TempDir {
    let folder = declared(12_000, |config| config);
    done(folder.path(), &["fit", "fairdp.toml", "--out", "run", "-q", "--seed", "1"]);
    table(folder.path(), "new.csv", 8_000, |_, line| line.to_owned());
    folder
}

#[test]
fn outcomes_are_measured_within_a_budget_and_compared() {
    let folder = fitted();
    let here = folder.path();
    let evaluate = ["evaluate", "run", "new.csv", "--epsilon", "1", "--seed", "5", "--out"];
    let said = done(here, &[&evaluate[..], &["e"]].concat());
    assert!(said.contains("figures compared with the release, 0 of them changed by more than noise"), "{said}");
    done(here, &["verify", "e"]);
    let statement = json(here.join("e/release/statement.json"));
    let digest = |place: &Path| {
        use sha2::Digest as _;
        hex::encode(sha2::Sha256::digest(fs::read(place).unwrap()))
    };
    assert_eq!(statement["about"], digest(&here.join("run/release/statement.json")));
    assert_eq!(statement["records"]["test"], 8_000);
    assert!(statement["epsilon"].as_f64().unwrap() <= 1.0);
    let fairness = json(here.join("e/release/fairness.json"));
    assert!(fairness["overall"]["auc"]["value"].as_f64().unwrap() > 0.7, "{fairness}");
    let before = json(here.join("run/release/fairness.json"));
    let comparison = json(here.join("e/release/comparison.json"));
    let changes = comparison["changes"].as_array().unwrap();
    let auc =
        changes.iter().find(|change| change["figure"] == "auc" && change["group"].as_array().is_none_or(Vec::is_empty));
    assert_eq!(auc.unwrap()["before"], before["overall"]["auc"]["value"]);

    // Labels of half of the rows turned: an alarm, which is no failure.
    table(here, "turned.csv", 8_000, |row, line| match line.rsplit_once(',') {
        Some((features, label)) if row > 0 && row % 2 == 0 => {
            format!("{features},{}", if label == "yes" { "no" } else { "yes" })
        }
        _ => line.to_owned(),
    });
    let turned = ["evaluate", "run", "turned.csv", "--epsilon", "1", "--seed", "5", "--json", "--out", "t"];
    let output = program(here, &turned);
    let answer: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(answer["version"], 1);
    assert!(output.status.code() == Some(5) && answer["alarm"] == true, "{answer}");
    done(here, &["verify", "t"]);

    // A ledger of the new records: the second is beyond its cap, and the rest fits.
    let paid =
        ["evaluate", "run/release", "new.csv", "--ledger", "l.json", "--total-epsilon", "1", "--scope", "2026-11"];
    let first = [&paid[..], &["--epsilon", "0.8", "--out", "a"]].concat();
    let output = program(here, &first);
    assert!(matches!(output.status.code(), Some(0 | 5)), "{}", text(&output.stderr));
    let statement = json(here.join("a/release/statement.json"));
    assert!(statement["scope"] == "2026-11" && statement["private"] == true, "{statement}");
    let (code, message) = refused(here, &[&paid[..], &["--epsilon", "0.8", "--out", "b"]].concat());
    assert!(code == 3 && message.contains("beyond the cap of 1"), "{code} {message}");
    assert!(!here.join("b").exists());
    let output = program(here, &[&paid[..], &["--epsilon", "rest", "--out", "b"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 5)), "{}", text(&output.stderr));
    let total = json(here.join("b/release/statement.json"))["total_epsilon"].as_f64().unwrap();
    assert!(total > 0.99 && total <= 1.0 + 1e-9, "{total}");

    // What is refused before anything is drawn.
    assert_eq!(refused(here, &first).0, 3);
    let (code, message) = refused(here, &["evaluate", "e", "new.csv", "--epsilon", "1", "--out", "f"]);
    assert!(code == 1 && message.contains("has figures about new records, and no model"), "{code} {message}");
    let delta = ["evaluate", "run", "new.csv", "--epsilon", "1", "--delta", "0.01", "--out", "f"];
    assert_eq!(refused(here, &delta).0, 3);
    let place = here.join("run/release/fairness.json");
    let whole = fs::read_to_string(&place).unwrap();
    fs::write(&place, whole + " ").unwrap();
    assert_eq!(refused(here, &[&evaluate[..], &["f"]].concat()).0, 4);
    assert!(!here.join("f").exists());
}

#[test]
fn a_table_that_drifted_is_an_alarm() {
    let folder = fitted();
    let here = folder.path();
    let said = done(here, &["drift", "run", "new.csv"]);
    assert!(said.starts_with("as private as the new table: nothing was paid for\n8000 rows; 0 alarms\n"), "{said}");

    // A town that nobody declared for half of the rows of one group, ages in months, missing visits.
    table(here, "drifted.csv", 8_000, |row, line| {
        if row == 0 {
            return line.to_owned();
        }
        let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        if fields[8] == "b" && row % 2 == 0 {
            fields[3] = "north pole".into();
        }
        fields[0] = (fields[0].parse::<u32>().unwrap_or(40) * 12).to_string();
        fields.join(",")
    });
    let output = program(here, &["drift", "run", "drifted.csv"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(5), "{said}{}", text(&output.stderr));
    for line in [
        "ALARM column age: 100.0 % of the values are beyond the declared bounds",
        "ALARM column region: ",
        " of b are none of those declared",
        "ALARM scores of ",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    assert!(!said.contains("of a are none of those declared"), "{said}");
    let output = program(here, &["drift", "run", "drifted.csv", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert!(output.status.code() == Some(5) && !answer["alarms"].as_array().unwrap().is_empty());
    // The mistake of a person may be tolerated.
    assert_eq!(refused(here, &["drift", "run", "new.csv", "--tolerance", "2"]).0, 2);

    // Within an ε of the new people: the same alarms of all rows, in a release.
    let paid = ["drift", "run", "drifted.csv", "--epsilon", "1", "--ledger", "l.json", "--out", "d"];
    let output = program(here, &paid);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(5), "{said}{}", text(&output.stderr));
    assert!(said.starts_with("private for the people of the new table"), "{said}");
    assert!(said.contains("ALARM column age: ") && said.contains("ALARM scores of "), "{said}");
    done(here, &["verify", "d"]);
    let statement = json(here.join("d/release/statement.json"));
    assert!(statement["epsilon"].as_f64().unwrap() <= 1.0 && statement["events"].as_array().unwrap().len() == 2);
    assert!(done(here, &["ledger", "show", "l.json"]).starts_with("1 fits"));
    assert_eq!(refused(here, &["drift", "run", "new.csv", "--epsilon", "1"]).0, 2);

    // Without the column of groups, the rest is compared.
    table(here, "alone.csv", 8_000, |_, line| {
        let fields: Vec<&str> = line.split(',').collect();
        [&fields[..8], &fields[9..]].concat().join(",")
    });
    let said = text(&program(here, &["drift", "run", "alone.csv"]).stdout);
    assert!(said.contains("groups are not compared: the table has not all of their columns"), "{said}");
}

/// One of five classes is the positive one: its scores are compared, and figures have its name.
#[test]
fn scores_of_one_class_of_several_are_compared() {
    let folder = declared(12_000, |config| config);
    let here = folder.path();
    let init = ["init", "table.csv", "--label", "region", "--group", "group", "--delta", "1e-5", "-q"];
    let config = done(here, &init).replace("from = \"data\"", "public = true");
    let class = "fairness = { mode = \"none\", class = \"east\" }";
    fs::write(here.join("fairdp.toml"), config.replace("fairness = \"none\"", class)).unwrap();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q", "--seed", "1"]);
    table(here, "new.csv", 8_000, |_, line| line.to_owned());

    let output = program(here, &["drift", "run", "new.csv", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert!(output.status.success() && answer["scores"].as_array().unwrap().len() > 7, "{answer}");
    done(here, &["evaluate", "run", "new.csv", "--epsilon", "1", "--seed", "5", "--out", "e"]);
    done(here, &["verify", "e"]);
    let fairness = json(here.join("e/release/fairness.json"));
    assert!(fairness["class"] == "east" && fairness["overall"]["auc"]["value"].is_number(), "{fairness}");
    let changes = json(here.join("e/release/comparison.json"))["changes"].clone();
    assert!(changes.as_array().unwrap().iter().any(|change| change["figure"] == "auc"), "{changes}");
    let paid = ["drift", "run", "new.csv", "--epsilon", "1", "--seed", "6", "--out", "d"];
    done(here, &paid);
    done(here, &["verify", "d"]);
    assert!(json(here.join("d/release/scores.json"))["class"] == "east");

    // Without a positive class there are no scores, and the answer says so.
    fs::write(here.join("fairdp.toml"), config).unwrap();
    done(here, &["fit", "fairdp.toml", "--out", "plain", "-q", "--seed", "1"]);
    let said = done(here, &["drift", "plain", "new.csv"]);
    assert!(said.contains("the release has no cumulative scores"), "{said}");
}
