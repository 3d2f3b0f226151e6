//! Checkpoints: everything a run needs to go on as if it had never been interrupted.

pub(crate) mod difference;
mod header;
mod tensors;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use header::{DataDigests, ExecutionState, to_value};
use header::{Header, PatienceState, VERSION};
use serde_json::Value;
use tensors::{Group, TensorFile};
use whole_file::{Readers, WholeFile};

use crate::error::{Result, TrainError};
use crate::ranks::Alone;
use crate::stream_state::StreamState;
use crate::trainer::Trainer;

/// Where a run keeps its checkpoint, and how often it writes one.
///
/// **Example**
/// ```
/// use dp_train::{CheckpointInterval, Checkpoints};
/// let checkpoints = Checkpoints::new("run.safetensors", CheckpointInterval::Seconds(60));
/// assert_eq!(checkpoints.path().to_str(), Some("run.safetensors"));
/// ```
#[derive(Debug, Clone)]
pub struct Checkpoints {
    path: PathBuf,
    interval: CheckpointInterval,
    at_the_end: bool,
    last: Instant,
    code_revision: Option<String>,
}

/// How often a checkpoint is written. Besides, one is written at the end of a run, unless
/// [`Checkpoints::not_at_the_end`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckpointInterval {
    /// After this many steps, at least 1.
    Steps(u64),
    /// After the step at which this many seconds have passed since the last one; 0 for every step.
    Seconds(u64),
}

impl Checkpoints {
    /// A checkpoint at this path. Its folder must exist; a file that is there is replaced.
    pub fn new(path: impl Into<PathBuf>, interval: CheckpointInterval) -> Self {
        Self { path: path.into(), interval, at_the_end: true, last: Instant::now(), code_revision: None }
    }

    /// The same with the revision of the program noted in every checkpoint. It is not compared when
    /// one is restored.
    #[must_use]
    pub fn noting_revision(self, code_revision: impl Into<String>) -> Self {
        Self { code_revision: Some(code_revision.into()), ..self }
    }

    /// The same without a checkpoint at the end of the run, for a run whose outcome is kept
    /// elsewhere.
    #[must_use]
    pub fn not_at_the_end(self) -> Self {
        Self { at_the_end: false, ..self }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if self.interval == CheckpointInterval::Steps(0) {
            return Err(TrainError::invalid("checkpoint interval in steps", 0, "at least 1"));
        }
        Ok(())
    }

    /// Whether a checkpoint is to be written after `steps` steps, of which the last one `is_last`.
    /// If so, the interval starts anew.
    pub(crate) fn is_due(&mut self, steps: u64, is_last: bool) -> bool {
        if is_last {
            return self.at_the_end;
        }
        let due = match self.interval {
            CheckpointInterval::Steps(every) => steps.is_multiple_of(every),
            CheckpointInterval::Seconds(seconds) => self.last.elapsed() >= Duration::from_secs(seconds),
        };
        if due {
            self.last = Instant::now();
        }
        due
    }
}

