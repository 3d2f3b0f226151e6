//! A defect in one record moves no other record, nor its own, to another unit or number: the public
//! numbers would tell of it.

use std::fs;

use crate::hook;
use crate::{
    BadRows, Bins, Column, EncodedFile, EncodedTable, Label, NumberFormat, Schema, TableCounts, TableError, TableFiles,
};

const HEADER: &str = "age,patient,job,ill\n";
const N_ROWS: usize = 60;

/// `age`, `patient`, `job` of two, label `ill`; `patient` is the unit or of no use.
fn schema(has_unit: bool, bad_rows: BadRows) -> Schema {
    let texts = |values: &[&str]| values.iter().map(|&value| value.into()).collect();
    let mut columns = vec![
        (
            "age".into(),
            Column::Number {
                low: 0.0,
                high: 100.0,
                bins: Bins::Equal(10),
                missing: None,
                format: NumberFormat::default(),
            },
        ),
        ("job".into(), Column::Category { values: texts(&["clerk", "nurse"]), other: false, missing: false }),
    ];
    if !has_unit {
        columns.push(("patient".into(), Column::Dropped));
    }
    Schema {
        columns,
        label: Label::of_classes("ill", texts(&["no", "yes"])),
        groups: Vec::new(),
        group_as_input: false,
        unit: has_unit.then(|| "patient".into()),
        weight: None,
        bad_rows,
        missing: texts(&["", "NA"]),
    }
}

/// A table of these bytes.
fn encode(bytes: &[u8], schema: &Schema) -> Result<(EncodedTable, TableCounts), TableError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    fs::write(&path, bytes).unwrap();
    let files = TableFiles::new(&[path.to_str().unwrap()]).unwrap();
    EncodedTable::create(&files, schema, EncodedFile::Temporary(folder.path()))
}

/// An error's text, from the file's name on.
fn text_of(error: &TableError) -> String {
    error.to_string().split_off(error.to_string().find("t.csv").unwrap())
}

/// Three rows for each patient.
fn row(number: usize) -> String {
    format!("{},p{},{},{}", number % 90, number / 3, ["clerk", "nurse"][number % 2], ["no", "yes"][number % 5 / 4])
}

/// Damaged rows of patient `p`, each with whether its unit can still be read.
fn defects(p: usize) -> Vec<(Vec<u8>, bool)> {
    let patient = format!("p{p}");
    let in_text = [
        // A value that does not fit: the unit is where it was.
        ("thirty,P,clerk,no", true),
        ("30,P,,no", true),
        ("30,P,pilot,no", true),
        ("30,P,clerk,", true),
        ("30,P,clerk,maybe", true),
        ("inf,P,clerk,no", true),
        ("3\0,P,clerk,no", true),
        ("3\r0,P,clerk,no", true),
        ("x, P ,\"clerk\n or \"\"nurse\"\"\",no\r", true),
        // Fields that are missing, or too many.
        ("30,P,clerk", false),
        ("30,P", false),
        ("30,P,clerk,no,", false),
        ("30,P,clerk,no,x", false),
        (",30,P,clerk,no", false),
        ("30", false),
        ("P", false),
        // No unit.
        ("30,,clerk,no", false),
        ("30,  ,clerk,no", false),
        ("30,\"\",clerk,no", false),
        ("30,NA,clerk,no", false),
        ("x,,,", false),
        (",,,", false),
        ("30,P\0,clerk,no", false),
        ("30,P\u{7f},clerk,no", false),
        // No row.
        ("", false),
        ("\r", false),
        ("  ", false),
        ("\t\r", false),
        ("\"\"", false),
        // Quotes that would hide what is behind them.
        ("30,P,5\" pipe,no", false),
        ("30,\"P,clerk,no", false),
        ("\"30,P,clerk,no", false),
        ("30,P,clerk,no\"", false),
        ("30,\"P\"x,clerk,no", false),
    ];
    let mut defects: Vec<(Vec<u8>, bool)> =
        in_text.map(|(text, has_unit)| (text.replace('P', &patient).into_bytes(), has_unit)).into();
    for (text, has_unit) in [
        (&b"30,P,\xff,no"[..], true),
        (b"\xc3,P,clerk,no", true),
        (b"30,P,clerk,n\xed\xa0\x80", true),
        (b"30,P\xff,clerk,no", false),
        (b"30,\xc3,clerk,no", false),
        (b"30,P,\xff", false),
        (b"\xff", false),
    ] {
        let place = text.iter().position(|byte| *byte == b'P');
        let bytes = match place {
            Some(at) => [&text[..at], patient.as_bytes(), &text[at + 1..]].concat(),
            None => text.to_vec(),
        };
        defects.push((bytes, has_unit));
    }
    defects
}

