//! What is done for groups: of many classes, and of many groups.

use std::fs;

use crate::groups::declare;
use crate::program::{done, json, refused};

/// Records of three classes; of the women scores of class `c` are lower than of men with the same chance.
fn rows() -> Vec<String> {
    (0..16_000)
        .map(|i| {
            let (sex, place) = (["f", "m"][i % 2], (i / 2 * 37) % 100);
            let x = if sex == "f" { place / 2 } else { place };
            let is_c = (i / 200 * 61 + i / 2 * 13) % 100 < place;
            let z = i / 3 % 2;
            let other = if i / 7 % 10 < 8 { z } else { 1 - z };
            format!("{x},{z},{sex},{}", if is_c { "c" } else { ["a", "b"][other] })
        })
        .collect()
}

/// Shares of each sex that is answered `c`, among records of `c` and among others.
fn rates(rows: &[String], predictions: &str) -> [[f64; 2]; 2] {
    ["f", "m"].map(|sex| {
        [false, true].map(|is_c| {
            let pairs = rows.iter().zip(predictions.lines().skip(1)).filter(|(row, _)| {
                let fields: Vec<&str> = row.split(',').collect();
                fields[2] == sex && (fields[3] == "c") == is_c
            });
            let n = pairs.clone().count();
            pairs.filter(|(_, line)| line.split(',').nth(1) == Some("c")).count() as f64 / n as f64
        })
    })
}

fn gap([f, m]: [[f64; 2]; 2]) -> f64 {
    (f[0] - m[0]).abs().max((f[1] - m[1]).abs())
}

/// One class against all others: its gap closes in what is predicted, and what is said holds.
#[test]
fn one_of_three_classes_is_answered_alike_in_both_groups() {
    let (rows, folder) = (rows(), tempfile::tempdir().unwrap());
    let here = folder.path();
    declare(here, "x,z,sex,y", &rows, "sex", |config| {
        let config = config.replace("other = true", "other = false");
        config.replace("fairness = \"none\"", "fairness = { mode = \"none\", class = \"c\" }")
    });
    let summary = done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    assert!(summary.contains("rates and gaps are those of answering c, against all other classes"), "{summary}");
    assert_eq!(summary.lines().filter(|line| line.starts_with("price of ")).count(), 3, "{summary}");
    let said = done(here, &["fairness", "run", "--mode", "equalized-odds", "--max-loss", "0.05", "--out", "odds"]);
    assert!(said.contains("equalised odds: difference"), "{said}");
    done(here, &["verify", "odds"]);
    let predicted = |out: &str| {
        done(here, &["predict", out, "table.csv", "--out", "p.csv"]);
        fs::read_to_string(here.join("p.csv")).unwrap()
    };
    let (before, after) = (predicted("run"), predicted("odds"));
    let [of_before, of_after] = [&before, &after].map(|predictions| gap(rates(&rows, predictions)));
    assert!(of_before > 0.2 && of_after < 0.08, "{of_before} {of_after}");
    let fairness = json(here.join("odds/release/fairness.json"));
    assert_eq!((&fairness["class"], &fairness["thresholds"]["class"]), (&"c".into(), &"c".into()));
    // Those of the table are near those of the population; half of the table was trained on, so by a margin.
    let holds = |figure: &serde_json::Value, truth: f64| {
        let [low, high] = ["low", "high"].map(|end| figure[end].as_f64().unwrap());
        low - 0.01 < truth && truth < high + 0.01
    };
    for (place, rates) in rates(&rows, &after).into_iter().enumerate() {
        let group = &fairness["groups"][place];
        assert!(group["recall"].as_array().unwrap().len() == 3 && group["auc"]["value"].as_f64().unwrap() > 0.6);
        assert!(holds(&group["false_positive_rate"], rates[0]) && holds(&group["true_positive_rate"], rates[1]));
    }
    let right =
        rows.iter().zip(after.lines().skip(1)).filter(|(row, line)| row.split(',').nth(3) == line.split(',').nth(1));
    assert!(holds(&fairness["overall"]["accuracy"], right.count() as f64 / rows.len() as f64), "{fairness}");
    assert!(
        fs::read_to_string(here.join("odds/release/card.html")).unwrap().contains("answering c, against all other")
    );
}

/// What is missing is named.
#[test]
fn a_positive_class_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (fairness, named) in [
        (
            "\"worst-group\"",
            "fairness.class: expected the class whose answers are compared between groups, one of a, b, c",
        ),
        ("{ mode = \"none\", class = \"d\" }", "fairness.class = d: expected one of label.classes (a, b, c)"),
    ] {
        declare(here, "x,z,sex,y", &rows(), "sex", |config| {
            config.replace("fairness = \"none\"", &format!("fairness = {fairness}"))
        });
        let (code, message) = refused(here, &["fit", "fairdp.toml", "--out", "run"]);
        assert!(code == 2 && message.contains(named), "{code} {message}");
    }
    declare(here, "x,z,sex,y", &rows(), "sex", |config| config);
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let (_, message) = refused(here, &["fairness", "run", "--mode", "worst-group", "--out", "other"]);
    assert!(message.contains("of more than two classes with fairness.class"), "{message}");
}

