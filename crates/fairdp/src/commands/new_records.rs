//! `fairdp evaluate` and `fairdp drift`: a release and new records.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use dp_accounting::{Rounding, decimal};
use fairdp::{
    Comparison, Drift, DriftOptions, EpsilonChoice, Evaluated, Exit, FigureChange, PaymentOptions, printable,
};

use super::stream::Inputs;
use super::{Failure, SaidArgs, Shown, answer, summary};

/// Changes that are printed beside the alarms.
const MOST_LINES: usize = 12;

/// A released model and a table.
#[derive(Args)]
pub(super) struct TableArgs {
    /// The folder of a run, or its release.
    folder: PathBuf,
    /// The table: files or patterns; - for standard input.
    #[arg(required = true)]
    table: Vec<String>,
    #[command(flatten)]
    text: super::new_table::NewTableArgs,
    /// Machine-readable output.
    #[arg(long)]
    pub(super) json: bool,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
}

/// The ε of the new records.
#[derive(Args)]
pub(super) struct PaymentArgs {
    /// δ; that of the release unless given.
    #[arg(long)]
    delta: Option<f64>,
    /// A file that releases about these people share: together they stay below its cap.
    #[arg(long)]
    ledger: Option<PathBuf>,
    /// A file that remembers the ledger.
    #[arg(long, requires = "ledger")]
    witness: Option<PathBuf>,
    /// The cap of a ledger that is not there yet, or a smaller one; its ε unless given.
    #[arg(long, requires = "ledger")]
    total_epsilon: Option<f64>,
    /// The people of the records: declares that nobody is in two scopes of the ledger.
    #[arg(long, requires = "ledger")]
    scope: Option<String>,
    /// Makes the figures repeatable, and thereby not private.
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Args)]
pub(super) struct EvaluateArgs {
    #[command(flatten)]
    pub(super) table: TableArgs,
    /// ε of the new records: a number, or `rest` for what the ledger has left.
    #[arg(long)]
    epsilon: EpsilonChoice,
    /// The folder to make.
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    payment: PaymentArgs,
}

#[derive(Args)]
pub(super) struct DriftArgs {
    #[command(flatten)]
    pub(super) table: TableArgs,
    /// The largest share of values of a column that may be unseen, beyond bounds or missing.
    #[arg(long, default_value_t = 0.01)]
    tolerance: f64,
    /// ε of the new records, if their people are to be protected: a number, or `rest` for what the ledger
    /// has left.
    #[arg(long, requires = "out")]
    epsilon: Option<EpsilonChoice>,
    /// The folder to make.
    #[arg(long, requires = "epsilon")]
    out: Option<PathBuf>,
    #[command(flatten)]
    payment: PaymentArgs,
}

impl PaymentArgs {
    fn options(self, out: PathBuf, epsilon: EpsilonChoice) -> PaymentOptions {
        let Self { delta, ledger, witness, total_epsilon, scope, seed } = self;
        PaymentOptions { out, epsilon, delta, seed, ledger, witness, total_epsilon, scope }
    }
}

impl EvaluateArgs {
    pub(super) fn answer(self, said: &SaidArgs, out: &mut impl Write) -> Result<Exit, Failure> {
        let TableArgs { folder, table, text, json, quiet } = self.table;
        let shown = Shown::reading_of(said.of(quiet), &table);
        let inputs = Inputs::new(table)?;
        let options = text.options(shown.reading());
        let payment = self.payment.options(self.out, self.epsilon);
        let evaluated = inputs.named(fairdp::evaluate(&folder, &inputs.tables, &options, &payment));
        let evaluated = shown.ended(evaluated)?;
        drop(shown);
        let Evaluated { statement, fairness, comparison, .. } = &evaluated;
        let exit = if comparison.alarms().next().is_some() { Exit::Alarm } else { Exit::Done };
        if json {
            let found = serde_json::json!({
                "alarm": exit == Exit::Alarm, "statement": statement, "fairness": fairness, "comparison": comparison,
            });
            answer::document(out, &found)?;
            return Ok(exit);
        }
        let epsilon = decimal(statement.epsilon, 3, Rounding::Up);
        if !statement.private {
            writeln!(out, "NOT PRIVATE: run with a seed")?;
        }
        writeln!(
            out,
            "({epsilon}, {:e})-differentially private for the new records, {}",
            statement.delta, statement.mark
        )?;
        summary::rates(out, fairness)?;
        changes(out, comparison)?;
        writeln!(out, "release: {} (may be published)", payment.out.join("release").display())?;
        Ok(exit)
    }
}

/// Alarms first, then other changes.
fn changes(out: &mut impl Write, comparison: &Comparison) -> io::Result<()> {
    let is_alarm = |change: &&FigureChange| change.change.is_told_from_noise;
    let (alarms, others): (Vec<_>, Vec<_>) = comparison.changes.iter().partition(is_alarm);
    let n = comparison.changes.len();
    writeln!(out, "{n} figures compared with the release, {} of them changed by more than noise", alarms.len())?;
    for FigureChange { figure, group, before, after, change, .. } in
        alarms.iter().chain(others.iter().take(MOST_LINES.saturating_sub(alarms.len())))
    {
        let told = if change.is_told_from_noise { "CHANGED" } else { "" };
        let group = printable(&group.to_string()).into_owned();
        writeln!(
            out,
            "{figure:<36} {group:<16} {before:>8.3} -> {after:>8.3}  {:+.3} [{:+.3}, {:+.3}] {told}",
            change.value, change.low, change.high
        )?;
    }
    if !comparison.not_compared.is_empty() {
        writeln!(out, "not compared, unknown in one of them: {}", comparison.not_compared.len())?;
    }
    Ok(())
}

impl DriftArgs {
    pub(super) fn answer(self, said: &SaidArgs, out: &mut impl Write) -> Result<Exit, Failure> {
        let TableArgs { folder, table, text, json, quiet } = self.table;
        let shown = Shown::reading_of(said.of(quiet), &table);
        let inputs = Inputs::new(table)?;
        let payment = match (self.epsilon, self.out) {
            (Some(epsilon), Some(place)) => Some(self.payment.options(place, epsilon)),
            _ => None,
        };
        let options = DriftOptions { table: text.options(shown.reading()), tolerance: self.tolerance, payment };
        let drift = shown.ended(inputs.named(fairdp::drift(&folder, &inputs.tables, &options)))?;
        drop(shown);
        let exit = if drift.alarms.is_empty() { Exit::Done } else { Exit::Alarm };
        if json {
            answer::document(out, &drift)?;
            return Ok(exit);
        }
        lines(out, &drift)?;
        if let Some(payment) = &options.payment {
            writeln!(out, "release: {} (may be published)", payment.out.join("release").display())?;
        }
        Ok(exit)
    }
}

fn lines(out: &mut impl Write, drift: &Drift) -> io::Result<()> {
    writeln!(out, "{}", drift.privacy)?;
    writeln!(out, "{:.0} rows; {} alarms", drift.rows, drift.alarms.len())?;
    for alarm in &drift.alarms {
        writeln!(out, "ALARM {}", printable(alarm))?;
    }
    for note in &drift.notes {
        writeln!(out, "{}", printable(note))?;
    }
    Ok(())
}
