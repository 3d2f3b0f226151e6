//! What the fits of a ledger cost together, and what is left: by composition of their events.

use std::collections::BTreeSet;

use dp_accounting::{Delta, DpEvent, Epsilon, NoiseMultiplier};
use dp_linear::GaussianBudget;

use super::file::LedgerFile;
use crate::account::{Account, Release};
use crate::error::Result;
use crate::subset::Subset;

/// Rounding of the calibration.
pub(super) const SLACK: f64 = 1.0 + 1e-9;
/// ε that is found is at most this share below the largest one.
const PRECISION: f64 = 1e-3;
/// Digits of an ε that is proposed.
const DIGITS: i32 = 4;
/// A smaller ε is none.
const LEAST: f64 = 1e-4;

impl LedgerFile {
    /// The scopes of its fits.
    pub(super) fn scopes(&self) -> BTreeSet<&str> {
        self.fits.iter().filter_map(|fit| fit.scope.as_deref()).collect()
    }

    /// ε of the fits that the people of a scope may be in: its own, and those without a scope. A
    /// further fit is counted with them.
    pub(super) fn epsilon_in(&self, scope: Option<&str>, further: &[Account], delta: Delta) -> Result<f64> {
        let may_be_in = |of: Option<&str>| of.is_none() || of == scope;
        let fits = self.fits.iter().filter(|fit| may_be_in(fit.scope.as_deref())).map(super::Fit::account);
        let mut accounts = fits.collect::<Result<Vec<_>>>()?;
        accounts.extend_from_slice(further);
        Account::epsilon_together(&accounts, delta)
    }

    /// ε of a person who is in one scope alone: the largest of all scopes'.
    pub(super) fn epsilon(&self, delta: Delta) -> Result<f64> {
        self.epsilon_with(None, &[], delta)
    }

    /// The same with further fits in a scope; without one they are about the people of all.
    pub(super) fn epsilon_with(&self, scope: Option<&str>, further: &[Account], delta: Delta) -> Result<f64> {
        let mut scopes: BTreeSet<Option<&str>> = self.scopes().into_iter().map(Some).collect();
        scopes.insert(scope);
        let is_in = |other: Option<&str>| scope.is_none() || other == scope;
        scopes.into_iter().try_fold(0.0_f64, |largest, other| {
            let further = if is_in(other) { further } else { &[] };
            Ok(largest.max(self.epsilon_in(other, further, delta)?))
        })
    }

    /// The largest ε, up to `most`, at which fits keep the cap; none if nothing is left. `fits` gives
    /// their accounts.
    pub(super) fn largest(
        &self,
        scope: Option<&str>,
        cap: f64,
        most: f64,
        fits: &dyn Fn(f64) -> Result<Vec<Account>>,
    ) -> Result<Option<f64>> {
        let delta = Delta::new(self.terms.delta)?;
        let keeps =
            |epsilon: f64| -> Result<bool> { Ok(self.epsilon_with(scope, &fits(epsilon)?, delta)? <= cap * SLACK) };
        if keeps(most)? {
            return Ok(Some(most));
        }
        let (mut low, mut high) = (LEAST, most);
        if low >= high || !keeps(low)? {
            return Ok(None);
        }
        while high > low * (1.0 + PRECISION) {
            let middle = (low * high).sqrt();
            if keeps(middle)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(Some(rounded_down(low)))
    }

    /// ε of each of several further fits that together keep the cap, by their shares of the budget
    /// of Gaussian noise, `μ²`; none if nothing is left.
    pub(super) fn shared(&self, scope: Option<&str>, shares: &[f64]) -> Result<Option<Vec<f64>>> {
        let delta = Delta::new(self.terms.delta)?;
        let whole: f64 = shares.iter().sum();
        let of_share = |epsilon: f64, share: f64| -> Result<f64> {
            let mu = GaussianBudget::new(Epsilon::new(epsilon)?, delta)?.mu() * (share / whole).sqrt();
            Ok(gaussian(mu)?.epsilon(delta)?.epsilon.get())
        };
        let together = |epsilon: f64| Ok(vec![gaussian(GaussianBudget::new(Epsilon::new(epsilon)?, delta)?.mu())?]);
        let Some(rest) = self.largest(scope, self.terms.cap, self.terms.cap, &together)? else { return Ok(None) };
        let each = shares.iter().map(|&share| Ok(rounded_down(of_share(rest, share)?)));
        each.collect::<Result<Vec<f64>>>().map(Some)
    }
}

/// The account of a fit whose releases are together as one Gaussian of this μ.
pub(super) fn gaussian(mu: f64) -> Result<Account> {
    let event = DpEvent::gaussian(NoiseMultiplier::new(1.0 / mu)?);
    Account::of([Release { part: Subset::Training, purpose: "a fit".into(), event, count: 1 }])
}

/// To so many digits that are not zero, downwards.
fn rounded_down(epsilon: f64) -> f64 {
    let digits = (DIGITS - 1 - epsilon.log10().floor() as i32).clamp(0, 15);
    // Through a text: the number that is printed is the number that is meant.
    let text = dp_accounting::decimal(epsilon, digits as usize, dp_accounting::Rounding::Down);
    text.parse().unwrap_or(epsilon)
}
