//! A defect in one record moves no other record, nor its own, to another unit or number: the public
//! numbers would tell of it.

use std::sync::Arc;

use dp_table::TableError;
use dp_table::{BadRows, Schema};
use parquet::basic::{LogicalType, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::parquet_files::{column, write};
use super::{Placed, schema, texts};

const HEADER: &str = "age,patient,job,ill\n";
const N_ROWS: usize = 60;

fn dropping(has_unit: bool) -> Schema {
    let mut schema = Schema { bad_rows: BadRows::Drop, missing: texts(&["", "NA"]), ..schema() };
    if has_unit {
        schema.unit = Some("patient".into());
    } else {
        schema.columns.push(("patient".into(), dp_table::Column::Dropped));
    }
    schema
}

/// Three rows for each patient.
fn row(number: usize) -> String {
    format!("{},p{},{},{}", number % 90, number / 3, ["clerk", "nurse"][number % 2], ["no", "yes"][number % 5 / 4])
}

/// What a row of patient `p` can become by a defect, and whether its unit can still be read.
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

#[test]
fn a_defect_moves_no_row_to_another_number_or_unit() {
    let mut n_kept = [0, 0];
    for has_unit in [false, true] {
        let schema = dropping(has_unit);
        let whole = Placed::new("t.csv", table("\n", N_ROWS, b""));
        let (whole, _) = whole.encode(&schema).unwrap();
        for line_end in ["\n", "\r\n"] {
            for number in [0, 1, 31, N_ROWS - 2, N_ROWS - 1] {
                for (line, is_readable) in defects(number / 3) {
                    let placed = Placed::new("t.csv", table(line_end, number, &line));
                    let what = format!("row {number}: {:?}, unit: {has_unit}", String::from_utf8_lossy(&line));
                    let (found, counts) = match placed.encode(&schema) {
                        Ok(found) => found,
                        Err(error) => {
                            let is_of_file = matches!(error, TableError::Malformed { .. });
                            assert!(is_of_file || (has_unit && !is_readable), "{what}: {error}");
                            assert!(is_of_file || matches!(error, TableError::NoUnit { .. }), "{what}: {error}");
                            continue;
                        }
                    };
                    n_kept[usize::from(has_unit)] += 1;
                    assert!(!has_unit || is_readable, "{what}: kept");
                    assert_eq!(found.rows(), N_ROWS, "{what}");
                    // Without units their column may hold anything.
                    assert!(!has_unit || counts.dropped == 1, "{what}");
                    for other in 0..N_ROWS {
                        assert_eq!(found.unit(other), whole.unit(other), "{what}: unit of {other}");
                        assert!(other == number || !found.is_blank(other), "{what}: {other}");
                    }
                }
            }
        }
    }
    // The test has not passed by refusing everything: per place and line end, 12 and 36.
    assert_eq!(n_kept, [36 * 10, 12 * 10]);
}

/// The same rows are refused whole where nothing is dropped, and what is refused names its line.
#[test]
fn what_is_refused_names_the_line_and_the_unit() {
    let refusal = |line: &str| {
        let placed = Placed::new("t.csv", table("\n", 4, line.as_bytes()));
        placed.text_of(&placed.encode(&dropping(true)).unwrap_err())
    };
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
        let placed = Placed::new("t.csv", table("\n", 4, &line));
        let schema = Schema { bad_rows: BadRows::Refuse, ..dropping(true) };
        let error = placed.text_of(&placed.encode(&schema).unwrap_err());
        assert!(error.starts_with("t.csv:6: ") || error.starts_with("t.csv:7: "), "{error}");
    }
}

/// A null is no unit, and a missing value like any other elsewhere.
#[test]
fn nulls_of_parquet_are_missing_values() {
    let fields = vec![
        column("age", Physical::INT32, None),
        column("patient", Physical::BYTE_ARRAY, Some(LogicalType::String)),
        column("job", Physical::BYTE_ARRAY, Some(LogicalType::String)),
        column("ill", Physical::BYTE_ARRAY, Some(LogicalType::String)),
    ];
    let root = Arc::new(Type::group_type_builder("people").with_fields(fields).build().unwrap());
    // A null in this column of the second of three rows.
    let encoded = |null: Option<usize>| {
        let mut file = SerializedFileWriter::new(Vec::new(), root.clone(), Arc::new(WriterProperties::new())).unwrap();
        let mut group = file.next_row_group().unwrap();
        let levels = |place: usize| [1, i16::from(null != Some(place)), 1];
        let present = |place: usize, values: [&'static str; 3]| -> Vec<ByteArray> {
            let rows = values.into_iter().zip(levels(place));
            rows.filter(|(_, level)| *level == 1).map(|(text, _)| text.into()).collect()
        };
        let ages = [30, 40, 50].into_iter().zip(levels(0)).filter(|(_, level)| *level == 1).map(|(age, _)| age);
        write::<Int32Type>(&mut group, &ages.collect::<Vec<_>>(), &levels(0));
        for (place, values) in [["a", "b", "b"], ["clerk"; 3], ["no"; 3]].into_iter().enumerate() {
            write::<ByteArrayType>(&mut group, &present(place + 1, values), &levels(place + 1));
        }
        group.close().unwrap();
        let placed = Placed::new("t.parquet", file.into_inner().unwrap());
        placed.encode(&dropping(true)).map(|(table, _)| [0, 1, 2].map(|row| (table.unit(row), table.is_blank(row))))
    };
    let whole = encoded(None).unwrap();
    assert!(whole[0].0 != whole[1].0 && whole[1].0 == whole[2].0);
    for place in [0, 2, 3] {
        assert_eq!(encoded(Some(place)).unwrap(), [whole[0], (whole[1].0, true), whole[2]]);
    }
    assert!(matches!(encoded(Some(1)), Err(TableError::NoUnit { .. })));
}
