//! The account of a run: every release by the subset of records that it was made on. A record is
//! trained on or tested on, never both.

use dp_accounting::audit::{Opinion, judge};
use dp_accounting::{
    Accountant, Delta, DpEvent, Epsilon, EpsilonBound, Ledger, NeighbouringRelation, PldAccountant, RdpAccountant,
    TradeOff,
};
use serde::{Deserialize, Serialize};

use crate::error::{FairdpError, Result};
use crate::planned::Planned;
use crate::subset::Subset;

/// Neighbours: tables in one of which a unit's records are blank. The number of records is public.
pub(crate) const RELATION: NeighbouringRelation = NeighbouringRelation::ZeroOut;

/// One release with its purpose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The records that it was made on.
    pub part: Subset,
    /// Its purpose.
    pub purpose: String,
    /// The event of one release.
    pub event: DpEvent,
    /// Number of such releases.
    pub count: u64,
}

/// The releases of a run, and a chained ledger of each part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    releases: Vec<Release>,
    training: Ledger,
    test: Ledger,
    validation: Ledger,
}

impl Default for Account {
    fn default() -> Self {
        let [training, test, validation] = [0; 3].map(|_| Ledger::new(RELATION));
        Self { releases: Vec::new(), training, test, validation }
    }
}

impl Account {
    /// Records a release before it is made: a release that the ledger refuses is not made.
    ///
    /// # Errors
    /// [`FairdpError::Accounting`] if the ledger refuses.
    pub(crate) fn record(&mut self, planned: &Planned) -> Result<()> {
        self.add(Release {
            part: planned.part,
            purpose: planned.purpose.clone(),
            event: planned.event.clone(),
            count: planned.count,
        })
    }

    fn add(&mut self, release: Release) -> Result<()> {
        let ledger = match release.part {
            Subset::Training => &mut self.training,
            Subset::Test => &mut self.test,
            Subset::Validation => &mut self.validation,
        };
        ledger.record(&release.event, release.count)?;
        self.releases.push(release);
        Ok(())
    }

    /// The account of these releases.
    ///
    /// # Errors
    /// [`FairdpError::Accounting`] if a ledger refuses one.
    pub fn of(releases: impl IntoIterator<Item = Release>) -> Result<Self> {
        let mut account = Self::default();
        releases.into_iter().try_for_each(|release| account.add(release))?;
        Ok(account)
    }

    /// ε of several runs on the same records. A record may be in one part of one run and in another
    /// part of the next.
    ///
    /// # Errors
    /// [`FairdpError::Accounting`].
    pub fn epsilon_together(runs: &[Self], delta: Delta) -> Result<f64> {
        if let [one] = runs {
            return Ok(one.epsilon(delta)?.epsilon.get());
        }
        let mut accountant = PldAccountant::new(RELATION);
        runs.iter().try_for_each(|run| accountant.compose(&run.event(), 1))?;
        Ok(accountant.epsilon(delta)?.epsilon.get())
    }

    /// All releases in order.
    pub(crate) fn releases(&self) -> &[Release] {
        &self.releases
    }

    /// Checks that the chained ledgers are unbroken and agree with the releases.
    ///
    /// # Errors
    /// [`FairdpError::LedgerDiffers`].
    pub(crate) fn verify(&self) -> Result<()> {
        let again = Self::of(self.releases.iter().cloned())?;
        for subset in Subset::ALL {
            let (ours, theirs) = (self.ledger(subset), again.ledger(subset));
            ours.verify()?;
            if ours != theirs {
                return Err(FairdpError::LedgerDiffers { part: subset.name() });
            }
        }
        Ok(())
    }

    /// The event of one record, which is in one of the subsets.
    pub(crate) fn event(&self) -> DpEvent {
        DpEvent::OneOf(Subset::ALL.map(|subset| self.event_of(subset)).to_vec())
    }

    fn ledger(&self, subset: Subset) -> &Ledger {
        match subset {
            Subset::Training => &self.training,
            Subset::Test => &self.test,
            Subset::Validation => &self.validation,
        }
    }

    fn event_of(&self, subset: Subset) -> DpEvent {
        let entries = self.ledger(subset).entries().iter();
        DpEvent::Composed(entries.map(|entry| entry.event().clone().repeated(entry.count())).collect())
    }

    /// ε by privacy loss distributions: the largest of the parts', since which part a record is in
    /// depends on its number alone. It is as certain as the least certain of them.
    ///
    /// # Errors
    /// The accountant's.
    pub(crate) fn epsilon(&self, delta: Delta) -> Result<EpsilonBound> {
        let bounds = Subset::ALL.iter().map(|&subset| self.epsilon_of(subset, delta)).collect::<Result<Vec<_>>>()?;
        let lower = bounds.iter().filter_map(|bound| bound.lower).max_by(|a, b| a.get().total_cmp(&b.get()));
        let certainty = bounds.iter().map(|bound| bound.certainty.clone()).reduce(|a, b| b.weaker(a));
        // The first of equals: training.
        let largest = bounds.into_iter().reduce(|a, b| if b.epsilon.get() > a.epsilon.get() { b } else { a });
        let mut largest = largest.ok_or_else(|| FairdpError::Internal("an account without parts".into()))?;
        largest.lower = lower;
        if let Some(certainty) = certainty {
            largest.certainty = certainty;
        }
        Ok(largest)
    }

