//! `fairdp ledger`: what was spent, what is left, and how to divide it.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use dp_accounting::{Rounding, decimal};
use fairdp::{LedgerView, printable};

use super::{Failure, answer};

/// Digits of an ε that was spent.
const DIGITS: usize = 4;

#[derive(Subcommand)]
pub(super) enum LedgerCommand {
    /// Every fit with its ε, what was spent and what is left.
    Show {
        /// The ledger.
        ledger: PathBuf,
        /// A file that remembers the ledger (`fit --witness`): one that was shortened or replaced is
        /// refused.
        #[arg(long)]
        witness: Option<PathBuf>,
        /// Another δ to say what was spent at; repeatable.
        #[arg(long)]
        delta: Vec<f64>,
        /// Machine-readable output.
        #[arg(long)]
        json: bool,
    },
    /// ε of each of several fits that are to come, all alike, so that all together keep the cap.
    Plan {
        #[command(flatten)]
        place: RestArgs,
        /// How many fits.
        #[arg(long)]
        fits: usize,
    },
    /// The same for fits that are not alike: by their shares of what is left.
    Split {
        #[command(flatten)]
        place: RestArgs,
        /// A share for each fit, separated by commas, such as 3,1,1: of the budget by which noise
        /// composes, so that four times the share is half the noise.
        #[arg(long, value_delimiter = ',', required = true)]
        shares: Vec<f64>,
    },
}

/// The ledger whose rest is divided.
#[derive(Args)]
pub(super) struct RestArgs {
    /// The ledger; with --cap and --delta one that is not there yet.
    ledger: PathBuf,
    /// The scope of the fits; without one they may be about anybody.
    #[arg(long)]
    scope: Option<String>,
    /// The cap of a ledger that is not there yet.
    #[arg(long, requires = "delta")]
    cap: Option<f64>,
    /// The δ of a ledger that is not there yet.
    #[arg(long, requires = "cap")]
    delta: Option<f64>,
    /// A file that remembers the ledger.
    #[arg(long)]
    witness: Option<PathBuf>,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

impl LedgerCommand {
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Show { json, .. } => *json,
            Self::Plan { place, .. } | Self::Split { place, .. } => place.json,
        }
    }

    pub(super) fn answer(self, out: &mut impl Write) -> Result<(), Failure> {
        match self {
            Self::Show { ledger, witness, delta, json } => {
                let view = LedgerView::read(&ledger, witness.as_deref())?;
                show(out, &view, &delta, json)
            }
            Self::Plan { place, fits } => {
                let view = place.view()?;
                let each = view.shared(place.scope.as_deref(), &vec![1.0; fits.min(MOST_FITS + 1)])?;
                plan(out, &view, place.json, fits, each.as_deref())
            }
            Self::Split { place, shares } => {
                let view = place.view()?;
                let each = view.shared(place.scope.as_deref(), &shares)?;
                split(out, &view, place.json, &shares, each.as_deref())
            }
        }
    }
}

/// More fits are refused by the library; a list of as many as one may ask for is not made.
const MOST_FITS: usize = 10_000;

impl RestArgs {
    fn view(&self) -> Result<LedgerView, Failure> {
        match (self.cap, self.delta) {
            (Some(cap), Some(delta)) if !self.ledger.exists() => Ok(LedgerView::planned(&self.ledger, cap, delta)?),
            (Some(cap), Some(delta)) => {
                let view = LedgerView::read(&self.ledger, self.witness.as_deref())?;
                if (view.cap(), view.delta()) != (cap, delta) {
                    let (ledger, kept, at) = (self.ledger.display(), view.cap(), view.delta());
                    return Err(Failure::Usage(format!(
                        "{ledger} has a cap of {kept} at δ = {at:e}: leave out --cap and --delta"
                    )));
                }
                Ok(view)
            }
            _ => Ok(LedgerView::read(&self.ledger, self.witness.as_deref())?),
        }
    }
}

fn up(epsilon: f64) -> String {
    decimal(epsilon, DIGITS, Rounding::Up)
}

/// What fits that are to come cannot be promised here, and are not.
const EXACT: &str = "`fairdp fit --plan --ledger` says what a configuration costs in it";

