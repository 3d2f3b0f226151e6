//! Vectors in files of NumPy beside a table.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::program::{done, json, refused};

const ROWS: usize = 3_000;

/// The vector of a row, in single precision.
fn vector(row: usize) -> [f32; 3] {
    let angle = row as f32 * 0.37;
    [angle.sin(), angle.cos(), (row % 7) as f32 / 7.0]
}

/// Writes vectors as `numpy.save` does.
fn save(path: &Path, rows: impl ExactSizeIterator<Item = [f32; 3]>) {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 3), }}", rows.len());
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(rows.flatten().flat_map(f32::to_le_bytes));
    fs::write(path, bytes).unwrap();
}

/// Rows of a table, with their vectors as lists or without.
fn csv(rows: std::ops::Range<usize>, has_lists: bool) -> String {
    let mut text = if has_lists { "age,embedding,y\n" } else { "age,y\n" }.to_owned();
    for row in rows {
        let [x, y, z] = vector(row);
        let list = if has_lists { format!("\"[{x}, {y}, {z}]\",") } else { String::new() };
        let label = u8::from(x + z > 0.4);
        let _ = writeln!(text, "{},{list}{label}", 18 + row % 60);
    }
    text
}

/// Two files of a table with two files of vectors, and one file with the lists in it.
fn written(here: &Path) -> String {
    for (name, rows) in [("a", 0..1_000), ("b", 1_000..ROWS)] {
        fs::write(here.join(format!("{name}.csv")), csv(rows.clone(), false)).unwrap();
        save(&here.join(format!("{name}.npy")), rows.map(vector));
    }
    fs::write(here.join("whole.csv"), csv(0..ROWS, true)).unwrap();
    let init = ["init", "a.csv", "b.csv", "--label", "y", "--epsilon", "4"];
    let vectors = ["--vectors", "embedding=a.npy", "--vectors", "embedding=b.npy"];
    let config = done(here, &[&init[..], &vectors].concat()).replace("from = \"data\"", "public = true");
    fs::write(here.join("npy.toml"), &config).unwrap();
    config
}

#[test]
fn a_file_of_numpy_is_a_column_of_lists() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let config = written(here);
    assert!(config.contains("name = \"embedding\"\nkind = \"vector\"\nlength = 3\n"), "{config}");
    let is_path = |line: &&str| !line.starts_with("files = ") && !line.starts_with("vectors.");
    let lines: Vec<&str> = config.lines().filter(is_path).collect();
    let lists = lines.join("\n").replace("[table]\n", "[table]\nfiles = [\"whole.csv\"]\n");
    fs::write(here.join("lists.toml"), lists).unwrap();
    for name in ["npy", "lists"] {
        done(here, &["fit", &format!("{name}.toml"), "--out", name, "--seed", "1", "-q"]);
        done(here, &["verify", name]);
    }
    for file in ["model.safetensors", "pipeline.json", "fairness.json"] {
        let [npy, lists] = ["npy", "lists"].map(|run| fs::read(here.join(run).join("release").join(file)).unwrap());
        assert!(npy == lists, "{file}");
    }
    assert!(json(here.join("npy/private/diagnostics.json"))["auc"].as_f64().unwrap() > 0.9);
    let files = ["a.csv", "b.csv", "--vectors", "embedding=a.npy", "--vectors", "embedding=b.npy"];
    done(here, &[&["predict", "npy"][..], &files, &["--out", "p.csv"]].concat());
    done(here, &["predict", "lists", "whole.csv", "--out", "q.csv"]);
    let [npy, lists] = ["p.csv", "q.csv"].map(|name| fs::read_to_string(here.join(name)).unwrap());
    assert_eq!(npy, lists);
}

/// Another number, another digest: a run whose vectors changed is not continued.
#[test]
fn vectors_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let config = written(here);
    let refusal = |config: &str| {
        fs::write(here.join("c.toml"), config).unwrap();
        let (code, message) = refused(here, &["fit", "c.toml", "--out", "run", "-q"]);
        assert!(code > 0, "{message}");
        message.replace(&*here.to_string_lossy(), "")
    };
    let start = config.find("vectors.").unwrap();
    let line = &config[start..start + config[start..].find('\n').unwrap()];
    let with = |files: &str| config.replace(line, &format!("vectors.embedding = {files}"));
    for (files, expected) in [
        ("[\"a.npy\"]", "files of vectors = 1 for `embedding`: expected 2, one for each file of the table"),
        ("[\"b.npy\", \"a.npy\"]", "b.npy` has 2000 vectors, and `a.csv` has 1000 rows: expected one for each"),
        ("[\"a.npy\", \"a.csv\"]", "a.csv` is no NumPy file"),
        ("[\"a.npy\", \"c.npy\"]", "cannot read `"),
    ] {
        let message = refusal(&with(files));
        assert!(message.contains(expected), "{message}");
    }
    save(&here.join("b.npy"), (1_000..ROWS - 1).map(vector));
    let message = refusal(&config);
    assert!(message.contains("b.npy` has 1999 vectors, and `b.csv` has more rows"), "{message}");
    let test = config.replace("fraction = 0.2", "files = [\"whole.csv\"]");
    assert!(refusal(&test).contains("test.vectors: expected with test.files"));
}
