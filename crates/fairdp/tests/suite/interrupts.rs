//! Signals: what they leave behind, what is said, and how it goes on.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::program::{declared, done, program, refused, text};

fn started(here: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairdp"));
    command.current_dir(here).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn send(signal: &str, child: &Child) {
    let status = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn wait_for(is_there: impl Fn() -> bool) {
    for _ in 0..120_000 {
        if is_there() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(is_there(), "it did not happen within two minutes");
}

/// A network, whose training takes its time.
fn network(config: &str) -> String {
    config.replace("kind = \"auto\"", "kind = \"mlp\"").replace("name = \"auto\"", "name = \"auto\"\nsteps = 300")
}

fn log(here: &Path) -> String {
    fs::read_to_string(here.join("run/private/log.txt")).unwrap_or_default()
}

fn interrupted(here: &Path, arguments: &[&str], signal: &str) -> Output {
    let child = started(here, arguments);
    wait_for(|| log(here).contains("step 1 of "));
    send(signal, &child);
    child.wait_with_output().unwrap()
}

#[test]
fn a_signal_says_what_is_kept_and_how_to_go_on() {
    let folder = declared(6_000, |config| network(&config));
    let here = folder.path();
    let fit = ["fit", "fairdp.toml", "--out", "run", "--seed", "1"];
    let output = interrupted(here, &fit, "TERM");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    for expected in [
        "interrupted at step ",
        " of 300 (SIGTERM)\n",
        "the key of its noise",
        "\ngo on: fairdp fit fairdp.toml --out run --seed 1 --resume\n",
    ] {
        assert!(message.contains(expected), "{expected}: {message}");
    }
    assert!(log(here).lines().last().unwrap().contains("  interrupted at step "), "{}", log(here));
    for command in [&["verify", "run"][..], &["report", "run"], &["predict", "run", "table.csv", "--out", "p.csv"]] {
        let (code, message) = refused(here, command);
        assert!(code == 1 && message.contains("`run` has no release: it was interrupted at step "), "{code} {message}");
    }
    let output = program(here, &["verify", "run", "--json"]);
    assert!(text(&output.stdout).contains("interrupted at step"), "{}", text(&output.stdout));

    // Whoever starts it again until it has ended need not know when that was.
    let resumed = [&fit[..], &["--resume"]].concat();
    let changed = fs::read_to_string(here.join("fairdp.toml")).unwrap().replace("steps = 300", "steps = 20");
    done(here, &resumed);
    let said = done(here, &resumed);
    assert!(said.contains("nothing was left to do"), "{said}");
    let (code, message) = refused(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "2", "--resume"]);
    assert!(code == 3 && message.contains("holds a release"), "{message}");
    fs::write(here.join("changed.toml"), changed).unwrap();
    assert_eq!(refused(here, &["fit", "changed.toml", "--out", "run", "--seed", "1", "--resume"]).0, 3);
    done(here, &["verify", "run"]);
    let log = log(here);
    let events =
        ["a fit of fairdp.toml begins", "interrupted at step ", "resumed, at step ", "step 300 of 300", "done"];
    let places: Vec<_> = events.iter().map(|event| log.find(event)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{log}");
    assert!(log.lines().all(|line| line.starts_with("20") && line.as_bytes()[19] == b'Z'), "{log}");
}

/// Nothing is lost but the time: the log is there, and the same command begins anew, with `--resume` and without.
#[test]
fn before_the_first_step_the_log_is_kept() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    fs::write(here.join("table.csv"), done(here, &["example", "--rows", "400000"])).unwrap();
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap().replace("delta = 1e-5", "delta = 1e-6");
    fs::write(here.join("fairdp.toml"), config).unwrap();
    let fit = ["fit", "fairdp.toml", "--out", "run", "--seed", "1"];
    for more in [&[][..], &["--resume"], &[]] {
        let before = log(here).len();
        let child = started(here, &[&fit[..], more].concat());
        wait_for(|| log(here)[before..].contains("reading"));
        send("TERM", &child);
        let output = child.wait_with_output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{message}");
        for expected in [
            "interrupted before the first step (SIGTERM)\n",
            "kept: run/private has the log; no noise was drawn\n",
            "go on: fairdp fit fairdp.toml --out run --seed 1 --resume\n",
        ] {
            assert!(message.contains(expected), "{expected}: {message}");
        }
        let (code, message) = refused(here, &["verify", "run"]);
        assert!(code == 1 && message.contains("it was interrupted before the first step"), "{message}");
    }
    assert_eq!(log(here).matches("a fit of fairdp.toml begins").count(), 3, "{}", log(here));
}

/// A signal ends what reads a table or attacks a run, too, and leaves nothing of it.
#[test]
fn other_commands_end_in_order() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q"]);
    fs::write(here.join("long.csv"), done(here, &["example", "--rows", "400000"])).unwrap();
    for arguments in [
        &["init", "long.csv", "--label", "outcome", "--out", "made"][..],
        &["drift", "run", "long.csv"],
        &["evaluate", "run", "long.csv", "--epsilon", "1", "--out", "made"],
        &["audit", "fairdp.toml", "--repeats", "200000", "--out", "made"],
    ] {
        let child = started(here, arguments);
        wait_for(|| handles_signals(&child));
        send("TERM", &child);
        let output = child.wait_with_output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{arguments:?}: {message}");
        assert!(message.ends_with("error: interrupted (SIGTERM): no file was written\n"), "{arguments:?}: {message}");
        assert!(!here.join("made").exists(), "{arguments:?}");
    }
}

/// Whether a signal is in one of a process' sets; `None` where the system does not say.
fn is_in(set: &str, process: &str, number: u32) -> Option<bool> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let bits = status.lines().find_map(|line| line.strip_prefix(set))?;
    Some(u64::from_str_radix(bits.trim(), 16).unwrap() >> (number - 1) & 1 == 1)
}

