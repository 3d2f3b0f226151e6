//! `cargo xtask release`: everything that a release publishes is built, installed where there is no
//! Rust, and checked.
//!
//! Every step is what a runner of the workflow `release.yml` runs for its system. Publishing needs
//! the owner's credentials; with `--dry-run` all is done but that.

mod artefacts;
mod crates;
mod image;
mod install;
mod installer;
mod metadata;
mod program;
mod summary;
mod tools;
mod wheel;
mod workflows;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::{Args, ValueEnum};

use self::artefacts::Artefacts;
use self::summary::Summary;
use self::tools::Tools;
use crate::paths;

/// The version of everything that is published.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where the project lives; in `Cargo.toml` alone.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Options of `cargo xtask release`.
#[derive(Args)]
pub(crate) struct ReleaseArgs {
    /// Do everything but publish the crates.
    #[arg(long)]
    dry_run: bool,
    /// These steps alone [default: all, in this order].
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STEP")]
    steps: Vec<Step>,
    /// Systems to build for [default: this one, and for Linux musl where it is installed].
    #[arg(long, value_delimiter = ',', value_name = "TRIPLE")]
    target: Vec<String>,
    /// Folder of what is built [default: target/release-files].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A part of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// One version everywhere, complete manifests, workflows that are right.
    Metadata,
    /// The program `fairdp`, in an archive for each system.
    Program,
    /// The Python package: a wheel for each system, and its sources.
    Wheel,
    /// What was built for this system is installed in empty folders and does what the README says.
    Install,
    /// Checksums of everything that was built, and the script that installs the program.
    Checksums,
    /// The crates are packaged and built from their packages, and published.
    Crates,
}

/// Prepares a release, or publishes it.
///
/// # Errors
/// If a tool is missing, something cannot be built, or what was built is not as promised.
pub(crate) fn run(args: &ReleaseArgs) -> anyhow::Result<()> {
    let root = std::path::absolute(paths::workspace_root()).context("folder of the workspace")?;
    let artefacts = Artefacts::new(&root, args.out.clone(), args.steps.is_empty())?;
    let tools = Tools::new(&root);
    let mut summary = Summary::default();
    let targets =
        if args.target.is_empty() { program::targets_of_this_system(&mut summary)? } else { args.target.clone() };
    let steps = if args.steps.is_empty() { Step::value_variants() } else { &args.steps };
    let commit = tools.commit();
    for step in Step::value_variants().iter().filter(|step| steps.contains(step)) {
        let start = Instant::now();
        match step {
            Step::Metadata => metadata::check(&root, &tools, args.dry_run, &mut summary)?,
            Step::Program => {
                targets.iter().try_for_each(|target| program::build(&tools, target, &artefacts, &mut summary))?;
            }
            Step::Wheel => wheel::build(&tools, &targets, &artefacts, &mut summary)?,
            Step::Install => install::check(&tools, &targets, &artefacts, &mut summary)?,
            Step::Checksums => {
                installer::write(&artefacts, &mut summary)?;
                artefacts.write_checksums()?;
            }
            Step::Crates => {
                if !args.dry_run {
                    summary.check()?;
                }
                crates::publish(&tools, args.dry_run, &mut summary)?;
            }
        }
        let name = step.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        summary.done(format_args!("{name}: {:.0} s", start.elapsed().as_secs_f64()))?;
    }
    let others: Vec<_> =
        program::TARGETS.into_iter().filter(|other| !targets.iter().any(|target| target == other)).collect();
    if !others.is_empty() {
        summary.skipped(others.join(", "), "`release.yml` builds and installs them on their own systems")?;
    }
    if args.dry_run {
        summary.skipped("uploads and signatures", "this is a dry run; `release.yml` signs by its own identity")?;
    }
    summary.print(&format!("fairdp {VERSION}, {commit}"), &artefacts)
}
