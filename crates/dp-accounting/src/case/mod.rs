//! Accounting questions as data: the fields of a command line, of a JSON line or of keyword
//! arguments, checked together and answered by every accountant.
//!
//! A [`Case`] is what was written, a [`CheckedCase`] what it means. [`Outcome`] answers a line of
//! JSON with a line of JSON.

mod answer;
mod line;

pub use answer::{Answer, Answers, Bound, Parameter};
pub use line::Outcome;

use serde::{Deserialize, Serialize};

use crate::{AccountingError, Conversion, Delta, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, Orders};

/// How batches are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Sampler {
    /// Every record independently.
    Poisson,
    /// A random subset of fixed size.
    FixedSize,
}

/// Which accountants answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WhichAccountant {
    /// Rényi, improved and classic conversion.
    Rdp,
    /// Privacy loss distributions: a bracket.
    Pld,
    /// The central-limit estimate; not a guarantee.
    Gdp,
    /// All of them.
    All,
}

/// Orders of the Rényi accountant: a list, or the name of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OrdersChoice {
    /// `adaptive`, `moments-accountant`, `opacus`, `dp-accounting` or `tensorflow-privacy`.
    Named(String),
    /// Every order greater than 1.
    List(Vec<f64>),
}

/// One question: fields as a command line or a JSON object gives them, checked by
/// [`check`](Self::check).
///
/// It describes a mechanism and asks one question about it.
///
/// - The mechanism is `event`, `steps` times. Or it is Gaussian queries on batches:
///   `sampling_rate`, or `records` with `batch_size`; `steps`, or `epochs` with `records`;
///   `noise_multiplier` and `count_noise_multipliers`.
/// - The question is ε at `delta`, or δ at `epsilon`. With `target_epsilon` at `delta` it is the
///   one of `noise_multiplier`, `sampling_rate` (or `batch_size`) and `steps` that is left out.
///
/// **Edge cases.** `noise_multiplier` 0 and `sampling_rate` 0 mean no noise and no use of the data;
/// `delta` may be 0 or 1, and `epsilon` below 0.
///
/// **Example**
/// ```
/// use dp_accounting::case::Case;
/// let case = Case::from_json(r#"{"sampling_rate":0.01,"noise_multiplier":1,"steps":1000,"delta":1e-5}"#)?;
/// let answers = case.check()?.answer()?;
/// assert!(answers.by_accountant.iter().any(|answer| answer.accountant == "PLD"));
/// // A misspelt field is an error, not a default.
/// assert!(Case::from_json(r#"{"sampling_rate":0.01,"noise":1}"#).is_err());
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Case {
    /// Handed back with the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<serde_json::Value>,
    /// How batches are drawn; Poisson unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampler: Option<Sampler>,
    /// Probability with which a record enters a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<f64>,
    /// Records in the data set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Expected batch size (Poisson) or batch size (fixed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<u64>,
    /// Steps taken, or how often `event` happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Passes over the data: `⌈epochs·records/batch_size⌉` steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<f64>,
    /// Noise multiplier of the gradient query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// Noise multipliers of count queries on the same batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_noise_multipliers: Option<Vec<f64>>,
    /// Anything else that was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<DpEvent>,
    /// Records of one user, which come and go together; 1 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_records: Option<u32>,
    /// Which data sets are neighbours; replace-one for batches of fixed size, else add-remove,
    /// unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<NeighbouringRelation>,
    /// δ, in [0, 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Asks for δ at this ε.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Asks for the parameter that is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_epsilon: Option<f64>,
    /// Which accountants answer; all unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accountant: Option<WhichAccountant>,
    /// Orders of the Rényi accountant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orders: Option<OrdersChoice>,
    /// Conversion of the Rényi accountant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
    /// Relative width of the PLD bracket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_width: Option<f64>,
}

/// The question of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Question {
    /// ε at a δ.
    Epsilon {
        /// δ.
        delta: Delta,
    },
    /// δ at an ε, which may be negative.
    Delta {
        /// ε.
        epsilon: f64,
    },
    /// The parameter that keeps a target.
    Parameter {
        /// ε to keep.
        target: Epsilon,
        /// δ.
        delta: Delta,
        /// Which parameter.
        open: OpenParameter,
    },
}