fn show(out: &mut impl Write, view: &LedgerView, deltas: &[f64], json: bool) -> Result<(), Failure> {
    let (fits, spent) = (view.fits()?, view.spent(view.delta())?);
    let left = |scope: Option<&str>| Ok::<_, fairdp::FairdpError>(view.shared(scope, &[1.0])?.map(|each| each[0]));
    let by_scope = view.scopes().into_iter().map(|scope| Ok((scope, view.spent_in(scope)?, left(Some(scope))?)));
    let by_scope = by_scope.collect::<Result<Vec<_>, fairdp::FairdpError>>()?;
    // No scope has an empty name.
    let (left, left_anew) = (left(None)?, left(Some(""))?);
    let at = deltas.iter().map(|&delta| Ok((delta, view.spent(delta)?)));
    let at = at.collect::<Result<Vec<_>, fairdp::FairdpError>>()?;
    if json {
        let answer = serde_json::json!({
            "ledger": view.path(), "cap": view.cap(), "delta": view.delta(), "unit": view.unit(), "fits": fits,
            "spent": spent, "left": left, "left_in_a_new_scope": left_anew,
            "scopes": by_scope
                .iter()
                .map(|(scope, spent, left)| serde_json::json!({ "scope": scope, "spent": spent, "left": left }))
                .collect::<Vec<_>>(),
            "at_other_deltas": at.iter().map(|(delta, spent)| serde_json::json!({ "delta": delta, "spent": spent })).collect::<Vec<_>>(),
            "last_seal": view.seal(),
        });
        return Ok(answer::line(out, answer)?);
    }
    let unit = view.unit().map_or("rows".to_owned(), |column| format!("the values of `{}`", printable(column)));
    writeln!(out, "{} fits, protecting {unit}, at delta {:e}", fits.len(), view.delta())?;
    if !fits.is_empty() {
        writeln!(out, "{:<12} {:<16} {:>9} {:>9}", "fit", "scope", "epsilon", "so far")?;
    }
    for fit in &fits {
        let scope = fit.scope.as_deref().map_or("-".into(), printable);
        let name: String = fit.name.chars().take(12).collect();
        writeln!(out, "{name:<12} {scope:<16} {:>9} {:>9}", up(fit.epsilon), up(fit.so_far))?;
    }
    for (scope, spent, left) in &by_scope {
        let left = left.map_or("nothing".into(), |left| format!("epsilon {left}"));
        writeln!(out, "scope {}: spent epsilon {}, left {left}", printable(scope), up(*spent))?;
    }
    if let Some(left) = left_anew.filter(|_| !by_scope.is_empty()) {
        writeln!(out, "a new scope: left epsilon {left}")?;
    }
    if !by_scope.is_empty() {
        writeln!(out, "Scopes compose in parallel. That nobody is in two of them is the word of who declared them.")?;
    }
    writeln!(out, "spent: epsilon {} of {}", up(spent), view.cap())?;
    for (delta, spent) in at {
        writeln!(out, "       epsilon {} at delta {delta:e}", up(spent))?;
    }
    match left {
        Some(left) if by_scope.is_empty() => {
            writeln!(out, "left:  one fit of epsilon {left}, of Gaussian noise on all records; {EXACT}")?;
        }
        Some(left) => writeln!(out, "left:  one fit of epsilon {left} without a scope; {EXACT}")?,
        None => writeln!(out, "left:  nothing")?,
    }
    Ok(writeln!(out, "seal:  {}", view.seal())?)
}

fn nothing(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "nothing is left")
}

fn plan(out: &mut impl Write, view: &LedgerView, json: bool, n: usize, each: Option<&[f64]>) -> Result<(), Failure> {
    let each = each.and_then(<[f64]>::first);
    if json {
        let answer = serde_json::json!({ "fits": n, "epsilon": each, "cap": view.cap(), "delta": view.delta() });
        return Ok(answer::line(out, answer)?);
    }
    let Some(each) = each else { return Ok(nothing(out)?) };
    writeln!(out, "{n} fits of epsilon {each} keep the cap of {} at delta {:e}", view.cap(), view.delta())?;
    Ok(writeln!(out, "by composition of Gaussian noise on all records; {EXACT}")?)
}

fn split(
    out: &mut impl Write,
    view: &LedgerView,
    json: bool,
    shares: &[f64],
    each: Option<&[f64]>,
) -> Result<(), Failure> {
    if json {
        let answer =
            serde_json::json!({ "shares": shares, "epsilons": each, "cap": view.cap(), "delta": view.delta() });
        return Ok(answer::line(out, answer)?);
    }
    let Some(each) = each else { return Ok(nothing(out)?) };
    for (share, epsilon) in shares.iter().zip(each) {
        writeln!(out, "a share of {share}: epsilon {epsilon}")?;
    }
    writeln!(out, "together they keep the cap of {} at delta {:e}", view.cap(), view.delta())?;
    Ok(writeln!(out, "by composition of Gaussian noise on all records; {EXACT}")?)
}
