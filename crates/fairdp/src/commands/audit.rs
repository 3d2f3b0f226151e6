//! `fairdp audit`: attacks on a run of a configuration.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use fairdp::{AuditFault, AuditOptions};

use super::{Failure, SaidArgs, Shown, answer};

#[derive(Args)]
#[command(
    after_help = "Trains as `fit` does, with canaries, and releases nothing. What it prints is computed from the \
                  records: it is not private. It ends with 4 where the claim is refuted."
)]
pub(super) struct AuditArgs {
    /// The configuration.
    config: PathBuf,
    /// The folder to make: its private part gets the report.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Canaries of the attack on the gradients; at most as many enter as the model has weights.
    #[arg(long, default_value_t = 1_000)]
    canaries: usize,
    /// Repetitions of every release with a record and without it; as many as find half of the noise,
    /// up to 20,000, unless given.
    #[arg(long)]
    repeats: Option<u32>,
    /// A fault to put into the attacked run, which the audit is to find: `noise` (half of it),
    /// `uncharged` (the first release is not in the ledger), `group-rate` (records of the first group
    /// are drawn at twice the rate) or `group-threshold` (with `asc`: all groups have the largest
    /// threshold).
    #[arg(long, value_name = "FAULT")]
    plant: Option<AuditFault>,
    /// The folder of a run of this configuration, or its release: attacks a run on made-up records of its
    /// schema, and writes the release again, in --out, with a line on what was found.
    #[arg(long, value_name = "RUN", requires = "out", conflicts_with = "plant")]
    release: Option<PathBuf>,
    /// The run or release whose model the training starts from, as of `fit`.
    #[arg(long, value_name = "RUN")]
    from: Option<PathBuf>,
    /// Threads; all cores unless given.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_024))]
    threads: Option<usize>,
    /// Makes the audit repeatable.
    #[arg(long)]
    seed: Option<u64>,
    /// Machine-readable output.
    #[arg(long)]
    pub(super) json: bool,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
}

impl AuditArgs {
    /// Attacks and prints.
    pub(super) fn answer(self, said: &SaidArgs, out: &mut impl Write) -> Result<(), Failure> {
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let options = AuditOptions {
            canaries: self.canaries,
            repeats: self.repeats,
            fault: self.plant,
            from: self.from,
            seed: self.seed,
            threads: self.threads.and_then(NonZeroUsize::new).unwrap_or(cores),
            out: self.out,
            release: self.release,
        };
        let shown = Shown::new(said.of(self.quiet));
        let report = shown.ended(fairdp::audit(&self.config, &options, &mut |progress| shown.note(progress)))?;
        if self.json {
            answer::document(out, &report)?;
        } else {
            out.write_all(report.markdown().as_bytes())?;
        }
        out.flush()?;
        if report.refuted { Err(Failure::Refuted) } else { Ok(()) }
    }
}
