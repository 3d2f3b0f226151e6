//! `cargo xtask ci`: the checks that `.ci/run` and the GitHub workflow share.

use std::process::Command;

use anyhow::{Context, bail};
use clap::Args;
use rand::TryRngCore;
use rand::rngs::OsRng;

/// Options of `cargo xtask ci`.
#[derive(Args)]
pub(crate) struct CiArgs {
    /// Only these checks, in the order given.
    #[arg(value_enum)]
    only: Vec<Check>,
    /// Let property tests try cases that no run has tried before. Their seed is printed; as PROPTEST_RNG_SEED it brings them back.
    #[arg(long)]
    random_cases: bool,
}

/// One check. The tests come last, so that the log ends with the test runner's own closing line.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Check {
    /// `cargo fmt --check`
    Fmt,
    /// `cargo clippy` with warnings denied
    Clippy,
    /// `cargo doc` with warnings denied
    Doc,
    /// `cargo xtask faults --quick`
    Faults,
    /// Tests of text encoders, which the feature `bert` brings
    Bert,
    /// The Python package's wheel and its tests, where there is a Python
    Python,
    /// Runs on several processes, where there is MPI
    Ranks,
    /// The README's test command
    Test,
}

/// What is off by default is linted and documented, too.
const BERT: &str = "--features=xtask/bert";

impl Check {
    /// The arguments of a program, cargo but for two checks, and an environment variable to set.
    fn command(self) -> (&'static [&'static str], Option<(&'static str, &'static str)>) {
        match self {
            Self::Python => (&[concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/fairdp-python/check.sh")], None),
            Self::Ranks => (&[concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/fairdp/ranks.sh")], None),
            Self::Fmt => (&["fmt", "--all", "--check"], None),
            Self::Clippy => (
                &["clippy", "--release", "--workspace", "--all-targets", BERT, "--locked", "--", "-D", "warnings"],
                None,
            ),
            Self::Doc => (
                &["doc", "--release", "--workspace", "--no-deps", BERT, "--locked"],
                Some(("RUSTDOCFLAGS", "-D warnings")),
            ),
            Self::Bert => (&["test", "--release", "--package=xtask", BERT, "--locked", "--test=encoder"], None),
            Self::Faults => (&["run", "--release", "--package=xtask", "--locked", "--", "faults", "--quick"], None),
            Self::Test => (&["test", "--release", "--workspace", "--locked"], None),
        }
    }
}

/// Runs the checks and stops at the first that fails.
///
/// # Errors
/// If a check fails or its program cannot be started.
pub(crate) fn run(args: &CiArgs) -> anyhow::Result<()> {
    let all =
        [Check::Fmt, Check::Clippy, Check::Doc, Check::Faults, Check::Bert, Check::Python, Check::Ranks, Check::Test];
    let checks = if args.only.is_empty() { &all[..] } else { &args.only };
    let cases = if args.random_cases {
        let seed = OsRng.try_next_u64().context("a seed for property tests, from the operating system")?;
        eprintln!("PROPTEST_RNG_SEED={seed}");
        Some(("PROPTEST_RNG_SEED", seed.to_string()))
    } else {
        None
    };
    for check in checks {
        let (arguments, variable) = check.command();
        let (name, program) = match check {
            Check::Python | Check::Ranks => ("bash", "bash".into()),
            _ => ("cargo", std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
        };
        eprintln!("$ {name} {}", arguments.join(" "));
        let status = Command::new(program)
            .args(arguments)
            .envs(variable)
            .envs(cases.clone())
            .status()
            .with_context(|| format!("cannot start {name}"))?;
        if !status.success() {
            bail!("{name} {} failed", arguments.join(" "));
        }
    }
    Ok(())
}
