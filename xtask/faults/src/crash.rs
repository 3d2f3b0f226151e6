//! Runs that are killed again and again, and must end as if they had not been.
//!
//! A run keeps a file (a checkpoint) from which it continues when it is started again. It is killed
//! (SIGKILL) after a random time, started again, and so on until it has ended. The file must then
//! be, byte for byte, that of a run that was left alone.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use crate::error::FaultsError;

/// What is killed, and how often.
pub struct CrashTest<'a> {
    /// The command that starts or continues the run in a folder; under a launcher, on so many
    /// processes, if a number is given.
    pub command: &'a dyn Fn(&Path, Option<u16>) -> Command,
    /// The file that a run keeps.
    pub kept: &'a str,
    /// The same while it is being written.
    pub half_written: &'a str,
    /// Kills in all, at least; the run that is then on its way is still brought to its end.
    pub kills: u32,
    /// With more than one, every start is under the launcher, on another number of processes up to
    /// this one, of which one is killed.
    pub ranks: u16,
    /// Seed of the moments at which runs are killed.
    pub seed: u64,
}

/// What happened.
#[derive(Debug, Default, Serialize)]
pub struct Crashes {
    /// Runs that were killed and brought to their end.
    pub runs: u32,
    /// Of those, runs whose kept file is that of the run left alone.
    pub identical: u32,
    /// Kills.
    pub kills: u32,
    /// Kills that left a file half written beside the last whole one.
    pub kills_during_a_write: u32,
    /// Kills before the first whole file of a run.
    pub kills_before_a_checkpoint: u32,
    /// Most kills that one run survived.
    pub most_kills_of_a_run: u32,
    /// Size of the file in bytes.
    pub checkpoint_bytes: u64,
    /// Wall-clock time of the run left alone, in seconds.
    pub uninterrupted_seconds: f64,
    /// Seed of the moments.
    pub seed: u64,
}

/// Kills come up to this share of an uninterrupted run apart: a run then takes several.
const LONGEST_WAIT: f64 = 0.3;
/// Starts in turn without a kill, or without progress, after which runs count as too short: they
/// would be started for ever.
const MOST_FRUITLESS: u32 = 50;

impl CrashTest<'_> {
    /// Kills runs and compares how they end.
    ///
    /// # Errors
    /// [`FaultsError`] if a run fails by itself, if runs are too short to be killed and continued,
    /// or if the machine fails.
    pub fn run(&self) -> Result<Crashes, FaultsError> {
        let mut rng = ChaCha20Rng::seed_from_u64(self.seed);
        let alone = temporary()?;
        let started = Instant::now();
        let status = self.start(alone.path(), None)?.wait().map_err(FaultsError::machine("wait for", alone.path()))?;
        if !status.success() {
            return Err(failed("the run that was left alone", status));
        }
        let uninterrupted = started.elapsed();
        let expected = self.kept_in(alone.path())?;
        let mut crashes = Crashes {
            checkpoint_bytes: expected.len() as u64,
            uninterrupted_seconds: uninterrupted.as_secs_f64(),
            seed: self.seed,
            ..Crashes::default()
        };
        let mut without_kill = 0;
        while crashes.kills < self.kills {
            ensure_killable(without_kill)?;
            let folder = temporary()?;
            let before = crashes.kills;
            self.bring_to_its_end(folder.path(), uninterrupted.mul_f64(LONGEST_WAIT), &mut crashes, &mut rng)?;
            without_kill = if crashes.kills == before { without_kill + 1 } else { 0 };
            crashes.runs += 1;
            crashes.most_kills_of_a_run = crashes.most_kills_of_a_run.max(crashes.kills - before);
            crashes.identical += u32::from(self.kept_in(folder.path())? == expected);
        }
        Ok(crashes)
    }

    fn bring_to_its_end(
        &self,
        folder: &Path,
        longest_wait: Duration,
        crashes: &mut Crashes,
        rng: &mut ChaCha20Rng,
    ) -> Result<(), FaultsError> {
        let (kept, half_written) = (folder.join(self.kept), folder.join(self.half_written));
        let (mut without_progress, mut last): (_, Option<SystemTime>) = (0, None);
        while self.kill_once(longest_wait, folder, rng)? {
            crashes.kills += 1;
            let now = fs::metadata(&kept).and_then(|found| found.modified()).ok();
            (without_progress, last) = if now == last { (without_progress + 1, now) } else { (0, now) };
            ensure_killable(without_progress)?;
            crashes.kills_during_a_write += u32::from(half_written.exists());
            crashes.kills_before_a_checkpoint += u32::from(!kept.exists());
        }
        Ok(())
    }

    /// Starts or continues the run in `folder` and kills it after a random time; false if it came
    /// to its end before.
    fn kill_once(&self, longest_wait: Duration, folder: &Path, rng: &mut ChaCha20Rng) -> Result<bool, FaultsError> {
        let waiting = || FaultsError::machine("wait for the run in", folder);
        let ranks = rng.random_range(1..=self.ranks);
        let mut child = self.start(folder, (self.ranks > 1).then_some(ranks))?;
        if self.ranks > 1 {
            // A launcher takes longer to start processes than they take to end.
            while child.try_wait().map_err(waiting())?.is_none() && processes_of(&child).len() < ranks.into() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        std::thread::sleep(longest_wait.mul_f64(rng.random()));
        if let Some(status) = child.try_wait().map_err(waiting())? {
            return if status.success() { Ok(false) } else { Err(failed("a continued run", status)) };
        }
        let killing = FaultsError::machine("kill the run in", folder);
        match processes_of(&child).choose(rng) {
            // The launcher ends the others.
            Some(process) if self.ranks > 1 => {
                Command::new("kill").args(["-KILL", process]).stderr(Stdio::null()).status().map_err(killing)?;
            }
            _ => child.kill().map_err(killing)?,
        }
        // It may have ended between the look and the kill.
        Ok(!child.wait().map_err(waiting())?.success())
    }

    fn start(&self, folder: &Path, ranks: Option<u16>) -> Result<Child, FaultsError> {
        let mut command = (self.command)(folder, ranks);
        command.stdin(Stdio::null()).spawn().map_err(FaultsError::machine("start the run in", folder))
    }

    fn kept_in(&self, folder: &Path) -> Result<Vec<u8>, FaultsError> {
        let path = folder.join(self.kept);
        fs::read(&path).map_err(FaultsError::machine("read", &path))
    }
}

/// Refuses runs that end before they can be killed, or are killed before they have begun.
fn ensure_killable(fruitless: u32) -> Result<(), FaultsError> {
    if fruitless < MOST_FRUITLESS { Ok(()) } else { Err(FaultsError::TooShort) }
}

fn failed(what: &str, status: std::process::ExitStatus) -> FaultsError {
    FaultsError::Unsound { name: what.to_owned(), reason: status.to_string() }
}

fn temporary() -> Result<tempfile::TempDir, FaultsError> {
    tempfile::tempdir().map_err(FaultsError::machine("create", Path::new("a temporary folder")))
}

/// Numbers of the processes that this one has started.
fn processes_of(child: &Child) -> Vec<String> {
    let id = child.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    children.split_whitespace().map(str::to_owned).collect()
}
