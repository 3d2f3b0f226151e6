//! What a study leaves behind: plain records, from which every table, plot and verdict is made.

use dp_accounting::{Certainty, Epsilon, EpsilonBound, Mark, MarkedEpsilon, Rounding, Scope, decimal};
use dp_train::analysis::StepDecomposition;
use serde::{Deserialize, Serialize};

use crate::extended;
use crate::key::Source;

/// Everything one `cargo xtask reproduce STUDY` produced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyResults {
    /// Name on the command line, for example `adult`.
    pub study: String,
    /// The commands that trained the runs, in the order in which they were started.
    pub sessions: Vec<SessionRecord>,
    /// Whether batches and noise are secret. With a seed they are not: whoever knows it can take
    /// the noise off, so that the mechanisms are what their marks say and these runs are not
    /// private.
    #[serde(default)]
    pub private: bool,
    /// The base seed, if one was given. Without it noise and batches came from the operating system
    /// and cannot be replayed.
    pub seed: Option<u64>,
    /// Seed of the partitions and initial parameters, which are public.
    pub split_seed: u64,
    /// Fewer epochs and seeds than the paper: figures are not comparable and are marked QUICK.
    pub quick: bool,
    /// True when any experiment used generated records.
    pub synthetic: bool,
    /// One per setting of a paper.
    pub experiments: Vec<ExperimentResults>,
}

impl StudyResults {
    /// The records of a study. Whether they are private, quick or synthetic follows from where their
    /// randomness came from and from what each run says of itself, whatever a description says by now.
    pub fn new(source: Source, sessions: Vec<SessionRecord>, mut experiments: Vec<ExperimentResults>) -> Self {
        let Source { study, mut quick, seed, split_seed } = source;
        for experiment in &mut experiments {
            let runs = || experiment.methods.iter().flat_map(|method| &method.runs);
            quick |= runs().any(|run| run.is_quick() == Some(true));
            let is_synthetic = runs().any(|run| run.is_synthetic() == Some(true));
            experiment.dataset.synthetic |= is_synthetic;
        }
        let synthetic = experiments.iter().any(|experiment| experiment.dataset.synthetic);
        Self { study, sessions, private: seed.is_none(), seed, split_seed, quick, synthetic, experiments }
    }

    /// Wall-clock time of the training, in seconds, over all sessions.
    pub fn wall_seconds(&self) -> f64 {
        self.sessions.iter().map(|session| session.wall_seconds).sum()
    }
}

/// One command that trained runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Word by word.
    pub command: Vec<String>,
    /// Revision of the code of the program that trained them.
    pub code_revision: String,
    /// Processor, cores and operating system.
    pub host: String,
    /// Threads used to run seeds side by side.
    pub threads: usize,
    /// Runs that it finished.
    pub n_runs: u64,
    /// Wall-clock time until its last finished run, in seconds.
    pub wall_seconds: f64,
}

/// One setting of one paper: a data set, an encoding, a model and the methods compared on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResults {
    /// Stable identifier, for example `esipova-table-4`.
    pub id: String,
    /// For people, for example `Esipova 2023, Table 4: Adult, MLP 2×256`.
    pub title: String,
    /// Where this departs from the paper and why, one sentence each.
    pub departures: Vec<String>,
    /// The data that was used.
    pub dataset: DatasetRecord,
    /// Model name and number of parameters.
    pub model: ModelRecord,
    /// Methods in the order of the paper's table; the non-private reference comes first.
    pub methods: Vec<MethodResults>,
}

/// The data of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetRecord {
    /// For example `adult`.
    pub name: String,
    /// Generated records instead of the published files.
    pub synthetic: bool,
    /// Where it came from, in words.
    pub source: String,
    /// sha256 over the files (or over the generated table), hexadecimal.
    pub digest: String,
    /// Encoding by name, for example `esipova`.
    pub encoding: String,
    /// Number of model inputs.
    pub n_inputs: usize,
    /// The attribute that defines the groups, for example `sex`.
    pub group_attribute: String,
    /// Group names with their sizes. Sizes vary by a few records when groups are balanced by coin;
    /// these are the first seed's.
    pub groups: Vec<GroupSize>,
    /// Class names in label order.
    pub classes: Vec<String>,
    /// Sampling, split and scaling, one sentence each.
    pub notes: Vec<String>,
    /// Every seed has the same partition; else each its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_partition: bool,
}

