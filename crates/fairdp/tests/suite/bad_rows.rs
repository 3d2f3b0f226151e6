//! Numbers of records are public: no defect inside a record changes them.

use std::fs;
use std::path::Path;

use dp_table::Example;

use crate::program::{done, json, program, text};

/// A table of patients with three records each, as lines without header, and a configuration that
/// drops rows which do not fit.
fn prepared(here: &Path, unit: &[&str]) -> (String, Vec<String>) {
    let mut csv = Vec::new();
    Example { rows: 2_400, ..Example::default() }.write(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let mut lines = csv.lines();
    let header = format!("patient_id,{}", lines.next().unwrap());
    let rows: Vec<String> = lines.enumerate().map(|(row, line)| format!("p{},{line}", row / 3)).collect();
    fs::write(here.join("table.csv"), format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let config = done(here, &[&["init", "table.csv", "--label", "outcome"], unit].concat());
    let config = config.replace("from = \"data\"", "public = true");
    fs::write(here.join("fairdp.toml"), config.replace("bad_rows = \"refuse\"", "bad_rows = \"drop\"")).unwrap();
    (header, rows)
}

/// The defects of `dp-table`'s test of bad rows, by the program: each changes one row, and the
/// statement's numbers are the same, or there is no release.
#[test]
fn no_defect_in_a_record_shows_in_the_numbers_of_records() {
    for unit in [&["--unit", "patient_id"][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let (header, rows) = prepared(here, unit);
        let fit = |line: &[u8]| {
            let _ = fs::remove_dir_all(here.join("run"));
            let (before, after) = (rows[..700].join("\n"), rows[701..].join("\n"));
            let table = [format!("{header}\n{before}\n").as_bytes(), line, format!("\n{after}\n").as_bytes()].concat();
            fs::write(here.join("table.csv"), table).unwrap();
            let output = program(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
            assert_eq!(output.status.success(), here.join("run").exists());
            if output.status.success() {
                Ok(json(here.join("run/release/statement.json"))["records"].clone())
            } else {
                Err(text(&output.stderr))
            }
        };
        let whole = fit(rows[700].as_bytes()).unwrap();
        let (patient, rest) = rows[700].split_once(',').unwrap();
        let mut n_released = 0;
        for line in [
            format!("{patient},x{rest}").into_bytes(),
            format!("{patient},\0{rest}").into_bytes(),
            [patient.as_bytes(), b",\xff", rest.as_bytes()].concat(),
            [b"\xff,", rest.as_bytes()].concat(),
            format!("{patient},{rest},").into_bytes(),
            format!("{patient},{}", &rest[..rest.rfind(',').unwrap()]).into_bytes(),
            format!(",{rest}").into_bytes(),
            format!("{patient}\0,{rest}").into_bytes(),
            format!("{patient},\"{rest}").into_bytes(),
            patient.as_bytes().to_vec(),
            b"".to_vec(),
            b"\r".to_vec(),
        ] {
            match fit(&line) {
                Ok(records) => {
                    n_released += 1;
                    assert_eq!(records, whole, "{:?}", String::from_utf8_lossy(&line));
                }
                Err(message) => assert!(message.contains("table.csv:702: "), "{message}"),
            }
        }
        assert_eq!(n_released, if unit.is_empty() { 11 } else { 3 }, "{unit:?}");
    }
}

/// What no ε covers is said where a recipient reads.
#[test]
fn a_statement_says_what_a_release_tells_by_being_there() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let statement = |unit: &[&str], bad_rows: &str| {
        prepared(here, unit);
        let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
        fs::write(here.join("fairdp.toml"), config.replace("bad_rows = \"drop\"", bad_rows)).unwrap();
        let _ = fs::remove_dir_all(here.join("run"));
        done(here, &["fit", "fairdp.toml", "--out", "run", "-q"]);
        fs::read_to_string(here.join("run/release/statement.md")).unwrap()
    };
    let unit = ["--unit", "patient_id"];
    let text = statement(&[], "bad_rows = \"refuse\"");
    assert!(text.contains("that this release exists: it says that every record fitted"), "{text}");
    let text = statement(&[], "bad_rows = \"drop\"");
    assert!(text.contains("that this release exists: it says that the table could be read to its end"), "{text}");
    let text = statement(&unit, "bad_rows = \"drop\"");
    assert!(text.contains("to its end, and the unit of every record"), "{text}");
}
