//! Where a run is, so that one that was killed ends as the run left alone, bit for bit.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dp_train::ranks::Collective;
use serde::{Deserialize, Serialize};

use crate::error::{FairdpError, Result};
use crate::input;
use crate::key::Key;
use crate::output::{self, Readers};
use crate::seal::{sealed, sha256, unsealed};
use crate::solver::State;

const NAME: &str = "checkpoint.json";
/// Of checkpoints.
const VERSION: u32 = 2;
/// Time between two checkpoints.
const INTERVAL: Duration = Duration::from_secs(1);

/// The file in which `dp_train` keeps where it is, beside `checkpoint.json`.
pub(super) const TRAINER_CHECKPOINT: &str = "training.safetensors";

/// `private/checkpoint.json`: as secret as the noise; removed when the run has ended.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    version: u32,
    pub(crate) key: Key,
    /// sha256 of the configuration.
    config: String,
    /// What decides how sums are rounded: the same noise on figures that are rounded otherwise would
    /// take the noise off.
    arithmetic: String,
    /// The tables by names under the key, once they were read: the same noise on other records would
    /// take it off, too.
    tables: Option<String>,
    /// Whether the run has entered the ledger, or was about to.
    #[serde(default)]
    entered: bool,
    state: Option<State>,
}

/// The checkpoint of one run.
pub(crate) struct Checkpoints {
    /// Of rank 0; the others write none.
    path: Option<PathBuf>,
    pub(crate) checkpoint: Checkpoint,
    written: Instant,
}

impl Checkpoints {
    /// A new run, or the one that was killed: on every rank that of rank 0.
    pub(crate) fn of_ranks(
        private: &Path,
        (config, arithmetic): (&str, &str),
        seed: Option<u64>,
        resume: bool,
        ranks: &dyn Collective,
    ) -> Result<Self> {
        if ranks.size() == 1 {
            return Self::begin(private, (config, arithmetic), seed, resume);
        }
        if ranks.rank() == 0 {
            let checkpoints = Self::begin(private, (config, arithmetic), seed, resume)?;
            ranks.broadcast(sealed(&checkpoints.checkpoint)?.into_bytes())?;
            return Ok(checkpoints);
        }
        let text = String::from_utf8_lossy(&ranks.broadcast(Vec::new())?).into_owned();
        let checkpoint: Checkpoint = unsealed(Path::new("checkpoint of rank 0"), &text)?;
        if checkpoint.config != sha256(config.as_bytes()) {
            return Err(FairdpError::Refused(format!("rank {} has another configuration than rank 0", ranks.rank())));
        }
        Ok(Self { path: None, checkpoint, written: Instant::now() })
    }

    fn begin(private: &Path, (config, arithmetic): (&str, &str), seed: Option<u64>, resume: bool) -> Result<Self> {
        let path = private.join(NAME);
        let config = sha256(config.as_bytes());
        let found = resume && path.exists();
        let checkpoint = if found {
            let text = input::text(&path)?;
            let checkpoint: Checkpoint = unsealed(&path, &text)?;
            let differs = |what: &str| {
                Err(FairdpError::Refused(format!("{} is of another {what}: it cannot be continued", path.display())))
            };
            if checkpoint.version != VERSION {
                let problem = format!("version {}: this program reads {VERSION}", checkpoint.version);
                return Err(FairdpError::file(&path, problem));
            }
            if checkpoint.config != config {
                return differs("configuration");
            }
            if seed.is_some() && checkpoint.key.seed != seed {
                return differs("seed");
            }
            if checkpoint.arithmetic != arithmetic {
                return differs("program or kind of processor");
            }
            checkpoint
        } else {
            Checkpoint {
                version: VERSION,
                key: Key::new(seed)?,
                config,
                arithmetic: arithmetic.to_owned(),
                tables: None,
                entered: false,
                state: None,
            }
        };
        let mut checkpoints = Self { path: Some(path), checkpoint, written: Instant::now() };
        if !found {
            checkpoints.write()?;
        }
        Ok(checkpoints)
    }

    /// Whether the run in this folder has not read its table yet, nor entered a ledger: nothing was
    /// made of its records.
    pub(crate) fn is_unspent(private: &Path) -> bool {
        let path = private.join(NAME);
        let read = || unsealed::<Checkpoint>(&path, &input::text(&path)?);
        read().is_ok_and(|checkpoint| checkpoint.tables.is_none() && !checkpoint.entered)
    }

    /// Notes whether the run has entered the ledger, before it does so, and says what was noted
    /// before. A run that ends in between is entered when it is continued.
    pub(crate) fn note_entry(&mut self, entered: bool) -> Result<bool> {
        let before = std::mem::replace(&mut self.checkpoint.entered, entered);
        if before != entered {
            self.write()?;
        }
        Ok(before)
    }

    /// Compares the tables with those that the run began with.
    pub(crate) fn bind(&mut self, tables: String) -> Result<Option<State>> {
        match &self.checkpoint.tables {
            Some(known) if *known != tables => {
                let problem = "the training or the test table is not the one that the run began with";
                return Err(FairdpError::Refused(problem.into()));
            }
            Some(_) => {}
            None => {
                self.checkpoint.tables = Some(tables);
                self.write()?;
            }
        }
        Ok(self.checkpoint.state.take())
    }

    /// Writes a checkpoint if the last one is old.
    pub(crate) fn save(&mut self, state: &State) -> Result<()> {
        if self.path.is_some() && self.written.elapsed() >= INTERVAL {
            self.checkpoint.state = Some(state.clone());
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        if let Some(path) = &self.path {
            output::write(path, sealed(&self.checkpoint)?.as_bytes(), Readers::Owner)?;
        }
        self.written = Instant::now();
        Ok(())
    }

    /// The run has ended: nobody needs the key any more.
    pub(crate) fn end(self) -> Result<()> {
        let Some(path) = self.path else { return Ok(()) };
        let beside = path.with_file_name(TRAINER_CHECKPOINT);
        if beside.exists() {
            fs::remove_file(&beside).map_err(FairdpError::io("remove", &beside))?;
        }
        fs::remove_file(&path).map_err(FairdpError::io("remove", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_under_its_own_program_and_tables() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |arithmetic, resume| Checkpoints::begin(folder.path(), ("config", arithmetic), Some(1), resume);
        begin("one", false).unwrap().bind("training test".into()).unwrap();
        let refusal = |found: Result<()>| found.unwrap_err().to_string();
        assert!(refusal(begin("another", true).map(drop)).contains("another program or kind of processor"));
        let mut resumed = begin("one", true).unwrap();
        assert!(refusal(resumed.bind("training other".into()).map(drop)).contains("the test table is not the one"));
        resumed.bind("training test".into()).unwrap();
    }
}
