//! Programs that a release is built with: Cargo, and tools of Python in a folder of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use run_records::output::Output;

/// Builds wheels; links programs for another system or an old one; says what a wheel needs, makes it
/// smaller; checks workflows.
const PACKAGES: [&str; 7] = [
    "maturin>=1.16,<2",
    "ziglang>=0.15,<0.18",
    "cargo-zigbuild>=0.23,<1",
    "auditwheel>=6,<7",
    "zopfli>=0.4,<1",
    "check-jsonschema",
    "zizmor",
];

/// Where the tools are.
#[derive(Debug)]
pub(super) struct Tools {
    root: PathBuf,
    environment: PathBuf,
}

impl Tools {
    /// The tools of this workspace. None is installed yet.
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), environment: root.join("target/release-tools") }
    }

    /// A tool of Python, run in the workspace. All are installed when the first is asked for.
    ///
    /// # Errors
    /// If they cannot be installed.
    pub(super) fn python_tool(&self, name: &str) -> anyhow::Result<Command> {
        let programs = programs_of(&self.environment);
        let (packages, installed) = (PACKAGES.join("\n"), self.environment.join("packages.txt"));
        if fs::read_to_string(&installed).ok().as_ref() != Some(&packages) {
            let python = pythons().into_iter().next().context("no Python 3.10 or newer with venv was found on PATH")?;
            finish(Command::new(python).args(["-m", "venv"]).arg(&self.environment))?;
            finish(Command::new(programs.join("python")).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES))?;
            Output::new(&installed, &[])?.write_bytes(packages.as_bytes())?;
        }
        let mut command = Command::new(programs.join(name));
        command.current_dir(&self.root).env("PATH", with_first(&programs)?);
        Ok(command)
    }

    /// What is built: the commit of the workspace, and whether its files differ from it.
    pub(super) fn commit(&self) -> String {
        let mut git = Command::new("git");
        git.args(["describe", "--always", "--dirty=, with changes that are not committed", "--exclude=*"]);
        match output(git.current_dir(&self.root)) {
            Ok(told) => format!("commit {}", told.trim()),
            Err(_) => "of no known commit".to_owned(),
        }
    }

    /// Cargo, in the workspace.
    pub(super) fn cargo(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        command
    }
}

/// Where an environment of Python has its programs.
pub(super) fn programs_of(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts" } else { "bin" })
}

/// Every Python from 3.10 on that can make environments: its program, oldest first.
pub(super) fn pythons() -> Vec<String> {
    let works = |name: &String| {
        let test = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))";
        Command::new(name).args(["-c", test]).output().is_ok_and(|output| output.status.success())
    };
    let numbered: Vec<String> = (10..=20).map(|minor| format!("python3.{minor}")).filter(works).collect();
    if numbered.is_empty() {
        ["python3", "python"].map(String::from).into_iter().filter(works).take(1).collect()
    } else {
        numbered
    }
}

/// The search path with a folder at its head.
///
/// # Errors
/// If the name of the folder has the character that separates folders.
pub(super) fn with_first(folder: &Path) -> anyhow::Result<std::ffi::OsString> {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&rest)))?)
}

/// Runs a command to its end, with its output on this terminal.
///
/// # Errors
/// If it cannot be started or fails.
pub(super) fn finish(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("starting {}", named(command)))?;
    ensure!(status.success(), "{}: {status}", named(command));
    Ok(())
}

/// Runs a command to its end and returns what it printed.
///
/// # Errors
/// If it cannot be started or fails; what it printed is part of the message.
pub(super) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("starting {}", named(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "{}: {}\n{text}{}",
        named(command),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(text)
}

/// A command as it is typed.
fn named(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