fn table(line_end: &str, changed: usize, line: &[u8]) -> Vec<u8> {
    let mut bytes = HEADER.as_bytes().to_vec();
    for number in 0..N_ROWS {
        if number == changed {
            bytes.extend(line);
        } else {
            bytes.extend(row(number).as_bytes());
        }
        bytes.extend(line_end.as_bytes());
    }
    bytes
}

/// Effects of the defects.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Tables that were read, without a unit and with one.
    read: [usize; 2],
    /// Tables that were read although the unit of a row cannot be read.
    without_unit: usize,
    /// Tables in which a row is in another unit.
    moved: usize,
}

/// Every defect at five places, with both line ends, against the table without one.
fn compare() -> Outcome {
    let mut outcome = Outcome::default();
    for has_unit in [false, true] {
        let schema = schema(has_unit, BadRows::Drop);
        let (whole, _) = encode(&table("\n", N_ROWS, b""), &schema).unwrap();
        for line_end in ["\n", "\r\n"] {
            for number in [0, 1, 31, N_ROWS - 2, N_ROWS - 1] {
                for (line, is_readable) in defects(number / 3) {
                    let what = format!("row {number}: {:?}, unit: {has_unit}", String::from_utf8_lossy(&line));
                    let (found, counts) = match encode(&table(line_end, number, &line), &schema) {
                        Ok(found) => found,
                        Err(error) => {
                            let is_of_file = matches!(error, TableError::Malformed { .. });
                            assert!(is_of_file || (has_unit && !is_readable), "{what}: {error}");
                            assert!(is_of_file || matches!(error, TableError::NoUnit { .. }), "{what}: {error}");
                            continue;
                        }
                    };
                    outcome.read[usize::from(has_unit)] += 1;
                    outcome.without_unit += usize::from(has_unit && !is_readable);
                    assert_eq!(found.rows(), N_ROWS, "{what}");
                    // Without units their column may hold anything.
                    assert!(!has_unit || counts.dropped == 1, "{what}");
                    let is_moved = (0..N_ROWS).any(|row| found.unit(row) != whole.unit(row));
                    outcome.moved += usize::from(is_moved);
                    for other in (0..N_ROWS).filter(|&other| other != number) {
                        assert_eq!(found.unit(other), whole.unit(other), "{what}: unit of {other}");
                        assert!(!found.is_blank(other), "{what}: {other}");
                    }
                }
            }
        }
    }
    outcome
}

/// Nor has the test passed by refusing everything: per place and line end, 36 defects are read
/// without a unit, and 12 with one: the rows whose unit can be read.
#[test]
fn a_defect_moves_no_row_to_another_number_or_unit() {
    assert_eq!(compare(), Outcome { read: [36 * 10, 12 * 10], without_unit: 0, moved: 0 });
}

/// If every dropped row is in unit 0, all 36 defects move one: the 12, and the 24 whose unit cannot
/// be read and that are no longer refused.
#[test]
fn a_row_that_leaves_its_unit_is_found() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let outcome = pool.install(|| {
        hook::LEAVES_ITS_UNIT.set(true);
        compare()
    });
    assert_eq!(outcome, Outcome { read: [36 * 10; 2], without_unit: 24 * 10, moved: 36 * 10 });
}

/// Without dropping, the same rows are refused, and each refusal names its line.
#[test]
fn what_is_refused_names_the_line_and_the_unit() {
    let refusal =
        |line: &str| text_of(&encode(&table("\n", 4, line.as_bytes()), &schema(true, BadRows::Drop)).unwrap_err());
    insta::assert_snapshot!(
        refusal("30,p1"),
        @"t.csv:6: 2 fields, expected 4; no row without a readable `patient`, the unit of privacy, is dropped"
    );
    insta::assert_snapshot!(
        refusal(""),
        @"t.csv:6: an empty line; it counts as a row: remove it; no row without a readable `patient`, the unit of privacy, is dropped"
    );
    insta::assert_snapshot!(
        refusal("30,NA,clerk,no"),
        @"t.csv:6: column `patient`: the value is missing, and nothing is declared for that; no row without a readable `patient`, the unit of privacy, is dropped"
    );
    insta::assert_snapshot!(
        refusal("30,p\u{7},clerk,no"),
        @r"t.csv:6: column `patient`: `p\u{7}` is not one of texts without control characters; no row without a readable `patient`, the unit of privacy, is dropped"
    );
    for (line, _) in defects(1) {
        let error = text_of(&encode(&table("\n", 4, &line), &schema(true, BadRows::Refuse)).unwrap_err());
        assert!(error.starts_with("t.csv:6: ") || error.starts_with("t.csv:7: "), "{error}");
    }
}
