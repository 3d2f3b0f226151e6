//! A table as people have them, and the same one cleaned by hand.

use std::fs;
use std::path::Path;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::program::{done, json, refused};

const ROWS: usize = 1_500;
const CODES: usize = 1_500;
const LENGTH: usize = 40;

/// A number with a decimal comma and points between thousands.
fn german(number: f64) -> String {
    let plain = format!("{number:.2}");
    let (whole, fraction) = plain.split_once('.').unwrap();
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            grouped.push('.');
        }
        grouped.push(digit);
    }
    format!("{grouped},{fraction}")
}

/// The messy table and the clean one: dates in two formats, numbers in three, missing values in two
/// spellings, a list of numbers, numbers in forty columns, 1,500 columns of which one is 1 in a row,
/// two rows for each person.
fn tables() -> [String; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let names: Vec<String> = (0..LENGTH)
        .map(|place| format!("embedding_{place}"))
        .chain((0..CODES).map(|code| format!("code_{code}")))
        .collect();
    let header = ["person", "admitted", "born", "income", "rate", "fee", "age", "list", "sex", "y"];
    let header = header.into_iter().chain(names.iter().map(String::as_str)).collect::<Vec<_>>();
    let mut tables = [header.join(";") + "\n", header.join(",") + "\n"];
    for row in 0..ROWS {
        let [year, month, day] = [2015..2024, 1..13, 1..29].map(|range| rng.random_range(range));
        let [income, fee] = [1e5, 3e3].map(|most| (rng.random_range(1.0..most) * 100.0_f64).round() / 100.0);
        let (rate, age) = (f64::from(rng.random_range(0..1_000)) / 10.0, rng.random_range(18..91));
        let mut list = |n: usize| (0..n).map(|_| rng.random_range(-1.0..1.0_f64).to_string()).collect::<Vec<_>>();
        let [vector, embedding] = [list(3), list(LENGTH)];
        let code = rng.random_range(0..CODES);
        let ill = age > 54 || (month < 4 && rng.random_bool(0.5));
        let codes = (0..CODES).map(|place| if place == code { "1" } else { "0" }.to_owned()).collect::<Vec<_>>();
        let is_missing = row % 50 == 7;
        let (sex, y) = (["f", "m"][row % 2], ["no", "yes"][usize::from(ill)]);
        let iso = format!("{year}-{month:02}-{day:02}");
        let messy = [
            format!("p{}", row / 2),
            iso.clone(),
            format!("{day}.{month}.{}", year - 40),
            german(income),
            format!("{rate:.1} %").replace('.', ","),
            format!("€{fee}"),
            if is_missing { ["n/a", "Null"][row % 100 / 50].into() } else { age.to_string() },
            format!("[{}]", vector.join(", ")),
            sex.into(),
            y.into(),
        ];
        let clean = [
            format!("p{}", row / 2),
            iso,
            format!("{}-{month:02}-{day:02}", year - 40),
            income.to_string(),
            rate.to_string(),
            fee.to_string(),
            if is_missing { String::new() } else { age.to_string() },
            format!("\"[{}]\"", vector.join(",")),
            sex.into(),
            y.into(),
        ];
        for (table, (fields, sign)) in tables.iter_mut().zip([(messy, ";"), (clean, ",")]) {
            let fields: Vec<String> = fields.into_iter().chain(embedding.clone()).chain(codes.clone()).collect();
            *table += &(fields.join(sign) + "\n");
        }
    }
    tables
}

