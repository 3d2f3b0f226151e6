//! What the accountants say.

use serde::Serialize;

use super::{Asked, Resolved, Source, Unknown, WhichAccountant};
use crate::{
    Accountant, AccountingError, Calibration, Conversion, Delta, DeltaBound, DpEvent, Epsilon, EpsilonBound,
    GdpAccountant, NeighbouringRelation, NoiseMultiplier, Orders, PldAccountant, RdpAccountant, SamplingRate,
};

/// One accountant's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Its name, for tables.
    pub accountant: String,
    /// Which one it is.
    #[serde(skip)]
    pub which: WhichAccountant,
    /// ε or δ.
    #[serde(flatten)]
    pub bound: Bound,
}

/// ε or δ, as was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Bound {
    /// ε at a δ.
    Epsilon(EpsilonBound),
    /// δ at an ε.
    Delta(DeltaBound),
}

/// The parameter that was sought.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// Smallest noise multiplier of the gradient query, rounded up.
    NoiseMultiplier(f64),
    /// Largest sampling rate, rounded down.
    SamplingRate(f64),
    /// Largest expected batch size.
    BatchSize(u64),
    /// Largest number of steps.
    Steps(u64),
}

/// Everything that is known of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The question, with the parameter that was found in its place.
    pub case: Resolved,
    /// The parameter, if one was sought.
    pub found: Option<Found>,
    /// One per accountant, RDP first; RDP has two, by the improved and the classic conversion,
    /// unless the case chooses.
    pub answers: Vec<Answer>,
}

/// Orders of the classic conversion's answer, and its name.
const CLASSIC: &str = "RDP, classic conversion, orders 2 to 64";

impl Resolved {
    /// Finds the parameter if one is sought, and asks the accountants.
    ///
    /// # Errors
    /// Those of the accountants, and [`AccountingError::Unreachable`] for a target that no
    /// parameter meets.
    pub fn answer(&self) -> Result<Answered, AccountingError> {
        let mut case = self.clone();
        let mut found = None;
        if let Asked::Parameter { target, delta, unknown } = self.asked {
            let parameter = self.find(target, delta, unknown)?;
            case = self.with(parameter);
            found = Some(parameter);
        }
        let event = case.event()?;
        let mut answers = Vec::new();
        let mut ask = |mut accountant: Box<dyn Accountant>, which, name: Option<&str>| -> Result<(), AccountingError> {
            accountant.compose(&event, case.steps)?;
            let bound = match case.asked {
                Asked::Delta { epsilon } => Bound::Delta(accountant.privacy_profile(epsilon)?),
                Asked::Epsilon { delta } | Asked::Parameter { delta, .. } => Bound::Epsilon(accountant.epsilon(delta)?),
            };
            let accountant = name.map_or_else(|| accountant.name(), str::to_owned);
            answers.push(Answer { accountant, which, bound });
            Ok(())
        };
        let includes = |which| case.accountant == WhichAccountant::All || case.accountant == which;
        if includes(WhichAccountant::Rdp) {
            ask(Box::new(case.rdp()), WhichAccountant::Rdp, None)?;
            if case.orders.is_none() && case.conversion.is_none() {
                let classic = RdpAccountant::new(case.relation)
                    .with_orders(Orders::moments_accountant())
                    .with_conversion(Conversion::Classic);
                ask(Box::new(classic), WhichAccountant::Rdp, Some(CLASSIC))?;
            }
        }
        if includes(WhichAccountant::Pld) {
            ask(Box::new(case.pld()?), WhichAccountant::Pld, None)?;
        }
        if includes(WhichAccountant::Gdp) {
            match ask(Box::new(GdpAccountant::new(case.relation)), WhichAccountant::Gdp, None) {
                // Not asked for by name, it may be silent.
                Err(AccountingError::NotRepresentable { .. }) if case.accountant == WhichAccountant::All => {}
                other => other?,
            }
        }
        Ok(Answered { case, found, answers })
    }

