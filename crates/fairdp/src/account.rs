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
            event: planned.event(),
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
        let of = |ledger: &Ledger| {
            let steps = ledger.entries().iter().map(|entry| entry.event().clone().repeated(entry.count()));
            DpEvent::Composed(steps.collect())
        };
        DpEvent::OneOf(vec![of(&self.training), of(&self.test)])
    }

    /// ε by privacy loss distributions.
    ///
    /// # Errors
    /// The accountant's.
    pub fn epsilon(&self, delta: Delta) -> Result<EpsilonBound> {
        Ok(self.pld()?.epsilon(delta)?)
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
        let ledger = match part {
            Part::Training => &self.training,
            Part::Test => &self.test,
        };
        let mut accountant = PldAccountant::new(RELATION);
        ledger.compose_into(&mut accountant)?;
        Ok(accountant.epsilon(delta)?)
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
        let accountant = self.pld()?;
        let trade_off = TradeOff::new(&accountant);
        Ok(Attacks {
            gaussian_mu: trade_off.gaussian_mu(delta.get())?.guaranteed,
            false_negative_rate_at_1_percent: trade_off.false_negative_rate(0.01)?.guaranteed,
            false_negative_rate_at_10_percent: trade_off.false_negative_rate(0.1)?.guaranteed,
        })
    }

    fn pld(&self) -> Result<PldAccountant> {
        let mut accountant = PldAccountant::new(RELATION);
        accountant.compose(&self.event(), 1)?;
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
