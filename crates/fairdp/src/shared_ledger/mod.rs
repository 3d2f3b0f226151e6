//! Several fits on one table, or on tables of one population, under one cap.
//!
//! A [file](file) has the terms and the fits, each by the name of its key with its releases, and
//! nothing of the records. ε of all fits is that of the composition of their events
//! ([`budget`]).
//!
//! A fit may name a *scope*: its user declares that people of different scopes are different people.
//! Fits of different scopes then compose in parallel, and the largest ε counts. A fit without a scope
//! may be about anybody, and composes with all. No program can check that declaration, and a
//! statement says whose word it is.

mod budget;
mod file;
#[cfg(test)]
mod tests;
mod view;
mod witness;

use std::path::Path;

use dp_accounting::Delta;
use serde::{Deserialize, Serialize};

use self::budget::SLACK;
use self::file::{LedgerFile, Terms};
pub use self::view::{LedgerFit, LedgerView};
use self::witness::Witness;
use crate::account::{Account, Release};
use crate::config::Config;
use crate::error::{FairdpError, Result};
use crate::key::{DrawnKey, NoiseKey};
use crate::output;

/// One fit, by the name of its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fit {
    name: String,
    /// The name of the records and the configuration that the key is bound to; none with a seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound_to: Option<String>,
    /// The people that its records are of, as they are declared; none where they may be any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    releases: Vec<Release>,
}

impl Fit {
    pub(crate) fn new(key: &NoiseKey, account: &Account, scope: Option<&str>) -> Self {
        let bound_to = key.drawn().seed.is_none().then(|| key.bound_to().to_owned());
        Self { bound_to, ..Self::planned(key.drawn(), account, scope) }
    }

    /// One that is only planned: its key is bound to nothing.
    pub(crate) fn planned(key: &DrawnKey, account: &Account, scope: Option<&str>) -> Self {
        let scope = scope.map(ToOwned::to_owned);
        Self { name: key.name(), bound_to: None, scope, releases: account.releases().to_vec() }
    }

    fn account(&self) -> Result<Account> {
        Account::of(self.releases.iter().cloned())
    }

    /// Whether this entry is of the same fit: with the same noise, and all its releases.
    fn is_same(&self, known: &Self) -> bool {
        let has_all = || self.releases.iter().all(|release| known.releases.contains(release));
        known.name == self.name && known.bound_to == self.bound_to && has_all()
    }
}

/// What a fit, or another release of records, asks of a ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    /// ε of all fits together, at most; that of the ledger, or else its own, unless given.
    pub(crate) cap: Option<f64>,
    /// The column whose values are the units; none where these are rows.
    pub(crate) unit: Option<&'a str>,
    /// The people of the records, as they are declared.
    pub(crate) scope: Option<&'a str>,
}

impl<'a> From<&'a Config> for Asked<'a> {
    fn from(config: &'a Config) -> Self {
        let privacy = &config.privacy;
        Self {
            epsilon: privacy.epsilon,
            delta: privacy.delta,
            cap: privacy.total_epsilon,
            unit: config.unit_column(),
            scope: config.scope(),
        }
    }
}

/// The files of a ledger, and what a fit asks of it.
#[derive(Clone, Copy)]
pub(crate) struct Entering<'a> {
    pub(crate) ledger: &'a Path,
    /// A file, best in another place, that remembers the ledger.
    pub(crate) witness: Option<&'a Path>,
    pub(crate) asked: Asked<'a>,
    /// The account of the same fit at another ε.
    pub(crate) at: &'a dyn Fn(f64) -> Result<Account>,
}

/// What a fit makes of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LedgerTotals {
    /// Number of fits before.
    pub n_fits: usize,
    /// ε of these fits: of several scopes, the largest.
    pub before: f64,
    /// ε with the fit.
    pub total: f64,
    /// ε that all may have together.
    pub cap: f64,
}