    /// The Rényi accountant of the case, with nothing composed.
    pub fn rdp(&self) -> RdpAccountant {
        let mut accountant = RdpAccountant::new(self.relation);
        if let Some(orders) = &self.orders {
            accountant = accountant.with_orders(orders.clone());
        }
        self.conversion.map_or(accountant.clone(), |conversion| accountant.with_conversion(conversion))
    }

    /// The PLD accountant of the case, with nothing composed.
    ///
    /// # Errors
    /// [`AccountingError::OutOfRange`] for a width out of range.
    pub fn pld(&self) -> Result<PldAccountant, AccountingError> {
        PldAccountant::new(self.relation).with_relative_width(self.relative_width)
    }

    fn find(&self, target: Epsilon, delta: Delta, unknown: Unknown) -> Result<Found, AccountingError> {
        match self.accountant {
            WhichAccountant::Rdp => {
                self.find_by(&Calibration::of_remaining_budget(self.rdp(), target, delta)?, unknown)
            }
            WhichAccountant::Gdp => Err(AccountingError::Conflicting {
                first: "the GDP estimate, which is no guarantee,",
                second: "`target_epsilon`",
            }),
            WhichAccountant::Pld | WhichAccountant::All => {
                let calibration = Calibration::of_remaining_budget(self.pld()?, target, delta)?;
                self.find_by(&calibration, unknown)
            }
        }
    }

    fn find_by<A: Accountant + Clone>(
        &self,
        calibration: &Calibration<A>,
        unknown: Unknown,
    ) -> Result<Found, AccountingError> {
        let (noise, rate) = match &self.source {
            Source::Batches { noise_multiplier, rate, .. } => (*noise_multiplier, *rate),
            Source::Event(_) => (1.0, 1.0),
        };
        // Parameters within the range of the search make sound events; should one not, it is no
        // guarantee.
        let or_non_private = |event: Result<DpEvent, AccountingError>| event.unwrap_or(DpEvent::NonPrivate);
        let with_noise = |sigma: NoiseMultiplier| or_non_private(self.step(sigma.get(), rate)).repeated(self.steps);
        let with_rate = |rate: SamplingRate| or_non_private(self.step(noise, rate.get())).repeated(self.steps);
        Ok(match unknown {
            Unknown::NoiseMultiplier => Found::NoiseMultiplier(calibration.noise_multiplier(with_noise)?.get()),
            Unknown::SamplingRate => Found::SamplingRate(calibration.sampling_rate(with_rate)?.get()),
            Unknown::BatchSize { n_records } => Found::BatchSize(calibration.batch_size(n_records, with_rate)?),
            Unknown::Steps => {
                let event = self.event()?;
                match calibration.steps(&event)? {
                    0 => {
                        let of_one = calibration.epsilon_of(&event, 1)?.get();
                        return Err(calibration.unreachable("number of steps", "[1, 2^40]", of_one));
                    }
                    steps => Found::Steps(steps),
                }
            }
        })
    }

    /// This case with the parameter that was found.
    fn with(&self, found: Found) -> Self {
        let mut case = self.clone();
        match (found, &mut case.source, self.asked) {
            (Found::NoiseMultiplier(sigma), Source::Batches { noise_multiplier, .. }, _) => *noise_multiplier = sigma,
            (Found::SamplingRate(found), Source::Batches { rate, .. }, _) => *rate = found,
            (
                Found::BatchSize(size),
                Source::Batches { rate, population, .. },
                Asked::Parameter { unknown: Unknown::BatchSize { n_records }, .. },
            ) => {
                *rate = size as f64 / n_records as f64;
                *population = Some((n_records, size));
            }
            (Found::Steps(steps), ..) => case.steps = steps,
            _ => {}
        }
        case
    }

    /// Which data sets are neighbours.
    pub const fn relation(&self) -> NeighbouringRelation {
        self.relation
    }
}