/// The parameter that is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenParameter {
    /// The smallest noise multiplier of the gradient query.
    NoiseMultiplier,
    /// The largest sampling rate.
    SamplingRate,
    /// The largest expected batch size out of these records.
    BatchSize {
        /// Records in the data set.
        n_records: u64,
    },
    /// The largest number of steps.
    Steps,
}

/// A case without contradictions and gaps. It displays as a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedCase {
    relation: NeighbouringRelation,
    question: Question,
    steps: u64,
    accountant: WhichAccountant,
    relative_width: f64,
    step_event: StepEvent,
    user_records: u32,
    orders: Option<Orders>,
    conversion: Option<Conversion>,
}

/// Where a step's event comes from.
#[derive(Debug, Clone, PartialEq)]
enum StepEvent {
    Event(DpEvent),
    Batches {
        sampler: Sampler,
        rate: f64,
        population: Option<(u64, u64)>,
        noise_multiplier: f64,
        counts: Vec<NoiseMultiplier>,
    },
}

/// Relative width of PLD brackets unless given.
const RELATIVE_WIDTH: f64 = 1e-3;

macro_rules! each_field {
    ($macro:ident) => {
        $macro!(
            id,
            sampler,
            sampling_rate,
            records,
            batch_size,
            steps,
            epochs,
            noise_multiplier,
            count_noise_multipliers,
            event,
            user_records,
            relation,
            delta,
            epsilon,
            target_epsilon,
            accountant,
            orders,
            conversion,
            relative_width
        )
    };
}

impl Case {
    /// Reads one JSON object, with or without a byte order mark before it.
    ///
    /// # Errors
    /// [`AccountingError::NotACase`] for what is no JSON object, has unknown or repeated fields, or
    /// values of another type.
    pub fn from_json(text: &str) -> Result<Self, AccountingError> {
        let text = without_byte_order_mark(text);
        // To serde, a list of values in the order of the fields is an object as well.
        if text.trim_start().starts_with('[') {
            let message = "a list, but expected one object, {\"sampling_rate\": …}, a line";
            return Err(AccountingError::NotACase { message: message.to_owned() });
        }
        serde_json::from_str(text).map_err(|error| {
            let not_json = error.is_syntax() && (text.contains("Infinity") || text.contains("NaN"));
            let hint = if not_json { "; JSON has no Infinity and no NaN" } else { "" };
            AccountingError::NotACase { message: format!("{error}{hint}") }
        })
    }

    /// Takes what this case leaves out from another one, for example from a command line for every
    /// line of a file.
    ///
    /// # Errors
    /// [`AccountingError::Conflicting`] where both have a field, with different values.
    pub fn or(&self, defaults: &Self) -> Result<Self, AccountingError> {
        let mut merged = self.clone();
        macro_rules! merge {
            ($($field:ident),*) => {$(
                match (&self.$field, &defaults.$field) {
                    (Some(own), Some(default)) if own != default => {
                        return Err(AccountingError::Conflicting {
                            first: concat!("`", stringify!($field), "` of the case"),
                            second: concat!("another `", stringify!($field), "` that was given for all cases"),
                        });
                    }
                    (None, default) => merged.$field.clone_from(default),
                    _ => {}
                }
            )*};
        }
        each_field!(merge);
        Ok(merged)
    }

