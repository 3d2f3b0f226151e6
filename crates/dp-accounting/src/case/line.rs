//! A case in, one line of JSON out.

use serde::Serialize;
use serde_json::Value;

use super::{Answer, Bound, Case, Parameter, WhichAccountant, without_byte_order_mark};
use crate::{AccountingError, Certainty};

/// Longest line that is read, in bytes.
const MAX_LINE: usize = 1 << 20;

/// One line of output. Where there is no upper bound the value is `null`, and `note` says why.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The case's.
    pub id: Value,
    #[serde(flatten)]
    fields: Fields,
    /// Time that the answer took.
    pub seconds: f64,
    /// Why a number is missing or is no guarantee.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether the case was understood and answered.
    #[serde(skip)]
    pub is_answered: bool,
}

/// The parameter that was sought, then ε or δ by each accountant, by their names and in this order.
#[derive(Debug, Default, Clone, PartialEq)]
struct Fields(Vec<(&'static str, Value)>);

impl Serialize for Fields {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Outcome {
    /// Answers one line; `defaults` are taken where the line leaves a field out. Never fails: what
    /// is wrong is the note.
    pub fn of_line(line: &[u8], defaults: &Case) -> Self {
        if line.len() > MAX_LINE {
            return Self::refused(&format!("a line of {} bytes: at most {MAX_LINE} are read", line.len()));
        }
        let Ok(text) = std::str::from_utf8(line) else {
            return Self::refused("not UTF-8");
        };
        match Case::from_json(text) {
            Ok(case) => Self::of_case(&case, defaults),
            Err(error) => {
                // Whose line it was is known even where the rest is not.
                let value = serde_json::from_str::<Value>(without_byte_order_mark(text)).unwrap_or_default();
                let id = value.get("id").cloned().unwrap_or_default();
                Self { id, ..Self::refused(&error.to_string()) }
            }
        }
    }

    fn refused(note: &str) -> Self {
        Self { note: Some(note.to_owned()), ..Self::default() }
    }

    /// Answers one case.
    pub fn of_case(case: &Case, defaults: &Case) -> Self {
        let start = std::time::Instant::now();
        let answers = case.or(defaults).and_then(|case| case.check()).and_then(|case| case.answer());
        let mut outcome = match answers {
            Ok(answers) => {
                let (mut fields, mut notes) = (Vec::new(), Vec::new());
                fields.extend(answers.parameter.map(|parameter| match parameter {
                    Parameter::NoiseMultiplier(value) => ("noise_multiplier", Value::from(value)),
                    Parameter::SamplingRate(value) => ("sampling_rate", Value::from(value)),
                    Parameter::BatchSize(value) => ("batch_size", Value::from(value)),
                    Parameter::Steps(value) => ("steps", Value::from(value)),
                }));
                let mut has_classic = false;
                for answer in &answers.by_accountant {
                    push(answer, &mut has_classic, &mut fields, &mut notes);
                }
                let note = (!notes.is_empty()).then(|| notes.join("; "));
                Self { fields: Fields(fields), note, is_answered: true, ..Self::default() }
            }
            Err(error) => Self::refused(&error.to_string()),
        };
        outcome.id = case.id.clone().unwrap_or_default();
        outcome.seconds = start.elapsed().as_secs_f64();
        outcome
    }

    /// A number of the answer, by its name: `epsilon_rdp`, `epsilon_rdp_classic`,
    /// `epsilon_pld_lower`, `epsilon_pld_upper`, `epsilon_gdp`, or the same of `delta`.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.fields.0.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.as_f64())
    }
}

fn push(answer: &Answer, seen_rdp: &mut bool, fields: &mut Vec<(&'static str, Value)>, notes: &mut Vec<String>) {
    let (value, lower, certainty) = match &answer.bound {
        Bound::Epsilon(bound) => (bound.epsilon.get(), bound.lower.map(crate::Epsilon::get), &bound.certainty),
        Bound::Delta(bound) => (bound.delta, bound.lower, &bound.certainty),
    };
    let is_epsilon = matches!(answer.bound, Bound::Epsilon(_));
    let name = |epsilon: &'static str, delta: &'static str| if is_epsilon { epsilon } else { delta };
    let mut finite = |value: f64| {
        if value.is_finite() {
            return Value::from(value);
        }
        notes.push(format!("{}: epsilon is infinite", answer.accountant));
        Value::Null
    };
    match answer.which {
        WhichAccountant::Rdp if *seen_rdp => {
            fields.push((name("epsilon_rdp_classic", "delta_rdp_classic"), finite(value)));
        }
        WhichAccountant::Rdp => {
            *seen_rdp = true;
            fields.push((name("epsilon_rdp", "delta_rdp"), finite(value)));
        }
        WhichAccountant::Gdp => fields.push((name("epsilon_gdp", "delta_gdp"), finite(value))),
        WhichAccountant::Pld | WhichAccountant::All => {
            let lower = lower.filter(|lower| lower.is_finite());
            fields.push((name("epsilon_pld_lower", "delta_pld_lower"), lower.into()));
            fields.push((name("epsilon_pld_upper", "delta_pld_upper"), finite(value)));
        }
    }
    if let Certainty::FallBack { reason } = certainty {
        notes.push(format!("{}: {reason}", answer.accountant));
    }
}

impl From<AccountingError> for Outcome {
    fn from(error: AccountingError) -> Self {
        Self::refused(&error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(line: &str) -> Outcome {
        Outcome::of_line(line.as_bytes(), &Case::default())
    }

    #[test]
    fn every_line_has_an_answer_or_a_note() {
        let good = outcome(r#"{"id":"a","sampling_rate":0.01,"noise_multiplier":1,"steps":1000,"delta":1e-5}"#);
        assert_eq!((good.id.as_str(), good.note.as_deref(), good.is_answered), (Some("a"), None, true));
        let number = |name: &str| good.number(name).unwrap();
        assert!(number("epsilon_pld_lower") < number("epsilon_pld_upper"));
        assert!(
            number("epsilon_pld_upper") < number("epsilon_rdp")
                && number("epsilon_rdp") < number("epsilon_rdp_classic")
        );
        let bad = outcome(r#"{"id":7,"sampling_rate":2,"noise_multiplier":1,"steps":1000,"delta":1e-5}"#);
        assert_eq!((bad.id.as_u64(), bad.number("epsilon_rdp"), bad.is_answered), (Some(7), None, false));
        insta::assert_snapshot!(bad.note.unwrap(), @"sampling_rate = 2: expected a number in [0, 1]");
        let unknown = outcome(r#"{"id":8,"sampling_rat":2}"#);
        assert!(unknown.id == 8 && unknown.note.unwrap().contains("unknown field `sampling_rat`"));
        assert!(outcome("{").note.unwrap().starts_with("not a case"));
        assert_eq!(Outcome::of_line(&[b'{', 0xff, b'}'], &Case::default()).note.unwrap(), "not UTF-8");
        assert!(Outcome::of_line(&vec![b' '; MAX_LINE + 1], &Case::default()).note.unwrap().contains("bytes"));
    }

    #[test]
    fn limits_have_values_or_a_note() {
        // No noise: nothing bounds ε, and the note says so.
        let silent = outcome(r#"{"sampling_rate":0.1,"noise_multiplier":0,"steps":1,"delta":1e-5,"accountant":"pld"}"#);
        assert!(silent.is_answered && silent.number("epsilon_pld_upper").is_none());
        insta::assert_snapshot!(silent.note.unwrap(), @"PLD: epsilon is infinite");
        let unused = outcome(r#"{"sampling_rate":0,"noise_multiplier":1,"steps":9,"delta":0,"accountant":"pld"}"#);
        assert_eq!(unused.number("epsilon_pld_upper"), Some(0.0));
        let json = serde_json::to_string(&Outcome { seconds: 0.0, ..unused }).unwrap();
        assert_eq!(json, r#"{"id":null,"epsilon_pld_lower":0.0,"epsilon_pld_upper":0.0,"seconds":0.0}"#);
    }

    #[test]
    fn parameters_are_found_and_questions_turned_round() {
        let found = |json: &str| serde_json::to_value(outcome(json)).unwrap();
        let steps =
            found(r#"{"sampling_rate":0.01,"noise_multiplier":1,"target_epsilon":2,"delta":1e-5,"accountant":"rdp"}"#);
        // dp_accounting 0.6 with its orders: ε = 2.1014 after 1000 steps.
        let n = steps["steps"].as_u64().unwrap();
        let at = |n: u64| {
            let json =
                format!(r#"{{"sampling_rate":0.01,"noise_multiplier":1,"steps":{n},"delta":1e-5,"accountant":"rdp"}}"#);
            outcome(&json).number("epsilon_rdp").unwrap()
        };
        assert!(at(n) <= 2.0 && at(n + 1) > 2.0 && (850..1_000).contains(&n), "{n}");
        let rate = found(r#"{"steps":1000,"noise_multiplier":1,"target_epsilon":2,"delta":1e-5,"accountant":"rdp"}"#);
        assert!((0.009..0.01).contains(&rate["sampling_rate"].as_f64().unwrap()), "{rate}");
        let delta = outcome(r#"{"event":{"gaussian":{"noise_multiplier":1}},"epsilon":1,"accountant":"pld"}"#);
        // Φ(1/2 - 1) - e·Φ(-1/2 - 1) = 0.126936737506.
        assert!((delta.number("delta_pld_upper").unwrap() - 0.126_936_737_506).abs() < 1e-10);
    }
}
