//! `cargo xtask compare FILE`.

use std::path::PathBuf;

use clap::Args;

use crate::run::options::StudyOptions;
use crate::studies::comparison;
use crate::studies::study::StudyArgs;

/// Options of `cargo xtask compare`.
#[derive(Args)]
pub(crate) struct CompareArgs {
    /// A file in TOML that names records, model, methods and settings: docs/compare.md.
    file: PathBuf,
    #[command(flatten)]
    options: StudyOptions,
    /// Only these experiments (comma-separated; an unknown name lists them) [default: all].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    experiment: Vec<String>,
    /// Instead of training, render the report from the records of an earlier run: `runs.zst` or
    /// `results.json` of its report. With `--resume`, train all but the runs that such a `runs.zst`
    /// has.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["slurm", "kubernetes"])]
    from: Option<PathBuf>,
}

/// Trains what a file describes, and writes the report.
///
/// # Errors
/// If the file, data, training or report fail.
pub(crate) fn run(args: CompareArgs) -> anyhow::Result<()> {
    let study = comparison::study(&args.file, &args.options)?;
    // The file's methods are those asked for by now.
    let mut options = args.options;
    options.methods.clear();
    study.run(&StudyArgs::of_comparison(options, args.experiment, args.from))
}
