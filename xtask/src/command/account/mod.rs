//! `cargo xtask account`: what `dp-accounting` answers, on the command line.

mod batch;
mod chart;
mod text;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use dp_accounting::case::{
    Answer, Answers, Bound, Case, CheckedCase, OrdersChoice, Parameter, Sampler, WhichAccountant,
};
use dp_accounting::{
    Certainty, Conversion, Delta, DpEvent, Epsilon, Ledger, MarkedEpsilon, Method, NeighbouringRelation, Scope,
    Statement,
};
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
    /// Probability with which a record enters a batch.
    #[arg(long, value_name = "Q")]
    sampling_rate: Option<f64>,
    /// Records in the data set; with --batch-size instead of --sampling-rate.
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// Expected batch size (Poisson) or batch size (fixed).
    #[arg(long, value_name = "B")]
    batch_size: Option<u64>,
    /// Steps taken, or how often the event of --event happened.
    #[arg(long, value_name = "T")]
    steps: Option<u64>,
    /// Passes over the data: ⌈E·N/B⌉ steps.
    #[arg(long, value_name = "E")]
    epochs: Option<f64>,
    /// Noise multiplier of the gradient query; 0 for none.
    #[arg(long, value_name = "SIGMA")]
    noise_multiplier: Option<f64>,
    /// Noise multiplier of a count query on the same batch; repeatable.
    #[arg(long, value_name = "SIGMA")]
    count_noise_multiplier: Vec<f64>,
    /// What was done instead, as JSON: an event of dp-accounting, or a list of them.
    #[arg(long, value_name = "FILE")]
    event: Option<PathBuf>,
    /// Records that come and go together, as those of one user do; 1 unless given.
    #[arg(long, value_name = "K")]
    user_records: Option<u32>,
    /// Which data sets are neighbours: replace-one for batches of fixed size, else add-remove,
    /// unless given.
    #[arg(long, value_enum)]
    relation: Option<RelationArg>,
    /// Probability with which the bound may fail, in [0, 1]; 0.00001 unless given or asked for.
    #[arg(long, value_name = "DELTA")]
    delta: Option<f64>,
    /// Ask for δ at this ε, which may be negative.
    #[arg(long, value_name = "EPSILON", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// Find the one that is left out: the smallest noise multiplier, the largest rate (or batch) or
    /// number of steps that keeps this ε.
    #[arg(long, value_name = "EPSILON")]
    target_epsilon: Option<f64>,
    /// How batches are drawn; Poisson unless given.
    #[arg(long, value_enum)]
    sampler: Option<SamplerArg>,
    /// Which accountants answer; all unless given.
    #[arg(long, value_enum)]
    accountant: Option<WhichArg>,
    /// Rényi orders: adaptive, moments-accountant, opacus, dp-accounting, tensorflow-privacy, or a
    /// list with commas.
    #[arg(long, value_name = "ORDERS")]
    orders: Option<String>,
    /// How a Rényi divergence becomes an ε; improved unless given.
    #[arg(long, value_enum)]
    conversion: Option<ConversionArg>,
    /// Relative width of the PLD bracket; 0.001 unless given.
    #[arg(long, value_name = "WIDTH")]
    relative_width: Option<f64>,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
    /// Print the statement for an auditor as well.
    #[arg(long)]
    statement: bool,
    /// Many cases: one JSON object per line, with the fields of the options above under their names
    /// (`sampling_rate`); `-` reads standard input. Options are taken where a line leaves them out.
    /// Exit code 0 when every line was answered.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plot", "statement", "json"])]
    jsonl: Option<PathBuf>,
    /// Draw ε over steps, as .svg or .png.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// How batches are drawn.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SamplerArg {
    /// Every record independently.
    Poisson,
    /// A random subset of fixed size.
    FixedSize,
}

