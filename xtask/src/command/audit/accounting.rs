//! `cargo xtask audit accounting`: random and adversarial settings, judged in 200-bit arithmetic.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::{Args, ValueEnum};
use dp_accounting::audit::{self, Evidence, Finding};
use dp_accounting::hook;
use rayon::prelude::*;
use serde::Serialize;

use crate::terminal::say;

/// Options of `cargo xtask audit accounting`.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask audit accounting --cases 2000 --json
  cargo xtask audit accounting --kinds further --cases 2000
  cargo xtask audit accounting --cases 2000 --plant rdp-low")]
pub(crate) struct AccountingArgs {
    /// Settings to try.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    cases: u64,
    /// Settings to leave out before the first: shards of a long audit.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// Seed of the settings.
    #[arg(long, default_value_t = 16)]
    seed: u64,
    /// Which settings: those of the first stream, or those that came later.
    #[arg(long, value_enum, default_value = "first")]
    kinds: Kinds,
    /// Put a known fault back, to see that it is found.
    #[arg(long, value_enum)]
    plant: Option<Plant>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A stream of settings. They are apart so that a number always means the same setting.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kinds {
    /// Gaussians, sampled and not, in both directions.
    First,
    /// One direction alone, batches cut to a physical size, random allocation.
    Further,
}

/// A fault that was once there.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Plant {
    /// The upper hump of a Rényi moment is not found where nearly every record is in the batch.
    RdpLow,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    cases: u64,
    violations: usize,
    slowest_seconds: f64,
}

/// Runs the audit.
///
/// # Errors
/// If any bound does not hold.
pub(crate) fn run(args: &AccountingArgs) -> anyhow::Result<()> {
    match args.plant {
        Some(Plant::RdpLow) => hook::miss_upper_hump(),
        None => {}
    }
    let check = match args.kinds {
        Kinds::First => audit::check,
        Kinds::Further => audit::check_second_stream,
    };
    let findings: Vec<Finding> =
        (args.skip..args.skip + args.cases).into_par_iter().map(|index| check(args.seed, index)).collect();
    for (finding, violation) in findings.iter().flat_map(|f| f.violations.iter().map(move |v| (f, v))) {
        eprintln!("{}: {violation}", finding.setting);
    }
    let violations = findings.iter().filter(|finding| !finding.violations.is_empty()).count();
    let slowest_seconds = findings.iter().map(|finding| finding.slowest.as_secs_f64()).fold(0.0, f64::max);
    if args.json {
        say!("{}", serde_json::to_string(&Summary { cases: args.cases, violations, slowest_seconds })?)?;
    } else {
        let table = table(&findings);
        say!("{table}\n{} settings, {violations} with a violation, slowest answer {slowest_seconds:.3} s", args.cases)?;
    }
    if violations > 0 {
        bail!("{violations} of {} settings show a bound that does not hold", args.cases);
    }
    Ok(())
}

/// A Markdown table: settings by kind and by how the truth was found.
fn table(findings: &[Finding]) -> String {
    let mut rows: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for finding in findings {
        let row = rows.entry(&finding.kind).or_default();
        let column = match finding.evidence {
            Evidence::Formula => 0,
            Evidence::Inversion => 1,
            Evidence::Bounds => 2,
            _ => 3,
        };
        row[column] += 1;
        row[4] += usize::from(!finding.violations.is_empty());
    }
    let mut out =
        "| settings | by formula | by inversion | by bounds | order only | violations |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for (kind, [formula, inversion, bounds, none, violations]) in rows {
        out.push_str(&format!("| {kind} | {formula} | {inversion} | {bounds} | {none} | {violations} |\n"));
    }
    out
}
