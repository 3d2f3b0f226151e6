//! `cargo bench -p fairdp`: rows per second of reading and encoding a table, and whole fits, from a
//! file to a release.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dp_table::Example;
use dp_table::{EncodedFile, EncodedTable, TableFiles};
use fairdp::{FitOptions, InitOptions, fit, init};

const ROWS: u64 = 20_000;
/// A long and wide table.
const LONG: Example = Example { rows: 1_000_000, columns: 50, seed: 1 };

/// Writes a generated table; returns its path.
fn table(folder: &Path, example: Example) -> String {
    let path = folder.join("table.csv");
    let mut csv = BufWriter::new(File::create(&path).expect("a temporary folder takes files"));
    example.write(&mut csv).expect("a disk with room");
    csv.flush().expect("a disk with room");
    path.to_string_lossy().into_owned()
}

/// What `init` reads, and what `fit` reads and encodes.
fn reading(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for example in [Example { rows: ROWS, ..Example::default() }, LONG] {
        let Example { rows, columns, .. } = example;
        let path = table(folder.path(), example);
        let files = TableFiles::new(&[&path]).expect("the table that was written");
        let schema = example.schema();
        let mut group = c.benchmark_group("encode");
        group.throughput(Throughput::Elements(rows)).sample_size(10);
        group.bench_function(format!("csv/{rows}x{columns}"), |bencher| {
            bencher.iter(|| {
                let place = EncodedFile::Temporary(folder.path());
                let (table, counts) = EncodedTable::create(&files, &schema, place).expect("rows that fit");
                assert_eq!((table.rows() as u64, counts.dropped), (rows, 0));
            });
        });
        group.finish();
        let options = InitOptions { label: "outcome".into(), ..InitOptions::default() };
        let mut group = c.benchmark_group("init");
        group.throughput(Throughput::Elements(rows)).sample_size(10);
        group.bench_function(format!("csv/{rows}x{columns}"), |bencher| {
            bencher.iter(|| init(std::slice::from_ref(&path), &options).expect("a table that can be read"));
        });
        group.finish();
    }
}

fn fits(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = table(folder.path(), Example { rows: ROWS, ..Example::default() });
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

criterion_group!(benches, reading, fits);
criterion_main!(benches);