    /// Checks that the fields make one question.
    ///
    /// # Errors
    /// [`AccountingError::Conflicting`] and [`AccountingError::Incomplete`] for fields that exclude
    /// each other and for missing ones, [`AccountingError::InvalidParameter`] for values.
    pub fn check(&self) -> Result<CheckedCase, AccountingError> {
        let open = self.open_parameter()?;
        let question = self.question(open)?;
        let sampler = self.sampler.unwrap_or(Sampler::Poisson);
        let relation = self.relation.unwrap_or(match sampler {
            Sampler::Poisson => NeighbouringRelation::AddRemove,
            Sampler::FixedSize => NeighbouringRelation::ReplaceOne,
        });
        let (step_event, steps) = match &self.event {
            Some(event) => (StepEvent::Event(event.clone()), self.steps.unwrap_or(1)),
            None => self.batches(sampler, open)?,
        };
        let orders = self.orders.as_ref().map(OrdersChoice::orders).transpose()?;
        let user_records = self.user_records.unwrap_or(1);
        if !(1..=255).contains(&user_records) {
            return Err(AccountingError::invalid("user_records", user_records, "1 to 255"));
        }
        let checked = CheckedCase {
            relation,
            question,
            steps,
            accountant: self.accountant.unwrap_or(WhichAccountant::All),
            relative_width: self.relative_width.unwrap_or(RELATIVE_WIDTH),
            step_event,
            user_records,
            orders,
            conversion: self.conversion,
        };
        checked.refuse_early()?;
        Ok(checked)
    }

    /// The parameter that a target leaves open.
    fn open_parameter(&self) -> Result<Option<OpenParameter>, AccountingError> {
        if let Some(_event) = &self.event {
            let given = [
                ("`sampler`", self.sampler.is_some()),
                ("`sampling_rate`", self.sampling_rate.is_some()),
                ("`records`", self.records.is_some()),
                ("`batch_size`", self.batch_size.is_some()),
                ("`epochs`", self.epochs.is_some()),
                ("`noise_multiplier`", self.noise_multiplier.is_some()),
                ("`count_noise_multipliers`", self.count_noise_multipliers.is_some()),
            ];
            if let Some((second, _)) = given.into_iter().find(|(_, given)| *given) {
                return Err(AccountingError::Conflicting { first: "`event`", second });
            }
        }
        let both = [
            ("`sampling_rate`", self.sampling_rate.is_some(), "`batch_size`", self.batch_size.is_some()),
            ("`steps`", self.steps.is_some(), "`epochs`", self.epochs.is_some()),
            ("`delta`", self.delta.is_some(), "`epsilon`", self.epsilon.is_some()),
            ("`target_epsilon`", self.target_epsilon.is_some(), "`epsilon`", self.epsilon.is_some()),
        ];
        if let Some((first, _, second, _)) = both.into_iter().find(|(_, first, _, second)| *first && *second) {
            return Err(AccountingError::Conflicting { first, second });
        }
        if self.target_epsilon.is_none() {
            return Ok(None);
        }
        if self.event.is_some() {
            return match self.steps {
                None => Ok(Some(OpenParameter::Steps)),
                Some(_) => {
                    Err(AccountingError::Conflicting { first: "`target_epsilon`", second: "`event` with `steps`" })
                }
            };
        }
        let rate = match (self.sampling_rate, self.records, self.batch_size) {
            (Some(_), ..) | (None, Some(_), Some(_)) => None,
            (None, Some(n_records), None) => Some(OpenParameter::BatchSize { n_records }),
            (None, None, _) => Some(OpenParameter::SamplingRate),
        };
        let noise = self.noise_multiplier.is_none().then_some(OpenParameter::NoiseMultiplier);
        let steps = (self.steps.is_none() && self.epochs.is_none()).then_some(OpenParameter::Steps);
        let mut open = [noise, rate, steps].into_iter().flatten();
        match (open.next(), open.next()) {
            (Some(parameter), None) => Ok(Some(parameter)),
            _ => Err(AccountingError::Incomplete {
                needed: "with `target_epsilon`, exactly two of `noise_multiplier`, `sampling_rate` and `steps`",
            }),
        }
    }

    fn question(&self, open: Option<OpenParameter>) -> Result<Question, AccountingError> {
        let delta = || match self.delta {
            Some(delta) => Delta::new(delta),
            None => Err(AccountingError::Incomplete { needed: "`delta`, or `epsilon` to ask for δ" }),
        };
        Ok(match (open, self.target_epsilon, self.epsilon) {
            (Some(open), Some(target), _) => {
                let target = Epsilon::new(target)
                    .map_err(|_| AccountingError::invalid("target_epsilon", target, "a finite number above 0"))?;
                Question::Parameter { target, delta: delta()?, open }
            }
            (_, _, Some(epsilon)) if epsilon.is_nan() => {
                return Err(AccountingError::invalid("epsilon", epsilon, "a number"));
            }
            (_, _, Some(epsilon)) => Question::Delta { epsilon },
            _ => Question::Epsilon { delta: delta()? },
        })
    }