    /// ε of a training record of each group, where groups are drawn at rates of their own; none otherwise.
    ///
    /// # Errors
    /// The accountant's.
    pub(crate) fn epsilon_by_group(&self, delta: Delta) -> Result<Vec<f64>> {
        let by_group = |release: &&Release| release.count == 1 && matches!(release.event, DpEvent::OneOf(_));
        let of_training = || self.releases.iter().filter(|release| release.part == Subset::Training);
        let Some(found) = of_training().find(by_group) else { return Ok(Vec::new()) };
        let DpEvent::OneOf(of_groups) = &found.event else { return Ok(Vec::new()) };
        let mut others = PldAccountant::new(RELATION);
        for release in of_training().filter(|release| !std::ptr::eq(*release, found)) {
            others.compose(&release.event, release.count)?;
        }
        let epsilon = |event: &DpEvent| {
            let mut accountant = others.clone();
            accountant.compose(event, 1)?;
            Ok(accountant.epsilon(delta)?.epsilon.get())
        };
        of_groups.iter().map(epsilon).collect()
    }

    /// ε by Rényi divergences: an accountant that shares nothing with the first but the events.
    ///
    /// # Errors
    /// The accountant's.
    pub(crate) fn epsilon_by_rdp(&self, delta: Delta) -> Result<EpsilonBound> {
        let mut accountant = RdpAccountant::new(RELATION);
        accountant.compose(&self.event(), 1)?;
        Ok(accountant.epsilon(delta)?)
    }

    /// Judges an ε for every subset by separate formulas in arithmetic of 200 bits. Returns the
    /// weakest opinion.
    pub(crate) fn judge(&self, epsilon: Epsilon, delta: Delta) -> Opinion {
        let opinions = Subset::ALL.map(|subset| {
            let entries = self.ledger(subset).entries().iter();
            let released: Vec<_> = entries.map(|entry| (entry.event().clone(), entry.count())).collect();
            judge(&released, RELATION, epsilon, delta)
        });
        opinions.into_iter().max().unwrap_or(Opinion::NotJudged)
    }

    /// ε of each part alone.
    ///
    /// # Errors
    /// The accountant's.
    pub(crate) fn epsilon_of(&self, subset: Subset, delta: Delta) -> Result<EpsilonBound> {
        Ok(self.accountant(subset)?.epsilon(delta)?)
    }

    /// Digests of the chains of training, test and validation.
    pub(crate) fn digests(&self) -> [String; 3] {
        Subset::ALL.map(|subset| self.ledger(subset).digest())
    }

    /// Bounds on the success of an attacker.
    ///
    /// # Errors
    /// The accountant's.
    pub(crate) fn attacks(&self, delta: Delta) -> Result<Attacks> {
        let (mut mu, mut missed_at_1, mut missed_at_10) = (0.0_f64, 1.0_f64, 1.0_f64);
        for accountant in self.accountants(delta)? {
            let trade_off = TradeOff::new(&accountant);
            let missed = |rate: f64| trade_off.false_negative_rate(rate).map(|bound| bound.guaranteed);
            mu = mu.max(trade_off.gaussian_mu(delta.get())?.guaranteed);
            missed_at_1 = missed_at_1.min(missed(0.01)?);
            missed_at_10 = missed_at_10.min(missed(0.1)?);
        }
        Ok(Attacks {
            gaussian_mu: mu.is_finite().then_some(mu),
            false_negative_rate_at_1_percent: missed_at_1,
            false_negative_rate_at_10_percent: missed_at_10,
        })
    }

    /// One accountant for the event of a record if one subset is the worst in every respect;
    /// otherwise one for each subset.
    fn accountants(&self, delta: Delta) -> Result<Vec<PldAccountant>> {
        let mut whole = PldAccountant::new(RELATION);
        whole.compose(&self.event(), 1)?;
        // Alternatives have no common distribution if neither is always worse.
        if whole.epsilon(delta)?.method.is_some() {
            return Ok(vec![whole]);
        }
        Subset::ALL.iter().map(|&subset| self.accountant(subset)).collect()
    }

    fn accountant(&self, subset: Subset) -> Result<PldAccountant> {
        let mut accountant = PldAccountant::new(RELATION);
        self.ledger(subset).compose_into(&mut accountant)?;
        Ok(accountant)
    }
}

/// Bounds that hold against every attack on one unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Attacks {
    /// The Gaussian mechanism that is no more private, where one is known.
    pub gaussian_mu: Option<f64>,
    /// Records that an attacker misses at least, with one false alarm in a hundred.
    pub false_negative_rate_at_1_percent: f64,
    /// The same with one in ten.
    pub false_negative_rate_at_10_percent: f64,
}