/// Proposes a configuration, declares it and fits. Returns the AUC and the weights.
fn fitted(here: &Path, name: &str, config: &str) -> (f64, Vec<u8>) {
    fs::write(here.join("c.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
    done(here, &["fit", "c.toml", "--out", name, "-q", "--seed", "1"]);
    let auc = json(here.join(name).join("private/diagnostics.json"))["auc"].as_f64().unwrap();
    (auc, fs::read(here.join(name).join("release/model.safetensors")).unwrap())
}

#[test]
fn a_messy_table_needs_no_hand_and_is_that_of_the_clean_one() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let [messy, clean] = tables();
    fs::write(here.join("messy.csv"), messy).unwrap();
    fs::write(here.join("clean.csv"), clean).unwrap();
    let init = |table: &str| {
        let options =
            ["--label", "y", "--group", "sex", "--unit", "person", "--max-records-per-unit", "2", "--epsilon", "8"];
        done(here, &[&["init", table], &options[..]].concat())
    };
    let config = init("messy.csv");
    for expected in [
        "name = \"admitted\"\nkind = \"date\"\n",
        "format = \"day-first\"\n",
        "decimal = \",\"\nthousands = \".\"\n",
        "decimal = \",\"\nunit = \"%\"\n",
        "# its numbers are written with other signs: `1234,5 %` is read as 1234.5\n",
        "unit = \"€\"\n",
        "name = \"list\"\nkind = \"vector\"\nlength = 3\n",
        "name = \"embedding_*\"  # 40 columns\nkind = \"vector\"\nlength = 40\n",
    ] {
        assert!(config.contains(expected), "{expected}: {}", &config[..6_000]);
    }
    assert_eq!(config.matches("kind = \"boolean\"").count() + config.matches("kind = \"drop\"").count(), CODES);
    let (auc, weights) = fitted(here, "of_messy", &config);
    let plan = done(here, &["fit", "c.toml", "--plan"]);
    for expected in ["admitted (days from 2015-", "embedding_*: vector, norm up to ", "1 each, boolean", "age: number"]
    {
        assert!(plan.contains(expected), "{plan}");
    }
    let expected = fitted(here, "of_clean", &init("clean.csv"));
    assert!(auc > 0.6 && (auc, weights) == expected, "{auc} {}", expected.0);
    // What the program read, it reads again.
    done(here, &["predict", "of_messy", "messy.csv", "--out", "p.csv", "--strict"]);
    let message = refused(here, &["predict", "of_messy", "clean.csv", "--out", "q.csv"]).1;
    assert!(
        message.contains("column `income`: ") && message.contains("is not a number written like 1.234,5"),
        "{message}"
    );
}

/// Texts that no format reads are listed, and are missing where that is declared.
#[test]
fn stray_texts_are_missing_by_declaration_alone() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let mut table = String::from("age,y\n");
    for row in 0..2_000 {
        let age = if row % 150 == 3 {
            ["verweigert", "unbekannt"][row / 150 % 2].to_owned()
        } else {
            (20 + row % 60).to_string()
        };
        table += &format!("{age},{}\n", u8::from(row % 60 > 25));
    }
    fs::write(here.join("t.csv"), &table).unwrap();
    let config = done(here, &["init", "t.csv", "--label", "y", "--epsilon", "8"]);
    let remark = "# 14 of 2,000 values are no numbers, the first `verweigert` in line 5; others are `unbekannt`: correct it, list it";
    assert!(config.contains("kind = \"number\"") && config.contains(remark), "{config}");
    let config = config.replace("from = \"data\"", "public = true");
    fs::write(here.join("c.toml"), &config).unwrap();
    let message = refused(here, &["fit", "c.toml", "--out", "run"]).1;
    assert!(message.contains("t.csv:5: column `age`: `verweigert` is not a finite number"), "{message}");
    let declared = config
        .replace("missing = [", "missing = [\"Unbekannt\", \"VERWEIGERT\", ")
        .replace("bins =", "missing = 20\nbins =");
    fs::write(here.join("c.toml"), declared).unwrap();
    done(here, &["fit", "c.toml", "--out", "run", "-q", "--seed", "1"]);
    assert_eq!(json(here.join("run/private/diagnostics.json"))["table"]["columns"][0]["missing"], 14);
}

/// Quantiles between declared bounds are a release with its share of the budget.
#[test]
fn private_bins_are_paid_for() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut table = String::from("pay,y\n");
    for _ in 0..6_000 {
        let pay = rng.random_range(-5.0..9.0_f64).exp();
        table += &format!("{pay},{}\n", u8::from((0.1..5.0).contains(&pay)));
    }
    fs::write(here.join("t.csv"), &table).unwrap();
    let config = |bins: &str| {
        format!(
            "version = 1\n[table]\nfiles = [\"t.csv\"]\n[label]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n\
             [privacy]\nepsilon = 2\ndelta = 1e-5\n[test]\nfraction = 0.2\n\
             [[column]]\nname = \"pay\"\nkind = \"number\"\nlow = 0\nhigh = 9000\nbins = {bins}\n"
        )
    };
    let [equal, private] =
        ["16", "\"private\""].map(|bins| fitted(here, &format!("run{}", bins.len()), &config(bins)).0);
    assert!(private > 0.9 && private > equal + 0.1, "{private} {equal}");
    let statement = json(here.join("run9/release/statement.json"));
    assert!(statement.to_string().contains("bins of `pay`") && statement["mark"] == "certified", "{statement}");
    done(here, &["verify", "run9"]);
    let plan = done(here, &["fit", "c.toml", "--plan"]);
    assert!(plan.contains("bins of `pay`") && plan.contains("10.0 %"), "{plan}");
    fs::write(here.join("c.toml"), config("\"private\"") + "[unit]\ncolumn = \"id\"\nmax_records = 1\n").unwrap();
    let message = refused(here, &["fit", "c.toml", "--plan", "--no-data"]).1;
    assert!(message.contains("bins = \"private\": not with a [unit]; declare the bins"), "{message}");
}

