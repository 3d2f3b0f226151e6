//! What the program makes of values in other spellings, and of those that it does not know.

use std::fs;
use std::path::Path;

use crate::program::{done, json, program, refused, text};

/// A table whose label follows from `code` and `age`, with these spellings of the three codes and
/// two truth values, and ages times a factor.
fn table(codes: [&str; 3], truths: [&str; 2], factor: usize) -> String {
    let mut rows = String::from("age,code,flag,job,y\n");
    for row in 0..1_500 {
        let (age, code) = (18 + (row * 7) % 63, row % 3);
        let flag = usize::from(row % 2 == 0);
        let ill = usize::from(age > 50) + usize::from(code == 2) + usize::from(row % 11 == 0) >= 2;
        let job = ["clerk", "cook"][row % 5 % 2];
        rows += &format!("{},{},{},{job},{}\n", age * factor, codes[code], truths[flag], u8::from(ill));
    }
    rows
}

/// A folder with `table.csv` and a run on it.
fn fitted(bad_rows: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("table.csv"), table(["1", "2", "3"], ["false", "true"], 1)).unwrap();
    let config = format!(
        "version = 1\n[table]\nfiles = [\"table.csv\"]\nbad_rows = \"{bad_rows}\"\n\
         [label]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n[privacy]\nepsilon = 8\ndelta = 1e-5\n\
         [[column]]\nname = \"age\"\nkind = \"number\"\nlow = 18\nhigh = 80\n\
         [[column]]\nname = \"code\"\nkind = \"category\"\nvalues = [\"1\", \"2\", \"3\"]\nother = true\n\
         [[column]]\nname = \"flag\"\nkind = \"category\"\nvalues = [\"false\", \"true\"]\n\
         [[column]]\nname = \"job\"\nkind = \"category\"\nvalues = [\"clerk\", \"cook\"]\nother = true\n"
    );
    fs::write(here.join("c.toml"), config).unwrap();
    done(here, &["fit", "c.toml", "--out", "run", "-q", "--seed", "1"]);
    folder
}

/// Predicts a table; returns what is written, and what is said on standard error.
fn predicted(here: &Path, contents: &str) -> (String, String) {
    fs::write(here.join("asked.csv"), contents).unwrap();
    let output = program(here, &["predict", "run", "asked.csv", "--out", "p.csv"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    (fs::read_to_string(here.join("p.csv")).unwrap(), text(&output.stderr))
}

#[test]
fn a_table_is_predicted_alike_in_every_spelling() {
    let folder = fitted("refuse");
    let here = folder.path();
    let expected = predicted(here, &table(["1", "2", "3"], ["false", "true"], 1));
    assert_eq!(expected.1, "");
    for (codes, truths) in [
        (["1.0", "2.0", "3.0"], ["False", "True"]),
        (["+1", "2e0", "3."], ["FALSE", "TRUE"]),
        (["1.00", "20e-1", "0.3e1"], ["0", "1"]),
        (["1", "2", "3"], ["0.0", "1.0"]),
    ] {
        assert_eq!(predicted(here, &table(codes, truths, 1)), expected, "{codes:?} {truths:?}");
    }
    // A code with a zero before it is another one.
    let (_, said) = predicted(here, &table(["01", "02", "03"], ["false", "true"], 1));
    assert_eq!(said, "column code: 1,500 of 1,500 values are none of those declared\n");
}

#[test]
fn what_a_model_does_not_know_is_said_counted_and_refused_if_asked() {
    let folder = fitted("refuse");
    let here = folder.path();
    let asked = table(["1", "2", "3"], ["false", "true"], 12).replace("cook", "Cook");
    let (_, said) = predicted(here, &asked);
    let n_cooks = asked.matches("Cook").count();
    let expected = format!(
        "column age: 1,500 of 1,500 beyond [18, 80], taken as the nearer end\n\
         column job: {n_cooks} of 1,500 values are none of those declared\n"
    );
    assert_eq!(said, expected);
    let output = program(here, &["predict", "run", "asked.csv", "--out", "p.csv", "--json"]);
    assert_eq!(text(&output.stderr), expected);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["rows"], &answer["answered"]), (&1_500.into(), &1_500.into()));
    assert_eq!(answer["table"]["columns"][0]["clamped"], 1_500);
    assert_eq!(answer["table"]["columns"][3]["other"], n_cooks);
    assert_eq!(answer["remarks"].as_array().unwrap().len(), 2);

    let (code, message) = refused(here, &["predict", "run", "asked.csv", "--out", "q.csv", "--strict"]);
    assert!(code == 3 && message.contains("1,500 of 1,500 beyond [18, 80]"), "{code} {message}");
    assert!(!here.join("q.csv").exists());
    done(here, &["predict", "run", "table.csv", "--out", "q.csv", "--strict"]);
}

