//! `cargo xtask replay`: does one record move only itself? The engine is [`dp_audit::replay`].

mod files;

use std::num::{NonZeroU16, NonZeroUsize};

use anyhow::{Context, ensure};
use clap::Args;
use dp_audit::Fault;
use dp_audit::replay::{CAUSES, LayerKind, PAST_BREACHES, Replay, Report};
use dp_train::DeviceName;

use crate::device;
use crate::terminal::say;

/// Options of `cargo xtask replay`.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// Cases: steps of neighbours that are compared.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    cases: u64,
    /// This clipping method alone [default: every certified one].
    #[arg(long)]
    method: Option<String>,
    /// This kind of layer alone [default: every one].
    #[arg(long)]
    layer: Option<LayerKind>,
    /// Plant a fault, to see that it is found.
    #[arg(long, value_name = "BUG")]
    plant: Option<Fault>,
    /// Take only the steps that once broke the guarantee, each by name with the factor by which it
    /// did.
    #[arg(long, conflicts_with_all = ["cases", "method", "layer", "seed", "threads", "ranks", "device"])]
    known: bool,
    /// Decides all cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads, each with cases of its own [default: all cores].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Ranks that share every step, as threads of this process.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    ranks: u16,
    /// Where the arithmetic of the steps is done: cpu, cuda, cuda:N, cuda-tf32 or
    /// cuda-tf32:N.
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    device: DeviceName,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// One case in so many goes through a file.
const FILE_SHARE: u64 = 100;

/// Replays and prints.
///
/// # Errors
/// If a step broke its promise in any case.
pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    if args.known {
        return known(args.plant, args.json);
    }
    let threads = match args.threads.and_then(|threads| NonZeroUsize::new(threads.into())) {
        Some(threads) => threads,
        None => std::thread::available_parallelism().context("number of cores")?,
    };
    let &ReplayArgs { cases, seed, layer, plant, .. } = args;
    let from_files =
        if plant.is_none() && layer.is_none_or(|layer| layer == LayerKind::Linear) { cases / FILE_SHARE } else { 0 };
    let (method, ranks) = (args.method.clone(), NonZeroUsize::from(NonZeroU16::new(args.ranks).context("ranks")?));
    let replay = Replay {
        cases: cases - from_files,
        seed,
        method,
        layer,
        plant,
        threads,
        ranks,
        device: device::open(args.device)?,
    };
    let progress = indicatif::ProgressBar::new(cases);
    let mut report = replay.run(&|tried| progress.set_position(tried))?;
    let methods: Vec<&'static str> = report.by_method.keys().copied().collect();
    files::replay(from_files, seed, &methods, &mut report)?;
    progress.finish_and_clear();
    if args.json {
        say!("{}", serde_json::to_string(&report)?)?;
    } else {
        print(&report, seed)?;
    }
    ensure!(report.violations == 0, "{} of {} cases broke the guarantee", report.violations, report.cases);
    Ok(())
}

/// A step that once broke the guarantee, on this engine.
#[derive(serde::Serialize)]
struct KnownStep {
    cause: &'static str,
    step: &'static str,
    /// Change over what is allowed when it was found; `null` where the sum was no number.
    before: Option<f64>,
    /// The same now.
    after: f64,
    holds: bool,
}

fn known(plant: Option<Fault>, json: bool) -> anyhow::Result<()> {
    let mut broken = 0;
    for past in PAST_BREACHES {
        let now = past.measure(plant)?;
        let holds = now.breach.is_none();
        broken += usize::from(!holds);
        let step = KnownStep {
            cause: CAUSES[usize::from(past.cause) - 1],
            step: past.name,
            before: past.before.is_finite().then_some(past.before),
            after: now.sum_ratio.max(now.count_ratio),
            holds,
        };
        if json {
            say!("{}", serde_json::to_string(&step)?)?;
        } else {
            let KnownStep { step, after, .. } = step;
            let verdict = now.breach.map_or_else(|| "holds".to_owned(), |breach| breach.to_string());
            say!("{}. {step}: {} before, {after:.9} now; {verdict}", past.cause, past.before)?;
        }
    }
    ensure!(broken == 0, "{broken} of {} steps broke the guarantee", PAST_BREACHES.len());
    Ok(())
}

fn print(report: &Report, seed: u64) -> anyhow::Result<()> {
    let Report { cases, violations, largest_sum_ratio, largest_count_ratio, .. } = report;
    say!(
        "{cases} cases (seed {seed}), {violations} violations; largest change of a sum over its bound {largest_sum_ratio:.9}, of a \
         count over its sensitivity {largest_count_ratio}"
    )?;
    for (what, counts) in [("layers", &report.by_layer), ("methods", &report.by_method), ("attacks", &report.by_attack)]
    {
        let counts: Vec<String> = counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
        say!("{what}: {}", counts.join(", "))?;
    }
    for violation in &report.worst {
        say!("{violation}")?;
    }
    Ok(())
}
