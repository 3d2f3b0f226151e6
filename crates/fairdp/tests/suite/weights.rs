//! Records that count by a weight.

use std::fs;
use std::path::Path;

use crate::program::{done, json, refused};

/// Two groups of answers to one question: in the half with the larger weight `x` means yes, in the
/// other one it means no.
fn survey(here: &Path, weights: [&str; 2]) -> String {
    let row = |i: usize| {
        let (is_heavy, x) = (i.is_multiple_of(2), (i / 2) % 100);
        let yes = (x >= 50) == is_heavy;
        format!("{x},{},{}\n", weights[usize::from(!is_heavy)], if yes { "yes" } else { "no" })
    };
    fs::write(here.join("t.csv"), format!("x,w,y\n{}", (0..8_000).map(row).collect::<String>())).unwrap();
    let config = done(here, &["init", "t.csv", "--label", "y", "--weight", "w", "--epsilon", "4"]);
    config.replace("from = \"data\"", "public = true")
}

/// What a model answers where `x` is large.
fn answer(here: &Path, out: &str) -> f64 {
    fs::write(here.join("new.csv"), "x\n90\n").unwrap();
    done(here, &["predict", out, "new.csv", "--out", "p.csv"]);
    let text = fs::read_to_string(here.join("p.csv")).unwrap();
    text.lines().nth(1).unwrap().rsplit(',').next().unwrap().parse().unwrap()
}

#[test]
fn the_heavier_half_decides() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (weights, expected) in [(["4", "1"], 0.8), (["1", "4"], 0.2), (["3", "3"], 0.5)] {
        let config = survey(here, weights);
        let high = weights[0].max(weights[1]);
        assert!(config.contains(&format!("[weight]\ncolumn = \"w\"\nhigh = {high}")), "{config}");
        fs::write(here.join("c.toml"), config).unwrap();
        done(here, &["fit", "c.toml", "--out", high, "--seed", "1", "-q"]);
        let found = answer(here, high);
        assert!((found - expected).abs() < 0.06, "{weights:?}: {found}");
        done(here, &["verify", high]);
        let statement = json(here.join(high).join("release/statement.json"));
        assert!(statement["method"].as_str().unwrap().contains(&format!("by its weight in `w`, at most {high}")));
        assert_eq!(statement["mark"], "certified");
        fs::remove_dir_all(here.join(high)).unwrap();
    }
}

/// A bound is a constant like any other: declared, or named as read; larger weights are set to it.
#[test]
fn the_largest_weight_is_declared() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let config = survey(here, ["4", "1"]);
    let with = |from: &str, to: &str| {
        assert!(config.contains(from), "{from}");
        fs::write(here.join("c.toml"), config.replacen(from, to, 1)).unwrap();
    };
    with("high = 4.0  # larger weights are set to it\npublic = true", "high = 4\nfrom = \"data\"");
    let (code, message) = refused(here, &["fit", "c.toml", "--out", "run"]);
    assert!(code == 3 && message.contains("weight `w`: at most 4"), "{code} {message}");
    with("high = 4.0", "high = 1");
    done(here, &["fit", "c.toml", "--out", "run", "--seed", "1", "-q"]);
    assert!((answer(here, "run") - 0.5).abs() < 0.06);
    let remarks = json(here.join("run/private/diagnostics.json"))["remarks"].to_string();
    assert!(remarks.contains("weight w: 4,000 of 8,000 beyond 1, taken as 1"), "{remarks}");

    with("high = 4.0", "high = 0");
    let (code, message) = refused(here, &["fit", "c.toml", "--plan"]);
    assert!(code == 2 && message.contains("largest weight 0"), "{code} {message}");
    with("name = \"auto\"", "name = \"dpsgd\"");
    let (code, message) = refused(here, &["fit", "c.toml", "--plan"]);
    assert!(code == 2 && message.contains("weight: expected with the additive model"), "{code} {message}");
    for (column, expected) in [("y", "--weight = y: expected another column"), ("z", "z")] {
        let (code, message) = refused(here, &["init", "t.csv", "--label", "y", "--weight", column]);
        assert!(code == 2 && message.contains(expected), "{code} {message}");
    }
    fs::write(here.join("n.csv"), "x,w,y\n1,-1,a\n2,1,b\n").unwrap();
    let (code, message) = refused(here, &["init", "n.csv", "--label", "y", "--weight", "w"]);
    assert!(code == 2 && message.contains("--weight = w: expected a column of numbers of at least 0"), "{message}");
}