/// Which accountants answer.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum WhichArg {
    /// Rényi, improved and classic conversion.
    Rdp,
    /// Privacy loss distributions: a bracket.
    Pld,
    /// The central-limit estimate; not a guarantee.
    Gdp,
    /// All of them.
    All,
}

/// Which data sets are neighbours.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RelationArg {
    /// One has a record more.
    AddRemove,
    /// The first has a record more: one direction of add-remove alone.
    Remove,
    /// The second has a record more: the other direction alone.
    Add,
    /// One record differs; their number is public.
    ReplaceOne,
    /// One record contributes nothing in one of them; their number is public.
    ZeroOut,
}

/// How a Rényi divergence becomes an ε.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ConversionArg {
    /// The moments accountant's.
    Classic,
    /// Never worse.
    Improved,
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
    let mut case = case(args)?;
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
        text::of(&answers, statement.as_ref())
    };
    out.write_all(printed.as_bytes()).and_then(|()| out.flush()).context("writing to standard output")
}

fn case(args: &AccountArgs) -> anyhow::Result<Case> {
    let counts = &args.count_noise_multiplier;
    Ok(Case {
        id: None,
        sampler: args.sampler.map(|sampler| match sampler {
            SamplerArg::Poisson => Sampler::Poisson,
            SamplerArg::FixedSize => Sampler::FixedSize,
        }),
        sampling_rate: args.sampling_rate,
        records: args.records,
        batch_size: args.batch_size,
        steps: args.steps,
        epochs: args.epochs,
        noise_multiplier: args.noise_multiplier,
        count_noise_multipliers: (!counts.is_empty()).then(|| counts.clone()),
        event: args.event.as_deref().map(event).transpose()?,
        user_records: args.user_records,
        relation: args.relation.map(|relation| match relation {
            RelationArg::AddRemove => NeighbouringRelation::AddRemove,
            RelationArg::Remove => NeighbouringRelation::Remove,
            RelationArg::Add => NeighbouringRelation::Add,
            RelationArg::ReplaceOne => NeighbouringRelation::ReplaceOne,
            RelationArg::ZeroOut => NeighbouringRelation::ZeroOut,
        }),
        delta: args.delta,
        epsilon: args.epsilon,
        target_epsilon: args.target_epsilon,
        accountant: args.accountant.map(|which| match which {
            WhichArg::Rdp => WhichAccountant::Rdp,
            WhichArg::Pld => WhichAccountant::Pld,
            WhichArg::Gdp => WhichAccountant::Gdp,
            WhichArg::All => WhichAccountant::All,
        }),
        orders: args.orders.as_deref().map(OrdersChoice::parse).transpose()?,
        conversion: args.conversion.map(|conversion| match conversion {
            ConversionArg::Classic => Conversion::Classic,
            ConversionArg::Improved => Conversion::Improved,
        }),
        relative_width: args.relative_width,
    })
}

/// No file of events is larger, in bytes.
const MAX_EVENT: u64 = 16 << 20;

/// An event, or a list of them, from a file.
fn event(path: &Path) -> anyhow::Result<DpEvent> {
    let reading = || format!("reading {}", path.display());
    let file = std::fs::File::open(path).with_context(reading)?;
    let mut text = String::new();
    // A device has no end.
    file.take(MAX_EVENT + 1).read_to_string(&mut text).with_context(reading)?;
    ensure!(
        text.len() as u64 <= MAX_EVENT,
        "{}: more than {MAX_EVENT} bytes, and no event has as many",
        path.display()
    );
    let list = text.trim_start().starts_with('[');
    let event = if list { serde_json::from_str(&text).map(DpEvent::Composed) } else { serde_json::from_str(&text) };
    event.with_context(|| format!("{} is no event", path.display()))
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
        Ok(text::of(&case(&args)?.check()?.answer()?, None))
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
        assert!(printed(&opacus.replace("opacus", "0.5")).unwrap_err().to_string().contains("order is 0.5"));
    }
}
