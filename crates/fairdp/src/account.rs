//! Everything that touched the records of a run, by part: a record is trained on or tested on, never both.

use dp_accounting::{
    Accountant, Delta, DpEvent, EpsilonBound, Ledger, NeighbouringRelation, PldAccountant, RdpAccountant, TradeOff,
};
use serde::{Deserialize, Serialize};

use crate::budget::Planned;
use crate::error::{FairdpError, Result};

/// Neighbours: tables in one of which a unit's records are blank. The number of records is public.
pub const RELATION: NeighbouringRelation = NeighbouringRelation::ZeroOut;

/// Which records a release was made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Those that the model learns from.
    Training,
    /// Those that it is tested on.
    Test,
}

/// One release with its purpose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// On which records.
    pub part: Part,
    /// What it was for.
    pub purpose: String,
    /// What was done.
    pub event: DpEvent,
    /// How often.
    pub count: u64,
}

/// The releases of a run, and a chained ledger of each part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    releases: Vec<Release>,
    training: Ledger,
    test: Ledger,
}

impl Default for Account {
    fn default() -> Self {
        Self { releases: Vec::new(), training: Ledger::new(RELATION), test: Ledger::new(RELATION) }
    }
}

impl Account {
    /// Notes what is about to be released: before it is made, so that what cannot be noted is not released.
    ///
    /// # Errors
    /// [`FairdpError::Accounting`] if the ledger refuses.
    pub fn record(&mut self, planned: &Planned) -> Result<()> {
        self.add(Release {
            part: planned.part,
            purpose: planned.purpose.clone(),
            event: planned.event.clone(),
            count: planned.count,
        })
    }

    fn add(&mut self, release: Release) -> Result<()> {
        let ledger = match release.part {
            Part::Training => &mut self.training,
            Part::Test => &mut self.test,
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

    /// All releases in order.
    pub fn releases(&self) -> &[Release] {
        &self.releases
    }

    /// Whether both chains hold and say what the releases say.
    ///
    /// # Errors
    /// [`FairdpError::Refused`] with what differs.
    pub fn verify(&self) -> Result<()> {
        let again = Self::of(self.releases.iter().cloned())?;
        for (name, ours, theirs) in [("training", &self.training, &again.training), ("test", &self.test, &again.test)] {
            ours.verify()?;
            if ours != theirs {
                return Err(FairdpError::Refused(format!("the {name} ledger is not that of the releases beside it")));
            }
        }
        Ok(())
    }

    /// What a record met: training or test.
    pub fn event(&self) -> DpEvent {
        DpEvent::OneOf([Part::Training, Part::Test].map(|part| self.event_of(part)).to_vec())
    }

    fn ledger(&self, part: Part) -> &Ledger {
        match part {
            Part::Training => &self.training,
            Part::Test => &self.test,
        }
    }

    fn event_of(&self, part: Part) -> DpEvent {
        let entries = self.ledger(part).entries().iter();
        DpEvent::Composed(entries.map(|entry| entry.event().clone().repeated(entry.count())).collect())
    }

    /// ε by privacy loss distributions: the largest of the parts', since which part a record is in depends on its number alone.
    ///
    /// # Errors
    /// The accountant's.
    pub fn epsilon(&self, delta: Delta) -> Result<EpsilonBound> {
        let (training, test) = (self.epsilon_of(Part::Training, delta)?, self.epsilon_of(Part::Test, delta)?);
        let lower = training.lower.into_iter().chain(test.lower).max_by(|a, b| a.get().total_cmp(&b.get()));
        let larger = if test.epsilon.get() > training.epsilon.get() { test } else { training };
        Ok(EpsilonBound { lower, ..larger })
    }

    /// ε by Rényi divergences: an accountant that shares nothing with the first but the events.
    ///
    /// # Errors
    /// The accountant's.
    pub fn epsilon_by_rdp(&self, delta: Delta) -> Result<EpsilonBound> {
        let mut accountant = RdpAccountant::new(RELATION);
        accountant.compose(&self.event(), 1)?;
        Ok(accountant.epsilon(delta)?)
    }

    /// ε of each part alone.
    ///
    /// # Errors
    /// The accountant's.
    pub fn epsilon_of(&self, part: Part, delta: Delta) -> Result<EpsilonBound> {
        Ok(self.accountant(part)?.epsilon(delta)?)
    }

    /// Digests of both chains.
    pub fn digests(&self) -> [String; 2] {
        [self.training.digest(), self.test.digest()]
    }

    /// What an attacker can achieve.
    ///
    /// # Errors
    /// The accountant's.
    pub fn attacks(&self, delta: Delta) -> Result<Attacks> {
        let mut worst =
            Attacks { gaussian_mu: 0.0, false_negative_rate_at_1_percent: 1.0, false_negative_rate_at_10_percent: 1.0 };
        for accountant in self.accountants(delta)? {
            let trade_off = TradeOff::new(&accountant);
            let missed = |rate: f64| trade_off.false_negative_rate(rate).map(|bound| bound.guaranteed);
            worst.gaussian_mu = worst.gaussian_mu.max(trade_off.gaussian_mu(delta.get())?.guaranteed);
            worst.false_negative_rate_at_1_percent = worst.false_negative_rate_at_1_percent.min(missed(0.01)?);
            worst.false_negative_rate_at_10_percent = worst.false_negative_rate_at_10_percent.min(missed(0.1)?);
        }
        Ok(worst)
    }

    /// One for what a record meets, where one part is the worse one in every respect; else one for each part.
    fn accountants(&self, delta: Delta) -> Result<Vec<PldAccountant>> {
        let mut whole = PldAccountant::new(RELATION);
        whole.compose(&self.event(), 1)?;
        // Of alternatives neither of which is always worse there is no distribution.
        if whole.epsilon(delta)?.method.is_some() {
            return Ok(vec![whole]);
        }
        [Part::Training, Part::Test].iter().map(|&part| self.accountant(part)).collect()
    }

    fn accountant(&self, part: Part) -> Result<PldAccountant> {
        let mut accountant = PldAccountant::new(RELATION);
        self.ledger(part).compose_into(&mut accountant)?;
        Ok(accountant)
    }
}

/// What holds against every attack on one unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attacks {
    /// The Gaussian mechanism that is no more private.
    pub gaussian_mu: f64,
    /// Records that an attacker misses at least, with one false alarm in a hundred.
    pub false_negative_rate_at_1_percent: f64,
    /// The same with one in ten.
    pub false_negative_rate_at_10_percent: f64,
}
