//! One's own table in every format: whatever is in the file, an error or rows whose features are
//! finite and bounded.
#![no_main]

use dp_table::{BadRows, Bins, Column, EncodedFile, EncodedTable, Guess, Label, NumberFormat, Schema, TableFiles};
use libfuzzer_sys::fuzz_target;

const ENDINGS: [&str; 5] = ["csv", "tsv", "csv.gz", "csv.zst", "parquet"];

fn schema(columns: &[String]) -> Option<Schema> {
    let (label, inputs) = columns.split_last()?;
    let number = Column::Number {
        low: -10.0,
        high: 10.0,
        bins: Bins::Equal(4),
        missing: Some(0.0),
        format: NumberFormat::default(),
    };
    let category = Column::Category { values: vec!["a".into()], other: true, missing: true };
    let kinds = [number, category];
    Some(Schema {
        columns: inputs.iter().enumerate().map(|(at, name)| (name.clone(), kinds[at % 2].clone())).collect(),
        label: Label::of_classes(label.clone(), vec!["0".into(), "1".into()]),
        groups: Vec::new(),
        group_as_input: false,
        unit: None,
        weight: None,
        bad_rows: BadRows::Drop,
        missing: vec![String::new()],
    })
}

fuzz_target!(|input: &[u8]| {
    let Some((ending, contents)) = input.split_first() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(format!("t.{}", ENDINGS[usize::from(*ending) % ENDINGS.len()]));
    std::fs::write(&path, contents).expect("writable");
    let Ok(files) = TableFiles::new(&[path.to_str().expect("UTF-8")]) else { return };
    let Ok(mut reader) = files.open() else { return };
    let schema = schema(reader.columns());
    let _ = Guess::of(&mut reader);
    let Some(schema) = schema else { return };
    let place = EncodedFile::Temporary(folder.path());
    let Ok((table, _)) = EncodedTable::create(&files, &schema, place) else { return };
    let mut features = vec![0.0; table.width()];
    for row in 0..table.rows() {
        table.gather(&[row], &mut features);
        let norm: f64 = features.iter().map(|value| f64::from(*value).powi(2)).sum();
        assert!(norm <= 1.0, "{norm}");
    }
});
