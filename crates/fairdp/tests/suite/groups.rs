//! Groups: their names, and their thresholds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::program::{done, json, program, text};

/// Writes a table and a configuration whose entries are declared public.
pub(crate) fn declare(folder: &Path, header: &str, rows: &[String], group: &str, change: impl Fn(String) -> String) {
    fs::write(folder.join("table.csv"), format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let config = done(folder, &["init", "table.csv", "--label", "y", "--group", group]);
    fs::write(folder.join("fairdp.toml"), change(config.replace("from = \"data\"", "public = true"))).unwrap();
}

/// Values called like the groups of the program are groups like others, and keep their records.
#[test]
fn a_value_is_never_taken_for_a_group_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let names = ["other", "missing", "all", "(other)", "(missing)", "(all)", "white", ""];
    let rows: Vec<String> =
        (0..8_000).map(|i| format!("{},{},{}", i * 7 % 50, names[i % 8], u8::from(i * 7 % 50 > 24))).collect();
    declare(here, "x,race,y", &rows, "race", |config| config.replace("epsilon = 1", "epsilon = 4"));
    let summary = done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let fairness = json(here.join("run/release/fairness.json"));
    let shown = |group: &serde_json::Value| group["group"].as_str().unwrap().to_owned();
    let groups: Vec<String> = fairness["groups"].as_array().unwrap().iter().map(shown).collect();
    let expected =
        ["\"(all)\"", "\"(missing)\"", "\"(other)\"", "all", "missing", "other", "white", "(other)", "(missing)"];
    assert_eq!(groups, expected);
    assert_eq!(shown(&fairness["overall"]), "(all)");
    for name in expected.iter().chain(&["(all)"]) {
        let lines = summary.lines().filter(|line| line.split("  ").next() == Some(name));
        assert_eq!(lines.count(), usize::from(expected[..8].contains(name) || *name == "(all)"), "{name}: {summary}");
    }
    let diagnostics = json(here.join("run/private/diagnostics.json"));
    let records: BTreeMap<String, u64> = diagnostics["by_group"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, group)| (name.clone(), group["records"].as_u64().unwrap()))
        .collect();
    assert_eq!(records.len(), 9);
    assert_eq!(records.values().sum::<u64>(), diagnostics["test_records"].as_u64().unwrap());
    assert!(records["other"] > 150 && records["\"(other)\""] > 150 && records["(other)"] == 0, "{records:?}");
    assert!(done(here, &["report", "run"]).contains("\"(missing)\""));
    let card = fs::read_to_string(here.join("run/release/card.html")).unwrap();
    assert!(card.contains("<td>&quot;(all)&quot;</td>") && card.contains("<td>(all)</td>"), "{card}");
}

