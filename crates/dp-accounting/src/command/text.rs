//! Answers in words.

use std::fmt::Write as _;

use crate::case::{Answers, Bound, Parameter};
use crate::{
    AccountingError, Certainty, LEAST_NOISE_MULTIPLIER, MOST_STEPS, MarkedEpsilon, Rounding, Scope, decimal, scientific,
};

/// The case, the parameter that was found, and a line for each accountant.
pub fn text(answers: &Answers, scope: &Scope) -> String {
    let mut out = format!("{}\n", answers.case);
    if let Some(parameter) = answers.parameter {
        out.push_str(&calibrated(parameter));
    }
    out.push('\n');
    let width = answers.by_accountant.iter().map(|answer| answer.accountant.chars().count()).max().unwrap_or(0);
    for answer in &answers.by_accountant {
        let bound = describe(&answer.bound, scope);
        let _ = writeln!(out, "{:width$}  {bound}", answer.accountant);
    }
    out
}

/// Names the fields in an error of a case as options: `batch_size` as `--batch-size`.
pub fn with_options(error: &AccountingError) -> String {
    let message = error.to_string();
    let parts = message.split('`').enumerate();
    parts.map(|(i, part)| if i % 2 == 1 { format!("--{}", part.replace('_', "-")) } else { part.to_owned() }).collect()
}

/// The parameter that was found, and whether it is the last one that is tried.
fn calibrated(parameter: Parameter) -> String {
    match parameter {
        // Rounded towards privacy: the printed value meets the target, too.
        Parameter::NoiseMultiplier(value) => {
            let mut text = "The noise multiplier was calibrated to the target, rounded up.\n".to_owned();
            if value <= LEAST_NOISE_MULTIPLIER {
                let least = decimal(value, 6, Rounding::Up);
                let _ = writeln!(text, "It is {least}, the least that is tried.");
            }
            text
        }
        Parameter::SamplingRate(_) => "The sampling rate was calibrated to the target, rounded down.\n".into(),
        Parameter::BatchSize(_) => "The batch size is the largest that keeps the target.\n".into(),
        Parameter::Steps(MOST_STEPS) => format!("The number of steps {MOST_STEPS} is the most that is tried.\n"),
        Parameter::Steps(_) => "The number of steps is the largest that keeps the target.\n".into(),
    }
}

/// `ε ≤ 2.6625 (certified) (order 7.41)`, `2.4120 ≤ ε ≤ 2.4139 (certified)`, `ε ≈ 2.2199 (nominal,
/// not a guarantee)`; δ with four digits.
fn describe(bound: &Bound, scope: &Scope) -> String {
    let (mut text, certainty, order) = match bound {
        Bound::Epsilon(bound) if !bound.epsilon.is_finite() => return "ε = ∞: no guarantee".to_owned(),
        Bound::Epsilon(bound) => {
            let marked = MarkedEpsilon::new(bound, scope);
            let text = match (&bound.certainty, bound.lower) {
                (Certainty::Estimate, _) => format!("ε ≈ {marked:.4}"),
                (_, Some(lower)) if bound.epsilon.get() < 1e-4 && lower.get() > 0.0 => {
                    format!("{} ≤ ε ≤ {marked:.4}", scientific(lower.get(), 3, Rounding::Down))
                }
                (_, Some(lower)) => format!("{} ≤ ε ≤ {marked:.4}", decimal(lower.get(), 4, Rounding::Down)),
                (_, None) => format!("ε ≤ {marked:.4}"),
            };
            (text, &bound.certainty, bound.order)
        }
        Bound::Delta(bound) => {
            let upper = scientific(bound.delta, 3, Rounding::Up);
            let text = match (&bound.certainty, bound.lower) {
                (Certainty::Estimate, _) => format!("δ ≈ {upper}"),
                (_, Some(lower)) => format!("{} ≤ δ ≤ {upper}", scientific(lower, 3, Rounding::Down)),
                (_, None) => format!("δ ≤ {upper}"),
            };
            let text = format!("{text} ({})", bound.mark());
            (text, &bound.certainty, bound.order)
        }
    };
    if let Some(order) = order {
        let _ = write!(text, " (order {order:.2})");
    }
    if let Certainty::FallBack { reason } = certainty {
        let _ = write!(text, " ({reason})");
    }
    text
}
