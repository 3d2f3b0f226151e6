//! `cargo xtask results`: what is in databases of runs.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use run_records::database::Database;
use run_records::export::{Format, export};
use run_records::join;
use run_records::merge::merge;
use run_records::output::Output;
use run_records::repair::repair;
use run_records::shell;
use run_records::table::Table;
use run_records::{list, show};

use crate::paths::{exports_folder, reports_root, whole_reports_root};
use crate::studies::committed::CommittedReport;
use crate::terminal;

/// Arguments of `cargo xtask results`.
#[derive(Args)]
pub(crate) struct ResultsArgs {
    #[command(subcommand)]
    command: ResultsCommand,
}

#[derive(Subcommand)]
enum ResultsCommand {
    /// Databases of runs, one line each
    List {
        /// Databases, and folders of reports with databases in or below them [default: target/reproduce]
        files: Vec<PathBuf>,
    },
    /// What a database holds: sessions, and means over seeds for every method
    Show {
        /// A database
        file: PathBuf,
        /// One run as JSON instead: its number in the column `run` of the database's view
        /// `run_summary`
        #[arg(long, value_name = "NUMBER")]
        run: Option<i64>,
    },
    /// A table of runs for other programs
    Export {
        /// A database
        file: PathBuf,
        /// Which table
        #[arg(long, value_enum, default_value_t = TableName::Metrics)]
        table: TableName,
        /// In which format [default: that of the ending of --out; CSV on standard output]
        #[arg(long, value_enum)]
        format: Option<FormatName>,
        /// Where to: a name that ends in .csv, .json or .parquet [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Render reports from the records that are committed in docs/results/records
    ///
    /// Nothing is trained. What is committed of a report is renewed in docs/results/STUDY: its text
    /// without long tables and lists, and the plots that a page shows. The whole report is written to
    /// OUT/STUDY, and the table of its metrics to OUT/STUDY-metrics.csv. To commit a new report,
    /// copy its `runs.zst` to docs/results/records/STUDY.runs.zst first.
    Render {
        /// Studies [default: all whose records are there]
        studies: Vec<String>,
        /// Folder of the whole reports [default: target/results]
        #[arg(long, value_name = "OUT")]
        out: Option<PathBuf>,
    },
    /// Write one page over all reports in a folder: its index.html
    Index {
        /// The folder of the reports [default: target/reproduce]
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
    /// Save what is whole of a damaged database in a new one
    ///
    /// A database whose rows do not match the digests that were stored with them is refused by
    /// every other command. This one copies the rows that do, and names the runs that are lost:
    /// `--resume` trains them again. The damaged file stays as it is.
    Repair {
        /// The damaged database
        file: PathBuf,
        /// The new one [default: FILE with the end .repaired.db]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Join databases of one study, for example its shards
    ///
    /// A run that several of them hold must have the same result in all, the time it took aside; it
    /// is kept once. If two disagree, nothing is changed and the first difference is shown. A file
    /// of records, which is named after its study, takes the runs of databases, finished or not,
    /// and of other such files (a report's `runs.zst`). `--resume --from` goes on with it where
    /// no database is left.
    Merge {
        /// Database to add to; it is made if there is none. Or STUDY.runs.zst
        out: PathBuf,
        /// Databases to read; for STUDY.runs.zst also files of records
        #[arg(required = true, value_name = "IN")]
        inputs: Vec<PathBuf>,
    },
}

/// A [`Table`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum TableName {
    /// One row per run: what it was, where and how long it was trained, its ε and its test accuracy
    Runs,
    /// One row per run, part (train, validation, test) and group: records, accuracy, loss; F1 and
    /// class means; gradient norms
    Metrics,
    /// One row per run, epoch and group: loss and gradient norms
    Epochs,
    /// One row per run, recorded step and threshold
    Thresholds,
}

impl From<TableName> for Table {
    fn from(name: TableName) -> Self {
        match name {
            TableName::Runs => Self::Runs,
            TableName::Metrics => Self::Metrics,
            TableName::Epochs => Self::Epochs,
            TableName::Thresholds => Self::Thresholds,
        }
    }
}

/// A [`Format`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    /// With a header; empty fields are undefined values
    Csv,
    /// An array of objects; infinities and NaN are strings
    Json,
    /// Typed columns, not compressed
    Parquet,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Csv => Self::Csv,
            FormatName::Json => Self::Json,
            FormatName::Parquet => Self::Parquet,
        }
    }
}

