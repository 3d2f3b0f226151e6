//! `cargo xtask audit fairness`: whether what is printed of groups holds.

use anyhow::bail;
use clap::{Args, ValueEnum};
use dp_accounting::{Delta, Epsilon, analytic_gaussian_noise_multiplier};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use simulations::fairness::{FairnessAudit, Finding, Method, audit, settings};

use crate::terminal;

/// The ε of the releases: their noise is the Gaussian mechanism's. Without noise there are the
/// intervals of `fairdp.metrics`.
const EPSILONS: [f64; 3] = [0.5, 1.0, 3.0];
const DELTA: f64 = 1e-5;
/// Drawn settings at every noise, and in a quick run.
const DRAWN: usize = 25;
const QUICK_DRAWN: usize = 5;
/// Releases of a setting with two groups, and in a quick run.
const RELEASES: u32 = 5_000;
const QUICK_RELEASES: u32 = 1_000;

/// Options of `cargo xtask audit fairness`.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask audit fairness --quick
  cargo xtask audit fairness --json
  cargo xtask audit fairness --quick --plant clamp")]
pub(crate) struct FairnessArgs {
    /// Fewer settings and releases: less than a minute.
    #[arg(long)]
    quick: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Put a known fault back, to see that it is found.
    #[arg(long, value_enum)]
    plant: Option<Plant>,
    /// Of the settings and releases.
    #[arg(long, default_value_t = 51)]
    seed: u64,
}

/// A fault that was once there.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Plant {
    /// Balanced accuracy from clamped recalls whose half-widths are added in quadrature, and the
    /// lowest estimate by name.
    Clamp,
}

/// Simulates and prints the table of `docs/statistics.md`.
///
/// # Errors
/// If a coverage is below nominal by more than the simulation's error, a group is named falsely too
/// often, one that is far below is not named, or an interval is too wide.
pub(crate) fn run(args: &FairnessArgs) -> anyhow::Result<()> {
    let (n_drawn, releases) = if args.quick { (QUICK_DRAWN, QUICK_RELEASES) } else { (DRAWN, RELEASES) };
    let method = match args.plant {
        None => Method::Printed,
        Some(Plant::Clamp) => Method::Clamped,
    };
    let settings = settings(&noise()?, n_drawn, &mut ChaCha8Rng::seed_from_u64(args.seed));
    let generator = |place: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(place + 1);
        rng
    };
    let found = audit(&settings, method, releases, generator)?;
    if args.json {
        terminal::write(format_args!("{}\n", serde_json::to_string_pretty(&found)?))?;
    } else {
        terminal::write(format_args!("{}", table(&found)))?;
    }
    let broken: Vec<&str> =
        found.findings.iter().filter(|finding| !finding.holds).map(|finding| &*finding.what).collect();
    if !broken.is_empty() {
        bail!("does not hold: {}", broken.join("; "));
    }
    Ok(())
}

/// Each ε with the standard deviation of its noise, and no noise.
fn noise() -> anyhow::Result<Vec<(f64, f64)>> {
    let delta = Delta::new(DELTA)?;
    let of = |epsilon: f64| -> anyhow::Result<(f64, f64)> {
        Ok((epsilon, analytic_gaussian_noise_multiplier(Epsilon::new(epsilon)?, delta)?.get()))
    };
    EPSILONS.into_iter().map(of).chain([Ok((f64::INFINITY, 0.0))]).collect()
}

/// The table in Markdown.
fn table(found: &FairnessAudit) -> String {
    let mut text = format!(
        "{} settings, {} releases\n\n| figure | nominal | found | error | where |\n|---|---|---|---|---|\n",
        found.settings, found.releases
    );
    for finding in &found.findings {
        let Finding { what, nominal, found, standard_error, setting, .. } = finding;
        let bound = if finding.at_least { "≥" } else { "≤" };
        let error = if *standard_error > 0.0 { format!("{standard_error:.4}") } else { String::new() };
        let mark = if finding.holds { "" } else { " **does not hold**" };
        text.push_str(&format!("| {what} | {bound} {nominal:.2} | {found:.4}{mark} | {error} | {setting} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/statistics.md` holds the table of a full run: every figure in order, and all hold.
    #[test]
    fn the_documented_table_is_whole_and_holds() {
        let path = crate::paths::workspace_root().join("docs/statistics.md");
        let documented = std::fs::read_to_string(path).unwrap();
        let rows: Vec<Vec<&str>> = documented
            .lines()
            .skip_while(|line| *line != "| figure | nominal | found | error | where |")
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let few = settings(&[(1.0, 3.73)], 8, &mut ChaCha8Rng::seed_from_u64(1));
        let expected = audit(&few, Method::Printed, 200, ChaCha8Rng::seed_from_u64).unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
        let expected: Vec<&str> = expected.findings.iter().map(|finding| &*finding.what).collect();
        assert_eq!(names, expected);
        assert!(!documented.contains("**does not hold**"));
    }

    /// Balle and Wang 2018: 3.7302 at (1, 1e-5).
    #[test]
    fn the_noise_is_that_of_the_gaussian_mechanism() {
        let noise = noise().unwrap();
        assert!((noise[1].1 - 3.7306).abs() < 1e-3, "{noise:?}");
        assert_eq!((noise.len(), noise[3].1), (4, 0.0));
    }
}
