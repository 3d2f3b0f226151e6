//! `fairdp account`: questions to the accountants of `dp-accounting`.

use std::io::{self, Write};

use clap::Args;
use dp_accounting::case::{Answer, Bound, Case, Parameter};
use dp_accounting::{
    AccountingError, EpsilonBound, LEAST_NOISE_MULTIPLIER, MOST_STEPS, Mark, MarkedEpsilon, Rounding, Scope, decimal,
    scientific,
};
use fairdp::{FairdpError, default_delta};

use super::Failure;

/// One question. What is left out of noise, rate and steps is found where `--target-epsilon` is
/// given.
#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct AccountArgs {
    /// Probability with which a record enters a batch; 1 for steps on all records.
    #[arg(long)]
    sampling_rate: Option<f64>,
    /// Records in the table; with --batch-size instead of --sampling-rate.
    #[arg(long, conflicts_with = "sampling_rate")]
    records: Option<u64>,
    /// Expected batch size.
    #[arg(long)]
    batch_size: Option<u64>,
    /// Steps.
    #[arg(long)]
    steps: Option<u64>,
    /// Passes over the records.
    #[arg(long)]
    epochs: Option<f64>,
    /// Standard deviation of the noise over the clipping norm.
    #[arg(long)]
    noise_multiplier: Option<f64>,
    /// δ; 1e-5, or less for many --records, unless given.
    #[arg(long)]
    delta: Option<f64>,
    /// Asks for δ at this ε.
    #[arg(long)]
    epsilon: Option<f64>,
    /// Finds what was left out, for this ε.
    #[arg(long)]
    target_epsilon: Option<f64>,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

impl AccountArgs {
    /// Asks every accountant.
    pub(super) fn answer(self, out: &mut impl Write) -> Result<(), Failure> {
        let case = Case {
            sampling_rate: self.sampling_rate,
            records: self.records,
            batch_size: self.batch_size,
            steps: self.steps,
            epochs: self.epochs,
            noise_multiplier: self.noise_multiplier,
            delta: self.delta.or_else(|| self.epsilon.is_none().then(|| default_delta(self.records.unwrap_or(1)))),
            epsilon: self.epsilon,
            target_epsilon: self.target_epsilon,
            ..Case::default()
        };
        let answers = case.check().and_then(|case| case.answer()).map_err(refused)?;
        if self.json {
            let answer = serde_json::json!({
                "case": answers.case.to_string(),
                "found": answers.parameter,
                "answers": answers.by_accountant.iter().map(marked).collect::<Vec<_>>(),
            });
            return Ok(writeln!(out, "{answer}")?);
        }
        writeln!(out, "{}", answers.case)?;
        if let Some(parameter) = answers.parameter {
            write_parameter(out, parameter)?;
        }
        for answer in &answers.by_accountant {
            let bound = match &answer.bound {
                Bound::Epsilon(bound) => format!("epsilon {:.4}", of_one_record(bound)),
                Bound::Delta(bound) => {
                    format!("delta {} ({})", scientific(bound.delta, 3, Rounding::Up), mark(&answer.bound))
                }
            };
            writeln!(out, "{:<45} {bound}", answer.accountant)?;
        }
        Ok(())
    }
}

fn of_one_record(bound: &EpsilonBound) -> MarkedEpsilon {
    MarkedEpsilon::new(bound, &Scope::of("one record", ["what is released"]))
}

/// The mark of a bound.
fn mark(bound: &Bound) -> Mark {
    match bound {
        Bound::Epsilon(bound) => of_one_record(bound).mark(),
        Bound::Delta(bound) => bound.mark(),
    }
}

/// An answer with its mark.
fn marked(answer: &Answer) -> serde_json::Value {
    let mut json = serde_json::json!(answer);
    json["mark"] = mark(&answer.bound).to_string().into();
    json
}

/// Names missing and conflicting values by their options.
fn refused(error: AccountingError) -> Failure {
    match error {
        AccountingError::Incomplete { .. } | AccountingError::Conflicting { .. } => {
            let message = error.to_string();
            let options = message.split('`').enumerate();
            let named = options
                .map(|(i, words)| if i % 2 == 1 { format!("--{}", words.replace('_', "-")) } else { words.to_owned() });
            Failure::Usage(named.collect())
        }
        error => Failure::Library(FairdpError::from(error)),
    }
}

fn write_parameter(out: &mut impl Write, parameter: Parameter) -> io::Result<()> {
    match parameter {
        // Towards privacy: what is printed meets the target, too.
        Parameter::NoiseMultiplier(value) => {
            let limit = if value <= LEAST_NOISE_MULTIPLIER { ", the least that is tried" } else { "" };
            writeln!(out, "noise multiplier {}{limit}", decimal(value, 6, Rounding::Up))
        }
        Parameter::SamplingRate(value) => {
            let places = (6.0 - value.log10().floor()) as usize;
            writeln!(out, "sampling rate {}", decimal(value, places, Rounding::Down))
        }
        Parameter::BatchSize(value) => writeln!(out, "batch size {value}"),
        Parameter::Steps(value) => {
            let limit = if value == MOST_STEPS { ", the most that are tried" } else { "" };
            writeln!(out, "steps {value}{limit}")
        }
    }
}
