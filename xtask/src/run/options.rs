//! Options that every training study has.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};
use run_records::{Database, Source};

use super::experiment::Experiment;
use super::shard::Shard;
use crate::device::DeviceArgs;
use crate::paths::reports_root;
use crate::run::data_source::DataSource;

/// How much of a report a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Print {
    /// The whole of its verdicts, claims and privacy tables, as Markdown.
    Full,
    /// The answer: accuracy by group, who pays, how many verdicts of each kind.
    #[default]
    Summary,
    /// Where the report is.
    None,
}

/// Options of a training study.
#[derive(Args, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line, each on its own")]
pub(crate) struct StudyOptions {
    /// Runs per method, each with its own split and initial weights; a point of a grid has its usual
    /// ones.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Only these methods (registry names, comma-separated), or `all` of the registry; the non-private
    /// reference always runs. One that a paper did not train has the settings of its DPSGD.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) methods: Vec<String>,
    /// A few epochs and seeds, to see that everything works. Figures are not comparable and are
    /// marked QUICK.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Runs side by side [default: all cores; 1 on a CUDA device].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Where the report goes [default: target/reproduce/STUDY].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Where runs are stored as they finish [default: records.db in the report's directory].
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,
    /// Go on with the records: train only the runs that are missing. Without it, earlier records
    /// are moved aside.
    #[arg(long)]
    pub(crate) resume: bool,
    /// With --resume, keep runs that were made by another revision of the code.
    #[arg(long, requires = "resume")]
    pub(crate) any_revision: bool,
    /// Train only part I of N of the runs, for one of N machines; `cargo xtask results merge` joins
    /// the records.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Instead of training, print a batch script that trains the study as N parts under Slurm.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) slurm: Option<u32>,
    /// Instead of training, print the manifest of a Kubernetes Indexed Job that trains the study as
    /// N parts.
    #[arg(long, value_name = "N", conflicts_with = "slurm", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) kubernetes: Option<u32>,
    /// Instead of training, say what there is to train and about how long it would take on this
    /// machine, from a few timed steps.
    #[arg(long, conflicts_with_all = ["slurm", "kubernetes"])]
    pub(crate) plan: bool,
    /// Makes the study reproducible bit for bit on this type of processor, and thereby not private.
    /// Without it, batches and noise come from the operating system.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Fixes partitions and initial parameters, which are public, and leaves batches and noise to
    /// the operating system.
    #[arg(long, value_name = "SEED", conflicts_with = "seed")]
    pub(crate) split_seed: Option<u64>,
    /// What of the finished report the terminal shows.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) print: Print,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) data: DataSource,
}

impl StudyOptions {
    /// Seeds that each method of an experiment runs with: as asked, unless it is a search, else 2 in
    /// a quick run.
    pub(crate) fn n_seeds(&self, experiment: &Experiment) -> u32 {
        let usual = if self.quick { experiment.seeds.min(2) } else { experiment.seeds };
        self.seeds.filter(|_| !experiment.is_search).unwrap_or(usual)
    }

    /// Epochs to run where the paper runs `published`.
    pub(crate) fn epochs(&self, published: u64) -> u64 {
        if self.quick { published.min(3) } else { published }
    }

    /// An option that is given and says something about training.
    pub(crate) fn of_training(&self) -> Option<&'static str> {
        let given = [
            ("--seeds", self.seeds.is_some()),
            ("--methods", !self.methods.is_empty()),
            ("--quick", self.quick),
            ("--records", self.records.is_some()),
            ("--shard", self.shard.is_some()),
            ("--seed", self.seed.is_some()),
            ("--split-seed", self.split_seed.is_some()),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }

    /// The `--threads` of the command line.
    pub(crate) fn threads(&self) -> Option<u16> {
        self.threads
    }

    /// Threads to use.
    pub(crate) fn n_threads(&self) -> usize {
        self.threads.map_or_else(|| self.device.default_threads().get(), usize::from)
    }

    /// The report's directory.
    pub(crate) fn out(&self, study: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| reports_root().join(study))
    }

    /// Where the reports of several studies go.
    pub(crate) fn out_root(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(reports_root)
    }

    /// The same with the report in this directory.
    pub(crate) fn with_out(&self, out: &Path) -> Self {
        Self { out: Some(out.to_owned()), ..self.clone() }
    }

    /// Whether the records are in a file of their own.
    pub(crate) fn has_own_records(&self) -> bool {
        self.records.is_some()
    }

    /// Refuses records that are not of this study with these seeds.
    ///
    /// # Errors
    /// Names the difference.
    pub(crate) fn ensure_same_source(&self, study: &str, stored: &Database) -> anyhow::Result<()> {
        let source = stored.source()?;
        let asked = Source {
            study: study.to_owned(),
            quick: self.quick,
            seed: self.seed,
            split_seed: self.seed.or(self.split_seed).unwrap_or(source.split_seed),
        };
        match source.difference(&asked) {
            None => Ok(()),
            Some(difference) => bail!("--resume: the records {} are of {difference}", stored.path().display()),
        }
    }

    /// The file of runs.
    pub(crate) fn records(&self, study: &str) -> PathBuf {
        self.records.clone().unwrap_or_else(|| {
            let name = self
                .shard
                .map_or_else(|| "records.db".to_owned(), |shard| format!("records.shard-{}.db", shard.suffix()));
            self.out(study).join(name)
        })
    }
}
