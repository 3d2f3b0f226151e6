//! Several fits on one table under one cap.

use std::path::Path;

use dp_accounting::{Accountant as _, Delta, PldAccountant};
use serde::{Deserialize, Serialize};

use crate::account::{Account, RELATION, Release};
use crate::config::PrivacyEntry;
use crate::error::{FairdpError, Result};
use crate::input;
use crate::output::{self, Readers};
use crate::seal::{sealed, unsealed};
use crate::statement::rounded_up;

/// A ledger file. It names fits and their releases, and nothing of the records.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedLedger {
    version: u32,
    /// ε of all fits together, at most.
    cap: f64,
    delta: f64,
    /// The column whose values are the units of all fits; none where these are rows.
    #[serde(default)]
    unit: Option<String>,
    fits: Vec<Fit>,
}

/// One fit, by the name of its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fit {
    name: String,
    releases: Vec<Release>,
}

impl Fit {
    pub(crate) fn new(name: String, account: &Account) -> Self {
        Self { name, releases: account.releases().to_vec() }
    }

    /// Whether it is entered already: under its name, with all its releases.
    fn is_in(&self, known: &[Self]) -> bool {
        let has_all = |known: &Self| self.releases.iter().all(|release| known.releases.contains(release));
        known.iter().any(|known| known.name == self.name && has_all(known))
    }
}

/// Enters a fit before it releases anything, and returns the ε of all fits so far. A fit that
/// `is_continued` is entered once; another one is new whatever its name, since fits with one seed
/// have one.
///
/// The file is made with the first fit's cap: `privacy.total_epsilon`, or its ε. A later fit with a
/// smaller cap of its own is refused beyond that one.
pub(crate) fn enter(
    path: &Path,
    fit: Fit,
    is_continued: bool,
    privacy: &PrivacyEntry,
    unit: Option<&str>,
) -> Result<f64> {
    let _lock = output::lock(path)?;
    let (ledger, is_new, total) = entered(path, fit, is_continued, privacy, unit)?;
    if is_new {
        output::write(path, sealed(&ledger)?.as_bytes(), Readers::Owner)?;
    }
    Ok(total)
}

/// Refuses a new fit that could not be entered; writes nothing.
pub(crate) fn would_enter(path: &Path, fit: Fit, privacy: &PrivacyEntry, unit: Option<&str>) -> Result<()> {
    entered(path, fit, false, privacy, unit).map(drop)
}

/// The ledger with a fit, whether it was not there before, and the ε of all fits.
fn entered(
    path: &Path,
    fit: Fit,
    is_continued: bool,
    privacy: &PrivacyEntry,
    unit: Option<&str>,
) -> Result<(SharedLedger, bool, f64)> {
    let asked = privacy.total_epsilon;
    let new = SharedLedger {
        version: 1,
        cap: asked.unwrap_or(privacy.epsilon),
        delta: privacy.delta,
        unit: unit.map(ToOwned::to_owned),
        fits: Vec::new(),
    };
    let mut ledger = read(path, privacy.delta, unit)?.unwrap_or(new);
    let before = ledger.epsilon()?;
    let is_new = !(is_continued && fit.is_in(&ledger.fits));
    if is_new {
        ledger.fits.push(fit);
    }
    let total = ledger.epsilon()?;
    let cap = asked.map_or(ledger.cap, |asked| asked.min(ledger.cap));
    // Rounding of the calibration.
    if total > cap * (1.0 + 1e-9) {
        return Err(FairdpError::Refused(format!(
            "{}: {} fits have spent ε = {}, and this one would make it {}, beyond the cap of {}",
            path.display(),
            ledger.fits.len() - usize::from(is_new),
            rounded_up(before),
            rounded_up(total),
            cap
        )));
    }
    Ok((ledger, is_new, total))
}

/// The ledger, if there is one yet: another file of that name, or a ledger for another δ or other
/// units, is refused.
pub(crate) fn check(path: &Path, delta: f64, unit: Option<&str>) -> Result<()> {
    read(path, delta, unit).map(drop)
}

fn read(path: &Path, delta: f64, unit: Option<&str>) -> Result<Option<SharedLedger>> {
    if !path.exists() {
        return Ok(None);
    }
    let ledger: SharedLedger = unsealed(path, &input::text(path)?)?;
    if ledger.delta != delta {
        let problem = format!("is kept at δ = {:e}, and the configuration has {delta:e}", ledger.delta);
        return Err(FairdpError::Refused(format!("{}: {problem}", path.display())));
    }
    if ledger.unit.as_deref() != unit {
        let name = |unit: Option<&str>| unit.map_or("rows".to_owned(), |column| format!("the values of `{column}`"));
        let (kept, asked) = (name(ledger.unit.as_deref()), name(unit));
        let problem = format!("protects {kept}, and the configuration {asked}: ε of one says nothing of the other");
        return Err(FairdpError::Refused(format!("{}: {problem}", path.display())));
    }
    Ok(Some(ledger))
}

impl SharedLedger {
    /// A record may be trained on in one fit and tested on in another.
    fn epsilon(&self) -> Result<f64> {
        let delta = Delta::new(self.delta)?;
        let accounts =
            self.fits.iter().map(|fit| Account::of(fit.releases.iter().cloned())).collect::<Result<Vec<_>>>()?;
        if let [one] = &accounts[..] {
            return Ok(one.epsilon(delta)?.epsilon.get());
        }
        let mut accountant = PldAccountant::new(RELATION);
        accounts.iter().try_for_each(|account| accountant.compose(&account.event(), 1))?;
        Ok(accountant.epsilon(delta)?.epsilon.get())
    }
}