/// Size of one group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSize {
    /// For example `male`.
    pub name: String,
    /// Training records.
    pub n_train: usize,
    /// Test records.
    pub n_test: usize,
}

/// A model by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// For example `mlp-2x256-tanh`.
    pub name: String,
    /// Trainable parameters.
    pub n_params: usize,
}

/// All seeds of one method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodResults {
    /// Its name in tables: `base`, followed by its coordinates.
    pub method: String,
    /// Registry name (`dpsgd-f`), or `non-private`.
    pub base: String,
    /// Where it lies in what the experiment varies, for example ε or a learning rate.
    #[serde(default)]
    pub coordinates: Vec<Coordinate>,
    /// Full training configuration as it was run.
    pub config: serde_json::Value,
    /// `None` for the non-private reference.
    pub privacy: Option<PrivacyRecord>,
    /// One per seed that has a model.
    pub runs: Vec<RunRecord>,
    /// One per seed that has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureRecord>,
}

/// A run that left no model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRecord {
    /// Index of the seed, 0-based.
    pub index: usize,
    /// What happened.
    pub reason: String,
}

/// One quantity that an experiment varies, and its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Coordinate {
    /// For example `ε`, `learning rate` or `bound`.
    pub name: String,
    /// Its value.
    pub value: f64,
}

/// What a method costs in privacy; the same for each of its seeds, since nothing in it depends on
/// the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredPrivacy")]
pub struct PrivacyRecord {
    /// False for a method without a proof (its ε is nominal).
    pub certified: bool,
    /// What ε covers, what it does not, and what it is conditional on; nothing without a proof, for
    /// a search, and in records from before it was kept.
    #[serde(default)]
    pub scope: Option<Scope>,
    /// δ.
    pub delta: f64,
    /// Sampling rate of the Poisson batches; `None` for a search, whose trials differ.
    pub sampling_rate: Option<f64>,
    /// Noise multiplier of the gradient query; `None` for a search.
    pub noise_multiplier: Option<f64>,
    /// Noise multipliers of the count queries of one step.
    pub count_noise_multipliers: Vec<f64>,
    /// Steps taken; `None` for a search.
    pub steps: Option<u64>,
    /// The search whose ε this is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchPrivacyRecord>,
    /// Our ε for everything that one run releases (gradient and counts), by accountant and
    /// conversion.
    pub epsilons: Vec<EpsilonRecord>,
    /// ε as the paper computes it (its accountant, its conversion, its q and T), to set beside the
    /// published figure.
    pub as_published: Option<RecomputedEpsilon>,
    /// The ε printed in the paper.
    pub published: Option<f64>,
    /// The ledger of one run: events with their counts.
    pub ledger: serde_json::Value,
}

impl PrivacyRecord {
    /// The least of our ε for one run, which all hold.
    pub fn least_epsilon(&self) -> f64 {
        self.epsilons.iter().map(|record| record.epsilon.epsilon().get()).fold(f64::INFINITY, f64::min)
    }
}

/// A privacy record as it is in a file, also one from before ε were marked.
#[derive(Deserialize)]
struct StoredPrivacy {
    certified: bool,
    #[serde(default)]
    scope: Option<Scope>,
    delta: f64,
    sampling_rate: Option<f64>,
    noise_multiplier: Option<f64>,
    count_noise_multipliers: Vec<f64>,
    steps: Option<u64>,
    #[serde(default)]
    search: Option<SearchPrivacyRecord>,
    epsilons: Vec<StoredEpsilon>,
    as_published: Option<RecomputedEpsilon>,
    published: Option<f64>,
    ledger: serde_json::Value,
}

/// What an ε from before version 2 of the records is conditional on: they do not say where the
/// constants of the inputs came from.
const NOT_RECORDED: &str = "the scaling and the choice of the records, whose source was not recorded";

