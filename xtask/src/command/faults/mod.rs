//! `cargo xtask faults`: faults put into every command that writes files, and into every file that
//! is stored. The engine is the crate `faults`.

mod operations;
mod page;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use faults::{Program, Shim, Tally};
use rayon::prelude::*;
use run_records::output::Output;
use run_records::shell;

use crate::paths::workspace_root;
use crate::terminal::say;

/// Options of `cargo xtask faults`.
#[derive(Args)]
pub(crate) struct FaultsArgs {
    /// A few calls of each command and a few places of each file, instead of all calls and
    /// thousands of places.
    #[arg(long)]
    quick: bool,
    /// Of the places of files that are damaged.
    #[arg(long, default_value_t = 17)]
    seed: u64,
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Write the page of figures here; of an earlier page, the sections after the tables stay.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Calls at which each kind of fault is put into a command, and places at which a stored file is
/// damaged.
struct Effort {
    calls: u64,
    places: usize,
}

const QUICK: Effort = Effort { calls: 8, places: 16 };
const FULL: Effort = Effort { calls: u64::MAX, places: 1_000 };
/// A run that takes longer hangs.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// Puts in the faults and prints what they led to.
///
/// # Errors
/// If the preloaded library cannot be built; if anything was lost, wrong in silence, unclear,
/// panicked or did not end.
pub(crate) fn run(args: &FaultsArgs) -> anyhow::Result<()> {
    ensure!(cfg!(target_os = "linux"), "faults: calls are counted by a preloaded library, as Linux has it");
    let output = args.out.as_deref().map(|path| Output::new(path, &[])).transpose()?;
    let program = Program { path: std::env::current_exe().context("path of this program")?, time_limit: TIME_LIMIT };
    let shim = shim(&program)?;
    let effort = if args.quick { QUICK } else { FULL };
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let prepared = operations::prepare(&program, folder.path())?;
    let written = prepared.operations.par_iter().map(|operation| {
        let tallies = faults::exercise(&program, &shim, operation, effort.calls);
        tallies.inspect(|tallies| note(tallies)).with_context(|| operation.name.to_owned())
    });
    let read = prepared.stored.par_iter().map(|stored| {
        let tallies = faults::flips::damage(&program, stored, effort.places, args.seed);
        tallies.inspect(|tallies| note(tallies)).with_context(|| stored.name.to_owned())
    });
    let (written, read): (anyhow::Result<Vec<_>>, anyhow::Result<Vec<_>>) =
        rayon::join(|| written.collect(), || read.collect());
    let (written, read) = (written?.concat(), read?.concat());
    let tallies: Vec<Tally> = written.iter().chain(&read).cloned().collect();
    let page = page::page(&written, &read, args.quick);
    if args.json {
        say!("{}", serde_json::to_string_pretty(&tallies).context("serialising the tallies")?)?;
    } else {
        say!("{}", faults::tables(&written, &read))?;
    }
    for tally in tallies.iter().filter(|tally| !tally.is_sound()) {
        say!("{}, {}: {}", tally.name, tally.kind, tally.first.as_deref().unwrap_or_default())?;
    }
    let n_unsound = tallies.iter().filter(|tally| !tally.is_sound()).count();
    ensure!(n_unsound == 0, "{n_unsound} of {} kinds of faults led to something that must not be", tallies.len());
    if let Some(output) = output {
        // What was written by hand has headings, what is generated none.
        let earlier = args.out.as_deref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let by_hand = earlier.find("\n## ").map_or("", |start| &earlier[start..]);
        output.write_bytes((page + by_hand).as_bytes())?;
        say!("{}", shell::path(args.out.as_deref().unwrap_or(&workspace_root())))?;
    }
    Ok(())
}

/// A line when a command or a file is through: all of them take an hour.
fn note(tallies: &[Tally]) {
    let (name, cases) = (tallies.first().map_or("", |tally| &tally.name), tallies.iter().map(|t| t.cases).sum::<u64>());
    let n_unsound = tallies.iter().filter(|tally| !tally.is_sound()).count();
    eprintln!("{name}: {cases} cases, {n_unsound} kinds of faults led to something that must not be");
}

/// Builds the library that is preloaded; it lies beside this program then.
fn shim(program: &Program) -> anyhow::Result<Shim> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--locked", "--quiet", "--package=fault-shim"])
        .current_dir(workspace_root())
        .stdin(Stdio::null())
        .status()
        .context("cannot start cargo, which builds the preloaded library")?;
    ensure!(status.success(), "the preloaded library cannot be built");
    let folder = program.path.parent().context("the folder of this program")?;
    // Beside a test's program it is one folder up.
    let places = [folder.join("libfault_shim.so"), folder.join("../libfault_shim.so")];
    let path = places.iter().find(|path| path.exists()).context("libfault_shim.so is not beside this program")?;
    Ok(Shim { path: std::path::absolute(path).context("the path of libfault_shim.so")? })
}
