//! Options that every training study has.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use dp_data::DataLocator;
use dp_train::{Device, Randomness};

use super::progress::DownloadBar;

/// Options of a training study.
#[derive(Args, Clone)]
pub(crate) struct StudyOptions {
    /// Runs per method, each with its own split and initial weights.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Only these methods (registry names, comma-separated); the non-private reference always runs.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) methods: Vec<String>,
    /// A few epochs and seeds, to see that everything works. Figures are not comparable and are marked QUICK.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Runs side by side [default: all cores].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Where the report goes [default: target/reproduce/STUDY].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Makes the study reproducible bit for bit on this type of processor, and thereby not private. Without it, all
    /// randomness comes from the operating system.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Where the arithmetic is done. This build has the CPU only.
    #[arg(long, default_value = "cpu", value_parser = ["cpu"])]
    device: String,
    /// Folder with the data files, searched first (then DP_DATA_DIR, datasets/cache, download, generated records).
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Stop with an error rather than use generated records.
    #[arg(long)]
    require_real: bool,
    /// Do not try to download data.
    #[arg(long)]
    offline: bool,
}

impl StudyOptions {
    /// Seeds to run where the study runs `usual`: as asked, else 2 in a quick run.
    pub(crate) fn n_seeds(&self, usual: u32) -> u32 {
        self.seeds.unwrap_or(if self.quick { usual.min(2) } else { usual })
    }

    /// Epochs to run where the paper runs `published`.
    pub(crate) fn epochs(&self, published: u64) -> u64 {
        if self.quick { published.min(3) } else { published }
    }

    /// Threads to use.
    pub(crate) fn n_threads(&self) -> usize {
        self.threads
            .map_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get), usize::from)
    }

    /// The report's directory.
    pub(crate) fn out(&self, study: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| workspace_root().join("target/reproduce").join(study))
    }

    /// The device.
    pub(crate) fn device(&self) -> anyhow::Result<Device> {
        match self.device.as_str() {
            "cpu" => Ok(Device::Cpu),
            other => bail!("--device {other}: expected cpu"),
        }
    }

    /// The source of all randomness.
    pub(crate) fn randomness(&self) -> anyhow::Result<Randomness> {
        match self.seed {
            Some(seed) => Ok(Randomness::from_seed(seed)),
            None => Randomness::from_os().context("--seed was not given"),
        }
    }

    /// Where to look for data.
    pub(crate) fn locator(&self) -> DataLocator {
        let mut locator = DataLocator::from_env(workspace_root().join("datasets/cache"));
        locator.data_dir.clone_from(&self.data_dir);
        locator.require_real = self.require_real;
        locator.offline = self.offline;
        locator.progress = std::sync::Arc::new(DownloadBar::default());
        locator
    }
}

/// The workspace this binary was built from.
pub(crate) fn workspace_root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or_else(|| manifest.clone(), std::path::Path::to_path_buf)
}