    fn batches(&self, sampler: Sampler, open: Option<OpenParameter>) -> Result<(StepEvent, u64), AccountingError> {
        let missing = |needed| Err(AccountingError::Incomplete { needed });
        let (rate, population) = match (self.sampling_rate, self.records, self.batch_size) {
            (Some(rate), ..) => (rate, None),
            (None, Some(0), _) => {
                return Err(AccountingError::invalid("records", 0, "at least 1"));
            }
            (None, Some(records), Some(size)) if size > records => {
                let accepted = "at most the number of records";
                return Err(AccountingError::invalid("batch_size", size, accepted));
            }
            (None, Some(records), Some(size)) => (size as f64 / records as f64, Some((records, size))),
            _ if matches!(open, Some(OpenParameter::SamplingRate | OpenParameter::BatchSize { .. })) => (1.0, None),
            _ => return missing("`sampling_rate`, or `records` with `batch_size`"),
        };
        let steps = match (self.steps, self.epochs, population) {
            (Some(steps), ..) => steps,
            (None, Some(epochs), Some((records, size))) if size > 0 && (0.0..=1e9).contains(&epochs) => {
                steps_of(epochs, records, size)
            }
            (None, Some(_), Some((_, 0))) => {
                return Err(AccountingError::invalid("batch_size", 0, "at least 1"));
            }
            (None, Some(epochs), Some(_)) => {
                return Err(AccountingError::invalid("epochs", epochs, "a number in [0, 1e9]"));
            }
            (None, Some(epochs), None)
                if self.sampling_rate.is_some_and(|rate| rate > 0.0) && (0.0..=1e9).contains(&epochs) =>
            {
                steps_at_rate(epochs, rate)
            }
            (None, Some(_), None) => return missing("`records` with `batch_size`, for `epochs`"),
            (None, None, _) if open == Some(OpenParameter::Steps) => 1,
            (None, None, _) => return missing("`steps`, or `epochs` with `records` and `batch_size`"),
        };
        let noise_multiplier = match self.noise_multiplier {
            Some(sigma) => sigma,
            None if open == Some(OpenParameter::NoiseMultiplier) => 1.0,
            None => return missing("`noise_multiplier`, or `target_epsilon` to find it"),
        };
        let counts = self.count_noise_multipliers.iter().flatten().map(|&sigma| {
            let expected = "a finite number of at least 1e-6";
            NoiseMultiplier::new(sigma)
                .map_err(|_| AccountingError::invalid("count_noise_multipliers", sigma, expected))
        });
        let counts = counts.collect::<Result<Vec<_>, _>>()?;
        if sampler == Sampler::FixedSize && population.is_none() {
            return missing("`records` with `batch_size`, for batches of fixed size");
        }
        Ok((StepEvent::Batches { sampler, rate, population, noise_multiplier, counts }, steps))
    }
}

/// The text without the mark that some editors and PowerShell write before UTF-8.
pub(crate) fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// `⌈epochs/rate⌉`, but `n` where the rate is `1/n` up to rounding.
fn steps_at_rate(epochs: f64, rate: f64) -> u64 {
    let steps = epochs / rate;
    let nearest = steps.round();
    if (steps - nearest).abs() <= 1e-12 * steps { nearest as u64 } else { steps.ceil() as u64 }
}

/// `⌈epochs·records/batch_size⌉`, exact where `epochs` is a whole number.
fn steps_of(epochs: f64, records: u64, size: u64) -> u64 {
    if epochs.fract() == 0.0
        && let Some(total) = (epochs as u64).checked_mul(records)
    {
        return total.div_ceil(size);
    }
    (epochs * records as f64 / size as f64).ceil() as u64
}

impl OrdersChoice {
    /// The orders, from a name or a list separated by commas.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for an order that is not greater than 1 and finite,
    /// [`AccountingError::NotACase`] for what is neither.
    pub fn parse(text: &str) -> Result<Self, AccountingError> {
        let list: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        let choice = list.map_or_else(|_| Self::Named(text.to_owned()), Self::List);
        choice.orders().map(|_| choice)
    }

