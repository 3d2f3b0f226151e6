//! Configurations: a TOML document that declares a table and a model, checked key by key.

mod epsilon;
mod fairness;
mod method;
mod mistakes;
pub(crate) mod read;
mod schema;
mod table_names;
mod tuning;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dp_linear::Objective;
pub use dp_table::declaration::{ColumnEntry, ColumnKind, GroupEntry, LabelEntry, Mistake, TableEntry};
use dp_table::declaration::{EntryError, Names, Origin};
use schemars::JsonSchema;
use serde::Deserialize;

pub use self::epsilon::EpsilonChoice;
pub(crate) use self::epsilon::with_epsilon;
pub use self::fairness::FairnessEntry;
pub use self::method::{MethodChoice, SamplingEntry};
pub use self::schema::config_schema;
pub use self::tuning::{CandidateEntry, TuningEntry, TuningGoal};
use crate::fit::Start;

/// The version of configurations that this program reads.
pub(crate) const CONFIG_VERSION: u32 = 1;

/// A configuration.
///
/// Relative paths are relative to the file that it is read from; of a configuration from standard input
/// or a pipe, to the current folder.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// The version of the format: 1.
    #[schemars(range(min = CONFIG_VERSION, max = CONFIG_VERSION))]
    pub version: u32,
    /// Trains although constants were read from the records: the statement is then conditional, and
    /// names them first.
    #[serde(default)]
    pub accept_uncovered: bool,
    /// Whether columns of groups may be among the inputs.
    #[serde(default)]
    pub group_as_input: bool,
    /// Whether, and how, the model is made to treat groups alike.
    #[serde(default)]
    pub fairness: FairnessEntry,
    /// The files.
    pub table: TableEntry,
    /// A table in memory, used instead of the files.
    #[serde(skip)]
    pub(crate) in_memory: Option<dp_table::TableFiles>,
    /// Who is told how far tables have been read.
    #[serde(skip)]
    pub(crate) reading: Reading,
    /// The released model that a fit starts from.
    #[serde(skip)]
    pub(crate) start: Option<Arc<Start>>,
    /// The column to predict.
    pub label: LabelEntry,
    /// The privacy budget.
    pub privacy: PrivacyEntry,
    /// Whose records these are.
    pub records: Option<RecordsEntry>,
    /// Records that the model is tested on.
    #[serde(default)]
    pub test: TestEntry,
    /// The unit of privacy, if a person may have several records.
    pub unit: Option<UnitEntry>,
    /// How much a record counts in training.
    pub weight: Option<WeightEntry>,
    /// The model.
    #[serde(default)]
    pub model: ModelEntry,
    /// How it is trained.
    #[serde(default)]
    pub method: MethodChoice,
    /// Models and methods between which the records choose, within the budget.
    pub tuning: Option<TuningEntry>,
    /// What the card says of the model.
    pub card: Option<CardEntry>,
    /// Columns whose values are groups; several make their intersections.
    #[serde(default)]
    pub group: Vec<GroupEntry>,
    /// Every other column.
    #[serde(default)]
    pub column: Vec<ColumnEntry>,
}

/// Who is told how far tables have been read: no part of what a configuration says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading(pub(crate) Option<Arc<dp_table::ReadProgress>>);

impl PartialEq for Reading {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A configuration with the text that it was read from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfigText<'a> {
    pub(crate) text: &'a str,
    pub(crate) config: &'a Config,
    /// For messages.
    pub(crate) path: &'a Path,
}

/// The least δ for which every figure of a statement is computed.
pub(crate) const LEAST_DELTA: f64 = 1e-12;

/// `[privacy]`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PrivacyEntry {
    /// ε of everything that is released.
    pub epsilon: f64,
    /// δ, below one over the number of records.
    pub delta: f64,
    /// ε of all fits that share a ledger file; that of the first fit unless given.
    pub total_epsilon: Option<f64>,
}

impl PrivacyEntry {
    fn check(&self) -> Vec<EntryError> {
        let Self { epsilon, delta, total_epsilon } = *self;
        let is_epsilon = |epsilon: f64| epsilon.is_finite() && epsilon > 0.0;
        let mut found = Vec::new();
        if !is_epsilon(epsilon) {
            found.push(EntryError::value("privacy.epsilon", epsilon, "a finite number above 0"));
        }
        if !(LEAST_DELTA..1.0).contains(&delta) {
            let expected = format!("a number from {LEAST_DELTA:e} to below 1");
            found.push(EntryError::value("privacy.delta", delta, expected));
        }
        if let Some(total) = total_epsilon {
            if !is_epsilon(total) {
                found.push(EntryError::value("privacy.total_epsilon", total, "a finite number above 0"));
            } else if total < epsilon {
                let expected = format!("at least epsilon, {epsilon}");
                found.push(EntryError::value("privacy.total_epsilon", total, expected));
            }
        }
        found
    }
}