/// Whether this program, and so what it starts, ignores a signal: a shell's jobs in the background do.
fn is_ignored(number: u32) -> bool {
    is_in("SigIgn:", "self", number) == Some(true)
}

/// Whether a command has come to where it ends in order; where the system does not say, after a while.
fn handles_signals(child: &Child) -> bool {
    // Of the signals that it installs, HUP is the last, unless it is ignored.
    let last = if is_ignored(1) { 15 } else { 1 };
    is_in("SigCgt:", &child.id().to_string(), last).unwrap_or_else(|| {
        std::thread::sleep(Duration::from_millis(150));
        true
    })
}

#[test]
fn every_signal_ends_a_fit_in_order() {
    for (signal, _) in [("INT", 2), ("HUP", 1)].into_iter().filter(|(_, number)| !is_ignored(*number)) {
        let folder = declared(6_000, |config| network(&config));
        let output = interrupted(folder.path(), &["fit", "fairdp.toml", "--out", "run", "-q"], signal);
        let message = text(&output.stderr);
        assert!(output.status.code() == Some(130) && message.contains(&format!("(SIG{signal})")), "{message}");
    }
}

/// A pipe on which nothing comes holds up the end in order; a second signal does not wait for it.
#[test]
fn a_second_signal_ends_it_at_once() {
    let folder = declared(2_500, |config| config.replace("table.csv", "-"));
    let here = folder.path();
    let child = started(here, &["fit", "fairdp.toml", "--out", "run"]);
    wait_for(|| here.join("run/private/log.txt").exists());
    std::thread::sleep(Duration::from_millis(200));
    send("TERM", &child);
    std::thread::sleep(Duration::from_millis(500));
    send("TERM", &child);
    // Its standard input is held open until it has ended.
    let mut child = child;
    let input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert!(!output.status.success() && output.status.code().is_none(), "{:?}", output.status);
    assert!(text(&output.stderr).contains("another one ends it at once"), "{}", text(&output.stderr));
}

#[test]
fn nothing_stays_of_predictions_that_a_signal_ended() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q"]);
    fs::write(here.join("long.csv"), done(here, &["example", "--rows", "400000"])).unwrap();
    let names = || -> Vec<String> {
        fs::read_dir(here).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let before = names();
    let child = started(here, &["predict", "run", "long.csv", "--out", "p.csv"]);
    wait_for(|| names().len() > before.len());
    send("TERM", &child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(names().len(), before.len(), "{:?}", names());
}