/// Refuses to write a database to a file whose name says that it is something else.
fn ensure_database(option: &str, path: &Path) -> anyhow::Result<()> {
    let is_named_so = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("db"));
    ensure!(
        is_named_so,
        "{option} {}: expected a name that ends in .db{}",
        path.display(),
        match option {
            "OUT" => ", or in .runs.zst for a file of records",
            _ => "",
        }
    );
    Ok(())
}

/// Runs the command.
///
/// # Errors
/// If a file is no database of runs, or cannot be read or written.
pub(crate) fn run(args: &ResultsArgs) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match &args.command {
        ResultsCommand::List { files } => {
            let places = if files.is_empty() { vec![reports_root()] } else { files.clone() };
            let is_folder = |place: &PathBuf| files.is_empty() || place.is_dir();
            let of_place = |place: &PathBuf| {
                if is_folder(place) { list::databases(place) } else { Ok(vec![place.clone()]) }
            };
            let files = places.iter().map(of_place).collect::<anyhow::Result<Vec<_>>>()?.concat();
            let (table, bad) = list::table(&files);
            write!(out, "{table}")?;
            for error in &bad {
                writeln!(out, "{}", terminal::message(error))?;
            }
            ensure!(bad.is_empty(), "{} of {} files cannot be read", bad.len(), files.len());
        }
        ResultsCommand::Show { file, run: None } => write!(out, "{}", show::database(&Database::read(file)?)?)?,
        ResultsCommand::Show { file, run: Some(run) } => writeln!(out, "{}", show::run(&Database::read(file)?, *run)?)?,
        ResultsCommand::Export { file, table, format, out: path } => {
            let (table, asked) = (Table::from(*table), format.map(Format::from));
            let format = match path {
                Some(path) => Format::of_file(path, asked)?,
                None => asked.unwrap_or(Format::Csv),
            };
            if path.is_none() && format == Format::Parquet {
                bail!("--format parquet: expected --out FILE, it is not text");
            }
            let output = path.as_deref().map(|path| Output::new(path, &[file])).transpose()?;
            let database = Database::read(file)?;
            if let Some(output) = output {
                output.write(|file| export(&database, table, format, file))?;
            } else {
                let mut text = Vec::new();
                export(&database, table, format, &mut text)?;
                out.write_all(&text)?;
            }
        }
        ResultsCommand::Render { studies, out: folder } => {
            let folder = folder.clone().unwrap_or_else(whole_reports_root);
            let reports = CommittedReport::all()?;
            if let Some(unknown) = studies.iter().find(|study| reports.iter().all(|report| report.study != **study)) {
                let known: Vec<&str> = reports.iter().map(|report| report.study.as_str()).collect();
                bail!("{unknown}: expected some of {}", known.join(", "));
            }
            for report in reports.iter().filter(|report| studies.is_empty() || studies.contains(&report.study)) {
                report.renew()?;
                let whole = report.write_whole(&folder)?;
                writeln!(out, "{}: {}", report.study, shell::path(&whole.join("report.html")))?;
            }
        }
        ResultsCommand::Index { out: folder } => {
            let exports = folder.is_none().then(exports_folder);
            let root = folder.clone().unwrap_or_else(reports_root);
            let path = study_report::write_index(&root, exports.as_deref())?;
            writeln!(out, "{}", shell::path(&path))?;
        }
        ResultsCommand::Repair { file, out: target } => {
            let target = target.clone().unwrap_or_else(|| file.with_extension("repaired.db"));
            ensure_database("--out", &target)?;
            let repaired = repair(file, &target)?;
            writeln!(out, "{}: {repaired}", shell::path(&target))?;
        }
        ResultsCommand::Merge { out: target, inputs } => {
            let name = target.file_name().and_then(|name| name.to_str());
            let merged = if let Some(study) = name.and_then(|name| name.strip_suffix(join::SUFFIX)) {
                join::join(target, inputs, study)?
            } else {
                ensure_database("OUT", target)?;
                merge(target, inputs)?
            };
            writeln!(
                out,
                "{}: {} runs added, {} were there already with the same result.",
                shell::path(target),
                merged.added,
                merged.equal
            )?;
        }
    }
    Ok(())
}