/// Three scores per group: what the release says of thresholds is what predictions do.
#[test]
fn thresholds_do_what_is_said_of_them_where_scores_are_few() {
    // Of those with job a nearly all men are positive, and nearly no woman.
    let of = |sex: &str, positive: [usize; 3]| -> Vec<String> {
        let jobs = [("a", 900), ("b", 1_320), ("c", 780)].into_iter().zip(positive);
        jobs.flat_map(|((job, n), positive)| {
            (0..n).map(move |i| format!("{job},{sex},{}", u8::from(i < positive))).collect::<Vec<_>>()
        })
        .collect()
    };
    let (f, m) = (of("f", [72, 1_254, 39]), of("m", [864, 1_254, 39]));
    let rows: Vec<String> = f
        .iter()
        .chain(&m)
        .enumerate()
        .map(|(i, _)| {
            // Mixed, so that any part has all of them.
            let place = i * 2_741 % 6_000;
            if place < 3_000 { f[place].clone() } else { m[place - 3_000].clone() }
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for epsilon in ["1", "5"] {
        declare(here, "job,sex,y", &rows, "sex", |config| {
            let config = config.replace("fairness = \"none\"", "fairness = \"worst-group\"");
            config.replace("epsilon = 1", &format!("epsilon = {epsilon}"))
        });
        for seed in ["1", "2", "3"] {
            let out = format!("{epsilon}-{seed}");
            done(here, &["fit", "fairdp.toml", "--out", &out, "--seed", seed, "-q"]);
            done(here, &["predict", &out, "table.csv", "--out", "p.csv"]);
            let predictions = fs::read_to_string(here.join("p.csv")).unwrap();
            let right = |sex: &str| {
                let pairs = rows.iter().zip(predictions.lines().skip(1)).filter(|(row, _)| row.contains(sex));
                let right = pairs.clone().filter(|(row, line)| row.split(',').nth(2) == line.split(',').nth(1));
                right.count() as f64 / pairs.count() as f64
            };
            assert!(right(",m,") > 0.95 && right(",f,") > 0.93, "{out}: {} {}", right(",m,"), right(",f,"));
            let thresholds = json(here.join(&out).join("release/fairness.json"))["thresholds"].clone();
            let (after, noise) = (&thresholds["accuracy_after"], thresholds["accuracy_noise"].as_f64().unwrap());
            let off = (after.as_f64().unwrap() - right(",")).abs();
            assert!(off < 3.0 * noise + 0.01, "{out}: {thresholds}");
        }
    }
}

/// A large group of one class is said to lack the other, in every place.
#[test]
fn a_group_without_a_class_is_said_to_have_none() {
    let rows: Vec<String> = (0..6_000)
        .map(|i| {
            let (sex, x) = (["f", "m"][i % 2], i * 7 % 90);
            format!("{x},{sex},{}", u8::from(sex == "m" && x > 44))
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    declare(here, "x,sex,y", &rows, "sex", |config| {
        config.replace("fairness = \"none\"", "fairness = \"worst-group\"")
    });
    let summary = done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let remark = "no records of class 1, within noise, for a threshold of its own: f";
    assert!(summary.lines().any(|line| line == remark), "{summary}");
    assert!(summary.contains("groups too small for a threshold of their own: (other)\n"), "{summary}");
    assert!(done(here, &["report", "run"]).lines().any(|line| line == remark));
    assert!(
        fs::read_to_string(here.join("run/release/card.html")).unwrap().contains("<p>No records of class 1, within")
    );
    let card = fs::read_to_string(here.join("run/release/card.html")).unwrap();
    let why = "worst-group moves nothing: two groups with about ";
    assert!(card.contains(why) && card.contains("training records of each class are needed at this ε"), "{card}");
    let without = json(here.join("run/release/fairness.json"))["thresholds"]["without_class"].clone();
    assert_eq!((&without[0]["group"], &without[0]["class"]), (&"f".into(), &"1".into()));
    assert_eq!(without[0]["maybe_none"], true);
}

/// Nothing of a table or a release commands a terminal, in any command.
#[test]
fn no_text_commands_a_terminal() {
    let red = "\u{1b}[31m\u{202e}\u{9b}2J";
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let rows: Vec<String> = (0..3_000)
        .map(|i| {
            format!("{},{},{}{}", i % 50, ["a\u{1b}]0;x\u{7}", "b\u{200f}", "c\r"][i % 3], ["no", "yes"][i % 2], red)
        })
        .collect();
    let rows: Vec<String> = rows.iter().map(|row| row.replace('\r', "\u{85}")).collect();
    let header = format!("x{red},g,y");
    declare(here, &header, &rows, "g", |config| config);
    let all = |arguments: &[&str]| {
        let output = program(here, arguments);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!said.is_empty() && !said.contains('\u{fffd}'), "{arguments:?}");
        let odd = said.chars().find(|letter| {
            (letter.is_control() && *letter != '\n')
                || matches!(letter, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        });
        assert_eq!(odd, None, "{arguments:?}: {said:?}");
        said
    };
    let config = all(&["init", "table.csv", "--label", "y", "--group", "g"]);
    let document: toml::Table = config.parse().unwrap();
    assert_eq!(document["column"][0]["name"].as_str(), Some(&*format!("x{red}")));
    all(&["init", "table.csv", "--label", "none"]);
    fs::write(here.join("data.toml"), &config).unwrap();
    all(&["fit", "data.toml", "--out", "refused"]);
    assert!(all(&["fit", "fairdp.toml", "--plan"]).contains("class counts"));
    let summary = all(&["fit", "fairdp.toml", "--out", "run"]);
    assert!(summary.contains("a\\u{1b}]0;x\\u{7}"), "{summary}");
    all(&["fit", "fairdp.toml", "--out", "json", "--json"]);
    all(&["report", "run"]);
    all(&["verify", "run"]);
    all(&["verify", "run", "--json"]);
    all(&["predict", "run", "table.csv", "--out", "p.csv"]);
    fs::write(
        here.join("odd.csv"),
        fs::read_to_string(here.join("table.csv")).unwrap().replacen("\n0,", &format!("\n{red},"), 1),
    )
    .unwrap();
    let said = all(&["predict", "run", "odd.csv", "--out", "odd-p.csv"]);
    assert!(said.contains("odd.csv:2: "), "{said}");
    fs::write(here.join("renamed.csv"), fs::read_to_string(here.join("table.csv")).unwrap().replacen('x', "z", 1))
        .unwrap();
    all(&["predict", "run", "renamed.csv", "--out", "renamed-p.csv"]);
}
