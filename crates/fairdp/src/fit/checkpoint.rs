//! Checkpoints of a run: a killed run that is continued ends with the same bits as one left alone.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dp_linear::State;
use serde::{Deserialize, Serialize};

use super::FitOptions;
use crate::config::ConfigText;
use crate::error::{FairdpError, Result};
use crate::input;
use crate::key::{DrawnKey, NoiseBinding, NoiseKey};
use crate::output::{self, Readers};
use crate::seal::{sealed, sha256, unsealed};

const NAME: &str = "checkpoint.json";
/// The version of checkpoints.
const VERSION: u32 = 4;
/// Time between two checkpoints.
const INTERVAL: Duration = Duration::from_secs(1);

/// The file in which `dp_train` keeps where it is, beside `checkpoint.json`.
pub(super) const TRAINER_CHECKPOINT: &str = "training.safetensors";

/// `private/checkpoint.json`: as secret as the noise; removed when the run has ended. A key is in
/// it together with what it is bound to: a run that was killed before has no file, and draws
/// another key when it is continued.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Checkpoint {
    version: u32,
    key: DrawnKey,
    /// The name under the key of the records and the configuration.
    bound_to: String,
    inputs: RunInputs,
    /// ε of the run, which may be what a ledger had left.
    epsilon: f64,
    /// Whether the run has entered the ledger, or was about to.
    entered: bool,
    state: Option<State>,
}

/// Inputs that a continued run must share with the run that began.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunInputs {
    /// sha256 of the configuration.
    config: String,
    /// Everything that decides how sums are rounded. The same noise on figures that are rounded
    /// differently would reveal them.
    arithmetic: String,
}

/// The message of rank 0 to the others.
#[derive(Serialize, Deserialize)]
struct StartMessage {
    key: DrawnKey,
    inputs: RunInputs,
    checkpoint: Option<Checkpoint>,
}

/// The checkpoint of one run.
pub(crate) struct Checkpoints {
    /// The file of rank 0; the others write none.
    path: Option<PathBuf>,
    key: DrawnKey,
    inputs: RunInputs,
    epsilon: f64,
    /// The content of the file, once the key is bound.
    checkpoint: Option<Checkpoint>,
    written: Instant,
}

impl Checkpoints {
    /// A new run, or the one that was killed: on every rank that of rank 0.
    pub(crate) fn of_ranks(
        private: &Path,
        document: &ConfigText<'_>,
        arithmetic: &str,
        options: &FitOptions,
    ) -> Result<Self> {
        let FitOptions { seed, resume, .. } = *options;
        let ranks = &*options.ranks;
        let inputs = RunInputs { config: sha256(document.text.as_bytes()), arithmetic: arithmetic.to_owned() };
        let epsilon = document.config.privacy.epsilon;
        if ranks.size() == 1 {
            return Self::begin(private, inputs, epsilon, seed, resume);
        }
        if ranks.rank() == 0 {
            let mut found = Self::begin(private, inputs, epsilon, seed, resume)?;
            let start = StartMessage { key: found.key, inputs: found.inputs, checkpoint: found.checkpoint };
            ranks.broadcast(sealed(&start)?.into_bytes())?;
            (found.key, found.inputs, found.checkpoint) = (start.key, start.inputs, start.checkpoint);
            return Ok(found);
        }
        let text = String::from_utf8_lossy(&ranks.broadcast(Vec::new())?).into_owned();
        let start: StartMessage = unsealed(Path::new("checkpoint of rank 0"), &text)?;
        if let Some(what) = inputs.differ_from(&start.inputs) {
            return Err(FairdpError::RanksDiffer { rank: ranks.rank(), input: what });
        }
        Ok(Self { path: None, key: start.key, inputs, epsilon, checkpoint: start.checkpoint, written: Instant::now() })
    }

    fn begin(private: &Path, inputs: RunInputs, epsilon: f64, seed: Option<u64>, resume: bool) -> Result<Self> {
        let path = private.join(NAME);
        let found = if resume && path.exists() { Some(Checkpoint::read(&path)?) } else { None };
        let key = match &found {
            Some(known) => {
                let differs = match known.inputs.differ_from(&inputs) {
                    None if seed.is_some() && known.key.seed != seed => Some("seed"),
                    differs => differs,
                };
                if let Some(input) = differs {
                    return Err(FairdpError::OtherInput { input });
                }
                known.key.clone()
            }
            None => DrawnKey::new(seed)?,
        };
        Ok(Self { path: Some(path), key, inputs, epsilon, checkpoint: found, written: Instant::now() })
    }

