//! Tables in memory: the same model as from a file, and a run that is told to end.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use dp_table::Example;
use dp_table::{MemoryColumn, MemoryTable, TableFiles};
use fairdp::{FairdpError, FitOptions, FittedModel, InitOptions, Predictor, Progress, fit, fit_table, init};

/// The example as CSV, a configuration for it, and its columns in memory: numbers as numbers, the
/// others as texts.
fn example(folder: &Path) -> (String, MemoryTable) {
    let mut csv = Vec::new();
    Example { rows: 3_000, ..Example::default() }.write(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let path = folder.join("table.csv");
    fs::write(&path, &csv).unwrap();
    let options = InitOptions { label: "outcome".into(), groups: vec!["group".into()], ..InitOptions::default() };
    let config = init(&[path.to_string_lossy().into_owned()], &options).unwrap();

    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let names = csv.lines().next().unwrap().split(',');
    let columns = names.enumerate().map(|(place, name)| {
        let texts = || rows.iter().map(|row| row[place]);
        let number = |text: &str| if text.is_empty() { Some(f64::NAN) } else { text.parse().ok() };
        let column = match texts().map(number).collect() {
            Some(numbers) => MemoryColumn::Numbers(numbers),
            None => MemoryColumn::Texts {
                levels: texts().map(str::to_owned).collect(),
                positions: (0..rows.len() as u32).collect(),
            },
        };
        (name.to_owned(), column)
    });
    (config.replace("from = \"data\"", "public = true"), MemoryTable::new("records", columns.collect()).unwrap())
}

fn options(out: &Path) -> FitOptions {
    FitOptions { seed: Some(1), ..FitOptions::new(out) }
}

#[test]
fn a_table_in_memory_trains_and_answers_as_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (text, table) = example(folder.path());
    let config = folder.path().join("fairdp.toml");
    fs::write(&config, &text).unwrap();
    let go_on = &mut |_: Progress<'_>| ControlFlow::Continue(());
    let [file, memory] = ["file", "memory"].map(|name| folder.path().join(name));
    fit(&config, &options(&file), go_on).unwrap();
    fit_table(&text, table.clone(), &options(&memory), go_on).unwrap();
    let weights = |out: &Path| fs::read(out.join("release/model.safetensors")).unwrap();
    assert!(weights(&file) == weights(&memory));

    let pipeline = fs::read(memory.join("release/pipeline.json")).unwrap();
    let model = FittedModel::from_bytes(&pipeline, &weights(&memory)).unwrap();
    let files = TableFiles::new(&[folder.path().join("table.csv").to_string_lossy()]).unwrap();
    let mut from_file = Predictor::new(&model, &files).unwrap();
    let in_memory = TableFiles::in_memory(table);
    let mut from_memory = Predictor::new(&model, &in_memory).unwrap();
    let mut n = 0;
    while let Some((class, probabilities)) = from_memory.answer().unwrap() {
        assert_eq!(from_file.answer().unwrap(), Some((class, probabilities)));
        n += 1;
    }
    assert_eq!((n, from_file.answer().unwrap()), (3_000, None));
}

#[test]
fn a_run_that_is_told_to_end_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (text, table) = example(folder.path());
    for (name, text) in [("auto", text.clone()), ("dpsgd", text.replace("name = \"auto\"", "name = \"dpsgd\""))] {
        let mut last = 0;
        let ended = fit_table(&text, table.clone(), &options(&folder.path().join(name)), &mut |progress| {
            if let Progress::Step { done, .. } = progress {
                last = done;
                if done == 3 {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        assert!(matches!(ended, Err(FairdpError::Interrupted)), "{name}: {ended:?}");
        assert_eq!(last, 3, "{name}");
        assert!(!folder.path().join(name).join("release").exists());
    }
}
