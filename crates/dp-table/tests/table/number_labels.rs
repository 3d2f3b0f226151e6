//! Labels that are numbers.

use dp_table::{BadRows, Encoding, Label, NumberFormat, NumberLabel, Schema};

use super::{Placed, schema};

fn number(low: f64, high: f64) -> Schema {
    Schema { label: Label::of_number("ill", low, high), ..schema() }
}

const PEOPLE: &str = "age,job,ill\n25,clerk,0\n30,nurse,15\n35,nurse,-3\n40,clerk,2e1\n45,clerk,99\n";

/// A label is kept by its place in its range; what is beyond the range is clamped and said.
#[test]
fn a_number_has_a_place_in_its_range() {
    let schema = number(0.0, 20.0);
    let (table, counts) = Placed::new("t.csv", PEOPLE).encode(&schema).unwrap();
    assert_eq!([0, 1, 2, 3, 4].map(|row| table.target(row)), [-1.0, 0.5, -1.0, 1.0, 1.0]);
    assert_eq!([0, 1].map(|row| table.label(row)), [0, 0]);
    assert_eq!(counts.remarks(&schema), ["label ill: 2 of 5 beyond [0, 20], taken as the nearer end"]);
    // The digest is of the numbers and of the range.
    let digest = |schema: &Schema, text: &str| Placed::new("t.csv", text).encode(schema).unwrap().0.digest().to_owned();
    let first = digest(&schema, PEOPLE);
    assert_eq!(first, digest(&schema, PEOPLE));
    assert_ne!(first, digest(&number(0.0, 21.0), PEOPLE));
    assert_ne!(first, digest(&schema, &PEOPLE.replace(",15", ",15.5")));
}

#[test]
fn a_number_has_a_format() {
    let format = NumberFormat { decimal: ',', thousands: Some('.'), unit: Some("€".into()) };
    let mut schema = number(0.0, 4_000.0);
    schema.label.number = Some(NumberLabel { low: 0.0, high: 4_000.0, format });
    let (table, _) = Placed::new("t.csv", "age;job;ill\n25;clerk;1.000 €\n30;nurse;2.500,0\n").encode(&schema).unwrap();
    assert_eq!([0, 1].map(|row| table.target(row)), [-0.5, 0.25]);
    let error = Placed::new("t.csv", "age;job;ill\n25;clerk;1.5\n").encode(&schema).unwrap_err().to_string();
    assert!(error.contains("column `ill`: `1.5` is not a number written like 1.234,5 €"), "{error}");
}

#[test]
fn what_is_no_number_is_refused_or_dropped_by_name() {
    for (label, expected) in [
        ("much", "t.csv:2: column `ill`: `much` is not a finite number"),
        ("inf", "t.csv:2: column `ill`: `inf` is not a finite number"),
        ("", "t.csv:2: column `ill`"),
    ] {
        let placed = Placed::new("t.csv", format!("age,job,ill\n25,clerk,{label}\n30,nurse,1\n"));
        let error = placed.text_of(&placed.encode(&number(0.0, 2.0)).unwrap_err());
        assert!(error.contains(expected), "{error}");
        let schema = Schema { bad_rows: BadRows::Drop, ..number(0.0, 2.0) };
        let (table, counts) = placed.encode(&schema).unwrap();
        assert!(table.is_blank(0) && !table.is_blank(1) && counts.dropped == 1);
        assert_eq!((table.target(0), counts.label.unwrap().refused), (0.0, 1));
    }
    for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (-1e308, 1e308)] {
        let error = Encoding::new(&number(low, high)).unwrap_err().to_string();
        assert!(error.contains("column `ill`: bounds") && error.contains("the lower first"), "{error}");
    }
    let mut both = number(0.0, 1.0);
    both.label.classes = schema().label.classes;
    assert!(Encoding::new(&both).unwrap_err().to_string().contains("not both"));
}
