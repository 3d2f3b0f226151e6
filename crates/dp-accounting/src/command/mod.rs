//! The command line of accounting questions: options that describe a [`Case`], and
//! answers in words.
//!
//! Programs flatten [`CaseOptions`] into their own options and print [`text`]. They read no other
//! vocabulary of a command line from this crate.

mod text;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

pub use self::text::{text, with_options};
use crate::case::{Case, OrdersChoice, Sampler, WhichAccountant};
use crate::{AccountingError, Conversion, DpEvent, NeighbouringRelation};

/// Options that describe a case.
#[derive(Debug, Args)]
pub struct CaseOptions {
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
    /// What was done instead, as JSON: an event of dp-accounting, or a list of them; - for
    /// standard input.
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

impl CaseOptions {
    /// The case that the options describe.
    ///
    /// # Errors
    /// [`AccountingError::NotACase`] for a file without an event; [`AccountingError::InvalidParameter`] for
    /// unknown orders.
    pub fn case(&self) -> Result<Case, AccountingError> {
        let counts = &self.count_noise_multiplier;
        Ok(Case {
            id: None,
            sampler: self.sampler.map(|sampler| match sampler {
                SamplerArg::Poisson => Sampler::Poisson,
                SamplerArg::FixedSize => Sampler::FixedSize,
            }),
            sampling_rate: self.sampling_rate,
            records: self.records,
            batch_size: self.batch_size,
            steps: self.steps,
            epochs: self.epochs,
            noise_multiplier: self.noise_multiplier,
            count_noise_multipliers: (!counts.is_empty()).then(|| counts.clone()),
            event: self.event.as_deref().map(event).transpose()?,
            user_records: self.user_records,
            relation: self.relation.map(|relation| match relation {
                RelationArg::AddRemove => NeighbouringRelation::AddRemove,
                RelationArg::Remove => NeighbouringRelation::Remove,
                RelationArg::Add => NeighbouringRelation::Add,
                RelationArg::ReplaceOne => NeighbouringRelation::ReplaceOne,
                RelationArg::ZeroOut => NeighbouringRelation::ZeroOut,
            }),
            delta: self.delta,
            epsilon: self.epsilon,
            target_epsilon: self.target_epsilon,
            accountant: self.accountant.map(|which| match which {
                WhichArg::Rdp => WhichAccountant::Rdp,
                WhichArg::Pld => WhichAccountant::Pld,
                WhichArg::Gdp => WhichAccountant::Gdp,
                WhichArg::All => WhichAccountant::All,
            }),
            orders: self.orders.as_deref().map(OrdersChoice::parse).transpose()?,
            conversion: self.conversion.map(|conversion| match conversion {
                ConversionArg::Classic => Conversion::Classic,
                ConversionArg::Improved => Conversion::Improved,
            }),
            relative_width: self.relative_width,
        })
    }
}

/// No file of events is larger, in bytes.
const MAX_EVENT: u64 = 16 << 20;

/// An event, or a list of events, from a file or from standard input.
fn event(path: &Path) -> Result<DpEvent, AccountingError> {
    let refuse = |reason: String| AccountingError::NotACase { message: format!("{}: {reason}", path.display()) };
    let mut text = String::new();
    // A device has no end.
    let open = || -> io::Result<Box<dyn Read>> {
        Ok(if path == Path::new("-") { Box::new(io::stdin().lock()) } else { Box::new(File::open(path)?) })
    };
    let read = open().and_then(|file| file.take(MAX_EVENT + 1).read_to_string(&mut text));
    read.map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MAX_EVENT {
        return Err(refuse(format!("more than {MAX_EVENT} bytes, and no event has as many")));
    }
    let list = text.trim_start().starts_with('[');
    let event = if list { serde_json::from_str(&text).map(DpEvent::Composed) } else { serde_json::from_str(&text) };
    event.map_err(|error| refuse(format!("no event: {error}")))
}
