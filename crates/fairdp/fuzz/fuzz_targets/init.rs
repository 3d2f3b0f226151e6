//! A table from which a configuration is proposed: an error, or a configuration that is read back
//! and describes the table.
#![no_main]

use std::path::Path;

use dp_table::{Encoding, TableFiles};
use fairdp::config::Config;
use fairdp::{InitOptions, init};
use libfuzzer_sys::fuzz_target;

const ENDINGS: [&str; 4] = ["csv", "tsv", "csv.gz", "parquet"];

fuzz_target!(|input: &[u8]| {
    let Some((choice, contents)) = input.split_first() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ending = ENDINGS[usize::from(choice & 3)];
    let path = folder.path().join(format!("t.{ending}"));
    std::fs::write(&path, contents).expect("writable");
    let tables = [path.to_str().expect("UTF-8").to_owned()];
    let Ok(reader) = TableFiles::new(&tables).and_then(|files| files.open()) else { return };
    let columns = reader.columns().to_vec();
    let Some(label) = columns.last() else { return };
    let groups = if choice & 4 == 0 { Vec::new() } else { columns[..1].to_vec() };
    let options = InitOptions {
        label: label.clone(),
        groups,
        group_as_input: choice & 8 != 0,
        unit: columns.get(1).filter(|_| choice & 16 != 0).cloned(),
        ..InitOptions::default()
    };
    let Ok(text) = init(&tables, &options) else { return };
    match Config::from_toml(&text, Path::new("fairdp.toml")) {
        // A column can play one part, and one is needed as an input: `fit` says so.
        Err(error) => {
            let message = error.to_string();
            let is_asked_for =
                ["from no column at all", "is the label", "is a group", "is the unit of privacy", "groups"];
            assert!(is_asked_for.iter().any(|known| message.contains(known)), "{message}\n{text}");
        }
        Ok(config) => {
            let schema = config.schema(&|_| None).expect("a schema");
            Encoding::new(&schema).expect("checked where the configuration was read");
        }
    }
});