/// Bounds of dates, and edges between declared ones, are releases like those of numbers; a German
/// number makes bands of groups.
#[test]
fn bounds_of_dates_are_paid_for_and_bands_have_a_format() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut table = String::from("seen;born;income;y\n");
    for _ in 0..8_000 {
        let [year, month, day] = [2022..2025, 1..13, 1..29].map(|range| rng.random_range(range));
        let (born, income) = (rng.random_range(1940..2005), rng.random_range(900.0..90_000.0_f64));
        let ill = (born < 1965) ^ rng.random_bool(0.1);
        table += &format!("{day}.{month}.{year};{born}-{month:02}-{day:02};{};{}\n", german(income), u8::from(ill));
    }
    fs::write(here.join("t.csv"), &table).unwrap();
    let config = done(here, &["init", "t.csv", "--label", "y", "--group", "income", "--epsilon", "4"]);
    assert!(config.contains("# bands of a number\ndecimal = \",\"\nthousands = \".\"\n"), "{config}");
    let lines = config.lines().map(|line| match line {
        line if line.starts_with("edges = ") => "edges = [1500, 45000.5]",
        line if line.starts_with("low = \"2022") => "bounds = \"private\"",
        line if line.starts_with("high = \"202") || line.starts_with("bins = ") => "",
        line if line.starts_with("low = \"19") => "low = \"1900-01-01\"\nbins = \"private\"",
        line if line.starts_with("parts = ") => "parts = [\"month\"]",
        line => line,
    });
    let config = lines.collect::<Vec<_>>().join("\n");
    let (auc, _) = fitted(here, "run", &config);
    assert!(auc > 0.8, "{auc}");
    let statement = json(here.join("run/release/statement.json"));
    let purposes = ["bounds of `seen`", "bins of `born`"];
    assert!(purposes.iter().all(|purpose| statement.to_string().contains(purpose)), "{statement}");
    assert_eq!(statement["mark"], "certified");
    let pipeline = json(here.join("run/release/pipeline.json"));
    let [seen, born] = [0, 1].map(|place| &pipeline["schema"]["columns"][place][1]);
    assert!(["2021-12", "2022-01"].iter().any(|month| seen["low"].as_str().unwrap().starts_with(month)), "{seen}");
    assert!(["2024-12", "2025-01"].iter().any(|month| seen["high"].as_str().unwrap().starts_with(month)), "{seen}");
    assert_eq!(born["low"], "1900-01-01");
    assert!(born["bins"]["edges"][0].as_f64().unwrap() > 40.0 * 365.0, "{born}");
    let groups = json(here.join("run/release/fairness.json"))["groups"].to_string();
    assert!(groups.contains("below 1500") && groups.contains("from 45000.5"), "{groups}");
    done(here, &["verify", "run"]);
    done(here, &["predict", "run", "t.csv", "--out", "p.csv"]);
    let plan = done(here, &["fit", "c.toml", "--plan"]);
    assert!(plan.contains("seen (days): number") && plan.contains("bounds of `seen`"), "{plan}");

    // What the format of the groups cannot be.
    let refusal = |from: &str, to: &str| {
        let changed = fs::read_to_string(here.join("c.toml")).unwrap().replace(from, to);
        fs::write(here.join("d.toml"), changed).unwrap();
        refused(here, &["fit", "d.toml", "--plan"]).1
    };
    let plain = refusal("edges = [1500, 45000.5]\ndecimal = \",\"\nthousands = \".\"\n", "edges = [1500]\n");
    assert!(plain.contains("t.csv:2: column `income`: ") && plain.contains("is not a finite number"), "{plain}");
    let texts = refusal("edges = [1500, 45000.5]\n", "values = [\"a\"]\n");
    assert!(texts.contains("group `income`: decimal, thousands and unit: expected with edges alone"), "{texts}");
    let year = refusal("parts = [\"month\"]", "parts = [\"year\"]");
    assert!(year.contains("column `seen`: parts = \"year\": expected none of \"year\" with bounds"), "{year}");
}
