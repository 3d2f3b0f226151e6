//! Files that belong to the user, and refusals before any work: each as it was found by hand.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn xtask(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.current_dir(folder).env_remove("DP_DATA_DIR").stdin(Stdio::null());
    command
}

fn run(folder: &Path, line: &str) -> Output {
    xtask(folder).args(line.split_whitespace()).output().unwrap()
}

/// The one line of a refusal.
fn refusal(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stdout));
    assert!(!text.contains("panicked"), "{line}: {text}");
    text
}

/// A study of one second, on generated records.
const STUDY: &str =
    "reproduce adult --quick --seeds 1 --methods dpsgd --table xu2021-table-1 --seed 5 --threads 2 --offline";

/// A folder with records of generated data in `o/records.db`.
fn with_records() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &format!("{STUDY} --cache-dir cache --out o"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

#[test]
fn an_export_replaces_no_database_device_or_directory() {
    let folder = with_records();
    let at = |name: &str| folder.path().join(name);
    let before = fs::read(at("o/records.db")).unwrap();
    symlink("o/records.db", at("link.db")).unwrap();
    for out in ["o/records.db", "link.db", "o/../o/records.db", "o", "/dev/null", "no/such/folder.csv"] {
        let error = refusal(folder.path(), &format!("results export o/records.db --format csv --out {out}"));
        assert!(error.contains(out), "{error}");
    }
    assert_eq!(fs::read(at("o/records.db")).unwrap(), before);
    assert!(refusal(folder.path(), "results merge o/records.db o/records.db").contains("cannot be written, too"));
    fs::write(at("t.csv"), "mine").unwrap();
    symlink("t.csv", at("link.csv")).unwrap();
    let error = refusal(folder.path(), "results export o/records.db --out t.txt");
    assert!(error.contains("--out t.txt: expected a name that ends in .csv, .json or .parquet"), "{error}");
    assert!(run(folder.path(), "results export o/records.db --out t.parquet").status.success());
    assert!(fs::read(at("t.parquet")).unwrap().starts_with(b"PAR1"));
    for line in ["results merge t.csv o/records.db", "results repair o/records.db --out t.csv"] {
        let error = refusal(folder.path(), line);
        assert!(error.contains("t.csv: expected a name that ends in .db"), "{error}");
    }
    assert_eq!(fs::read_to_string(at("t.csv")).unwrap(), "mine");
    assert!(run(folder.path(), "results export o/records.db --out link.csv").status.success());
    assert!(fs::symlink_metadata(at("link.csv")).unwrap().is_symlink());
    assert!(fs::read_to_string(at("t.csv")).unwrap().starts_with("experiment,"));
}

#[test]
fn marks_are_in_every_export() {
    let folder = with_records();
    for table in ["runs", "metrics", "epochs", "thresholds"] {
        let line = format!("results export o/records.db --format json --table {table}");
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&run(folder.path(), &line).stdout).unwrap();
        assert!(table == "thresholds" || !rows.is_empty(), "{table}");
        assert!(rows.iter().all(|row| row["synthetic"] == 1 && row["quick"] == 1), "{table}");
    }
    let list = run(folder.path(), "results list o/records.db").stdout;
    assert!(String::from_utf8_lossy(&list).contains("adult (SYNTHETIC, QUICK)"));
    let fairness = fs::read_to_string(folder.path().join("o/fairness.json")).unwrap();
    assert!(fairness.contains("SYNTHETIC, QUICK"), "{fairness}");
    let html = fs::read_to_string(folder.path().join("o/report.html")).unwrap();
    assert!(html.contains("SYNTHETIC, QUICK: Dot chart"));
    let again = run(folder.path(), "reproduce adult --from o/results.json --out again");
    assert!(
        again.status.success()
            && fs::read_to_string(folder.path().join("again/report.md")).unwrap().contains("SYNTHETIC")
    );
    fs::write(folder.path().join("m.csv"), run(folder.path(), "results export o/records.db").stdout).unwrap();
    assert!(run(folder.path(), "reproduce adult --from m.csv --out imported").status.success());
    assert!(fs::read_to_string(folder.path().join("imported/report.md")).unwrap().contains("SYNTHETIC, QUICK"));
}

