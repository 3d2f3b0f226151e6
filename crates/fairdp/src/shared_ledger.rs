//! Several fits on one table under one cap.

use std::path::Path;

use dp_accounting::Delta;
use serde::{Deserialize, Serialize};

use crate::account::{Account, Release};
use crate::config::PrivacyEntry;
use crate::error::{FairdpError, Result};
use crate::input;
use crate::key::{DrawnKey, NoiseKey};
use crate::output::{self, Readers};
use crate::seal::{sealed, unsealed};

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
    /// The name of the records and the configuration that the key is bound to; none with a seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound_to: Option<String>,
    releases: Vec<Release>,
}

impl Fit {
    pub(crate) fn new(key: &NoiseKey, account: &Account) -> Self {
        let bound_to = key.drawn().seed.is_none().then(|| key.bound_to().to_owned());
        Self { name: key.drawn().name(), bound_to, releases: account.releases().to_vec() }
    }

    /// One that is only planned: its key is bound to nothing.
    pub(crate) fn planned(key: &DrawnKey, account: &Account) -> Self {
        Self { name: key.name(), bound_to: None, releases: account.releases().to_vec() }
    }

    /// Whether this entry is of the same fit: with the same noise, and all its releases.
    fn is_same(&self, known: &Self) -> bool {
        let has_all = || self.releases.iter().all(|release| known.releases.contains(release));
        known.name == self.name && known.bound_to == self.bound_to && has_all()
    }
}

/// Enters a fit before it releases anything, and returns the ε of all fits so far.
///
/// Without a seed a key has one fit: with the same records and configuration it has the same noise,
/// and releases the same again; for others, say from a copy of a run's folder, it is refused. With
/// a seed, a fit that `is_continued` is entered once; another one is new whatever its name, since
/// fits with one seed have one.
///
/// The file is made with the first fit's cap: `privacy.total_epsilon`, or its ε. A later fit with a
/// smaller cap is refused beyond its own.
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
    let is_seeded = fit.bound_to.is_none();
    let is_new = !(ledger.fits.iter().any(|known| fit.is_same(known)) && (is_continued || !is_seeded));
    if is_new && !is_seeded && ledger.fits.iter().any(|known| known.name == fit.name) {
        return Err(FairdpError::CopiedKey { ledger: path.to_path_buf() });
    }
    if is_new {
        ledger.fits.push(fit);
    }
    let total = ledger.epsilon()?;
    let cap = asked.map_or(ledger.cap, |asked| asked.min(ledger.cap));
    // Rounding of the calibration.
    if total > cap * (1.0 + 1e-9) {
        let n_fits = ledger.fits.len() - usize::from(is_new);
        return Err(FairdpError::BeyondCap { ledger: path.to_path_buf(), n_fits, spent: before, total, cap });
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
        return Err(FairdpError::OtherLedger {
            ledger: path.to_path_buf(),
            kept: format!("is kept at δ = {:e}", ledger.delta),
            configured: format!("has {delta:e}"),
        });
    }
    if ledger.unit.as_deref() != unit {
        let name = |unit: Option<&str>| unit.map_or("rows".to_owned(), |column| format!("the values of `{column}`"));
        return Err(FairdpError::OtherLedger {
            ledger: path.to_path_buf(),
            kept: format!("protects {}", name(ledger.unit.as_deref())),
            configured: name(unit),
        });
    }
    Ok(Some(ledger))
}

impl SharedLedger {
    fn epsilon(&self) -> Result<f64> {
        let accounts =
            self.fits.iter().map(|fit| Account::of(fit.releases.iter().cloned())).collect::<Result<Vec<_>>>()?;
        Account::epsilon_together(&accounts, Delta::new(self.delta)?)
    }
}
