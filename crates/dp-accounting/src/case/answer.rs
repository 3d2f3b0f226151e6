//! The accountants' answers to a case.

use serde::Serialize;

use super::{CheckedCase, OpenParameter, Question, StepEvent, WhichAccountant};
use crate::{
    Accountant, AccountingError, Calibration, Conversion, Delta, DeltaBound, DpEvent, Epsilon, EpsilonBound,
    GdpAccountant, NoiseMultiplier, Orders, PldAccountant, RdpAccountant, SamplingRate,
};

/// One accountant's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
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

/// A parameter that keeps a target, by calibration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parameter {
    /// Smallest noise multiplier of the gradient query, rounded up.
    NoiseMultiplier(f64),
    /// Largest sampling rate, rounded down.
    SamplingRate(f64),
    /// Largest expected batch size.
    BatchSize(u64),
    /// Largest number of steps.
    Steps(u64),
}

/// The answers to a case.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answers {
    /// The case, with the parameter that was found in its place.
    pub case: CheckedCase,
    /// The parameter, if one was sought.
    pub parameter: Option<Parameter>,
    /// One per accountant, RDP first; RDP has two, by the improved and the classic conversion,
    /// unless the case chooses.
    pub by_accountant: Vec<Answer>,
}

/// Orders of the classic conversion's answer, and its name.
const CLASSIC: &str = "RDP, classic conversion, orders 2 to 64";

impl CheckedCase {
    /// Finds the parameter if one is sought, and asks the accountants.
    ///
    /// # Errors
    /// As [`Accountant::compose`]; [`AccountingError::Unreachable`] for a target that no parameter
    /// meets.
    pub fn answer(&self) -> Result<Answers, AccountingError> {
        let mut case = self.clone();
        let mut parameter = None;
        if let Question::Parameter { target, delta, open } = self.question {
            let found = self.find(target, delta, open)?;
            case = self.with(found);
            parameter = Some(found);
        }
        let event = case.event()?;
        let mut by_accountant = Vec::new();
        let mut ask = |mut accountant: Box<dyn Accountant>, which, name: Option<&str>| -> Result<(), AccountingError> {
            accountant.compose(&event, case.steps)?;
            let bound = match case.question {
                Question::Delta { epsilon } => Bound::Delta(accountant.privacy_profile(epsilon)?),
                Question::Epsilon { delta } | Question::Parameter { delta, .. } => {
                    Bound::Epsilon(accountant.epsilon(delta)?)
                }
            };
            let accountant = name.map_or_else(|| accountant.name(), str::to_owned);
            by_accountant.push(Answer { accountant, which, bound });
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
        Ok(Answers { case, parameter, by_accountant })
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
    /// [`AccountingError::InvalidParameter`] for a width out of range.
    pub fn pld(&self) -> Result<PldAccountant, AccountingError> {
        PldAccountant::new(self.relation).with_relative_width(self.relative_width)
    }

    fn find(&self, target: Epsilon, delta: Delta, open: OpenParameter) -> Result<Parameter, AccountingError> {
        match self.accountant {
            WhichAccountant::Rdp => self.find_by(&Calibration::of_remaining_budget(self.rdp(), target, delta)?, open),
            WhichAccountant::Gdp => Err(AccountingError::Conflicting {
                first: "the GDP estimate, which is no guarantee,",
                second: "`target_epsilon`",
            }),
            WhichAccountant::Pld | WhichAccountant::All => {
                let calibration = Calibration::of_remaining_budget(self.pld()?, target, delta)?;
                self.find_by(&calibration, open)
            }
        }
    }

    fn find_by<A: Accountant + Clone>(
        &self,
        calibration: &Calibration<A>,
        open: OpenParameter,
    ) -> Result<Parameter, AccountingError> {
        let (noise, rate) = match &self.step_event {
            StepEvent::Batches { noise_multiplier, rate, .. } => (*noise_multiplier, *rate),
            StepEvent::Event(_) => (1.0, 1.0),
        };
        // Parameters within the range of the search make sound events; should one not, it is no
        // guarantee.
        let or_non_private = |event: Result<DpEvent, AccountingError>| event.unwrap_or(DpEvent::NonPrivate);
        let with_noise = |sigma: NoiseMultiplier| or_non_private(self.step(sigma.get(), rate)).repeated(self.steps);
        let with_rate = |rate: SamplingRate| or_non_private(self.step(noise, rate.get())).repeated(self.steps);
        Ok(match open {
            OpenParameter::NoiseMultiplier => {
                Parameter::NoiseMultiplier(calibration.noise_multiplier(with_noise)?.get())
            }
            OpenParameter::SamplingRate => Parameter::SamplingRate(calibration.sampling_rate(with_rate)?.get()),
            OpenParameter::BatchSize { n_records } => {
                Parameter::BatchSize(calibration.batch_size(n_records, with_rate)?)
            }
            OpenParameter::Steps => {
                let event = self.event()?;
                match calibration.steps(&event)? {
                    0 => {
                        let of_one = calibration.epsilon_of(&event, 1)?.get();
                        return Err(calibration.unreachable("number of steps", "[1, 2^40]", of_one));
                    }
                    steps => Parameter::Steps(steps),
                }
            }
        })
    }

    /// This case with the parameter that was found.
    fn with(&self, found: Parameter) -> Self {
        let mut case = self.clone();
        match (found, &mut case.step_event, self.question) {
            (Parameter::NoiseMultiplier(sigma), StepEvent::Batches { noise_multiplier, .. }, _) => {
                *noise_multiplier = sigma;
            }
            (Parameter::SamplingRate(found), StepEvent::Batches { rate, .. }, _) => *rate = found,
            (
                Parameter::BatchSize(size),
                StepEvent::Batches { rate, population, .. },
                Question::Parameter { open: OpenParameter::BatchSize { n_records }, .. },
            ) => {
                *rate = size as f64 / n_records as f64;
                *population = Some((n_records, size));
            }
            (Parameter::Steps(steps), ..) => case.steps = steps,
            _ => {}
        }
        case
    }
}