    fn orders(&self) -> Result<Orders, AccountingError> {
        match self {
            Self::List(orders) => {
                if orders.is_empty() || orders.len() > 10_000 {
                    return Err(AccountingError::invalid("length of orders", orders.len(), "1 to 10000"));
                }
                match orders.iter().find(|order| !(**order > 1.0 && order.is_finite())) {
                    Some(&bad) => Err(AccountingError::invalid("orders", bad, "a finite number above 1")),
                    None => Ok(Orders::Fixed(orders.clone())),
                }
            }
            Self::Named(name) => Ok(match name.as_str() {
                "adaptive" => Orders::Adaptive,
                "moments-accountant" => Orders::moments_accountant(),
                "opacus" => Orders::opacus(),
                "dp-accounting" => Orders::dp_accounting(),
                "tensorflow-privacy" => Orders::tensorflow_privacy(),
                _ => {
                    return Err(AccountingError::NotACase {
                        message: format!(
                            "orders are `{name}`, but must be a list of numbers, or adaptive, moments-accountant, opacus, \
                             dp-accounting or tensorflow-privacy"
                        ),
                    });
                }
            }),
        }
    }
}

impl CheckedCase {
    /// Which data sets are neighbours.
    pub const fn relation(&self) -> NeighbouringRelation {
        self.relation
    }

    /// How often the event happened; 1 where that is sought.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Which accountants answer.
    pub const fn accountant(&self) -> WhichAccountant {
        self.accountant
    }

    /// The δ at which ε, or a parameter for an ε, is asked for; `None` where δ is asked for.
    pub const fn delta(&self) -> Option<Delta> {
        match self.question {
            Question::Epsilon { delta } | Question::Parameter { delta, .. } => Some(delta),
            Question::Delta { .. } => None,
        }
    }

    /// The ε at which δ is asked for, which may be negative; `None` where ε is asked for.
    pub const fn epsilon(&self) -> Option<f64> {
        match self.question {
            Question::Delta { epsilon } => Some(epsilon),
            Question::Epsilon { .. } | Question::Parameter { .. } => None,
        }
    }

    /// One step, or the event, as it is for all records that come and go together.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for parameters out of range,
    /// [`AccountingError::NotRepresentable`] for what several records together have no analysis of.
    pub fn event(&self) -> Result<DpEvent, AccountingError> {
        match &self.step_event {
            StepEvent::Event(event) => event.for_user(self.user_records),
            StepEvent::Batches { rate, noise_multiplier, .. } => self.step(*noise_multiplier, *rate),
        }
    }

    /// A step with another noise multiplier of the gradient query and another rate.
    fn step(&self, noise_multiplier: f64, rate: f64) -> Result<DpEvent, AccountingError> {
        self.step_of_one_record(noise_multiplier, rate)?.for_user(self.user_records)
    }

    fn step_of_one_record(&self, noise_multiplier: f64, rate: f64) -> Result<DpEvent, AccountingError> {
        let StepEvent::Batches { sampler, population, counts, .. } = &self.step_event else {
            return Ok(DpEvent::nothing());
        };
        let queries = match DpEvent::gaussian_at(noise_multiplier)? {
            DpEvent::Gaussian { noise_multiplier } if !counts.is_empty() => DpEvent::joint_gaussian(
                std::iter::once(noise_multiplier).chain(counts.iter().copied()).collect::<Vec<_>>(),
            ),
            // Infinite noise hides the gradient alone.
            nothing if nothing == DpEvent::nothing() && !counts.is_empty() => DpEvent::joint_gaussian(counts.clone()),
            other => other,
        };
        match (sampler, population) {
            (Sampler::FixedSize, Some((records, size))) => queries.fixed_size_sampled(*records, *size),
            (Sampler::FixedSize, None) => {
                Err(AccountingError::Incomplete { needed: "`records` with `batch_size`, for batches of fixed size" })
            }
            (Sampler::Poisson, _) => queries.poisson_sampled_at(rate),
        }
    }

