//! Labels that are numbers, from a table to a release.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::program::{done, json, killed_and_resumed, refused};

/// Rents: by size and kind, in one part of the town higher; a rent and its group in every row.
fn table(rows: usize) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut table = "size,kind,part,rent\n".to_owned();
    for _ in 0..rows {
        let size: f64 = rng.random_range(20.0..120.0);
        let (kind, part) = (["flat", "house", "room"][rng.random_range(0..3)], usize::from(rng.random_bool(0.25)));
        let of_kind = match kind {
            "house" => 250.0,
            "room" => -150.0,
            _ => 0.0,
        };
        let rent =
            200.0 + 8.0 * size + 0.02 * size * size + of_kind + 150.0 * part as f64 + rng.random_range(-150.0..150.0);
        writeln!(table, "{size:.1},{kind},{},{rent:.0}", ["east", "west"][part]).unwrap();
    }
    table
}

fn config(epsilon: f64, more: &str) -> String {
    format!(
        "version = 1\n{more}\n[table]\nfiles = [\"table.csv\"]\n[label]\ncolumn = \"rent\"\nkind = \"number\"\nlow = 0\n\
         high = 2000\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n[test]\nfraction = 0.25\n\
         [[group]]\ncolumn = \"part\"\nvalues = [\"east\", \"west\"]\n\
         [[column]]\nname = \"size\"\nkind = \"number\"\nlow = 20\nhigh = 120\nbins = 8\n\
         [[column]]\nname = \"kind\"\nkind = \"category\"\nvalues = [\"flat\", \"house\", \"room\"]\n"
    )
}

fn folder(rows: usize, config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("table.csv"), table(rows)).unwrap();
    fs::write(folder.path().join("c.toml"), config).unwrap();
    folder
}

/// A figure's value and whether its interval holds another one.
fn figure(figures: &serde_json::Value, name: &str) -> (f64, [f64; 2]) {
    let number = |key: &str| figures[name][key].as_f64().unwrap();
    (number("value"), [number("low"), number("high")])
}

