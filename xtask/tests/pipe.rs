//! A reader that goes away.

#![cfg(unix)]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

/// As under `| head -1`: the program ends by the signal, without a word. It works for a moment
/// before it prints, so that nobody reads by then.
#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["bench", "step", "--model", "lr", "--mode", "plain", "--steps", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    // SIGPIPE.
    assert_eq!(output.status.signal(), Some(13));
}