/// Intersections of two columns, one of them bands of a number: all are named, however few their records.
#[test]
fn small_intersections_and_bands_are_named() {
    let rows: Vec<String> = (0..12_000)
        .map(|i| {
            let (sex, age) = (["f", "m"][i % 2], if i % 400 == 0 { 85 } else { 20 + i * 7 % 40 });
            format!("{},{age},{sex},{}", i * 37 % 100, u8::from((i * 13) % 100 < (i * 37) % 100))
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    declare(here, "x,age,sex,y", &rows, "sex", |config| {
        let config = config.replace("other = true", "other = false");
        let config = config.replace("group_as_input = false", "group_as_input = true");
        config + "\n[[group]]\ncolumn = \"age\"\nedges = [40, 80]\npublic = true\n"
    });
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let fairness = json(here.join("run/release/fairness.json"));
    let names = |groups: &serde_json::Value| -> Vec<String> {
        groups.as_array().unwrap().iter().map(|group| group["group"].as_str().unwrap().to_owned()).collect()
    };
    let all = names(&fairness["groups"]);
    assert_eq!(all.len(), 6, "{all:?}");
    let columns = fairness["columns"].as_array().unwrap();
    let of_columns: Vec<usize> = columns.iter().map(|column| names(&column["groups"]).len()).collect();
    assert_eq!(of_columns, [2, 3], "{columns:?}");
    let small = &fairness["groups"][2];
    assert!(
        small["too_few"].as_array().unwrap().len() == 2 && small["balanced_accuracy"]["value"].is_null(),
        "{small}"
    );
    let card = fs::read_to_string(here.join("run/release/card.html")).unwrap();
    let shown = |name: &String| card.contains(&name.replace('<', "&lt;").replace('>', "&gt;"));
    assert!(all.iter().all(shown), "{all:?}");
    // A small group has a place on the axis.
    assert!(card.contains("<span class=\"soft\">unknown</span>"));
}

/// A coin closes a gap that thresholds leave: predictions have the rates that are said, again and again.
#[test]
fn a_coin_is_tossed_by_the_values_of_a_record() {
    // Of women the score tells classes apart less well: with equal rates of one kind, those of the other differ.
    let rows: Vec<String> = (0..24_000)
        .map(|i| {
            let (sex, x, draw) = (["f", "m"][i % 2], (i / 2 * 7_919) % 1_000, (i / 2 * 613 + i / 2_000 * 37) % 1_000);
            let chance = if sex == "f" { 350 + 3 * x / 10 } else { x };
            format!("{x},{sex},{}", u8::from(draw < chance))
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    declare(here, "x,sex,y", &rows, "sex", |config| {
        let config = config.replace("other = true", "other = false").replace("epsilon = 1", "epsilon = 3");
        config.replace("fairness = \"none\"", "fairness = { mode = \"equalized-odds\", max_loss = 0.3, coins = true }")
    });
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    done(here, &["verify", "run"]);
    let predicted = |out: &str| {
        done(here, &["predict", out, "table.csv", "--out", "p.csv"]);
        fs::read_to_string(here.join("p.csv")).unwrap()
    };
    let first = predicted("run");
    assert_eq!(first, predicted("run"));
    let fairness = json(here.join("run/release/fairness.json"));
    let coins = fairness["thresholds"]["coins"].as_array().unwrap();
    assert!(coins.iter().any(|parts| parts.as_array().unwrap().len() > 1), "{fairness}");
    for (place, sex) in ["f", "m"].into_iter().enumerate() {
        for (class, rate) in [("0", "false_positive_rate"), ("1", "true_positive_rate")] {
            let pairs = rows
                .iter()
                .zip(first.lines().skip(1))
                .filter(|(row, _)| row.split(',').nth(1) == Some(sex) && row.split(',').nth(2) == Some(class));
            let n = pairs.clone().count() as f64;
            let found = pairs.filter(|(_, line)| line.split(',').nth(1) == Some("1")).count() as f64 / n;
            let said = &fairness["groups"][place][rate];
            let [low, high] = ["low", "high"].map(|end| said[end].as_f64().unwrap());
            assert!(low - 0.02 < found && found < high + 0.02, "{sex} {rate}: {found} {said}");
        }
    }
    assert!(fairness["equalized_odds_difference"]["value"].as_f64().unwrap() < 0.08, "{fairness}");
    let read = |name: &str| fs::read_to_string(here.join("run/release").join(name)).unwrap();
    assert!(read("statement.md").contains("a coin decides between thresholds of a group"));
    assert!(read("card.html").contains("cannot toss it"));
    // Without coins again, at no further ε; and with one threshold there is none.
    done(here, &["fairness", "run", "--mode", "equalized-odds", "--max-loss", "0.3", "--out", "fixed"]);
    assert!(json(here.join("fixed/release/pipeline.json"))["coins"].is_null());
    let both = ["fairness", "run", "--mode", "equalized-odds", "--coins", "--one-threshold", "--out", "x"];
    assert_eq!(refused(here, &both).0, 2);
}
