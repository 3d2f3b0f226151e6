//! Answers in words.

use std::fmt::Write as _;

use dp_accounting::case::{Answers, Bound, Parameter};
use dp_accounting::{Certainty, MarkedEpsilon, Rounding, Statement, decimal, scientific};

/// The setting, what was found, a line per accountant, and the statement.
pub(super) fn of(answers: &Answers, statement: Option<&Statement>) -> String {
    let mut out = format!("{}\n", answers.case);
    out.push_str(match answers.parameter {
        Some(Parameter::NoiseMultiplier(_)) => "The noise multiplier was calibrated to the target, rounded up.\n",
        Some(Parameter::SamplingRate(_)) => "The sampling rate was calibrated to the target, rounded down.\n",
        Some(Parameter::BatchSize(_)) => "The batch size is the largest that keeps the target.\n",
        Some(Parameter::Steps(_)) => "The number of steps is the largest that keeps the target.\n",
        None => "",
    });
    out.push('\n');
    let width = answers.by_accountant.iter().map(|answer| answer.accountant.chars().count()).max().unwrap_or(0);
    for answer in &answers.by_accountant {
        let bound = describe(&answer.bound);
        let _ = writeln!(out, "{:width$}  {bound}", answer.accountant);
    }
    if let Some(statement) = statement {
        let _ = writeln!(out, "\n{statement}");
    }
    out
}

/// `ε ≤ 2.6625 (certified) (order 7.41)`, `2.4120 ≤ ε ≤ 2.4139 (certified)`, `ε ≈ 2.2199 (nominal,
/// not a guarantee)`; δ with four digits.
fn describe(bound: &Bound) -> String {
    let (mut text, certainty, order) = match bound {
        Bound::Epsilon(bound) if !bound.epsilon.is_finite() => return "ε = ∞: no guarantee".to_owned(),
        Bound::Epsilon(bound) => {
            let marked = MarkedEpsilon::new(bound, &super::scope());
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
                (Certainty::Estimate, _) => format!("δ ≈ {upper} (estimate, not a guarantee)"),
                (_, Some(lower)) => format!("{} ≤ δ ≤ {upper}", scientific(lower, 3, Rounding::Down)),
                (_, None) => format!("δ ≤ {upper}"),
            };
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