/// `[records]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RecordsEntry {
    /// The people that the records are of, by a name such as `2026-10`: a declaration that nobody is
    /// in two scopes of a ledger. Fits of different scopes then compose in parallel.
    pub scope: String,
}

/// `[test]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TestEntry {
    /// Share of the records that is kept for the test, in [0, 0.9].
    pub fraction: Option<f64>,
    /// Files of their own instead.
    pub files: Option<Vec<String>>,
    /// Their columns of vectors and images in files of their own.
    #[serde(default)]
    pub vectors: BTreeMap<String, Vec<String>>,
}

/// `[weight]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WeightEntry {
    /// The column that says how much a record counts in training.
    pub column: String,
    /// The largest weight; larger ones are set to it.
    pub high: f64,
    /// The origin of the largest weight.
    pub from: Option<Origin>,
    /// Whether somebody checked that it is known without the records.
    #[serde(default)]
    pub public: bool,
}

/// `[unit]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct UnitEntry {
    /// The column that says whose record it is.
    pub column: String,
    /// What the records of a unit are.
    #[serde(default)]
    pub rows: UnitRows,
    /// Of the first rows: how many are used, at most; others are left out.
    pub max_records: Option<u64>,
    /// Of the mean: its class, the last row's unless given.
    pub target: Option<UnitTarget>,
}

impl UnitEntry {
    /// Rows that are used, at most, where they are the first ones.
    pub(crate) fn most(&self) -> u64 {
        self.max_records.unwrap_or(1)
    }

    /// The class of a mean.
    pub(crate) fn target(&self) -> UnitTarget {
        self.target.unwrap_or_default()
    }
}

/// What the records of a unit are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum UnitRows {
    /// Its first rows, each a record. All noise grows with their number.
    #[default]
    First,
    /// The mean of all its rows, which are one record. The noise is that of one record.
    Mean,
}

/// The class or the number of a record that is the mean of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum UnitTarget {
    /// That of the last row.
    #[default]
    Last,
    /// The last of its rows' classes in the order in which they are declared: of two, the positive one
    /// if any row has it. Of numbers the largest.
    Maximum,
    /// The mean of its rows' numbers.
    Mean,
    /// Each: the rows of a class are a record, and the records of a unit share its weight.
    EachClass,
}

/// `[card]`: what the card says of the model, as it is written here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CardEntry {
    /// Its name.
    pub name: Option<String>,
    /// When it was made.
    pub date: Option<String>,
    /// Who answers for it.
    pub owner: Option<String>,
    /// What it is for.
    pub purpose: Option<String>,
    /// What it is not for.
    pub limits: Option<String>,
    /// The encoder of texts or images that made the vectors, which was fixed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    /// sha256 of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder_sha256: Option<String>,
}

/// `[model]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelEntry {
    /// Which.
    #[serde(default)]
    pub kind: ModelKind,
    /// Widths of the hidden layers of `mlp`; one of 32 unless given.
    pub hidden: Option<Vec<usize>>,
    /// Which network on pixels, with `kind = "network"`; `zhao-cnn` unless given.
    pub network: Option<NetworkName>,
    /// How classes become decisions; `compromise` unless given, or what the method says of itself.
    pub decision: Option<Decision>,
    /// Whose loss is made small: `population`, or `equal-classes`, whose records count less the more
    /// common their class is.
    #[serde(default)]
    #[schemars(with = "Names<Objective>")]
    pub objective: Objective,
}

/// Models by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ModelKind {
    /// The recommended one: `additive`, for every table, so that the choice tells nothing of the
    /// records.
    #[default]
    Auto,
    /// A sum of one curve per number and one value per category: logistic or softmax regression on
    /// the encoded columns.
    Additive,
    /// A network on the encoded columns, tanh after every hidden layer: it can find what columns do
    /// together.
    Mlp,
    /// A convolutional network on the pixels of an image, the only input.
    Network,
}

/// Networks on pixels by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NetworkName {
    /// Zhao 2025: two convolutions of 64 filters with ReLU, each with a max pool, and two hidden layers of
    /// 500; 805,578 weights for 28 × 28 pixels and ten classes.
    #[default]
    ZhaoCnn,
    /// Esipova 2023: convolutions of 32 and 16 filters with tanh, and one linear layer; 97,114 weights
    /// for 28 × 28 pixels and ten classes.
    EsipovaCnn,
}

/// The rule by which probabilities become a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Decision {
    /// Between the two others: the class whose probability over the root of its share is largest. A
    /// class that is rare is answered, and little accuracy is given up for it.
    #[default]
    Compromise,
    /// The most probable class: the best accuracy. Rare classes may never be answered.
    Accuracy,
    /// The class whose probability exceeds its share most: the best mean of the classes' recalls.
    Balanced,
}
