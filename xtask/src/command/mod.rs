//! The commands of the program, one file or folder each.

mod account;
mod audit;
mod bench;
mod compare;
mod crash_test;
mod data;
mod faults;
mod release;
mod replay;
mod reproduce;
mod results;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::ranks::on_all;
use crate::studies::analyse;
use crate::terminal;

/// Reproductions, benchmarks and checks of differentially private training that is fair to every
/// group.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 done; 1 something failed, or a check found something; 2 the command line is wrong."
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Train what a paper trained and report our figures beside its own.
    Reproduce(reproduce::ReproduceArgs),
    /// Train what a paper trained and say why clipping was unfair, step by step.
    Analyse(analyse::AnalyseArgs),
    /// Train methods of one's choice on one's own records, and report them side by side.
    Compare(compare::CompareArgs),
    /// Stored runs: what there is, as tables for other programs, joined.
    Results(results::ResultsArgs),
    /// Tables of measured speed.
    Bench(bench::BenchArgs),
    /// What is known of the data sets, what is at hand, and how to get it.
    Data(data::DataArgs),
    /// The privacy loss of one setting, of many, or the noise that meets a target.
    Account(account::AccountArgs),
    /// Attack the workspace's own claims.
    Audit(audit::AuditArgs),
    /// Kill a training run at random moments, continue it, and compare how it ends.
    CrashTest(crash_test::CrashTestArgs),
    /// Put faults into everything that writes or reads files: kills, full disks, flipped bits.
    Faults(faults::FaultsArgs),
    /// Attack the sensitivity of a step: does one record move only itself?
    Replay(replay::ReplayArgs),
    /// Build, install and check everything that a release publishes.
    Release(release::ReleaseArgs),
}

/// Makes a reader that stops reading (`| head`) end the program, as it does other programs. Rust
/// starts programs with the signal ignored, and printing then panics.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the action of a signal has no safe interface")]
fn end_with_the_reader() {
    // SAFETY: the system's own action is restored before anything else runs; no code of ours is
    // called.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// The program.
pub(crate) fn main() -> ExitCode {
    #[cfg(unix)]
    end_with_the_reader();
    let done = match Cli::parse().task {
        Task::Reproduce(args) => on_all(|| reproduce::run(args)),
        Task::Analyse(args) => analyse::run(&args),
        Task::Compare(args) => on_all(|| compare::run(args)),
        Task::Results(args) => results::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Data(args) => data::run(&args),
        Task::Account(args) => account::run(&args),
        Task::Audit(args) => audit::run(&args),
        Task::CrashTest(args) => crash_test::run(&args),
        Task::Faults(args) => faults::run(&args),
        Task::Replay(args) => replay::run(&args),
        Task::Release(args) => release::run(&args),
    };
    match done.and_then(|()| terminal::flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Causes in one line, and no backtrace: what went wrong is in the message. Standard
            // error may be full, too.
            let _ = writeln!(std::io::stderr(), "error: {}", terminal::message(&error));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    fn help(path: &[&str]) -> String {
        // Not wrapped, whatever terminal the test runs in.
        let mut command = Cli::command().term_width(0);
        command.build();
        let command = path.iter().fold(&mut command, |command, name| {
            command.find_subcommand_mut(name).unwrap_or_else(|| panic!("no subcommand {name}"))
        });
        command.render_long_help().to_string()
    }

    #[test]
    fn help_says_what_there_is() {
        insta::assert_snapshot!("help", help(&[]));
        insta::assert_snapshot!("help_reproduce_adult", help(&["reproduce", "adult"]));
        insta::assert_snapshot!("help_results_merge", help(&["results", "merge"]));
        insta::assert_snapshot!("help_account", help(&["account"]));
    }
}
