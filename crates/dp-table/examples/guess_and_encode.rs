//! From a CSV file to bounded features: look at the table, declare its schema, encode it.

use std::fs;

use dp_table::{BadRows, Bins, Column, EncodedFile, EncodedTable, Guess, Label, NumberFormat, Schema, TableFiles};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("encode-example-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let path = folder.join("people.csv");
    fs::write(&path, "age,job,ill\n30,clerk,no\n61,nurse,yes\n200,cook,no\n,clerk,yes\n")?;
    let files = TableFiles::new(&[path.to_string_lossy()])?;

    // What a look at the records says: a schema that is taken from it depends on them.
    for column in Guess::of(&mut files.open()?)?.columns {
        println!("{}: {:?}, {} missing", column.name, column.kind, column.missing);
    }

    // What is known without them.
    let age = Column::Number {
        low: 0.0,
        high: 120.0,
        bins: Bins::Equal(12),
        missing: Some(50.0),
        format: NumberFormat::default(),
    };
    let job = Column::Category { values: vec!["clerk".into(), "nurse".into()], other: true, missing: false };
    let schema = Schema {
        columns: vec![("age".into(), age), ("job".into(), job)],
        label: Label::of_classes("ill", vec!["no".into(), "yes".into()]),
        groups: Vec::new(),
        group_as_input: false,
        unit: None,
        weight: None,
        bad_rows: BadRows::Refuse,
        missing: vec![String::new()],
    };
    let (table, counts) = EncodedTable::create(&files, &schema, EncodedFile::Temporary(&folder))?;
    println!("{}", counts.remarks(&schema).join("\n"));
    let names = table.feature_names();
    for row in 0..table.rows() {
        let mut square = 0.0;
        table.for_each_feature(row, |feature, value| {
            print!("{} {value:.3}, ", names[feature]);
            square += value * value;
        });
        println!("norm {:.3}", square.sqrt());
        assert!(square <= 1.0);
    }
    drop(table);
    Ok(fs::remove_dir_all(&folder)?)
}
