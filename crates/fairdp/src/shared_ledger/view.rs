//! What a ledger says to people: what was spent, what is left, and how to divide it.

use std::path::{Path, PathBuf};

use dp_accounting::Delta;
use serde::Serialize;

use super::file::{LedgerFile, Terms};
use super::witness::Witness;
use crate::error::{FairdpError, Result};
use crate::input;

/// The most fits that are planned.
const MOST_FITS: usize = 10_000;

/// A ledger that was read and checked.
///
/// ```no_run
/// use std::path::Path;
/// let view = fairdp::LedgerView::read(Path::new("ledger.json"), None)?;
/// let spent = view.spent(view.delta())?;
/// println!("{spent} of {}", view.cap());
/// # Ok::<(), fairdp::FairdpError>(())
/// ```
#[derive(Debug, Clone)]
pub struct LedgerView {
    path: PathBuf,
    ledger: LedgerFile,
}

/// One fit of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LedgerFit {
    /// The name of its key.
    pub name: String,
    /// Its people, as its configuration declares them.
    pub scope: Option<String>,
    /// Its ε alone.
    pub epsilon: f64,
    /// ε of the people of its scope, with all fits up to this one.
    pub so_far: f64,
}

impl LedgerView {
    /// Reads a ledger, and compares it with a witness if there is one.
    ///
    /// # Errors
    /// [`FairdpError::Io`] if there is no ledger; [`FairdpError::BrokenLedger`] for one whose lines do
    /// not follow from one another, or that the witness has seen longer or otherwise.
    pub fn read(path: &Path, witness: Option<&Path>) -> Result<Self> {
        let ledger = LedgerFile::read(path)?;
        if let Some(witness) = witness {
            if !witness.exists() {
                return Err(input::missing(witness));
            }
            Witness::check(witness, ledger.as_ref(), path)?;
        }
        Ok(Self { path: path.to_path_buf(), ledger: ledger.ok_or_else(|| input::missing(path))? })
    }

    /// A ledger that nothing is in yet.
    ///
    /// # Errors
    /// [`FairdpError::InvalidParameter`] for a cap that is not above 0, and a δ not between 0 and 1.
    pub fn planned(path: &Path, cap: f64, delta: f64) -> Result<Self> {
        if !(cap.is_finite() && cap > 0.0) {
            return Err(FairdpError::invalid("--cap", cap, "a finite number above 0"));
        }
        if !(delta > 0.0 && delta < 1.0) {
            return Err(FairdpError::invalid("--delta", delta, "a number above 0 and below 1"));
        }
        Ok(Self { path: path.to_path_buf(), ledger: LedgerFile::new(Terms::new(cap, delta, None))? })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// ε of all fits, at most.
    pub fn cap(&self) -> f64 {
        self.ledger.terms.cap
    }

    /// The δ that it is kept at.
    pub fn delta(&self) -> f64 {
        self.ledger.terms.delta
    }

    /// The column whose values are its units; none where these are rows.
    pub fn unit(&self) -> Option<&str> {
        self.ledger.terms.unit.as_deref()
    }

    /// The seal of its last line: published elsewhere, it pins every fit.
    pub fn seal(&self) -> &str {
        self.ledger.seal(self.ledger.fits.len())
    }

    /// Its scopes, sorted.
    pub fn scopes(&self) -> Vec<&str> {
        self.ledger.scopes().into_iter().collect()
    }

    /// Every fit in its order.
    ///
    /// # Errors
    /// [`FairdpError::Accounting`].
    pub fn fits(&self) -> Result<Vec<LedgerFit>> {
        let delta = Delta::new(self.delta())?;
        let mut so_far = self.ledger.clone();
        so_far.fits.clear();
        let mut fits = Vec::with_capacity(self.ledger.fits.len());
        for fit in &self.ledger.fits {
            so_far.fits.push(fit.clone());
            fits.push(LedgerFit {
                name: fit.name.clone(),
                scope: fit.scope.clone(),
                epsilon: fit.account()?.epsilon(delta)?.epsilon.get(),
                so_far: match &fit.scope {
                    Some(scope) => so_far.epsilon_in(Some(scope), &[], delta)?,
                    None => so_far.epsilon(delta)?,
                },
            });
        }
        Ok(fits)
    }

    /// ε of a person who is in one scope alone, at this δ: the largest of all scopes'.
    ///
    /// # Errors
    /// [`FairdpError::Accounting`].
    pub fn spent(&self, delta: f64) -> Result<f64> {
        self.ledger.epsilon(Delta::new(delta)?)
    }

    /// ε of the people of a scope.
    ///
    /// # Errors
    /// [`FairdpError::Accounting`].
    pub fn spent_in(&self, scope: &str) -> Result<f64> {
        self.ledger.epsilon_in(Some(scope), &[], Delta::new(self.delta())?)
    }

    /// ε of each of several further fits, by their shares of what is left, so that all together keep
    /// the cap: `μ²` is divided, which is what Gaussian noise composes by. None if nothing is left.
    ///
    /// # Errors
    /// [`FairdpError::InvalidParameter`] for shares that are not finite numbers above 0, and for none or
    /// more than 10,000 of them.
    pub fn shared(&self, scope: Option<&str>, shares: &[f64]) -> Result<Option<Vec<f64>>> {
        if shares.is_empty() || shares.len() > MOST_FITS {
            return Err(FairdpError::invalid("fits", shares.len(), format!("1 to {MOST_FITS}")));
        }
        if let Some(share) = shares.iter().find(|share| !(share.is_finite() && **share > 0.0)) {
            return Err(FairdpError::invalid("--shares", share, "finite numbers above 0"));
        }
        self.ledger.shared(scope, shares)
    }
}
