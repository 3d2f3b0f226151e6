//! Where a run is, so that one that was killed ends as the run left alone, bit for bit.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{FairdpError, Result};
use crate::key::Key;
use crate::output::{self, Readers};
use crate::seal::{sealed, sha256, unsealed};
use crate::solver::State;

/// Of checkpoints.
const VERSION: u32 = 1;
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
    /// The table by a name under the key, once it was read: the same noise on other records would take the noise off.
    table: Option<String>,
    state: Option<State>,
}

/// The checkpoint of one run.
pub(crate) struct Checkpoints {
    path: PathBuf,
    pub(crate) checkpoint: Checkpoint,
    written: Instant,
}

impl Checkpoints {
    /// A new run, or the one that was killed.
    pub(crate) fn begin(private: &Path, config: &str, seed: Option<u64>, resume: bool) -> Result<Self> {
        let path = private.join("checkpoint.json");
        let config = sha256(config.as_bytes());
        let found = resume && path.exists();
        let checkpoint = if found {
            let text = fs::read_to_string(&path).map_err(FairdpError::io("read", &path))?;
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
            checkpoint
        } else {
            Checkpoint { version: VERSION, key: Key::new(seed)?, config, table: None, state: None }
        };
        let mut checkpoints = Self { path, checkpoint, written: Instant::now() };
        if !found {
            checkpoints.write()?;
        }
        Ok(checkpoints)
    }

    /// Compares the table with the one that the run began with.
    pub(crate) fn bind(&mut self, table: String) -> Result<Option<State>> {
        match &self.checkpoint.table {
            Some(known) if *known != table => {
                return Err(FairdpError::Refused("the table is not the one that the run began with".into()));
            }
            Some(_) => {}
            None => {
                self.checkpoint.table = Some(table);
                self.write()?;
            }
        }
        Ok(self.checkpoint.state.take())
    }

    /// Writes a checkpoint if the last one is old.
    pub(crate) fn save(&mut self, state: &State) -> Result<()> {
        if self.written.elapsed() >= INTERVAL {
            self.checkpoint.state = Some(state.clone());
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        output::write(&self.path, sealed(&self.checkpoint)?.as_bytes(), Readers::Owner)?;
        self.written = Instant::now();
        Ok(())
    }

    /// The run has ended: nobody needs the key any more.
    pub(crate) fn end(self) -> Result<()> {
        let beside = self.path.with_file_name(TRAINER_CHECKPOINT);
        if beside.exists() {
            fs::remove_file(&beside).map_err(FairdpError::io("remove", &beside))?;
        }
        fs::remove_file(&self.path).map_err(FairdpError::io("remove", &self.path))
    }
}
