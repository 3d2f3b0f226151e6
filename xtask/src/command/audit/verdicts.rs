//! `cargo xtask audit verdicts`: how often the rules of the reports are wrong.

use anyhow::bail;
use clap::Args;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use simulations::verdicts::{ErrorRate, error_rates};

use crate::terminal;

/// Simulated studies of each rule, and in a quick run.
const REPETITIONS: u32 = 10_000;
const QUICK: u32 = 1_000;

/// By how much a rule may exceed its nominal rate.
const MARGIN: f64 = 0.01;

/// Options of `cargo xtask audit verdicts`.
#[derive(Args)]
pub(crate) struct VerdictsArgs {
    /// 1,000 simulated studies of each rule instead of 10,000.
    #[arg(long)]
    quick: bool,
    /// Of the simulation.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Simulates and prints the table of `docs/statistics.md`.
///
/// # Errors
/// If a rule is wrong more often than it promises: by more than a percentage point, in a quick run
/// and three standard errors of the simulation.
pub(crate) fn run(args: &VerdictsArgs) -> anyhow::Result<()> {
    let repetitions = if args.quick { QUICK } else { REPETITIONS };
    let rates = error_rates(repetitions, &mut ChaCha8Rng::seed_from_u64(args.seed))?;
    terminal::write(format_args!("{}", table(&rates)))?;
    let noise = if args.quick { 3.0 } else { 0.0 };
    let broken: Vec<String> = rates
        .iter()
        .filter(|rate| rate.simulated > rate.nominal + MARGIN + noise * rate.standard_error())
        .map(|rate| format!("{}, {}: {:.1} %", rate.rule, rate.truth, 100.0 * rate.simulated))
        .collect();
    if !broken.is_empty() {
        bail!("wrong more often than promised: {}", broken.join("; "));
    }
    Ok(())
}

/// The table in Markdown.
fn table(rates: &[ErrorRate]) -> String {
    let mut text = "| rule | truth | nominal | simulated |\n|---|---|---|---|\n".to_owned();
    for rate in rates {
        let (nominal, simulated) = (100.0 * rate.nominal, 100.0 * rate.simulated);
        text.push_str(&format!("| {} | {} | {nominal} % | {simulated:.1} % |\n", rate.rule, rate.truth));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/statistics.md` holds the table of a full run: every rule in order, none above its
    /// nominal rate by more than a point.
    #[test]
    fn the_documented_table_is_whole_and_keeps_its_promise() {
        let path = crate::paths::workspace_root().join("docs/statistics.md");
        let documented = std::fs::read_to_string(path).unwrap();
        let rows: Vec<Vec<&str>> = documented
            .lines()
            .skip_while(|line| *line != "| rule | truth | nominal | simulated |")
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let rates = error_rates(1, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        assert_eq!(rows.len(), rates.len());
        for (row, rate) in rows.iter().zip(&rates) {
            assert_eq!((row[0], row[1]), (rate.rule, rate.truth));
            let percent = |text: &str| text.strip_suffix(" %").unwrap().parse::<f64>().unwrap();
            assert!((percent(row[2]) - 100.0 * rate.nominal).abs() < 1e-9);
            assert!(percent(row[3]) <= 100.0 * (rate.nominal + MARGIN) + 1e-9, "{row:?}");
        }
    }
}