impl From<StoredPrivacy> for PrivacyRecord {
    fn from(stored: StoredPrivacy) -> Self {
        let mut scope = stored.scope;
        if stored.epsilons.iter().any(|epsilon| epsilon.mark.is_none()) {
            let scope = scope.get_or_insert_with(|| Scope::of("one record of the training data", [RELEASED]));
            scope.conditions.push(NOT_RECORDED.to_owned());
        }
        let marked = |epsilon: StoredEpsilon| EpsilonRecord {
            epsilon: epsilon.marked(stored.certified, scope.as_ref()),
            accountant: epsilon.accountant,
        };
        Self {
            certified: stored.certified,
            epsilons: stored.epsilons.into_iter().map(marked).collect(),
            scope,
            delta: stored.delta,
            sampling_rate: stored.sampling_rate,
            noise_multiplier: stored.noise_multiplier,
            count_noise_multipliers: stored.count_noise_multipliers,
            steps: stored.steps,
            search: stored.search,
            as_published: stored.as_published,
            published: stored.published,
            ledger: stored.ledger,
        }
    }
}

/// What one run releases, where nothing else is recorded.
pub const RELEASED: &str = "what one run releases";
/// Why an ε of a method without a proof is no guarantee.
pub const NO_PROOF: &str = "how the records of a batch act on each other";

/// The ε of a record with its mark: nominal without a proof, else what the scope makes of it.
pub fn mark_epsilon(epsilon: f64, certified: bool, scope: Option<&Scope>) -> MarkedEpsilon {
    let epsilon = Epsilon::new(epsilon).unwrap_or(Epsilon::INFINITE);
    if !certified {
        return MarkedEpsilon::nominal(epsilon, [NO_PROOF]);
    }
    let bound = EpsilonBound::new(epsilon, Certainty::Bound);
    let none = Scope::of("one record of the training data", [RELEASED]);
    MarkedEpsilon::new(&bound, scope.unwrap_or(&none))
}

/// A hyper-parameter search that ε covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchPrivacyRecord {
    /// ε that each trial was calibrated to.
    pub epsilon_of_a_trial: f64,
    /// Expected number of trials.
    pub mean_trials: f64,
    /// Points of the grid.
    pub n_points: usize,
    /// Noise multiplier of the counts that a trial is scored by.
    pub score_noise_multiplier: f64,
}

/// One ε with what produced it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "StoredEpsilon")]
pub struct EpsilonRecord {
    /// Accountant and conversion, for example `RDP, improved conversion`.
    pub accountant: String,
    /// ε at the record's δ.
    pub epsilon: MarkedEpsilon,
}

/// An ε as it is in a file; before version 2 of the records without a mark.
#[derive(Serialize, Deserialize)]
struct StoredEpsilon {
    accountant: String,
    #[serde(with = "extended")]
    epsilon: f64,
    mark: Option<Mark>,
    #[serde(default)]
    covers: Vec<String>,
    #[serde(default)]
    not_covered: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    given: Vec<String>,
}

impl StoredEpsilon {
    fn marked(&self, certified: bool, scope: Option<&Scope>) -> MarkedEpsilon {
        if self.mark.is_none() {
            return mark_epsilon(self.epsilon, certified, scope);
        }
        let epsilon = Epsilon::new(self.epsilon).unwrap_or(Epsilon::INFINITE);
        if self.mark == Some(Mark::Nominal) && epsilon.is_finite() {
            return MarkedEpsilon::nominal(epsilon, self.not_covered.clone());
        }
        let not_covered = self.not_covered.iter().filter(|item| !self.given.contains(item)).cloned().collect();
        let scope = Scope { not_covered, conditions: self.given.clone(), ..Scope::of("", self.covers.clone()) };
        mark_epsilon(self.epsilon, true, Some(&scope))
    }
}

impl From<EpsilonRecord> for StoredEpsilon {
    fn from(record: EpsilonRecord) -> Self {
        let EpsilonRecord { accountant, epsilon } = record;
        Self {
            accountant,
            epsilon: epsilon.epsilon().get(),
            mark: Some(epsilon.mark()),
            covers: epsilon.covers().to_vec(),
            not_covered: epsilon.not_covered().to_vec(),
            given: epsilon.conditions().to_vec(),
        }
    }
}

/// An ε recomputed the way a paper computed it: comparable with the printed one, and no guarantee
/// of ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecomputedEpsilon {
    /// The paper's accountant and conversion.
    pub accountant: String,
    /// ε at the record's δ.
    #[serde(with = "extended")]
    pub epsilon: f64,
    /// Always nominal.
    #[serde(default = "nominal")]
    pub mark: Mark,
}

const fn nominal() -> Mark {
    Mark::Nominal
}

