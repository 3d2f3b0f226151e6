//! The keys of a file of `cargo xtask compare`.

use std::collections::BTreeMap;

use dp_clipping::PresetParams;
use dp_data::{ScalingFit, adult, dutch};
use dp_table::declaration::{ColumnEntry, GroupEntry, LabelEntry, TableEntry};
use dp_train::{EarlyStopping, Loss, ModelConfig, OptimiserConfig};
use serde::Deserialize;
use study_report::Judged;

/// A whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "keys of a file, each on its own")]
pub(crate) struct ComparisonFile {
    /// The version of the format: 1.
    pub(crate) version: u32,
    /// Of the report, its folder and its records.
    pub(crate) name: String,
    /// The heading of the report; the name unless given.
    pub(crate) title: Option<String>,
    /// Whether the records are generated, and everything made of them is marked so.
    #[serde(default)]
    pub(crate) synthetic: bool,
    /// Registry names, or `"all"`.
    pub(crate) methods: Methods,
    /// Runs of each method.
    #[serde(default = "five")]
    pub(crate) seeds: u32,
    pub(crate) privacy: PrivacyEntry,
    pub(crate) training: TrainingEntry,
    pub(crate) search: Option<SearchEntry>,
    #[serde(default = "logistic_regression")]
    pub(crate) model: ModelConfig,
    /// Settings of single methods.
    #[serde(default)]
    pub(crate) method: Vec<MethodEntry>,
    pub(crate) table: Option<TableEntry>,
    pub(crate) label: Option<LabelEntry>,
    #[serde(default)]
    pub(crate) group: Vec<GroupEntry>,
    #[serde(default)]
    pub(crate) column: Vec<ColumnEntry>,
    /// Whether columns of groups may be among the inputs.
    #[serde(default)]
    pub(crate) group_as_input: bool,
    /// Whether the groups are the classes.
    #[serde(default)]
    pub(crate) group_by_class: bool,
    /// Whether a column of images is its pixels, and not the features of fixed filters.
    #[serde(default)]
    pub(crate) pixels: bool,
    #[serde(default)]
    pub(crate) test: TestEntry,
    pub(crate) arrays: Option<ArraysEntry>,
    pub(crate) published: Option<PublishedEntry>,
}

/// Which methods.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected \"all\" or a list of registry names")]
pub(crate) enum Methods {
    /// All of them, or one.
    One(String),
    /// These.
    Named(Vec<String>),
}

/// A number, or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of numbers")]
pub(crate) enum Numbers {
    One(f64),
    Several(Vec<f64>),
}

impl Numbers {
    pub(crate) fn as_slice(&self) -> &[f64] {
        match self {
            Self::One(number) => std::slice::from_ref(number),
            Self::Several(numbers) => numbers,
        }
    }
}

/// `[privacy]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrivacyEntry {
    /// At which methods are compared.
    pub(crate) epsilon: Numbers,
    pub(crate) delta: f64,
    #[serde(default)]
    pub(crate) accountant: AccountantName,
}

/// Which accountant finds the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AccountantName {
    /// Tight.
    #[default]
    Pld,
    /// By Rényi divergences, as in the papers.
    Rdp,
}

/// `[training]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrainingEntry {
    pub(crate) epochs: u64,
    pub(crate) batch_size: Batch,
    #[serde(default)]
    pub(crate) batches: Batches,
    /// One, or the points of a grid.
    pub(crate) learning_rate: Numbers,
    /// One, or the points of a grid: `C`, or the first threshold of an adaptive method.
    #[serde(default = "one")]
    pub(crate) clip_norm: Numbers,
    #[serde(default = "softmax")]
    pub(crate) loss: Loss,
    #[serde(default)]
    pub(crate) optimiser: OptimiserConfig,
    #[serde(default)]
    pub(crate) l2: f64,
    pub(crate) early_stopping: Option<EarlyStopping>,
    /// Share of the training records that an early stop looks at.
    pub(crate) validation: Option<f64>,
    /// Of the reference without privacy, where they are other ones.
    pub(crate) reference: Option<ReferenceEntry>,
}

/// `[training.reference]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReferenceEntry {
    pub(crate) epochs: Option<u64>,
    pub(crate) batch_size: Option<Batch>,
    pub(crate) learning_rate: Option<Numbers>,
}

/// Records in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a number of records, or \"full\"")]
pub(crate) enum Batch {
    Records(usize),
    Full(Full),
}

/// All of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Full {
    Full,
}

/// How batches are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Batches {
    /// `q = b/n`, `T = ⌊epochs · n/b⌋`.
    #[default]
    Exact,
    /// `q = 1/⌈n/b⌉`, `T = epochs · ⌈n/b⌉`.
    Loader,
}

/// `[search]`: of the grids' points one is chosen for each method and ε.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchEntry {
    pub(crate) by: By,
    /// Share of the training records that points are compared on.
    #[serde(default = "a_fifth")]
    pub(crate) held_out: f64,
    /// Runs at each point.
    #[serde(default = "once")]
    pub(crate) seeds: u32,
}

/// What a search maximises, and methods are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum By {
    #[default]
    Accuracy,
    MacroAccuracy,
    WorstClass,
    WorstGroup,
}

impl By {
    pub(crate) fn judged(self) -> Judged {
        match self {
            Self::Accuracy => Judged::Accuracy,
            Self::MacroAccuracy => Judged::MacroAccuracy,
            Self::WorstClass => Judged::WorstClass,
            Self::WorstGroup => Judged::WorstGroup,
        }
    }
}

/// `[[method]]`: in place of what `[training]` says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MethodEntry {
    pub(crate) name: String,
    pub(crate) learning_rate: Option<Numbers>,
    pub(crate) clip_norm: Option<Numbers>,
    /// Hyper-parameters; the paper's values unless given.
    pub(crate) settings: Option<PresetParams>,
}

/// `[test]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestEntry {
    /// Share of the records.
    pub(crate) fraction: Option<f64>,
    /// Files of their own instead.
    pub(crate) files: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) vectors: BTreeMap<String, Vec<String>>,
}

/// `[arrays]`: a file that `numpy.savez` wrote.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArraysEntry {
    pub(crate) file: String,
    pub(crate) inputs: String,
    pub(crate) labels: String,
    pub(crate) classes: Vec<String>,
    pub(crate) groups: Option<String>,
    #[serde(default)]
    pub(crate) group_names: Vec<String>,
}

/// `[published]`: a data set of the papers.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum PublishedEntry {
    Adult {
        #[serde(default)]
        encoding: adult::Encoding,
        #[serde(default)]
        sampling: adult::Sampling,
        #[serde(default)]
        scaling: ScalingFit,
        #[serde(default)]
        group_by: adult::GroupBy,
    },
    Dutch {
        #[serde(default)]
        encoding: dutch::Encoding,
        #[serde(default)]
        sampling: dutch::Sampling,
        #[serde(default)]
        group_by: dutch::GroupBy,
    },
    Mnist {
        /// Images of class 8 that are kept.
        eights: Option<usize>,
    },
    FashionMnist {},
    Celeba {},
    Eicu {},
}

fn five() -> u32 {
    5
}

fn once() -> u32 {
    1
}

fn one() -> Numbers {
    Numbers::One(1.0)
}

fn a_fifth() -> f64 {
    0.2
}

fn softmax() -> Loss {
    Loss::SoftmaxCrossEntropy
}

fn logistic_regression() -> ModelConfig {
    ModelConfig::LogisticRegression
}