/// Plan, ledger, statement and figures; threads change no bit, nor does a kill; prediction, reasons and card.
#[test]
fn a_number_is_one_fit() {
    let folder = folder(12_000, &config(1.0, ""));
    let here = folder.path();
    let plan = done(here, &["fit", "c.toml", "--plan"]);
    for expected in ["mean and spread of the label", "mean squares of the features", "gradients", "errors by group"] {
        assert!(plan.contains(expected), "{expected}: {plan}");
    }
    let model = |out: &str| fs::read(here.join(out).join("release/model.safetensors")).unwrap();
    for (out, threads) in [("a", "1"), ("b", "2")] {
        let said =
            done(here, &["fit", "c.toml", "--out", out, "--threads", threads, "--seed", "1", "-q", "--reference"]);
        assert!(said.contains("mean absolute error") && said.contains("mean error: largest difference"), "{said}");
    }
    assert!(model("a") == model("b"));
    done(here, &["verify", "a"]);
    let statement = json(here.join("a/release/statement.json"));
    let epsilon = statement["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 1.0 && epsilon > 0.999, "{epsilon}");
    assert!(statement["events"].to_string().contains("mean and spread of the label"), "{statement}");
    let diagnostics = json(here.join("a/private/diagnostics.json"));
    let [private, reference] =
        [&diagnostics, &diagnostics["reference"]].map(|figures| figures["numbers"]["r2"].as_f64().unwrap());
    assert!(private > 0.85 && reference > private - 0.005 && private > 0.95 * reference, "{private} {reference}");
    let numbers = &json(here.join("a/release/fairness.json"))["numbers"];
    for (name, of) in [("overall", &diagnostics["numbers"]), ("groups", &diagnostics["numbers_by_group"]["west"])] {
        let figures = if name == "overall" { &numbers[name] } else { &numbers[name][1] };
        for name in ["r2", "mean_absolute_error", "root_mean_squared_error", "mean_error"] {
            let ((value, [low, high]), exact) = (figure(figures, name), of[name].as_f64().unwrap());
            assert!(low <= exact && exact <= high && low <= value && value <= high, "{name}: {figures} {exact}");
        }
    }
    // The part of the town is no input: predictions are too low in the west.
    let (west, [_, high]) = figure(&numbers["groups"][1], "mean_error");
    assert!(west < -60.0 && high < 0.0, "{numbers}");
    let (difference, [low, _]) = figure(numbers, "mean_error_difference");
    assert!((difference - 150.0).abs() < 60.0 && low > 0.0, "{numbers}");
    let card = fs::read_to_string(here.join("a/release/card.html")).unwrap();
    assert!(card.contains("a number from 0 to 2000") && card.contains("the predicted number"), "{card}");

    done(here, &["predict", "a", "table.csv", "--out", "p.csv", "--explain", "2", "--keep", "rent"]);
    let text = fs::read_to_string(here.join("p.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap(), "row,rent,prediction,reason_1,change_1,reason_2,change_2");
    let (mut errors, mut n) = (0.0, 0.0);
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let [rent, prediction] = [fields[1], fields[2]].map(|field| field.parse::<f64>().unwrap());
        assert!((0.0..=2_000.0).contains(&prediction), "{line}");
        errors += (rent - prediction).abs();
        n += 1.0;
    }
    assert!(n == 12_000.0 && errors / n < 130.0, "{}", errors / n);
    let report = done(here, &["report", "a", "--json"]);
    assert!(report.contains("cannot_be_told_from_the_largest_error"), "{report}");
    let card = done(here, &["export", "model-card", "a"]);
    assert!(card.contains("tabular-regression") && card.contains("| group | R² | mean absolute error |"), "{card}");
    assert!(card.contains("\n| (all) | 0."), "{card}");
    let (code, message) = refused(here, &["fairness", "a", "--mode", "worst-group", "--out", "x"]);
    assert!(code != 0 && message.contains("has no scores of training records"), "{code} {message}");

    killed_and_resumed(here, &["fit", "c.toml", "--out", "killed", "--seed", "1", "-q"], "killed");
    assert!(model("a") == model("killed"));
}

/// What the mean error of a group is, is taken off its predictions: of records that were not seen it is then nearly
/// gone, and what cannot be told from 0 stays.
#[test]
fn a_mean_error_is_taken_off() {
    let folder = folder(12_000, &config(4.0, "fairness = \"mean-error\""));
    let here = folder.path();
    let said = done(here, &["fit", "c.toml", "--out", "a", "--seed", "1", "-q"]);
    assert!(said.contains("west: -") && said.contains("without what is taken off: R² 0."), "{said}");
    done(here, &["verify", "a"]);
    let numbers = &json(here.join("a/release/fairness.json"))["numbers"];
    let west = &numbers["corrections"]["groups"][1];
    let (before, subtracted) = (figure(&west["before"], "mean_error").0, west["subtracted"].as_f64().unwrap());
    assert!(before < -60.0 && before < subtracted && subtracted < 0.8 * before, "{west}");
    let (after, [low, high]) = figure(&numbers["groups"][1], "mean_error");
    assert!((before - subtracted - after).abs() < 1e-6 && low < 0.0 && high > 0.0, "{numbers}");
    let r2 = |figures: &serde_json::Value| figure(figures, "r2").0;
    assert!(r2(&numbers["overall"]) > r2(&numbers["corrections"]["before"]), "{numbers}");
    let statement = json(here.join("a/release/statement.json")).to_string();
    assert!(statement.contains("the released mean error of each group is taken off its predictions"), "{statement}");
    let exact = &json(here.join("a/private/diagnostics.json"))["numbers_by_group"]["west"]["mean_error"];
    assert!(exact.as_f64().unwrap().abs() < 40.0, "{exact}");
    // The group is then asked for.
    let none = table(300).replace("part", "town");
    fs::write(here.join("new.csv"), none).unwrap();
    let (code, message) = refused(here, &["predict", "a", "new.csv", "--out", "p.csv"]);
    assert!(code != 0 && message.contains("no column `part`"), "{code} {message}");
    done(here, &["predict", "a", "table.csv", "--out", "p.csv", "--keep", "rent,part"]);

    // Parts of the town do not matter here.
    let same = table(12_000).replace("east", "x").replace("west", "x");
    let lines = same.lines().enumerate().map(|(row, line)| line.replace(",x,", [",east,", ",west,"][row % 2]));
    fs::write(here.join("table.csv"), lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    let said = done(here, &["fit", "c.toml", "--out", "b", "--seed", "1", "-q"]);
    assert!(said.contains("nothing is taken off: its mean error,") && said.contains("cannot be told from 0"), "{said}");
    let numbers = &json(here.join("b/release/fairness.json"))["numbers"];
    let groups = numbers["corrections"]["groups"].as_array().unwrap();
    assert!(groups.iter().any(|group| group["subtracted"] == 0.0 && !group["reason"].is_null()), "{numbers}");
}

/// A release without groups, without a test, by conditioned training, with units, with weights.
#[test]
fn a_number_has_what_classes_have() {
    let run = |here: &Path, out: &str| {
        done(here, &["fit", "c.toml", "--out", out, "--seed", "2", "-q"]);
        done(here, &["verify", out]);
        json(here.join(out).join("private/diagnostics.json"))["numbers"]["r2"].as_f64().unwrap()
    };
    let conditioned = folder(6_000, &config(2.0, "").replace("[test]", "[method]\nname = \"conditioned\"\n[test]"));
    let found = run(conditioned.path(), "run");
    assert!(found > 0.8, "{found}");
    let untested = folder(3_000, &config(2.0, "").replace("fraction = 0.25", "fraction = 0"));
    assert!(run(untested.path(), "run") > 0.8);
    assert_eq!(json(untested.path().join("run/release/fairness.json"))["measured"], false);
    let mut lines: Vec<String> = table(6_000).lines().map(str::to_owned).collect();
    for (row, line) in lines.iter_mut().enumerate() {
        *line = if row == 0 { format!("{line},who,w") } else { format!("{line},p{},{}", row / 2, 1 + row % 2) };
    }
    // The mean of two rows that have nothing to do with each other says half of the last one's number.
    let units = [
        ("max_records = 2", 0.6),
        ("rows = \"mean\"", 0.3),
        ("rows = \"mean\"\ntarget = \"maximum\"", 0.3),
        ("rows = \"mean\"\ntarget = \"mean\"", 0.7),
    ];
    for (unit, least) in units {
        let weight = "[weight]\ncolumn = \"w\"\nhigh = 2\n";
        let config = config(4.0, "").replace("[test]", &format!("[unit]\ncolumn = \"who\"\n{unit}\n{weight}[test]"));
        let folder = folder(1, &config);
        fs::write(folder.path().join("table.csv"), lines.join("\n") + "\n").unwrap();
        let found = run(folder.path(), "run");
        assert!(found > least, "{unit}: {found}");
    }
}

/// `init` sees a number and says how to have classes; what is read from the records is named.
#[test]
fn a_number_is_proposed_and_declared() {
    let folder = folder(400, "");
    let here = folder.path();
    let text = done(here, &["init", "table.csv", "--label", "rent", "--group", "part"]);
    for expected in ["kind = \"number\"  # for classes:", "[label]\ncolumn = \"rent\"", "bins = 1  # a straight line"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("decision ="), "{text}");
    fs::write(here.join("c.toml"), &text).unwrap();
    let (code, message) = refused(here, &["fit", "c.toml", "--out", "run"]);
    assert!(code == 3 && message.contains("label `rent`: a number, bounds"), "{code} {message}");
    let text = done(here, &["init", "table.csv", "--label", "kind"]);
    assert!(text.contains("classes = [\"flat\", \"house\", \"room\"]"), "{text}");
}

/// What numbers do not have is refused by its name; a label beyond its range is clamped, and said.
#[test]
fn refusals_explain() {
    let refusal = |from: &str, to: &str| {
        let config = config(1.0, "");
        assert!(config.contains(from), "{from}");
        let folder = folder(300, &config.replacen(from, to, 1));
        let (code, message) = refused(folder.path(), &["fit", "c.toml", "--plan"]);
        assert_eq!(code, 2, "{message}");
        message
    };
    let test = "[test]";
    for (from, to, expected) in [
        (
            "version = 1",
            "version = 1\nfairness = \"equalized-odds\"",
            "fairness = \"equalized-odds\": expected \"none\"",
        ),
        (
            test,
            "[model]\nkind = \"mlp\"\n[test]",
            "model.kind = \"mlp\": expected \"additive\" where the label is a number",
        ),
        (test, "[model]\ndecision = \"accuracy\"\n[test]", "model.decision: expected none where the label is a number"),
        (test, "[model]\nobjective = \"equal-classes\"\n[test]", "model.objective = \"equal-classes\""),
        (test, "[method]\nname = \"dpsgd\"\n[test]", "method.name = \"dpsgd\": expected \"auto\" or \"conditioned\""),
        (test, "[method]\nname = \"conditioned-fair\"\n[test]", "method.name = \"conditioned-fair\": expected"),
        (test, "[method]\nname = \"dpsgg\"\n[test]", "did you mean `dpsgd`?"),
        (
            test,
            "[tuning]\nmean_trials = 2\n[[tuning.candidate]]\n[[tuning.candidate]]\nmethod = { name = \"conditioned\" }\n[test]",
            "tuning: expected none where the label is a number",
        ),
        (
            test,
            "[unit]\ncolumn = \"who\"\nrows = \"mean\"\ntarget = \"each-class\"\n[test]",
            "unit.target: expected \"last\", \"maximum\" or \"mean\" where the label is a number",
        ),
        ("low = 0\n", "", "label.low = none: expected a number"),
        ("low = 0\n", "low = 3000\n", "bounds 3000 and 2000: expected finite numbers, the lower first"),
        ("kind = \"number\"\nlow = 0", "low = 0", "label.low: expected with kind = \"number\" alone"),
        ("low = 0\n", "low = 0\nclasses = [\"a\"]\n", "label.classes: expected none with kind = \"number\""),
    ] {
        let message = refusal(from, to);
        assert!(message.contains(expected), "{to}: {message}");
    }
    let folder = folder(3_000, &config(4.0, "").replace("high = 2000", "high = 700"));
    let said = done(folder.path(), &["fit", "c.toml", "--out", "run", "--seed", "1"]);
    let remarks = json(folder.path().join("run/private/diagnostics.json"))["remarks"].to_string();
    assert!(
        remarks.contains("label rent: ") && remarks.contains("beyond [0, 700], taken as the nearer end"),
        "{remarks}"
    );
    assert!(said.contains("numbers within [0, 700]; predictions beyond are set to the nearer end"), "{said}");
}
