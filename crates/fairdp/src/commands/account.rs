//! `fairdp account`: questions to the accountants of `dp-accounting`.

use std::io::Write;

use clap::Args;
use dp_accounting::case::{Answer, Bound};
use dp_accounting::command::{CaseOptions, text, with_options};
use dp_accounting::{AccountingError, MarkedEpsilon, Scope};
use fairdp::{FairdpError, default_delta};

use super::{Failure, answer};

/// One question. What is left out of noise, rate and steps is found where `--target-epsilon` is
/// given.
#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct AccountArgs {
    #[command(flatten)]
    case: CaseOptions,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

impl AccountArgs {
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Asks every accountant.
    pub(super) fn answer(self, out: &mut impl Write) -> Result<(), Failure> {
        let mut case = self.case.case().map_err(refused)?;
        if case.delta.is_none() && case.epsilon.is_none() {
            case.delta = Some(default_delta(case.records.unwrap_or(1)));
        }
        let answers = case.check().and_then(|case| case.answer()).map_err(refused)?;
        let scope = Scope::of("one record", ["what is released"]);
        if self.json {
            let answer = serde_json::json!({
                "case": answers.case.to_string(),
                "found": answers.parameter,
                "answers": answers.by_accountant.iter().map(|answer| marked(answer, &scope)).collect::<Vec<_>>(),
            });
            return Ok(answer::line(out, answer)?);
        }
        Ok(out.write_all(text(&answers, &scope).as_bytes())?)
    }
}

/// An answer with its mark.
fn marked(answer: &Answer, scope: &Scope) -> serde_json::Value {
    let mark = match &answer.bound {
        Bound::Epsilon(bound) => MarkedEpsilon::new(bound, scope).mark(),
        Bound::Delta(bound) => bound.mark(),
    };
    let mut json = serde_json::json!(answer);
    json["mark"] = mark.to_string().into();
    json
}

/// Missing and conflicting values are named by their options.
fn refused(error: AccountingError) -> Failure {
    match error {
        AccountingError::Incomplete { .. } | AccountingError::Conflicting { .. } => {
            Failure::Usage(with_options(&error))
        }
        error => Failure::Library(FairdpError::from(error)),
    }
}
