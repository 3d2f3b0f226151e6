//! Checkpoints of runs that are not finished yet.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use dp_train::{CheckpointInterval, Checkpoints};

/// Seconds from one checkpoint of a run to the next.
const INTERVAL: u64 = 60;

/// The checkpoints of a study's runs: beside its records, one for each run that is being trained,
/// gone once it is stored. A run whose first epochs are an experiment of their own keeps its one
/// from these until it is stored, or the study ends without it.
#[derive(Debug)]
pub(crate) struct RunCheckpoints {
    folder: PathBuf,
    /// What their names begin with.
    prefix: OsString,
}

impl RunCheckpoints {
    /// Those beside these records.
    pub(crate) fn beside(records: &Path) -> Self {
        let mut prefix = records.file_name().unwrap_or_default().to_owned();
        prefix.push(".run-");
        Self { folder: records.parent().map_or_else(PathBuf::new, Path::to_path_buf), prefix }
    }

    /// The file of one training of a run.
    pub(crate) fn path(&self, run: &str, training: u16) -> PathBuf {
        let mut name = self.prefix.clone();
        name.push(format!("{run}-{training}"));
        self.folder.join(name)
    }

    /// Removes those of a run, or of all.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file not removed.
    pub(crate) fn remove(&self, run: Option<&str>) -> anyhow::Result<()> {
        let mut start = self.prefix.clone();
        if let Some(run) = run {
            start.push(format!("{run}-"));
        }
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let reading = || format!("reading {}", folder.display());
        for entry in std::fs::read_dir(folder).with_context(reading)? {
            let path = entry.with_context(reading)?.path();
            let name = path.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(start.as_encoded_bytes()) {
                std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// How a run writes its checkpoint.
pub(crate) fn checkpoints(path: &Path, code_revision: &str) -> Checkpoints {
    Checkpoints::new(path, CheckpointInterval::Seconds(INTERVAL)).noting_revision(code_revision)
}