impl std::fmt::Display for RecomputedEpsilon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (recomputed, {}; {})", decimal(self.epsilon, 3, Rounding::Nearest), self.mark, self.accountant)
    }
}

/// Where a run came from: kept with the run itself, for what else is in the records may have
/// changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProvenance {
    /// Trained on generated records.
    pub synthetic: bool,
    /// A shortened run.
    pub quick: bool,
    /// sha256 over the data's files, as far as it is public.
    pub data_digest: String,
    /// Revision of the program that trained it.
    pub code_revision: String,
    /// Version of its arithmetic, [`dp_train::NUMERICS`].
    pub numerics: u32,
}

/// One trained model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Index of the seed, 0-based: run `i` of every method shares its data split and initial
    /// weights.
    pub index: usize,
    /// Wall-clock time, in seconds.
    pub seconds: f64,
    /// Records whose gradient was not finite (they contributed zero).
    pub n_non_finite: u64,
    /// Poisson batches with no record in them (noise-only steps).
    pub n_empty_batches: u64,
    /// One per epoch.
    pub epochs: Vec<EpochRecord>,
    /// Thresholds over steps: one value, or one per group.
    pub thresholds: Vec<ThresholdRecord>,
    /// ε against changes of one record of each group, by the thresholds that this run released:
    /// nominal ([`EX_POST`]). Empty for methods that treat all groups alike, or have no proof at all.
    #[serde(default, deserialize_with = "group_epsilons")]
    pub group_epsilons: Vec<MarkedEpsilon>,
    /// Metrics of the final model on the test records.
    pub test: MetricsRecord,
    /// Metrics of the final model on the validation records, if there are any.
    #[serde(default)]
    pub validation: Option<MetricsRecord>,
    /// Metrics of the final model on the training records.
    pub train: MetricsRecord,
    /// Steps taken apart, where the run was analysed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<AnalysisRecord>,
    /// The trials that the model is the best of, where it comes from a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// Where it came from; `None` in records from before it was kept with each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<RunProvenance>,
}

impl RunRecord {
    /// Whether it was trained on generated records, as far as it says itself.
    pub fn is_synthetic(&self) -> Option<bool> {
        self.provenance.as_ref().map(|provenance| provenance.synthetic)
    }

    /// Version of the arithmetic. Runs that do not say were trained under the first.
    pub fn numerics(&self) -> u32 {
        self.provenance.as_ref().map_or(1, |provenance| provenance.numerics)
    }

    /// Whether it was shortened, as far as it says itself.
    pub fn is_quick(&self) -> Option<bool> {
        self.provenance.as_ref().map(|provenance| provenance.quick)
    }
}

/// One search. Only the best trial was released: the others, and how many there were, are
/// diagnostics of a research run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// In the order in which they were made.
    pub trials: Vec<TrialRecord>,
    /// Index of the best.
    pub released: usize,
}

/// One trial of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Learning rate.
    pub rate: f64,
    /// Bound, for a method that has one.
    pub bound: Option<f64>,
    /// Expected batch size.
    pub batch_size: f64,
    /// Noisy macro accuracy on the validation records; `None` if it diverged.
    pub score: Option<f64>,
}

/// Why clipping was unfair in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnalysisRecord {
    /// Steps from one evaluation to the next.
    pub every: u64,
    /// Wall-clock time of all evaluations, in seconds; the run's own time contains it.
    pub seconds: f64,
    /// In the order of the steps.
    pub steps: Vec<StepDecomposition>,
}

/// Means over the batches of one epoch, by group. Diagnostics of a research run: they are not
/// private and not released.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// 1-based.
    pub epoch: usize,
    /// Steps taken so far.
    pub step: u64,
    /// Mean training loss by group; `None` if no record of the group was drawn.
    #[serde(with = "extended")]
    pub loss: Vec<Option<f64>>,
    /// Mean per-sample gradient norm before clipping, by group.
    #[serde(with = "extended")]
    pub gradient_norm: Vec<Option<f64>>,
    /// Mean per-sample gradient norm after clipping, before noise, by group; empty without
    /// clipping.
    #[serde(default, with = "extended", skip_serializing_if = "Vec::is_empty")]
    pub clipped_gradient_norm: Vec<Option<f64>>,
    /// Norm of the group's mean gradient over the batch (`‖g_B_a‖` in Esipova's figures), averaged
    /// over the epoch's evaluations; `None` where it was not computed.
    #[serde(with = "extended")]
    pub mean_gradient_norm: Vec<Option<f64>>,
}

