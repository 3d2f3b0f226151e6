//! A study that is killed again and again, and ends as if it had not been.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

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
