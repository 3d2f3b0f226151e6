//! What a prediction carries through, and why it answers as it does.

use std::fs;
use std::path::Path;

use dp_table::{StoredAs, TableFiles, TableRow};

use crate::program::{declared, done, refused};

/// The lines of a file of texts, field by field.
fn fields(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Names and types of the columns, and all rows.
fn stored(path: &Path) -> (Vec<(String, StoredAs)>, Vec<Vec<String>>) {
    let mut reader = TableFiles::new(&[path.to_string_lossy()]).unwrap().open().unwrap();
    let columns = reader.columns().iter().enumerate().map(|(at, name)| (name.clone(), reader.stored_as(at))).collect();
    let (mut row, mut rows) = (TableRow::default(), Vec::new());
    while reader.read(&mut row).unwrap() {
        rows.push(row.fields().map(str::to_owned).collect());
    }
    (columns, rows)
}

#[test]
fn columns_are_carried_through_in_their_type() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let table = fields(&here.join("table.csv"));
    done(here, &["predict", "run", "table.csv", "--out", "p.csv", "--keep", "region,age"]);
    let kept = fields(&here.join("p.csv"));
    assert_eq!(kept[0], ["row", "region", "age", "prediction", "p_no", "p_yes"]);
    assert_eq!(kept.len(), table.len());
    let place = |name: &str| table[0].iter().position(|column| column == name).unwrap();
    for (kept, row) in kept.iter().zip(&table).skip(1) {
        assert_eq!(kept[1..3], [row[place("region")].clone(), row[place("age")].clone()]);
    }

    // Columns of a Parquet table keep their types: `row` is a whole number, `p_no` is not.
    done(here, &["predict", "run", "table.csv", "--out", "p.parquet", "--keep", "age,region,income,debt"]);
    let (columns, _) = stored(&here.join("p.parquet"));
    assert_eq!(columns[..2], [("row".into(), StoredAs::Integer), ("age".into(), StoredAs::Text)]);
    let config = done(here, &["init", "p.parquet", "--label", "region", "--accept-uncovered"]);
    fs::write(here.join("c.toml"), config).unwrap();
    done(here, &["fit", "c.toml", "--out", "again", "--seed", "1", "-q"]);
    let keep = ["predict", "again", "p.parquet", "--keep", "row,p_no,region", "--out"];
    let (code, message) = refused(here, &[&keep[..], &["q.parquet"]].concat());
    assert!(code == 2 && message.contains("--keep = row: expected columns that are given once"), "{code} {message}");
    done(here, &["predict", "again", "p.parquet", "--keep", "p_no", "--keep", "age", "--out", "q.parquet"]);
    let (columns, rows) = stored(&here.join("q.parquet"));
    assert_eq!(columns[1..3], [("p_no".into(), StoredAs::Number), ("age".into(), StoredAs::Text)]);
    let (_, before) = stored(&here.join("p.parquet"));
    assert_eq!(rows.len(), 2_500);
    let p_no = |row: &[String], at: usize| row[at].parse::<f64>().unwrap().to_bits();
    assert!(rows.iter().zip(&before).all(|(row, before)| p_no(row, 1) == p_no(before, 6)));

    for (column, code, expected) in
        [("agee", 2, "did you mean `age`?"), ("age,age", 2, "--keep = age: expected columns that are given once")]
    {
        let (found, message) = refused(here, &["predict", "run", "table.csv", "--out", "r.csv", "--keep", column]);
        assert!(found == code && message.contains(expected), "{found} {message}");
        assert!(!here.join("r.csv").exists());
    }
}

/// The reasons of all columns and the intercept are the whole answer, and the largest come first.
#[test]
fn reasons_add_up_to_the_answer() {
    let folder = declared(4_000, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let (code, message) = refused(here, &["predict", "run", "table.csv", "--out", "p.csv", "--explain", "9"]);
    assert!(code == 2 && message.contains("--explain = 9: expected at most 8"), "{code} {message}");
    done(here, &["predict", "run", "table.csv", "--out", "p.csv", "--explain", "8"]);
    let rows = fields(&here.join("p.csv"));
    assert_eq!(rows[0][..5], ["row", "prediction", "p_no", "p_yes", "reason_1"]);
    assert_eq!(rows[0].len(), 4 + 16);
    let mut intercepts = Vec::new();
    for row in &rows[1..] {
        let number = |at: usize| row[at].parse::<f64>().unwrap();
        let answer = if row[1] == "no" { number(2) } else { number(3) };
        let changes: Vec<f64> = (0..8).map(|k| number(5 + 2 * k)).collect();
        assert!(changes.windows(2).all(|pair| pair[0].abs() >= pair[1].abs()), "{changes:?}");
        let log_odds = (answer / (1.0 - answer)).ln() - changes.iter().sum::<f64>();
        intercepts.push(if row[1] == "no" { -log_odds } else { log_odds });
    }
    assert!(intercepts.iter().all(|intercept| (intercept - intercepts[0]).abs() < 1e-9), "{:?}", &intercepts[..9]);

    let network = "[model]\nkind = \"mlp\"";
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    assert!(config.contains("[model]\nkind = \"auto\""), "{config}");
    fs::write(here.join("mlp.toml"), config.replace("[model]\nkind = \"auto\"", network)).unwrap();
    done(here, &["fit", "mlp.toml", "--out", "mlp", "--seed", "1", "-q"]);
    let (code, message) = refused(here, &["predict", "mlp", "table.csv", "--out", "m.csv", "--explain", "1"]);
    assert!(code == 2 && message.contains("--explain = 1: expected an additive model"), "{code} {message}");
}

/// Of three classes a reason is the answer's score less the mean of the others', and a row without
/// an answer has none.
#[test]
fn reasons_of_many_classes() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let class = |i: usize| ["low", "middle", "high"][(i * 7 % 90) / 30];
    let row = |i: usize| format!("{},{},{}\n", i * 7 % 90, ["a", "b"][i % 2], class(i));
    let rows: String = (0..3_000).map(row).collect();
    fs::write(here.join("t.csv"), format!("x,town,y\n{rows}")).unwrap();
    let config = done(here, &["init", "t.csv", "--label", "y", "--epsilon", "8"]);
    let config = config.replace("from = \"data\"", "public = true").replace("\"refuse\"", "\"drop\"");
    fs::write(here.join("c.toml"), config).unwrap();
    done(here, &["fit", "c.toml", "--out", "run", "--seed", "1", "-q"]);
    fs::write(here.join("new.csv"), "town,x\na,5\nb,much\nb,85\n").unwrap();
    done(here, &["predict", "run", "new.csv", "--out", "p.csv", "--explain", "1", "--keep", "x"]);
    let found = fields(&here.join("p.csv"));
    assert_eq!(found[0], ["row", "x", "prediction", "p_high", "p_low", "p_middle", "reason_1", "change_1"]);
    assert_eq!(found[1][..3], ["1", "5", "low"]);
    assert_eq!(found[2], ["2", "much", "", "", "", "", "", ""]);
    assert_eq!(found[3][..3], ["3", "85", "high"]);
    for row in [&found[1], &found[3]] {
        assert!(row[6] == "x" && row[7].parse::<f64>().unwrap() > 1.0, "{row:?}");
    }
}