impl Trainer<'_> {
    /// Writes everything the run needs to go on: parameters, moments of the optimiser, threshold of
    /// the clipping method, keys and positions of all random streams (with them the sampler's),
    /// ledger, counters and what early stopping remembers.
    ///
    /// The file is a safetensors file: parameters under their own names, moments and best
    /// parameters behind a prefix, everything else as JSON in its metadata. It is written beside
    /// its final name, flushed to the disk and renamed, and so is the folder's entry: whatever
    /// happens meanwhile, the name holds a complete checkpoint, the new one or the one before.
    ///
    /// **Guarantee.** A run restored from it continues bit for bit as the run that wrote it would
    /// have, on the same type of processor and with the same mathematical functions; others are
    /// refused. That is also why restoring costs no privacy: steps that were taken after the
    /// checkpoint are taken again with the same noise and release the same values. **The file
    /// holds the generator's key and is as secret as the noise**: whoever reads it can take the noise
    /// off everything that was released. On Unix only its owner can read it (mode 0600). Counters
    /// and the record of early stopping in it are not private either.
    ///
    /// All ranks call it; rank 0 writes. A checkpoint that [`Self::run`] writes holds the
    /// [memory](crate::Observer::memory) of its observer, too; this one holds none.
    ///
    /// # Errors
    /// [`TrainError::Io`] if the file cannot be written.
    pub fn save_checkpoint(&mut self, path: &Path) -> Result<()> {
        self.save_with(path, Value::Null)
    }

    /// A checkpoint with what the run's observer has kept.
    pub(crate) fn save_with(&mut self, path: &Path, observer: Value) -> Result<()> {
        self.ensure_whole()?;
        let data = self.data_digests()?.clone();
        if self.execution.ranks.rank() > 0 {
            return Ok(());
        }
        let header = Header {
            version: VERSION,
            code_revision: self.control.checkpoints.as_ref().and_then(|checkpoints| checkpoints.code_revision.clone()),
            config: header::to_value(self.plan.config())?,
            facts: self.plan.facts(),
            given: self.plan.conditions().to_vec(),
            data,
            execution: ExecutionState::of(&self.execution, self.plan.certified()),
            counts: self.counts,
            method: self.method_state()?,
            streams: self.streams.named().map(|(name, rng)| (name.to_owned(), StreamState::of(rng))).into(),
            private: self.streams.is_private,
            ledger: self.ledger.clone(),
            patience: PatienceState::of(&self.control.patience),
            observer,
            digest: String::new(),
        };
        let parameters = self.engine.model().parameters();
        let mut file = TensorFile::new(parameters);
        file.add(Group::Parameters, &parameters.to_vec()?)?;
        for (name, moment) in self.optimiser.moments() {
            file.add(Group::Moment(name), &moment.to_vec()?)?;
        }
        if let Some((_, best)) = &self.control.patience.best {
            file.add(Group::Best, best)?;
        }
        let bytes = file.to_bytes(&header)?;
        WholeFile::create(path, Readers::Owner)
            .and_then(|file| file.write_bytes(&bytes))
            .map_err(|error| TrainError::io("write", path, error))
    }

    /// Continues from a checkpoint of the same run: same configuration, public facts, conditions,
    /// records, [`Execution`](crate::Execution) and version of the format. The random streams that
    /// this trainer was made with are replaced by the checkpoint's, which know whether they are
    /// private.
    ///
    /// Another version of the arithmetic ([`NUMERICS`](crate::NUMERICS)), instruction set or model
    /// of GPU would round sums otherwise, and steps that are taken again would release other values
    /// under the same noise: their difference has none. So would another micro-batch or number of
    /// threads in a run that is not certified; a certified run may continue under any.
    ///
    /// Rank 0 reads the file for all ranks; their number need not be that of the run that wrote it.
    ///
    /// An [`Observer`](crate::Observer) is told again of the steps after the checkpoint; what it
    /// had kept until then is handed to the observer of the next [`Self::run`].
    ///
    /// # Errors
    /// [`TrainError::Io`] if the file cannot be read; [`TrainError::Checkpoint`] if it is damaged or
    /// has another version;
    /// [`TrainError::Differences`] listing every difference between the checkpoint and this run:
    /// configuration, public facts, conditions of the guarantee, records (by digest), execution,
    /// ledger. The trainer is then
    /// unchanged.
    pub fn restore_checkpoint(&mut self, path: &Path) -> Result<()> {
        let refuse = |reason: String| TrainError::checkpoint(path, reason);
        let ranks = self.execution.ranks.clone();
        let bytes = if ranks.rank() == 0 {
            std::fs::read(path).map_err(|error| TrainError::io("read", path, error))?
        } else {
            Vec::new()
        };
        let bytes = ranks.broadcast(bytes)?;
        let (header, file) = tensors::read(&bytes).map_err(refuse)?;
        let differences = self.differences(&header)?;
        if !differences.is_empty() {
            let what = format!("checkpoint {} is of another run", path.display());
            return Err(TrainError::Differences { what, differences });
        }
        // Everything is read and checked before anything is changed.
        let generator = |(name, _)| {
            let state = header.streams.get(name).ok_or_else(|| refuse(format!("no random stream `{name}`")))?;
            state.generator().map_err(refuse)
        };
        let streams = self.streams.named().into_iter().map(generator).collect::<Result<Vec<_>>>()?;
        let parameters = self.engine.model().parameters();
        let read = |group: Group<'_>| file.get(parameters, group).map_err(refuse);
        let weights = read(Group::Parameters)?;
        let moments =
            self.optimiser.moments().map(|(name, _)| read(Group::Moment(name))).collect::<Result<Vec<_>>>()?;
        let best = header.patience.best_loss.map(|loss| read(Group::Best).map(|best| (loss, best))).transpose()?;
        match (&mut self.method, &header.method) {
            (Some(method), Some(state)) => method.restore(&state.to_value())?,
            (None, None) => {}
            _ => return Err(refuse("the clipping method's state does not fit the configuration".to_owned())),
        }
        parameters.set(&weights)?;
        for ((_, moment), values) in self.optimiser.moments().zip(moments) {
            moment.set(&values)?;
        }
        self.control.patience = header.patience.restored(best);
        self.control.remembered = header.observer;
        for ((_, rng), restored) in self.streams.named_mut().into_iter().zip(streams) {
            *rng = restored;
        }
        self.streams.is_private = header.private;
        (self.counts, self.ledger) = (header.counts, header.ledger);
        self.is_broken = false;
        Ok(())
    }

    /// Digests of the records, computed once.
    pub(crate) fn data_digests(&mut self) -> Result<&DataDigests> {
        let digests = match self.control.digests.take() {
            Some(digests) => digests,
            None => DataDigests {
                records: self.records.digest(&*self.execution.ranks)?,
                // Every rank has all of these.
                validation: self.control.validation.map(|validation| validation.digest(&Alone)).transpose()?,
            },
        };
        Ok(self.control.digests.insert(digests))
    }

    /// The differences that make a checkpoint another run's.
    fn differences(&mut self, header: &Header) -> Result<Vec<String>> {
        let between = |name: &str, ours: &Value, theirs: &Value| {
            difference::between(name, (ours, "here"), (theirs, "in the checkpoint"))
        };
        let mut differences = between("config", &header::to_value(self.plan.config())?, &header.config);
        let (ours, theirs) = (header::to_value(&self.plan.facts())?, header::to_value(&header.facts)?);
        differences.extend(between("facts", &ours, &theirs));
        let (ours, theirs) = (header::to_value(&self.plan.conditions())?, header::to_value(&header.given)?);
        differences.extend(between("given", &ours, &theirs));
        let (ours, theirs) = (header::to_value(self.data_digests()?)?, header::to_value(&header.data)?);
        differences.extend(between("sha256", &ours, &theirs));
        let ours = header::to_value(&ExecutionState::of(&self.execution, self.plan.certified()))?;
        differences.extend(between("execution", &ours, &header::to_value(&header.execution)?));
        let charged = if header.patience.stopped {
            header.counts.steps.max(self.plan.config().batches.steps)
        } else {
            header.counts.steps
        };
        let expected = self.plan.ledger(charged)?;
        let in_words = |ledger: &dp_accounting::Ledger| {
            let entries: Vec<String> =
                ledger.entries().iter().map(|entry| format!("{} × {}", entry.count(), entry.event())).collect();
            format!("[{}] ({} neighbours)", entries.join("; "), ledger.relation())
        };
        if header.ledger != expected {
            let (after, ours, theirs) = (header.counts.steps, in_words(&expected), in_words(&header.ledger));
            differences.push(format!("ledger after {after} steps: {ours} here, {theirs} in the checkpoint"));
        }
        Ok(differences)
    }
}
