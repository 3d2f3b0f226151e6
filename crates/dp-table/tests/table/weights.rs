//! Columns of weights.

use dp_table::{BadRows, Column, Encoding, Schema, Weight};

use super::{Placed, schema};

fn weighted(column: &str, high: f64) -> Schema {
    Schema { weight: Some(Weight { column: column.into(), high }), ..schema() }
}

const PEOPLE: &str = "age,job,w,ill\n25,clerk,0.5,no\n30,nurse,7,yes\n35,nurse,0,yes\n40,clerk,2e0,no\n";

/// Weights are parts of the largest one, and those beyond it are counted.
#[test]
fn a_weight_is_a_part_of_the_largest() {
    let schema = weighted("w", 2.0);
    let (table, counts) = Placed::new("t.csv", PEOPLE).encode(&schema).unwrap();
    assert_eq!([0, 1, 2, 3].map(|row| table.weight(row)), [0.25, 1.0, 0.0, 1.0]);
    assert_eq!(counts.remarks(&schema), ["weight w: 1 of 4 beyond 2, taken as 2"]);
    // Without one every record counts alike, and the column is not declared.
    let error = Placed::new("t.csv", PEOPLE).encode(&Schema { weight: None, ..schema }).unwrap_err().to_string();
    assert!(error.contains("a column `w` that is not declared"), "{error}");
}

/// The number of a column may be an input and a weight; the other columns' codes do not move.
#[test]
fn a_weight_may_be_an_input() {
    let placed = Placed::new("t.csv", "age,job,ill\n25,clerk,no\n100,nurse,yes\n");
    let (plain, _) = placed.encode(&schema()).unwrap();
    let (table, _) = placed.encode(&weighted("age", 50.0)).unwrap();
    assert_eq!([table.weight(0), table.weight(1), plain.weight(0)], [0.5, 1.0, 1.0]);
    let gathered = |table: &dp_table::EncodedTable| {
        let mut all = vec![0.0; 2 * table.width()];
        table.gather(&[0, 1], &mut all);
        all
    };
    assert_eq!(gathered(&plain), gathered(&table));
}

#[test]
fn what_is_no_weight_is_refused_or_dropped_by_name() {
    for (weight, expected) in [
        ("-1", "t.csv:2: column `w`: `-1` is not a finite number of at least 0, as a weight is"),
        ("inf", "t.csv:2: column `w`: `inf` is not a finite number of at least 0, as a weight is"),
        ("much", "t.csv:2: column `w`: `much` is not a finite number of at least 0, as a weight is"),
        ("", "column `w`"),
    ] {
        let placed = Placed::new("t.csv", format!("age,job,w,ill\n25,clerk,{weight},no\n30,nurse,1,yes\n"));
        let error = placed.encode(&weighted("w", 2.0)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let schema = Schema { bad_rows: BadRows::Drop, ..weighted("w", 2.0) };
        let (table, counts) = placed.encode(&schema).unwrap();
        assert!(table.is_blank(0) && !table.is_blank(1) && counts.dropped == 1);
        assert_eq!(counts.weight.unwrap().refused, 1);
    }
    for (column, high, expected) in [
        ("w", 0.0, "column `w`: largest weight 0: expected a finite number above 0"),
        ("w", f64::INFINITY, "column `w`: largest weight inf: expected a finite number above 0"),
        ("w", f64::NAN, "expected a finite number above 0"),
        ("w", 1e300, "expected a finite number above 0"),
        ("ill", 1.0, "column `ill`: is the label and cannot be the weight"),
    ] {
        let error = Encoding::new(&weighted(column, high)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let schema = Schema { unit: Some("w".into()), ..weighted("w", 1.0) };
    assert!(Encoding::new(&schema).unwrap_err().to_string().contains("cannot be the weight"));
    // A missing column is named, and what is dropped as an input may be a weight.
    let error = Placed::new("t.csv", "age,job,ill\n25,clerk,no\n").encode(&weighted("w", 1.0)).unwrap_err();
    assert!(error.to_string().contains("column `w` is missing"), "{error}");
    let mut schema = weighted("w", 2.0);
    schema.columns.push(("w".into(), Column::Dropped));
    assert_eq!(Placed::new("t.csv", PEOPLE).encode(&schema).unwrap().0.weight(0), 0.25);
}