/// Thresholds in force at one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdRecord {
    /// 0-based step.
    pub step: u64,
    /// One value (`Z`, `C`) or one per group (`C_k`).
    #[serde(with = "extended")]
    pub values: Vec<f64>,
}

/// Metrics of one model on one set of records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricsRecord {
    /// All records.
    pub overall: GroupMetrics,
    /// By group, in group order.
    pub groups: Vec<GroupMetrics>,
    /// Recall by class, in class order; `None` for a class with no record.
    pub class_recall: Vec<Option<f64>>,
    /// Records of each class, in class order.
    #[serde(default)]
    pub class_sizes: Vec<usize>,
    /// The same by group, in group order; empty where the groups are the classes, and in records from
    /// before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_recalls: Vec<ClassRecalls>,
}

/// How a model answers for the classes within one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassRecalls {
    /// Recall by class; `None` for a class with no record in the group.
    pub recall: Vec<Option<f64>>,
    /// Records of each class.
    pub sizes: Vec<usize>,
}

/// Metrics of one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupMetrics {
    /// Records.
    pub n: usize,
    /// Share of right answers; `None` if the group has no record.
    pub accuracy: Option<f64>,
    /// Mean loss without regularisation, natural logarithm; `None` if the group has no record.
    #[serde(with = "extended")]
    pub loss: Option<f64>,
}

/// Why the ε of a group is no guarantee.
pub const EX_POST: &str =
    "no proof: the thresholds that say what a step costs a group come from counts of that step's own batch";

/// The ε of a group, whatever the run's own ε is worth.
pub fn group_epsilon(epsilon: f64) -> MarkedEpsilon {
    MarkedEpsilon::nominal(Epsilon::new(epsilon).unwrap_or(Epsilon::INFINITE), [EX_POST])
}

/// Marked ones, or numbers from before they were marked. Some were marked conditional, until a
/// simulation found records that lose more.
fn group_epsilons<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<MarkedEpsilon>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Marked(MarkedEpsilon),
        Number(#[serde(with = "extended")] f64),
    }
    let nominal = |stored| match stored {
        Stored::Marked(marked) => group_epsilon(marked.epsilon().get()),
        Stored::Number(number) => group_epsilon(number),
    };
    Ok(Vec::<Stored>::deserialize(deserializer)?.into_iter().map(nominal).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records from before marks: certified ones become conditional on what they do not say, others
    /// nominal.
    #[test]
    fn records_without_marks_get_one() {
        let text = |certified: bool| {
            format!(
                r#"{{"certified":{certified},"delta":1e-6,"sampling_rate":0.01,"noise_multiplier":1.0,
                "count_noise_multipliers":[],"steps":10,"epsilons":[{{"accountant":"RDP","epsilon":3.5}},
                {{"accountant":"PLD","epsilon":"inf"}}],"as_published":{{"accountant":"Opacus","epsilon":3.4}},
                "published":3.4,"ledger":[]}}"#
            )
        };
        let read = |certified| serde_json::from_str::<PrivacyRecord>(&text(certified)).unwrap();
        let marks = |record: &PrivacyRecord| record.epsilons.iter().map(|e| e.epsilon.mark()).collect::<Vec<_>>();
        assert_eq!(marks(&read(true)), [Mark::Conditional, Mark::Nominal]);
        assert_eq!(marks(&read(false)), [Mark::Nominal, Mark::Nominal]);
        assert_eq!(
            format!("{:#}", read(true).epsilons[0].epsilon),
            "3.500 (conditional: given the scaling and the choice of the records, whose source was not recorded)"
        );
        assert_eq!(
            read(true).as_published.unwrap().to_string(),
            "3.400 (recomputed, nominal, not a guarantee; Opacus)"
        );
        // Written and read again, nothing changes.
        let json = serde_json::to_string(&read(true)).unwrap();
        assert_eq!(serde_json::from_str::<PrivacyRecord>(&json).unwrap(), read(true));
        assert!(json.contains(r#""epsilon":3.5,"mark":"conditional""#), "{json}");
    }
}
