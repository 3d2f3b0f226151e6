//! Whether what is printed of groups holds: releases of known populations, by the very functions
//! that make `fairness.json` and Python's intervals.
//!
//! A [`Setting`] is a population: groups with their sizes, base rates, true- and false-positive
//! rates, and the noise of the counts. [`audit`] draws releases of each, computes
//! [`NoisyFigures`](fair_metrics::noisy::NoisyFigures), and compares them with the truth.

mod clamped;
mod releases;
mod settings;
mod tally;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use fair_metrics::MetricError;
use rand::Rng;
use serde::Serialize;

pub use self::releases::Method;
use self::settings::LEVEL;
pub use self::settings::{Setting, TrueGroup, settings};
use self::tally::Tally;
pub use self::tally::{FIGURES, Figure};

/// How often a group may be said to be above the lowest that is not.
const FALSE_NAMES: f64 = 0.05;
/// Standard errors by which a share of releases may miss its nominal value: of a thousand shares
/// that are all exactly nominal, one does so in three of a hundred audits.
const ERRORS: f64 = 4.0;
/// Shares of fewer releases than this say nothing.
const LEAST_RELEASES: u32 = 100;
/// How much wider than Wald's an interval may be.
const WIDEST: f64 = 1.25;
/// In how many releases a group that is far below must be named alone.
const NAMED: f64 = 0.9;

/// An extreme over all settings, beside its nominal value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What is looked at.
    pub what: String,
    /// What it must be, at least or at most.
    pub nominal: f64,
    /// Whether it must not be less, or not be more.
    pub at_least: bool,
    /// The least or the greatest over the settings.
    pub found: f64,
    /// Its Monte Carlo error, at the nominal value; 0 of widths.
    pub standard_error: f64,
    /// Releases behind it.
    pub releases: u32,
    /// Where it was found.
    pub setting: String,
    /// Whether it holds, but for the error.
    pub holds: bool,
}

/// The settings that were simulated, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FairnessAudit {
    /// Populations.
    pub settings: usize,
    /// Releases of all of them.
    pub releases: u64,
    /// One per figure, and those of names and widths.
    pub findings: Vec<Finding>,
    /// Whether all of them hold.
    pub holds: bool,
}

/// Draws releases of each setting, in parallel, and finds the extremes. `releases` are those of a
/// setting with two groups; with more of them fewer are drawn.
///
/// **Guarantee.** The same generators give the same audit on any number of threads.
///
/// # Errors
/// [`MetricError::InvalidParameter`] for zero releases or a setting that is no population.
pub fn audit<R: Rng>(
    settings: &[Setting],
    method: Method,
    releases: u32,
    generator: impl Fn(u64) -> R + Sync,
) -> Result<FairnessAudit, MetricError> {
    if releases == 0 {
        return Err(MetricError::invalid("releases", 0, "at least 1"));
    }
    let next = AtomicUsize::new(0);
    let tallies: Mutex<Vec<Option<Result<Tally, MetricError>>>> = Mutex::new(settings.iter().map(|_| None).collect());
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(setting) = settings.get(place) else { break };
            let n = (2 * releases / setting.groups.len().max(2) as u32).max(1);
            let tally = Tally::of(setting, method, n, &mut generator(place as u64));
            tallies.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some(tally);
        }
    };
    let n_threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..n_threads).for_each(|_| drop(scope.spawn(work))));
    let tallies = tallies.into_inner().unwrap_or_else(PoisonError::into_inner);
    let tallies: Vec<Tally> = tallies.into_iter().flatten().collect::<Result<_, _>>()?;
    let findings = findings(&tallies);
    Ok(FairnessAudit {
        settings: settings.len(),
        releases: tallies.iter().map(|tally| u64::from(tally.releases)).sum(),
        holds: findings.iter().all(|finding| finding.holds),
        findings,
    })
}

/// A share of releases in one setting.
struct Seen {
    share: f64,
    releases: u32,
    setting: String,
}

impl Seen {
    /// Standard errors above the nominal value.
    fn excess(&self, nominal: f64) -> f64 {
        (self.share - nominal) / self.standard_error(nominal)
    }

    fn standard_error(&self, nominal: f64) -> f64 {
        (nominal * (1.0 - nominal) / f64::from(self.releases)).sqrt()
    }
}

/// The share that is farthest on the wrong side, in units of its error.
fn worst(what: String, nominal: f64, at_least: bool, seen: impl Iterator<Item = Seen>) -> Option<Finding> {
    let sign = if at_least { 1.0 } else { -1.0 };
    let seen = seen.filter(|seen| seen.releases >= LEAST_RELEASES);
    let found = seen.min_by(|a, b| (sign * a.excess(nominal)).total_cmp(&(sign * b.excess(nominal))))?;
    Some(Finding {
        what,
        nominal,
        at_least,
        found: found.share,
        standard_error: found.standard_error(nominal),
        releases: found.releases,
        holds: sign * found.excess(nominal) >= -ERRORS,
        setting: found.setting,
    })
}

fn findings(tallies: &[Tally]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for figure in FIGURES {
        let seen = tallies.iter().flat_map(|tally| tally.coverage(figure));
        findings.extend(worst(format!("coverage: {}", figure.name()), LEVEL, true, seen));
    }
    let names = tallies.iter().map(Tally::false_names);
    findings.extend(worst("false naming".into(), FALSE_NAMES, false, names));
    let alone = tallies.iter().filter_map(Tally::named_alone);
    findings.extend(worst("named alone where far below".into(), NAMED, true, alone));
    for figure in FIGURES {
        let widths = tallies.iter().flat_map(|tally| tally.widths(figure));
        let widest = widths.max_by(|a, b| a.share.total_cmp(&b.share));
        findings.extend(widest.map(|widest| Finding {
            what: format!("width over Wald's: {}", figure.name()),
            nominal: WIDEST,
            at_least: false,
            found: widest.share,
            standard_error: 0.0,
            releases: widest.releases,
            holds: widest.share <= WIDEST,
            setting: widest.setting,
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// The standard deviations at ε = 1/2, 1 and 3.
    const NOISE: [(f64, f64); 3] = [(0.5, 7.2), (1.0, 3.73), (3.0, 1.4)];

    fn run(method: Method, releases: u32) -> FairnessAudit {
        let settings = settings(&NOISE, 6, &mut ChaCha8Rng::seed_from_u64(5));
        audit(&settings, method, releases, |place| ChaCha8Rng::seed_from_u64(1_000 + place)).unwrap()
    }

    /// Some two thousand shares of 400 releases, at four standard errors: a false alarm below 1e-1
    /// if all were exactly nominal; the seed is fixed.
    #[test]
    fn what_is_printed_holds_and_what_was_printed_does_not() {
        let audit = run(Method::Printed, 400);
        let broken: Vec<&Finding> = audit.findings.iter().filter(|finding| !finding.holds).collect();
        assert!(audit.holds && broken.is_empty(), "{broken:#?}");
        assert!(audit.settings >= 15 && audit.findings.len() >= 15, "{audit:?}");
        let clamped = run(Method::Clamped, 400);
        let of = |what: &str| clamped.findings.iter().find(|finding| finding.what == what).unwrap();
        assert!(!of("coverage: balanced accuracy").holds && !of("false naming").holds, "{clamped:#?}");
    }

    #[test]
    fn nothing_is_not_simulated() {
        assert!(audit(&[], Method::Printed, 0, ChaCha8Rng::seed_from_u64).is_err());
    }
}
