//! `cargo bench -p fairdp`: rows per second of reading and encoding a table, and whole fits, from a
//! file to a release.

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dp_table::Example;
use dp_table::{EncodedFile, EncodedTable, TableFiles};
use fairdp::{FitOptions, InitOptions, fit, init};

const ROWS: u64 = 20_000;

/// Writes a generated table; returns its path.
fn table(folder: &Path) -> String {
    let path = folder.join("table.csv");
    let mut csv = Vec::new();
    Example { rows: ROWS, ..Example::default() }.write(&mut csv).expect("memory takes everything");
    fs::write(&path, csv).expect("a temporary folder takes files");
    path.to_string_lossy().into_owned()
}

fn encoding(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = TableFiles::new(&[table(folder.path())]).expect("the table that was written");
    let schema = Example::default().schema();
    let mut group = c.benchmark_group("encode");
    group.throughput(Throughput::Elements(ROWS)).sample_size(10);
    group.bench_function(format!("csv/{ROWS}x10"), |bencher| {
        bencher.iter(|| {
            let (table, counts) =
                EncodedTable::create(&files, &schema, EncodedFile::Temporary(folder.path())).expect("rows that fit");
            assert_eq!((table.rows() as u64, counts.dropped), (ROWS, 0));
        });
    });
}

fn fits(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = table(folder.path());
    let mut group = c.benchmark_group("fit");
    group.throughput(Throughput::Elements(ROWS)).sample_size(10);
    for (model, method) in
        [("additive", "auto"), ("additive", "dpsgd"), ("additive", "dpsgd-global-adapt"), ("mlp", "auto")]
    {
        let options = InitOptions {
            label: "outcome".into(),
            groups: vec!["group".into()],
            model: Some(model.into()),
            method: Some(method.into()),
            ..InitOptions::default()
        };
        let text = init(std::slice::from_ref(&path), &options).expect("a table that can be read");
        let config = folder.path().join("fairdp.toml");
        fs::write(&config, text.replace("from = \"data\"", "public = true")).expect("a temporary folder takes files");
        group.bench_function(format!("{model}-{method}/{ROWS}x10"), |bencher| {
            bencher.iter_batched(
                || tempfile::tempdir().expect("a temporary folder"),
                |out| {
                    let options = FitOptions {
                        seed: Some(1),
                        threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
                        ..FitOptions::new(out.path().join("run"))
                    };
                    let fitted = fit(&config, &options, &mut |_| ControlFlow::Continue(()))
                        .expect("a configuration that was declared");
                    assert!(fitted.diagnostics.auc.is_some_and(|auc| auc > 0.7));
                },
                BatchSize::PerIteration,
            );
        });
    }
}

criterion_group!(benches, encoding, fits);
criterion_main!(benches);