#[test]
fn a_report_replaces_nothing_of_a_users_and_no_other_study() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for file in ["report.md", "results.json", "plots/a.csv", ".o.previous/b"] {
        let path = at("o").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        assert!(refusal(folder.path(), "reproduce toy --out o").contains("choose another output directory"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
    assert!(run(folder.path(), "reproduce toy --steps 10 --out toy").status.success());
    let before = fs::read(at("toy/report.md")).unwrap();
    let error = refusal(folder.path(), "reproduce accounting --out toy");
    assert!(error.contains("toy holds the report of `toy`, which is not replaced by one of `accounting`"), "{error}");
    assert_eq!(fs::read(at("toy/report.md")).unwrap(), before);
    assert!(run(folder.path(), "reproduce toy --steps 10 --out toy").status.success(), "its own report");
    fs::create_dir(at("real")).unwrap();
    symlink("real", at("link")).unwrap();
    symlink("nowhere", at("broken")).unwrap();
    assert!(run(folder.path(), "reproduce toy --steps 10 --out link").status.success());
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink() && at("real/report.md").exists());
    assert!(refusal(folder.path(), "reproduce toy --out broken").contains("a link that leads nowhere"));
    let names: Vec<_> = fs::read_dir(at("toy")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.as_bytes().starts_with(b".")), "nothing is left: {names:?}");
}

#[test]
fn generated_files_replace_no_placed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let placed = folder.path().join("gossis-1-eicu-only.csv.gz");
    fs::write(&placed, "credentialed").unwrap();
    assert!(refusal(folder.path(), "data synth eicu --out .").contains("is not empty"));
    assert_eq!(fs::read_to_string(&placed).unwrap(), "credentialed");
}

#[test]
fn the_place_of_a_report_is_looked_at_before_a_study_begins() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let long = "x".repeat(300);
    for out in ["file", "file/below", "/proc/no-such", &long] {
        let started = Instant::now();
        let error = refusal(folder.path(), &format!("reproduce adult --offline --cache-dir cache --out {out}"));
        assert!(error.contains("the report's directory"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(10), "{out}");
    }
}

#[test]
fn damaged_records_are_refused_and_repaired() {
    let folder = with_records();
    let path = folder.path().join("o/records.db");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = refusal(folder.path(), "results export o/records.db");
    assert!(error.contains("o/records.db is damaged (`cargo xtask results repair` saves"), "{error}");
    assert_eq!(error.matches("malformed").count(), 1, "{error}");
    // The same text may also stand where a row once was: one that is read is damaged.
    let records = |database: &[u8]| -> Vec<String> {
        fs::write(&path, database).unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        let mut rows = connection.prepare("SELECT record FROM run").unwrap();
        rows.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let flip = |position: usize| {
        let mut flipped = whole.clone();
        flipped[position + 2] ^= 1;
        flipped
    };
    let mut places = whole.windows(8).enumerate().filter(|(_, window)| window == b"\"train\":").map(|(at, _)| at);
    let position = places.find(|&position| records(&flip(position)) != records(&whole)).unwrap();
    fs::write(&path, flip(position)).unwrap();
    for line in ["results export o/records.db", "results show o/records.db", "results merge new.db o/records.db"] {
        assert!(refusal(folder.path(), line).contains("`cargo xtask results repair` saves what is whole"));
    }
    let list = run(folder.path(), "results list o/records.db");
    assert!(!list.status.success() && String::from_utf8_lossy(&list.stdout).contains("is damaged"));
    let repaired = run(folder.path(), "results repair o/records.db --out saved.db");
    let text = String::from_utf8_lossy(&repaired.stdout).into_owned();
    assert!(text.contains("1 lost"), "{text}");
    assert!(run(folder.path(), "results export saved.db").status.success());
}

/// The folder is no checkout: what is recorded was built in.
#[test]
fn the_revision_is_that_of_the_program() {
    let folder = with_records();
    let results: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("o/results.json")).unwrap()).unwrap();
    let sessions = results["sessions"].as_array().unwrap();
    assert!(sessions.iter().all(|session| session["code_revision"] == env!("XTASK_CODE_REVISION")), "{sessions:?}");
}

#[test]
fn an_empty_object_is_no_record() {
    let folder = with_records();
    let path = folder.path().join("o/records.db");
    rusqlite::Connection::open(&path).unwrap().execute("UPDATE run SET record = '{}'", ()).unwrap();
    for line in ["results export o/records.db", "results merge new.db o/records.db"] {
        assert!(refusal(folder.path(), line).contains("`cargo xtask results repair` saves what is whole"));
    }
}

