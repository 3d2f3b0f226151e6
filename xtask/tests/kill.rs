//! A study that is killed again and again, and ends as if it had not been.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dp_table::Example;

/// A study of one second or so, on generated or real records, with nothing random but the moments
/// of the kills.
fn reproduce(out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .args(["reproduce", "adult", "--quick", "--seeds", "3", "--table", "xu2021-table-1", "--seed", "5"])
        .args(["--threads", "2", "--offline", "--out"])
        .arg(out)
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The example of docs/compare.md and its table: 3 methods at 2 ε, with 3 seeds in place of 5, on fewer
/// customers.
fn write_comparison(folder: &Path) -> std::io::Result<()> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/compare.md"))?;
    let example = page.split("```").find_map(|block| block.strip_prefix("toml\n")).unwrap_or_default();
    assert!(example.contains("\nseeds = 5\n"));
    let example = example.replace("\nseeds = 5\n", "\nseeds = 3\n").replace("batch_size = 256", "batch_size = 32");
    std::fs::write(folder.join("customers.toml"), example)?;
    let mut table = Vec::new();
    Example { rows: 400, columns: 8, seed: 1 }.write(&mut table)?;
    std::fs::write(folder.join("customers.csv"), table)
}

fn compare(folder: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .arg("compare")
        .arg(folder.join("customers.toml"))
        .args(["--seed", "5", "--threads", "2", "--out"])
        .arg(out)
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn exported(records: &Path, table: &str) -> std::io::Result<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["results", "export", "--table", table])
        .arg(records)
        .stderr(Stdio::inherit())
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn assert_same_records(one: &Path, other: &Path) -> std::io::Result<()> {
    for table in ["metrics", "epochs", "thresholds"] {
        let (one, other) = (exported(one, table)?, exported(other, table)?);
        assert!(one.lines().count() > 10, "{table}: {one}");
        assert!(one == other, "{table} differs");
    }
    Ok(())
}

/// Kills ever later until the study has ended: the first before it has begun, the last after most
/// runs are stored. When a kill falls depends on the machine; what is stored in the end must not.
#[test]
fn killed_studies_and_shards_end_with_the_same_records() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed, parts) =
        (folder.path().join("whole"), folder.path().join("killed"), folder.path().join("parts"));
    assert!(reproduce(&whole, &[]).status().unwrap().success());
    let mut wait = Duration::from_millis(100);
    loop {
        let mut child = reproduce(&killed, &["--resume"]).spawn().unwrap();
        std::thread::sleep(wait);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        wait += wait / 2;
    }
    assert!(reproduce(&killed, &["--resume"]).status().unwrap().success(), "nothing is left to train");
    assert_same_records(&whole.join("records.db"), &killed.join("records.db")).unwrap();

    for part in ["1/2", "2/2"] {
        assert!(reproduce(&parts, &["--shard", part]).status().unwrap().success());
    }
    let merged = parts.join("records.db");
    let status = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["results", "merge"])
        .arg(&merged)
        .args(["1-of-2", "2-of-2"].map(|part| parts.join(format!("records.shard-{part}.db"))))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert_same_records(&whole.join("records.db"), &merged).unwrap();
    assert!(reproduce(&parts, &["--resume"]).status().unwrap().success());
    assert!(parts.join("report.html").exists(), "the report is made from the merged records");
}

/// A comparison that a file describes, with a search in it: killed twice, at a quarter of the time that
/// the whole takes.
#[test]
fn a_killed_comparison_ends_with_the_same_records() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    write_comparison(folder.path()).unwrap();
    let started = Instant::now();
    assert!(compare(folder.path(), &whole, &[]).status().unwrap().success());
    let quarter = started.elapsed() / 4;
    for _ in 0..2 {
        let mut child = compare(folder.path(), &killed, &["--resume"]).spawn().unwrap();
        std::thread::sleep(quarter);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(compare(folder.path(), &killed, &["--resume"]).status().unwrap().success());
    assert_same_records(&whole.join("records.db"), &killed.join("records.db")).unwrap();
    assert!(killed.join("report.html").exists());
}