    /// Makes every check that takes no accountant's work.
    fn refuse_early(&self) -> Result<(), AccountingError> {
        let event = self.event()?;
        crate::composition::Composition::new(self.relation).add(&event, self.steps)?;
        crate::PldAccountant::new(self.relation).with_relative_width(self.relative_width).map(|_| ())
    }
}

impl std::fmt::Display for CheckedCase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.step_event {
            StepEvent::Event(event) => write!(f, "{} × {event}", self.steps)?,
            StepEvent::Batches { sampler, rate, noise_multiplier, counts, .. } => {
                let sampler = match sampler {
                    Sampler::Poisson => "Poisson batches",
                    Sampler::FixedSize => "batches of fixed size",
                };
                write!(f, "{sampler} at rate {rate}, {} steps, ", self.steps)?;
                if noise_multiplier.is_finite() {
                    write!(f, "noise multiplier {noise_multiplier}")?;
                } else {
                    f.write_str("infinite noise, so no gradient is released")?;
                }
                for count in counts {
                    write!(f, ", count noise multiplier {count}")?;
                }
            }
        }
        match self.question {
            Question::Epsilon { delta } | Question::Parameter { delta, .. } => write!(f, ", delta {:e}", delta.get())?,
            Question::Delta { epsilon } => write!(f, ", epsilon {epsilon}")?,
        }
        if self.user_records > 1 {
            write!(f, ", users with {} records", self.user_records)?;
        }
        write!(f, ", {} neighbours", self.relation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> String {
        match Case::from_json(json).and_then(|case| case.check()) {
            Ok(checked) => panic!("accepted: {checked}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_rate_of_one_in_n_has_n_steps_an_epoch() {
        for n in 1..2_000_u64 {
            assert_eq!(steps_at_rate(1.0, 1.0 / n as f64), n);
            assert_eq!(steps_of(1.0, n, 1), n);
        }
        assert_eq!((steps_at_rate(1.0, 0.3), steps_of(1.0, 49, 2)), (4, 25));
    }

    #[test]
    fn conflicts_gaps_and_unknown_fields_are_named() {
        insta::assert_snapshot!(refused(r#"{"sampling_rat":0.1}"#), @"not a case: unknown field `sampling_rat`, expected one of `id`, `sampler`, `sampling_rate`, `records`, `batch_size`, `steps`, `epochs`, `noise_multiplier`, `count_noise_multipliers`, `event`, `user_records`, `relation`, `delta`, `epsilon`, `target_epsilon`, `accountant`, `orders`, `conversion`, `relative_width` at line 1 column 15");
        insta::assert_snapshot!(refused(r#"{"steps":1,"steps":2}"#), @"not a case: duplicate field `steps` at line 1 column 18");
        insta::assert_snapshot!(refused(r#"{"sampling_rate":0.1,"noise_multiplier":1,"steps":3}"#), @"give `delta`, or `epsilon` to ask for δ");
        insta::assert_snapshot!(refused(r#"{"noise_multiplier":1,"steps":3,"delta":1e-5}"#), @"give `sampling_rate`, or `records` with `batch_size`");
        insta::assert_snapshot!(refused(r#"{"sampling_rate":0.1,"noise_multiplier":1,"delta":1e-5}"#), @"give `steps`, or `epochs` with `records` and `batch_size`");
        insta::assert_snapshot!(refused(r#"{"sampling_rate":0.1,"steps":3,"delta":1e-5}"#), @"give `noise_multiplier`, or `target_epsilon` to find it");
        insta::assert_snapshot!(refused(r#"{"sampling_rate":0.1,"steps":3,"epochs":2,"delta":1e-5}"#), @"`steps` and `epochs` cannot be given together");
        insta::assert_snapshot!(refused(r#"{"event":"non-private","noise_multiplier":1,"delta":1e-5}"#), @"`event` and `noise_multiplier` cannot be given together");
        insta::assert_snapshot!(refused(r#"{"steps":3,"noise_multiplier":1,"sampling_rate":0.1,"target_epsilon":1,"delta":1e-5}"#), @"give with `target_epsilon`, exactly two of `noise_multiplier`, `sampling_rate` and `steps`");
        insta::assert_snapshot!(refused(r#"{"sampling_rate":2,"noise_multiplier":1,"steps":3,"delta":1e-5}"#), @"sampling_rate = 2: expected a number in [0, 1]");
        insta::assert_snapshot!(refused(r#"{"sampler":"fixed-size","sampling_rate":0.1,"noise_multiplier":1,"steps":3,"delta":1e-5}"#), @"give `records` with `batch_size`, for batches of fixed size");
    }

    #[test]
    fn lists_are_no_cases_and_byte_order_marks_are_skipped() {
        let error = |json: &str| Case::from_json(json).unwrap_err().to_string();
        for list in ["[]", " [1, 2]", r#"["a", null, 0.01]"#, "\u{feff}[{}]"] {
            insta::allow_duplicates! {
                insta::assert_snapshot!(error(list), @r#"not a case: a list, but expected one object, {"sampling_rate": …}, a line"#);
            }
        }
        insta::assert_snapshot!(error("3"), @"not a case: invalid type: integer `3`, expected struct Case at line 1 column 1");
        insta::assert_snapshot!(error(r#"{"steps":3,"noise_multiplier":Infinity}"#), @"not a case: expected value at line 1 column 31; JSON has no Infinity and no NaN");
        let text = r#"{"sampling_rate":0.1,"noise_multiplier":1,"steps":3}"#;
        assert_eq!(Case::from_json(&format!("\u{feff}{text}")).unwrap(), Case::from_json(text).unwrap());
    }

    #[test]
    fn infinite_noise_is_named_and_counts_are_charged() {
        let case = Case {
            sampling_rate: Some(0.1),
            noise_multiplier: Some(f64::INFINITY),
            steps: Some(3),
            delta: Some(1e-5),
            ..Case::default()
        };
        let alone = case.check().unwrap();
        insta::assert_snapshot!(alone.to_string(), @"Poisson batches at rate 0.1, 3 steps, infinite noise, so no gradient is released, delta 1e-5, add-remove neighbours");
        assert_eq!(alone.event().unwrap(), DpEvent::nothing());
        let counts = Case { count_noise_multipliers: Some(vec![5.0]), ..case }.check().unwrap();
        insta::assert_snapshot!(counts.event().unwrap().to_string(), @"Poisson-sampled (rate 0.1) joint Gaussian (noise multipliers 5)");
        insta::assert_snapshot!(Case { noise_multiplier: Some(-1.0), ..case_of_a_step() }.check().unwrap_err(), @"noise_multiplier = -1: expected 0, infinity, or a number of at least 1e-6");
        insta::assert_snapshot!(Case { noise_multiplier: Some(f64::NAN), ..case_of_a_step() }.check().unwrap_err(), @"noise_multiplier = NaN: expected 0, infinity, or a number of at least 1e-6");
    }

    fn case_of_a_step() -> Case {
        Case { sampling_rate: Some(0.1), steps: Some(1), delta: Some(1e-5), ..Case::default() }
    }

    #[test]
    fn defaults_fill_gaps_and_contradictions_are_errors() {
        let line = Case::from_json(r#"{"sampling_rate":0.1,"noise_multiplier":1,"steps":3}"#).unwrap();
        let defaults = Case { delta: Some(1e-6), count_noise_multipliers: Some(vec![5.0]), ..Case::default() };
        let merged = line.or(&defaults).unwrap().check().unwrap();
        insta::assert_snapshot!(merged.to_string(), @"Poisson batches at rate 0.1, 3 steps, noise multiplier 1, count noise multiplier 5, delta 1e-6, add-remove neighbours");
        let contradicting = Case { steps: Some(4), ..defaults };
        insta::assert_snapshot!(line.or(&contradicting).unwrap_err(), @"`steps` of the case and another `steps` that was given for all cases cannot be given together");
    }

    #[test]
    fn epochs_are_whole_batches() {
        // 36,178 records in batches of 256, 20 times: 2826.4 steps; 49 records in batches of 7:
        // exactly 7 steps an epoch.
        assert_eq!(steps_of(20.0, 36_178, 256), 2_827);
        assert_eq!(steps_of(1.0, 49, 7), 7);
        assert_eq!(steps_of(0.5, 49, 7), 4);
    }
}
