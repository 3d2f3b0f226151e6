//! Standard streams, endings of outputs, and what programs read of the program.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::program::{declared, done, program, refused, text};

/// Runs it with this on standard input.
fn fed(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairdp"))
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn fitted() -> tempfile::TempDir {
    let folder = declared(2_500, |config| config);
    done(folder.path(), &["fit", "fairdp.toml", "--out", "run", "-q"]);
    folder
}

#[test]
fn predictions_through_pipes_are_those_of_files() {
    let folder = fitted();
    let here = folder.path();
    done(here, &["predict", "run", "table.csv", "--out", "p.csv"]);
    let [table, expected] = ["table.csv", "p.csv"].map(|name| fs::read(here.join(name)).unwrap());
    let through = |input: &[u8]| {
        let output = fed(here, &["predict", "run", "-", "--out", "-"], input);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("2500 rows"), "{}", text(&output.stderr));
        output.stdout
    };
    assert!(through(&table) == expected);
    // Compressed input is told by its first bytes.
    assert!(through(&zstd::encode_all(&*table, 0).unwrap()) == expected);
    // What was written to a stream cannot be taken back, and standard input is there once.
    let (code, message) = refused(here, &["predict", "run", "table.csv", "--out", "-", "--strict"]);
    assert!(code == 2 && message.contains("cannot be taken back"), "{message}");
    let output = fed(here, &["predict", "run", "-", "-", "--out", "-"], &table);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

/// As `head` does: it has read enough.
#[test]
fn a_reader_that_goes_ends_a_prediction_well() {
    let folder = fitted();
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairdp"))
        .current_dir(folder.path())
        .args(["predict", "run", "table.csv", "--out", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_read_and_written() {
    let folder = fitted();
    let here = folder.path();
    done(here, &["predict", "run", "table.csv", "--out", "p.csv"]);
    for name in ["in.csv", "out"] {
        assert!(Command::new("mkfifo").arg(here.join(name)).status().unwrap().success());
    }
    let table = fs::read(here.join("table.csv")).unwrap();
    let (input, output) = (here.join("in.csv"), here.join("out"));
    std::thread::scope(|scope| {
        scope.spawn(|| fs::write(input, &table).unwrap());
        let read = scope.spawn(|| fs::read(output).unwrap());
        done(here, &["predict", "run", "in.csv", "--out", "out"]);
        assert!(read.join().unwrap() == fs::read(here.join("p.csv")).unwrap());
    });
}

/// Every command reads what is piped into it, and makes of it what it makes of the file.
#[test]
fn a_hundred_thousand_rows_through_every_pipe() {
    let folder = declared(100_000, |config| config);
    let here = folder.path();
    let read = |name: &str| fs::read(here.join(name)).unwrap();
    let (table, config) = (read("table.csv"), text(&read("fairdp.toml")));
    let piped = |arguments: &[&str], input: &[u8]| {
        let output = fed(here, arguments, input);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        output
    };
    let proposed = piped(&["init", "-", "--label", "outcome", "--group", "group"], &table);
    assert_eq!(text(&proposed.stdout).replace("from = \"data\"", "public = true"), config.replace("table.csv", "-"));

    done(here, &["fit", "fairdp.toml", "--out", "file", "-q", "--seed", "1"]);
    piped(&["fit", "-", "--out", "config", "-q", "--seed", "1"], config.as_bytes());
    fs::write(here.join("stdin.toml"), config.replace("table.csv", "-")).unwrap();
    let plan = piped(&["fit", "stdin.toml", "--plan", "-q"], &table);
    assert!(text(&plan.stdout).contains("100000 records"), "{}", text(&plan.stdout));
    let output = piped(&["fit", "stdin.toml", "--out", "stdin", "--seed", "1"], &zstd::encode_all(&*table, 0).unwrap());
    assert!(text(&output.stderr).contains("reading standard input into stdin/private"), "{}", text(&output.stderr));
    for run in ["config", "stdin"] {
        assert!(read("file/release/model.safetensors") == read(&format!("{run}/release/model.safetensors")), "{run}");
    }
    // The copy of the records is gone with the key.
    let mut kept: Vec<_> = fs::read_dir(here.join("stdin/private")).unwrap().map(|e| e.unwrap().file_name()).collect();
    kept.sort();
    assert_eq!(kept, ["config.toml", "diagnostics.json", "ledger.json", "log.txt"]);

    done(here, &["predict", "file", "table.csv", "--out", "p.csv"]);
    assert!(piped(&["predict", "file", "-", "--out", "-"], &table).stdout == read("p.csv"));
    let verified = done(here, &["verify", "file", "--json"]);
    assert!(serde_json::from_str::<serde_json::Value>(&verified).unwrap()["epsilon"].is_number(), "{verified}");
}

#[test]
fn standard_input_is_claimed_once() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    let twice = config.replace("[\"table.csv\"]", "[\"-\", \"-\"]");
    let both = config.replace("table.csv", "-");
    fs::write(here.join("twice.toml"), &twice).unwrap();
    fs::write(here.join("test.toml"), both.replace("fraction = 0.2", "files = [\"-\"]")).unwrap();
    let table = fs::read(here.join("table.csv")).unwrap();
    for (arguments, input) in [
        (&["fit", "-", "--out", "run"][..], both.as_bytes()),
        (&["fit", "-", "--plan"], both.as_bytes()),
        (&["fit", "twice.toml", "--out", "run"], &table),
        (&["fit", "test.toml", "--out", "run"], &table),
        (&["init", "-", "-", "--label", "outcome"], &table),
    ] {
        let output = fed(here, arguments, input);
        let message = text(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains("standard input"), "{arguments:?}: {message}");
        assert!(!here.join("run").exists());
    }
    // What is wrong in a table is said of the stream.
    let output = fed(here, &["init", "-", "--label", "none"], &table);
    assert!(text(&output.stderr).contains("--label = none"), "{}", text(&output.stderr));
    let output = fed(here, &["init", "-", "--label", "outcome"], b"");
    assert!(text(&output.stderr).contains("standard input"), "{}", text(&output.stderr));
    let event = "{\"gaussian\":{\"noise_multiplier\":1.0}}";
    let output = fed(here, &["account", "--event", "-", "--delta", "1e-5", "--json"], event.as_bytes());
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[cfg(unix)]
#[test]
fn a_fit_reads_named_pipes() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    let pipes = ["config", "records"].map(|name| here.join(name));
    for pipe in &pipes {
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap().replace("table.csv", "records");
    let table = fs::read(here.join("table.csv")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipes[0], config).unwrap());
        scope.spawn(|| fs::write(&pipes[1], table).unwrap());
        done(here, &["fit", "config", "--out", "run", "-q"]);
    });
    done(here, &["verify", "run"]);
}

#[test]
fn an_output_has_the_format_of_its_ending() {
    let folder = fitted();
    let here = folder.path();
    for name in ["p.csv", "p.tsv", "p.csv.gz", "p.tsv.zst"] {
        done(here, &["predict", "run", "table.csv", "--out", name]);
    }
    let bytes = |name: &str| fs::read(here.join(name)).unwrap();
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&*bytes("p.csv.gz")).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == bytes("p.csv"));
    assert!(zstd::decode_all(&*bytes("p.tsv.zst")).unwrap() == bytes("p.tsv"));
    assert!(text(&bytes("p.tsv")).starts_with("row\tprediction\t"), "tabs");
    for name in ["p.xlsx", "p.json", "p", "p.parquet.gz"] {
        let (code, message) = refused(here, &["predict", "run", "table.csv", "--out", name]);
        assert!(code == 2 && message.contains(".csv or .tsv (also .gz, .zst), or .parquet"), "{message}");
    }
}