/// In private: the release says nothing of it.
#[test]
fn a_fit_says_the_same_of_its_table_in_private() {
    let folder = fitted("refuse");
    let here = folder.path();
    fs::write(here.join("table.csv"), table(["1", "2", "4"], ["false", "true"], 2)).unwrap();
    fs::write(here.join("other.csv"), table(["1", "2", "5"], ["false", "true"], 1)).unwrap();
    let config = fs::read_to_string(here.join("c.toml")).unwrap();
    fs::write(here.join("c.toml"), config + "[test]\nfiles = [\"other.csv\"]\n").unwrap();
    let summary = done(here, &["fit", "c.toml", "--out", "again", "-q"]);
    let diagnostics = json(here.join("again/private/diagnostics.json"));
    let remarks: Vec<&str> =
        diagnostics["remarks"].as_array().unwrap().iter().map(|remark| remark.as_str().unwrap()).collect();
    let found = "500 of 1,500 values are none of those declared";
    assert!(remarks.contains(&&*format!("column code: {found}")), "{remarks:?}");
    assert!(remarks.contains(&&*format!("test table: column code: {found}")), "{remarks:?}");
    assert_eq!(diagnostics["test_table"]["columns"][1]["other"], 500);
    assert!(fs::read_to_string(here.join("again/private/log.txt")).unwrap().contains(found));
    assert!(!summary.contains("none of those"), "{summary}");
    for file in fs::read_dir(here.join("again/release")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("none of those"));
    }
}

#[test]
fn a_row_that_cannot_be_read_has_an_empty_answer_where_such_rows_are_dropped() {
    let rows = table(["1", "2", "3"], ["false", "true"], 1);
    let mut lines: Vec<&str> = rows.lines().collect();
    let broken = [(3, ",1,true,cook,1"), (5, "old,1,true,cook,1"), (7, "30,1,true"), (9, "30,1,maybe,cook,1")];
    for (line, with) in broken {
        lines[line] = with;
    }
    let asked = lines.join("\n") + "\n";

    let folder = fitted("refuse");
    fs::write(folder.path().join("asked.csv"), &asked).unwrap();
    let (code, message) = refused(folder.path(), &["predict", "run", "asked.csv", "--out", "p.csv"]);
    assert!(code == 1 && message.contains("asked.csv:4: column `age`: the value is missing"), "{code} {message}");
    assert!(!folder.path().join("p.csv").exists());

    let folder = fitted("drop");
    let here = folder.path();
    let (answers, said) = predicted(here, &asked);
    let (whole, _) = predicted(here, &rows);
    for (line, (found, expected)) in answers.lines().zip(whole.lines()).enumerate() {
        let is_broken = broken.iter().any(|(broken, _)| *broken == line);
        assert_eq!(found, if is_broken { format!("{line},,,") } else { expected.to_owned() });
    }
    assert_eq!(answers.lines().count(), 1_501);
    for expected in [
        "column age: 2 of 1,500 values cannot be read, or are missing, and nothing is declared for that\n",
        "column flag: 1 of 1,500 values cannot be read",
        "4 of 1,500 rows do not fit; the first: asked.csv:4: column `age`: the value is missing",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    fs::write(here.join("asked.csv"), &asked).unwrap();
    done(here, &["predict", "run", "asked.csv", "--out", "p.parquet"]);
    let parquet = here.join("p.parquet");
    let files = dp_table::TableFiles::new(&[parquet.to_str().unwrap()]).unwrap();
    let (mut reader, mut row) = (files.open().unwrap(), dp_table::TableRow::default());
    for line in answers.lines().skip(1) {
        assert!(reader.read(&mut row).unwrap());
        assert_eq!(row.fields().collect::<Vec<_>>().join(","), line);
    }
    assert_eq!(refused(here, &["predict", "run", "asked.csv", "--out", "q.csv", "--strict"]).0, 3);
}
