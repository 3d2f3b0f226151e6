//! `cargo xtask account`: what `dp-accounting` answers, on the command line.

mod batch;
mod chart;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use dp_accounting::case::{Answer, Answers, Bound, Case, CheckedCase, Parameter, WhichAccountant};
use dp_accounting::command::{CaseOptions, text};
use dp_accounting::{Certainty, Delta, Epsilon, Ledger, MarkedEpsilon, Method, Scope, Statement};
use serde::Serialize;

/// Options of `cargo xtask account`.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask account --sampling-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5
  cargo xtask account --records 36178 --batch-size 256 --epochs 20 --noise-multiplier 1 --epsilon 2
  cargo xtask account --records 36178 --batch-size 256 --epochs 20 --target-epsilon 3 --delta 1e-6
  cargo xtask account --sampling-rate 0.01 --noise-multiplier 1 --target-epsilon 3
  cargo xtask account --event event.json --relation replace-one
  cargo xtask account --jsonl cases.jsonl --delta 1e-6 > results.jsonl")]
pub(crate) struct AccountArgs {
    #[command(flatten)]
    case: CaseOptions,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
    /// Print the statement for an auditor as well.
    #[arg(long)]
    statement: bool,
    /// Many cases: one JSON object per line, with the fields of the options above under their names
    /// (`sampling_rate`); `-` reads standard input. Options are taken where a line leaves them out; δ or ε is
    /// asked for in a line or by an option, and has no default here.
    /// Exit code 0 when every line was answered.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plot", "statement", "json"])]
    jsonl: Option<PathBuf>,
    /// Draw ε over steps, as .svg or .png.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Everything that is printed.
#[derive(Debug, Serialize)]
struct Report<'a> {
    case: &'a Case,
    setting: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<Parameter>,
    answers: Vec<Marked<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<Statement>,
}

/// An answer with the mark of its ε.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Marked<'a> {
    Epsilon {
        accountant: &'a str,
        #[serde(flatten)]
        epsilon: MarkedEpsilon,
        lower: Option<Epsilon>,
        certainty: &'a Certainty,
        order: Option<f64>,
        method: Option<Method>,
        /// Why ε is `null`.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'static str>,
    },
    Delta(&'a Answer),
}

impl<'a> Marked<'a> {
    fn new(answer: &'a Answer) -> Self {
        match &answer.bound {
            Bound::Epsilon(bound) => Self::Epsilon {
                accountant: &answer.accountant,
                epsilon: MarkedEpsilon::new(bound, &scope()),
                lower: bound.lower,
                certainty: &bound.certainty,
                order: bound.order,
                method: bound.method,
                note: (!bound.epsilon.is_finite()).then_some("no upper bound on ε exists: no guarantee"),
            },
            Bound::Delta(_) => Self::Delta(answer),
        }
    }
}

/// What the ε of a setting is about.
fn scope() -> Scope {
    Scope {
        not_covered: vec!["the choice of hyper-parameters, unless it used no private data".to_owned()],
        ..Scope::of("one record", ["everything released by these steps"])
    }
}

/// δ of a single case that gives none.
const DELTA: f64 = 1e-5;

/// Accounts for what the options describe.
///
/// # Errors
/// For options that do not describe a case, for files that cannot be read or written, and if some
/// line was not answered.
pub(crate) fn run(args: &AccountArgs) -> anyhow::Result<()> {
    let mut case = args.case.case()?;
    if let Some(path) = &args.jsonl {
        return batch::run(path, &case);
    }
    if case.delta.is_none() && case.epsilon.is_none() {
        case.delta = Some(DELTA);
    }
    let answers = case.check()?.answer()?;
    let statement = args.statement.then(|| statement(&answers, case.records)).transpose()?;
    if let Some(path) = &args.plot {
        chart::draw(&answers.case, path)?;
    }
    let mut out = std::io::stdout().lock();
    let printed = if args.json {
        let (setting, found) = (answers.case.to_string(), answers.parameter);
        let answers = answers.by_accountant.iter().map(Marked::new).collect();
        let report = Report { case: &case, setting, found, answers, statement };
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        let statement = statement.map_or(String::new(), |statement| format!("\n{statement}\n"));
        text(&answers, &scope()) + &statement
    };
    out.write_all(printed.as_bytes()).and_then(|()| out.flush()).context("writing to standard output")
}

fn statement(answers: &Answers, n_records: Option<u64>) -> anyhow::Result<Statement> {
    let case: &CheckedCase = &answers.case;
    let delta = case.delta().map_or_else(|| Delta::new(DELTA), Ok)?;
    let mut ledger = Ledger::new(case.relation());
    ledger.record(&case.event()?, case.steps())?;
    let scope = Scope { n_records, ..scope() };
    Ok(match case.accountant() {
        WhichAccountant::Rdp => Statement::by(case.rdp(), &ledger, delta, scope)?,
        _ => Statement::by(case.pld()?, &ledger, delta, scope)?,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: AccountArgs,
    }

    fn printed(line: &str) -> anyhow::Result<String> {
        let args = Cli::try_parse_from(line.split_whitespace()).unwrap().args;
        Ok(text(&args.case.case()?.check()?.answer()?, &scope()))
    }

    #[test]
    fn one_setting_by_all_accountants() {
        insta::assert_snapshot!(
            printed("account --sampling-rate 0.007076201848657733 --noise-multiplier 1 --steps 2826 --delta 1e-6")
                .unwrap()
        );
        insta::assert_snapshot!(printed("account --records 36178 --batch-size 256 --epochs 20 --noise-multiplier 2 --delta 1e-6 --sampler fixed-size").unwrap());
    }

    #[test]
    fn calibration_meets_its_target() {
        insta::assert_snapshot!(
            printed("account --sampling-rate 0.01 --steps 1000 --target-epsilon 2 --accountant rdp --delta 1e-5")
                .unwrap()
        );
    }

    #[test]
    fn orders_and_conversion_are_those_asked_for() {
        let opacus = "account --sampling-rate 0.01 --steps 1000 --noise-multiplier 1 --delta 1e-5 --accountant rdp --orders opacus";
        let text = printed(opacus).unwrap();
        assert!(text.contains("RDP, improved conversion, 151 fixed orders") && !text.contains("classic"), "{text}");
        assert!(
            printed(&opacus.replace("opacus", "0.5"))
                .unwrap_err()
                .to_string()
                .contains("orders = 0.5: expected a finite number above 1")
        );
    }
}
