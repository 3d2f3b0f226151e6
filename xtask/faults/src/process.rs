//! Running the program, with or without faults.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::error::FaultsError;

/// The program that is exercised.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// A run that takes longer hangs.
    pub time_limit: Duration,
}

/// The library `fault-shim`.
#[derive(Debug, Clone)]
pub struct Shim {
    /// Its file.
    pub path: PathBuf,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ending {
    /// `None` if it hung.
    pub(crate) status: Option<ExitStatus>,
    /// Standard output.
    pub(crate) output: Vec<u8>,
    pub(crate) errors: String,
}

/// A run that has been started.
pub(crate) struct Running {
    child: Child,
    deadline: Instant,
    /// Files: a pipe that nobody empties would block a program that says much.
    said: tempfile::TempDir,
    path: PathBuf,
}

impl Ending {
    /// Whether the program says that it did what it was asked for.
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// What the program printed.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Its last words.
    pub fn error(&self) -> &str {
        self.errors.lines().last().unwrap_or("(nothing said)")
    }

    pub(crate) fn ensure_success(&self, name: &str) -> Result<(), FaultsError> {
        if self.is_success() {
            return Ok(());
        }
        Err(FaultsError::Unsound { name: name.to_owned(), reason: self.error().to_owned() })
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.errors.contains("panicked at")
    }

    /// One line that begins as an error does.
    pub(crate) fn is_clear(&self) -> bool {
        let mut lines = self.errors.lines();
        lines.next().is_some_and(|line| line.starts_with("error: ")) && lines.next().is_none()
    }

    #[cfg(unix)]
    pub(crate) fn was_killed(&self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        const SIGKILL: i32 = 9;
        self.status.is_some_and(|status| status.signal() == Some(SIGKILL))
    }

    #[cfg(not(unix))]
    pub(crate) fn was_killed(&self) -> bool {
        false
    }
}

impl Program {
    fn command(&self, folder: &Path, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        // A study of the faults is about generated records.
        command.env_remove("DP_DATA_DIR").env("RUST_BACKTRACE", "0");
        command
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// [`FaultsError::Machine`] if it cannot be started.
    pub fn run(&self, folder: &Path, arguments: &[String]) -> Result<Ending, FaultsError> {
        self.start(folder, arguments)?.finish()
    }

    pub(crate) fn start(&self, folder: &Path, arguments: &[String]) -> Result<Running, FaultsError> {
        self.spawn(self.command(folder, arguments))
    }

    fn spawn(&self, mut command: Command) -> Result<Running, FaultsError> {
        let said = tempfile::tempdir().map_err(FaultsError::machine("create", Path::new("a temporary folder")))?;
        let file = |name: &str| {
            let path = said.path().join(name);
            File::create(&path).map_err(FaultsError::machine("create", &path))
        };
        command.stdout(file("output")?).stderr(file("errors")?);
        let child = command.spawn().map_err(FaultsError::machine("start", &self.path))?;
        Ok(Running { child, deadline: Instant::now() + self.time_limit, said, path: self.path.clone() })
    }
}

impl Running {
    pub(crate) fn finish(mut self) -> Result<Ending, FaultsError> {
        let mut pause = Duration::from_millis(2);
        let status = loop {
            match self.child.try_wait().map_err(FaultsError::machine("wait for", &self.path))? {
                Some(status) => break Some(status),
                None if Instant::now() > self.deadline => {
                    self.child.kill().map_err(FaultsError::machine("end", &self.path))?;
                    self.child.wait().map_err(FaultsError::machine("wait for", &self.path))?;
                    break None;
                }
                None => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
            }
        };
        let read = |name: &str| {
            let path = self.said.path().join(name);
            fs::read(&path).map_err(FaultsError::machine("read", &path))
        };
        let errors = String::from_utf8_lossy(&read("errors")?).into_owned();
        Ok(Ending { status, output: read("output")?, errors })
    }
}

impl Shim {
    /// Runs the program and counts the calls that change a file system.
    pub(crate) fn count_calls(
        &self,
        program: &Program,
        folder: &Path,
        arguments: &[String],
    ) -> Result<(Ending, u64), FaultsError> {
        let log = tempfile::NamedTempFile::new().map_err(FaultsError::machine("create", Path::new("a log")))?;
        let mut command = self.preloaded(program, folder, arguments);
        command.env("FAULT_LOG", log.path());
        let ending = program.spawn(command)?.finish()?;
        let calls = fs::metadata(log.path()).map_err(FaultsError::machine("read", log.path()))?.len();
        Ok((ending, calls))
    }

    pub(crate) fn run_with(
        &self,
        program: &Program,
        folder: &Path,
        arguments: &[String],
        deed: &str,
        at: u64,
    ) -> Result<Ending, FaultsError> {
        let mut command = self.preloaded(program, folder, arguments);
        command.env("FAULT_DO", deed).env("FAULT_AT", at.to_string());
        program.spawn(command)?.finish()
    }

    pub(crate) fn run_with_jumping_clock(
        &self,
        program: &Program,
        folder: &Path,
        arguments: &[String],
    ) -> Result<Ending, FaultsError> {
        let mut command = self.preloaded(program, folder, arguments);
        command.env("FAULT_CLOCK", "1");
        program.spawn(command)?.finish()
    }

    fn preloaded(&self, program: &Program, folder: &Path, arguments: &[String]) -> Command {
        let mut command = program.command(folder, arguments);
        command.env("LD_PRELOAD", &self.path);
        command
    }
}