#[test]
fn failures_are_machine_readable_where_output_is() {
    let folder = fitted();
    let here = folder.path();
    fs::write(here.join("bad.csv"), text(&fs::read(here.join("table.csv")).unwrap()).replacen('\n', "\nx", 1)).unwrap();
    let failure = |arguments: &[&str]| -> (Option<i32>, serde_json::Value) {
        let output = program(here, arguments);
        (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
    };
    let (code, answer) = failure(&["predict", "run", "bad.csv", "--out", "b.csv", "--json"]);
    assert_eq!((code, &answer["code"]), (Some(1), &1.into()));
    assert!(answer["where"]["file"].as_str().unwrap().ends_with("bad.csv"), "{answer}");
    assert_eq!(answer["where"]["line"], 2, "{answer}");
    fs::write(here.join("run/release/extra.txt"), "x").unwrap();
    let (code, answer) = failure(&["verify", "run", "--json"]);
    assert_eq!((code, &answer["code"]), (Some(4), &4.into()));
    assert!(answer["error"].as_str().unwrap().contains("extra.txt"), "{answer}");
    fs::remove_file(here.join("run/release/extra.txt")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&done(here, &["report", "run", "--json"])).unwrap();
    assert!(report["statement"]["epsilon"].is_number() && report["fairness"]["groups"].is_array(), "{report}");
}

#[test]
fn completions_and_pages_name_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = done(here, &["completions", shell]);
        assert!(["init", "predict", "verify"].iter().all(|command| script.contains(command)), "{shell}");
    }
    done(here, &["man", "man1"]);
    let mut page = String::new();
    File::open(here.join("man1/fairdp-predict.1")).unwrap().read_to_string(&mut page).unwrap();
    assert!(page.contains("standard output"), "{page}");
    assert!(here.join("man1/fairdp.1").exists());
}

#[test]
fn a_configuration_in_another_folder_finds_its_table() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    fs::create_dir(here.join("configs")).unwrap();
    let arguments = ["init", "table.csv", "--label", "outcome", "--accept-uncovered", "--out", "configs/c.toml"];
    done(here, &arguments);
    done(here, &["fit", "configs/c.toml", "--plan"]);
    let (code, message) = refused(here, &arguments);
    assert!(code == 2 && message.contains("is not there yet"), "{message}");
}