impl Entering<'_> {
    /// Enters a fit before it releases anything.
    ///
    /// Without a seed a key has one fit: with the same records and configuration it has the same
    /// noise, and releases the same again; for others, say from a copy of a run's folder, it is
    /// refused. With a seed, a fit that `is_continued` is entered once; another one is new whatever
    /// its name, since fits with one seed have one.
    ///
    /// The file is made with the first fit's cap: `privacy.total_epsilon`, or its ε. A later fit with
    /// a smaller cap is refused beyond its own.
    pub(crate) fn enter(&self, fit: Fit, is_continued: bool) -> Result<LedgerTotals> {
        let _lock = output::lock(self.ledger)?;
        let (ledger, is_new, totals) = self.entered(fit, is_continued)?;
        if is_new {
            ledger.write(self.ledger)?;
        }
        // Behind: a witness of a fit that is in no ledger would refuse every later one.
        if let Some(witness) = self.witness {
            Witness::write(witness, &ledger)?;
        }
        Ok(totals)
    }

    /// Refuses a new fit that could not be entered; writes nothing.
    pub(crate) fn would_enter(&self, fit: Fit) -> Result<LedgerTotals> {
        Ok(self.entered(fit, false)?.2)
    }

    /// The ledger with a fit, whether it was not there before, and the ε of all fits.
    fn entered(&self, fit: Fit, is_continued: bool) -> Result<(LedgerFile, bool, LedgerTotals)> {
        let mut ledger = self.found()?;
        let delta = Delta::new(ledger.terms.delta)?;
        let before = ledger.epsilon(delta)?;
        let is_seeded = fit.bound_to.is_none();
        let is_new = !(ledger.fits.iter().any(|known| fit.is_same(known)) && (is_continued || !is_seeded));
        if is_new && !is_seeded && ledger.fits.iter().any(|known| known.name == fit.name) {
            return Err(FairdpError::CopiedKey { ledger: self.ledger.to_path_buf() });
        }
        let n_fits = ledger.fits.len();
        let (total, cap) = if is_new {
            let total = ledger.epsilon_with(fit.scope.as_deref(), &[fit.account()?], delta)?;
            (total, self.cap(&ledger))
        } else {
            (before, self.cap(&ledger))
        };
        // Rounding of the calibration.
        if total > cap * SLACK {
            let fits = if is_new { self.rest_of(&ledger, cap)? } else { None };
            let ledger = self.ledger.to_path_buf();
            return Err(FairdpError::BeyondCap { ledger, n_fits, spent: before, total, cap, fits });
        }
        if is_new {
            ledger.push(fit)?;
        }
        Ok((ledger, is_new, LedgerTotals { n_fits, before, total, cap }))
    }

    /// The largest ε at which the fit keeps the cap.
    pub(crate) fn rest(&self) -> Result<f64> {
        let ledger = self.found()?;
        let cap = self.cap(&ledger);
        let spent = || ledger.epsilon(Delta::new(ledger.terms.delta)?);
        self.rest_of(&ledger, cap)?.map_or_else(
            || Err(FairdpError::NothingLeft { ledger: self.ledger.to_path_buf(), spent: spent()?, cap }),
            Ok,
        )
    }

    fn rest_of(&self, ledger: &LedgerFile, cap: f64) -> Result<Option<f64>> {
        ledger.largest(self.asked.scope, cap, cap, &|epsilon| Ok(vec![(self.at)(epsilon)?]))
    }

    fn cap(&self, ledger: &LedgerFile) -> f64 {
        self.asked.cap.map_or(ledger.terms.cap, |asked| asked.min(ledger.terms.cap))
    }

    /// The ledger, or a new one with the fit's cap.
    fn found(&self) -> Result<LedgerFile> {
        let Asked { epsilon, delta, cap, unit, .. } = self.asked;
        let terms = || Terms::new(cap.unwrap_or(epsilon), delta, unit);
        let ledger = read(self.ledger, self.witness, self.asked)?;
        ledger.map_or_else(|| LedgerFile::new(terms()), Ok)
    }
}

/// The ledger, if there is one yet: another file of that name, one that its witness does not know, or
/// a ledger for another δ or other units, is refused.
pub(crate) fn check(path: &Path, witness: Option<&Path>, asked: Asked<'_>) -> Result<()> {
    read(path, witness, asked).map(drop)
}

fn read(path: &Path, witness: Option<&Path>, asked: Asked<'_>) -> Result<Option<LedgerFile>> {
    let ledger = LedgerFile::read(path)?;
    if let Some(witness) = witness {
        Witness::check(witness, ledger.as_ref(), path)?;
    }
    let Some(ledger) = ledger else { return Ok(None) };
    let (delta, unit) = (asked.delta, asked.unit);
    if ledger.terms.delta != delta {
        return Err(FairdpError::OtherLedger {
            ledger: path.to_path_buf(),
            kept: format!("is kept at δ = {:e}", ledger.terms.delta),
            configured: format!("has {delta:e}"),
        });
    }
    if ledger.terms.unit.as_deref() != unit {
        let name = |unit: Option<&str>| unit.map_or("rows".to_owned(), |column| format!("the values of `{column}`"));
        return Err(FairdpError::OtherLedger {
            ledger: path.to_path_buf(),
            kept: format!("protects {}", name(ledger.terms.unit.as_deref())),
            configured: name(unit),
        });
    }
    Ok(Some(ledger))
}