#[test]
fn standard_output_may_be_full() {
    let folder = with_records();
    let lines = [
        "account --sampling-rate 0.01 --noise-multiplier 1 --steps 10 --delta 1e-5",
        "account --jsonl cases.jsonl",
        "reproduce toy --steps 10 --out toy",
        "reproduce adult --from o/results.json --out again",
        "results show o/records.db",
        "results list o/records.db",
        "results export o/records.db",
        "data info adult",
    ];
    let case = "{\"sampling_rate\":0.01,\"noise_multiplier\":1,\"steps\":10,\"delta\":1e-5}\n";
    fs::write(folder.path().join("cases.jsonl"), case).unwrap();
    for line in lines {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = xtask(folder.path()).args(line.split_whitespace()).stdout(full).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}: {text}");
        assert!(text.lines().count() == 1 && text.contains("No space left on device"), "{line}: {text}");
    }
}

#[test]
fn a_path_need_not_be_utf8() {
    let folder = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"o\xff\n1");
    let study = |more: &[&str]| {
        let mut command = xtask(folder.path());
        command.args(STUDY.split_whitespace()).args(["--cache-dir", "cache"]).args(more).arg("--out").arg(name);
        command.output().unwrap()
    };
    let output = study(&[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(folder.path().join(name).join("report.md").exists());
    let report = fs::read(folder.path().join(name).join("report.md")).unwrap();
    assert!(!String::from_utf8_lossy(&report).contains("--out"), "a place of this machine is in no report");
    let script = study(&["--slurm", "2"]);
    assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
    let script = String::from_utf8_lossy(&script.stdout).into_owned();
    assert!(script.contains(r"$'o\377\n1'") && script.lines().all(|line| !line.starts_with('1')), "{script}");
}

#[test]
fn what_cannot_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let begun = Instant::now();
    fs::create_dir(at("data")).unwrap();
    assert!(Command::new("mkfifo").arg(at("data/adult.data")).status().unwrap().success());
    let error = refusal(folder.path(), "data check adult --data-dir data --cache-dir cache");
    assert!(error.contains("broken"), "{error}");
    fs::remove_file(at("data/adult.data")).unwrap();
    symlink("/dev/zero", at("data/adult.data")).unwrap();
    let checked = run(folder.path(), "data check adult dutch --data-dir data --cache-dir cache");
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(text.contains("is not a regular file") && text.contains("\ndutch "), "{text}");
    assert!(refusal(folder.path(), "reproduce adult --from /dev/zero --out o").contains("not a regular file"));
    assert!(refusal(folder.path(), "account --event /dev/zero").contains("/dev/zero"));
    // Whether so short a run can be killed at all depends on the machine's load; the command ends
    // either way.
    let short = run(folder.path(), "crash-test --kills 1 --steps 1");
    let is_refused = String::from_utf8_lossy(&short.stderr).contains("--steps 1 are too short");
    assert!(short.status.success() || is_refused, "{short:?}");
    let error = refusal(folder.path(), "bench step --model lr --mode plain --threads 1000000");
    assert!(error.contains("1000000 is not in 1..=1024"), "{error}");
    let error = refusal(folder.path(), "analyse adult --batches 0");
    assert!(error.contains("0 is not in 2..="), "{error}");
    assert!(begun.elapsed() < Duration::from_mins(2));
}

#[test]
fn what_cannot_be_fetched_is_a_failure_and_errors_say_things_once() {
    let folder = tempfile::tempdir().unwrap();
    let fetched = run(folder.path(), "data fetch eicu --offline --cache-dir cache");
    assert!(!fetched.status.success());
    fs::create_dir_all(folder.path().join("data/dutch_census_2001.arff")).unwrap();
    let error = refusal(folder.path(), "reproduce dutch --quick --data-dir data --cache-dir cache --out o");
    assert!(error.lines().count() == 1 && error.matches("os error").count() <= 1, "{error}");
    assert!(!folder.path().join("o/records.db").exists());
}

#[test]
fn a_plan_is_of_what_is_left_to_train_and_writes_nothing() {
    let folder = with_records();
    let runs = |more: &str| {
        let output = run(folder.path(), &format!("{STUDY} --cache-dir cache --out o --plan {more}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.contains(" runs, ")).unwrap_or_else(|| panic!("{text}")).to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(runs(""), 2);
    assert_eq!(runs("--shard 1/2"), 1);
    assert_eq!(runs("--resume"), 0);
}