    /// ε of the run in this folder, once its key is bound.
    pub(crate) fn epsilon(private: &Path) -> Result<Option<f64>> {
        let path = private.join(NAME);
        if path.exists() { Checkpoint::read(&path).map(|known| Some(known.epsilon)) } else { Ok(None) }
    }

    /// Whether no key of a run in this folder was ever bound: no noise was drawn.
    pub(crate) fn is_unspent(private: &Path) -> bool {
        !private.join(NAME).exists()
    }

    /// The key that divides the records.
    pub(crate) fn drawn(&self) -> &DrawnKey {
        &self.key
    }

    /// Binds the key to the records, before the first draw; asked again, compares them with those
    /// that it is bound to.
    pub(crate) fn bind(&mut self, bound: &NoiseBinding) -> Result<NoiseKey> {
        let name = self.key.name_of(bound);
        match &self.checkpoint {
            Some(known) if known.bound_to != name => {
                return Err(FairdpError::OtherInput { input: "training or the test table" });
            }
            Some(_) => {}
            None => {
                let (key, inputs, epsilon) = (self.key.clone(), self.inputs.clone(), self.epsilon);
                self.checkpoint = Some(Checkpoint {
                    version: VERSION,
                    key,
                    bound_to: name,
                    inputs,
                    epsilon,
                    entered: false,
                    state: None,
                });
                self.write()?;
            }
        }
        Ok(self.key.bind(bound))
    }

    /// Notes whether the run has entered the ledger, before it does so, and says what was noted
    /// before. A run that ends in between is entered when it is continued.
    pub(crate) fn note_entry(&mut self, entered: bool) -> Result<bool> {
        let Some(checkpoint) = &mut self.checkpoint else { return Err(unbound()) };
        let before = std::mem::replace(&mut checkpoint.entered, entered);
        if before != entered {
            self.write()?;
        }
        Ok(before)
    }

    /// Removes the key, which has made no noise and is not needed any more.
    pub(crate) fn withdraw(&mut self) -> Result<()> {
        self.checkpoint = None;
        self.path.as_ref().map_or(Ok(()), |path| output::remove(path))
    }

    /// The state of a run that is continued.
    pub(crate) fn take_state(&mut self) -> Option<State> {
        self.checkpoint.as_mut()?.state.take()
    }

    /// Writes a checkpoint if the last one is old.
    pub(crate) fn save(&mut self, state: &State) -> Result<()> {
        if self.path.is_some() && self.written.elapsed() >= INTERVAL {
            self.checkpoint.as_mut().ok_or_else(unbound)?.state = Some(state.clone());
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        if let (Some(path), Some(checkpoint)) = (&self.path, &self.checkpoint) {
            output::write(path, sealed(checkpoint)?.as_bytes(), Readers::Owner)?;
        }
        self.written = Instant::now();
        Ok(())
    }

    /// Removes the key of a run that has ended.
    pub(crate) fn forget(private: &Path) -> Result<()> {
        for name in [TRAINER_CHECKPOINT, NAME] {
            output::remove(&private.join(name))?;
        }
        Ok(())
    }
}

fn unbound() -> FairdpError {
    FairdpError::Internal("the key of the run is bound to no table yet".into())
}

impl Checkpoint {
    fn read(path: &Path) -> Result<Self> {
        let checkpoint: Self = unsealed(path, &input::text(path)?)?;
        if checkpoint.version != VERSION {
            let problem = format!("version {}: this program reads {VERSION}", checkpoint.version);
            return Err(FairdpError::file(path, problem));
        }
        Ok(checkpoint)
    }
}

impl RunInputs {
    fn differ_from(&self, other: &Self) -> Option<&'static str> {
        if self.config != other.config {
            return Some("configuration");
        }
        (self.arithmetic != other.arithmetic).then_some("program, device or kind of processor")
    }
}

#[cfg(test)]
mod tests {
    use dp_table::RowsDigest;

    use super::*;

    #[test]
    fn a_run_goes_on_under_its_own_program_and_tables() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |arithmetic: &str, resume| {
            let inputs = RunInputs { config: sha256(b"config"), arithmetic: arithmetic.to_owned() };
            Checkpoints::begin(folder.path(), inputs, 1.0, Some(1), resume)
        };
        let bound = |config| NoiseBinding::new(RowsDigest::default(), None, config);
        begin("one", false).unwrap().bind(&bound("training")).unwrap();
        let refusal = |found: Result<()>| found.unwrap_err().to_string();
        assert!(refusal(begin("another", true).map(drop)).contains("the program, device or kind of processor is not"));
        let mut resumed = begin("one", true).unwrap();
        assert!(refusal(resumed.bind(&bound("other")).map(drop)).contains("the test table is not the one"));
        resumed.bind(&bound("training")).unwrap();
    }
}
