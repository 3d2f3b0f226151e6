//! Runs: from a configuration to a release.

mod audit;
mod candidates;
mod checkpoint;
mod decisions;
mod device;
mod features;
mod finished;
mod folder;
mod groups;
mod journal;
mod plan;
mod run;
mod search;
mod size;
mod start;
pub(crate) mod tables;
#[cfg(test)]
mod tests;
mod texts;
mod training;
mod trial_score;
mod widths;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dp_accounting::{Delta, Epsilon, Mark};
use dp_linear::{GaussianBudget, Goal, RecallBiasesConfig};
use dp_table::{MemoryTable, ReadProgress, TableFiles};
use dp_train::DeviceName;
use dp_train::ranks::{Alone, Collective};
use fair_decisions::{CumulativeCounts, Mode, PrefixSums, ScoreCells};

pub use self::audit::{
    AttackedRelease, AttackedRun, AuditFault, AuditOptions, AuditReport, OfKind, audit, audit_table,
};
use self::candidates::{Candidate, Limits};
use self::checkpoint::Checkpoints;
pub use self::features::PlannedFeatures;
use self::features::planned_features;
pub use self::finished::finished;
pub(crate) use self::folder::LOCK;
pub use self::folder::holds_key;
pub use self::groups::PlannedGroup;
use self::groups::planned_groups;
pub(crate) use self::journal::LOG;
pub use self::journal::Progress;
pub use self::plan::{plan, plan_without_data};
pub(crate) use self::run::program;
pub use self::size::TableSize;
pub(crate) use self::start::Start;
pub(crate) use self::texts::test_figures;
pub use self::widths::PlannedWidths;
use self::widths::widths;
use crate::account::Account;
use crate::blocks::{column_blocks, purposes};
use crate::bounds;
use crate::config::{ColumnEntry, Config, ConfigText, EpsilonChoice, Reading, TuningEntry, with_epsilon};
use crate::diagnostics::Diagnostics;
use crate::error::{FairdpError, Result};
use crate::fairness::FairnessReport;
use crate::planned::Planned;
use crate::recipe::{Method, Recipe};
use crate::release::PRIVATE;
use crate::shared_ledger::{Entering, LedgerTotals};
use crate::statement::{ReleaseStatement, StartedFrom};
use crate::subset::Subset;

/// Shares of the training part's budget, of `μ²`. Noise falls with the root of a share: what is
/// counted once needs little.
const COUNTS: f64 = 0.005;
/// Of a number in their place: where it is, and how far it spreads. Its residuals' bound follows from it.
const MOMENTS: f64 = 0.02;
const SQUARES: f64 = 0.03;
const BOUNDS: f64 = 0.1;
/// The most that scores of groups take where thresholds follow from them, and where they are for the price
/// list alone.
const MOST_FOR_THRESHOLDS: f64 = 1.0 / 3.0;
const MOST_FOR_PRICES: f64 = 0.1;
/// The error of a rate that the share of the scores keeps within in 95 % of releases, in a group of the declared
/// size: two points, of 1.96 standard deviations.
const ERROR: f64 = 0.02 / 1.96;
/// Means and covariances of all blocks, and the lengths of their rows: docs/conditioned-adjusted.md.
const MEANS: f64 = 0.015;
const COVARIANCES: f64 = 0.09;
const LENGTHS: f64 = 0.005;
/// Counts of right answers, for biases towards equal recall.
const RECALL: f64 = 0.045;

/// Purposes of releases that are looked up.
pub(crate) const SCORES: &str = "cumulative scores by group and class";
pub(crate) const ANSWERS: &str = "answers by group and class";
pub(crate) const ERRORS: &str = "errors by group";
const CLASS_COUNTS: &str = "class counts";
const LABEL_MOMENTS: &str = "mean and spread of the label";
const SQUARES_OF_FEATURES: &str = "mean squares of the features";
const LENGTHS_OF_BLOCKS: &str = "lengths of the whitened rows";
const RIGHT_ANSWERS: &str = "right answers by class";

/// Options of a run. They do not change its releases.
#[derive(Debug, Clone)]
pub struct FitOptions {
    /// The folder that it makes.
    pub out: PathBuf,
    /// Makes the run repeatable, and not private: the same bits on the same type of processor, and
    /// for what is trained on a GPU, on the same type of GPU and version of cuBLAS.
    pub seed: Option<u64>,
    /// Threads; they change no bit of the result.
    pub threads: NonZeroUsize,
    /// The device for networks and methods by name; the rest runs on the CPU. A CUDA device rounds
    /// differently than the CPU, and privacy is the same. It stays open until the process
    /// ends.
    pub device: DeviceName,
    /// Continues a run that was killed.
    pub resume: bool,
    /// A file that several fits on one table share, with a cap on the ε of all.
    pub ledger: Option<PathBuf>,
    /// A file that remembers the ledger: one that was shortened or replaced is refused. It is made by
    /// the first fit that names it, and best kept where those who write the ledger cannot.
    pub witness: Option<PathBuf>,
    /// The run or release whose model the training starts from: no ε of its records is spent again, and one
    /// table needs less. Columns, classes and ranges must be its own.
    pub from: Option<PathBuf>,
    /// The ε of the run; that of the configuration unless given.
    pub epsilon: Option<EpsilonChoice>,
    /// Trains a model without privacy too, for its figures in the private folder.
    pub reference: bool,
    /// Keeps the encoded table, a copy of private records, in the private folder.
    pub keep_encoded: bool,
    /// The file that the statement names as the program, where it is a library of another one; this
    /// process's unless given.
    pub program: Option<PathBuf>,
    /// How the settings of the configuration were chosen, for a caller that writes configurations
    /// itself, say after earlier fits. The statement then does not say that they follow from public
    /// numbers.
    pub settings_note: Option<String>,
    /// The processes that share the run: each sums its part of the records, and rank 0 writes. They
    /// change no bit of the result.
    pub ranks: Arc<dyn Collective>,
    /// Where the reading of tables says how far it is, and is told to end.
    pub reading: Option<Arc<ReadProgress>>,
}

impl FitOptions {
    /// A new private run on one thread of the CPU, in one process, alone with its table.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            out: out.into(),
            seed: None,
            threads: NonZeroUsize::MIN,
            device: DeviceName::Cpu,
            resume: false,
            ledger: None,
            witness: None,
            from: None,
            epsilon: None,
            reference: false,
            keep_encoded: false,
            program: None,
            settings_note: None,
            ranks: Arc::new(Alone),
            reading: None,
        }
    }
}

/// The result of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Fitted {
    /// The statement of the release.
    pub statement: ReleaseStatement,
    /// Fairness, within ε.
    pub fairness: FairnessReport,
    /// Exact figures, **not private**.
    pub diagnostics: Diagnostics,
}

/// Every release that a run will make, before it reads a record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FitPlan {
    /// ε of everything.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The releases in order.
    pub releases: Vec<Planned>,
    /// Constants that were read from the records and that ε does not cover: the accepted ones, and
    /// the kind of columns with private bounds.
    pub uncovered: Vec<String>,
    /// The number of training records for which it is made.
    pub n_training: usize,
    /// The table for which it was checked, if one was read.
    pub table: Option<TableSize>,
    /// The number of test records to be expected of it.
    pub n_test: Option<usize>,
    /// What it would make of the ledger, if there is one.
    pub ledger: Option<LedgerTotals>,
    /// The release that training starts from, if there is one.
    pub started_from: Option<StartedFrom>,
    /// The features of every column, in order.
    pub features: Vec<PlannedFeatures>,
    /// How wide the intervals of groups' figures will be, where scores are released: for this ε and declared size
    /// first, then for half and twice of each.
    pub widths: Vec<PlannedWidths>,
    /// Rates and thresholds of the groups, where each has its own.
    pub groups: Vec<PlannedGroup>,
    candidates: Vec<Candidate>,
    budget: GaussianBudget,
}

impl FitPlan {
    /// Plans a run of a configuration on a table with `n_records` records.
    ///
    /// # Errors
    /// [`FairdpError::Uncovered`] for constants that were read from the records;
    /// [`FairdpError::NotForThisTable`] for a δ of one over the number of records and more.
    pub fn new(config: &Config, path: &Path, n_records: usize) -> Result<Self> {
        let mut uncovered = config.uncovered();
        if !uncovered.is_empty() && !config.accept_uncovered {
            return Err(FairdpError::Uncovered { path: path.into(), entries: uncovered });
        }
        uncovered.extend(config.kinds_seen());
        let (epsilon, delta) = (config.privacy.epsilon, config.privacy.delta);
        refuse_delta(delta, n_records)?;
        let budget = GaussianBudget::new(Epsilon::new(epsilon)?, Delta::new(delta)?)?;
        let thresholds = share_of_scores(config, budget)?;
        let n_bounds = bounds::private_columns(config).count();
        let bounds = if n_bounds > 0 { BOUNDS } else { 0.0 };
        let mut releases = Vec::new();
        for column in bounds::private_columns(config) {
            releases.push(Planned::gaussian(budget, Subset::Training, &edges_of(column), bounds / n_bounds as f64, 1)?);
        }
        let recipes = recipes(config)?;
        for recipe in &recipes {
            uncovered.extend(
                recipe.conditions().into_iter().filter(|condition| !uncovered.contains(condition)).collect::<Vec<_>>(),
            );
        }
        let is_conditioned = |recipe: &Recipe| matches!(recipe.method, Method::Conditioned { .. });
        let (purpose, label) = if config.label.is_number() { (LABEL_MOMENTS, MOMENTS) } else { (CLASS_COUNTS, COUNTS) };
        releases.push(Planned::gaussian(budget, Subset::Training, purpose, label, 1)?);
        let mut share = 1.0 - label - thresholds - bounds;
        // Pixels need no scales.
        let is_unscaled = |recipe: &Recipe| is_conditioned(recipe) || recipe.architecture.network().is_some();
        if !recipes.iter().all(is_unscaled) {
            releases.push(Planned::gaussian(budget, Subset::Training, SQUARES_OF_FEATURES, SQUARES, 1)?);
            share -= SQUARES;
        }
        let blocks =
            if recipes.iter().any(is_conditioned) { column_blocks(&bounds::widest(config)?) } else { Vec::new() };
        for block in &blocks {
            for (purpose, share) in purposes(block).iter().zip([MEANS, COVARIANCES]) {
                releases.push(Planned::gaussian(budget, Subset::Training, purpose, share / blocks.len() as f64, 1)?);
            }
        }
        if !blocks.is_empty() {
            releases.push(Planned::gaussian(budget, Subset::Training, LENGTHS_OF_BLOCKS, LENGTHS, 1)?);
            share -= MEANS + COVARIANCES + LENGTHS;
        }
        let before = releases.len();
        if recipes.iter().any(|recipe| matches!(recipe.method, Method::Conditioned { goal: Goal::EqualRecall, .. })) {
            let recall = RecallBiasesConfig::within(budget, RECALL)?;
            releases.push(Planned::gaussian(budget, Subset::Training, RIGHT_ANSWERS, RECALL, recall.rounds)?);
            share -= RECALL;
        }
        let in_trials = has_scores_in_trials(config);
        if thresholds > 0.0 && !in_trials {
            releases.push(Planned::gaussian(budget, Subset::Training, SCORES, thresholds, 1)?);
        }
        let scores = if in_trials { thresholds } else { 0.0 };
        let limits = Limits { config, budget, n_records, share, scores, others: &releases };
        let candidates = match &config.tuning {
            None => {
                let (candidate, gradients) = limits.single()?;
                releases.insert(before, gradients);
                vec![candidate]
            }
            Some(tuning) => {
                let (candidates, [gradients, scores]) = limits.search(tuning)?;
                releases.insert(before, gradients);
                releases.push(scores);
                candidates
            }
        };
        if config.test.fraction.unwrap_or(0.0) > 0.0 || config.test.files.is_some() {
            let purpose = match config.has_scores() {
                _ if config.label.is_number() => ERRORS,
                true => SCORES,
                false => ANSWERS,
            };
            releases.push(Planned::gaussian(budget, Subset::Test, purpose, 1.0, 1)?);
        }
        let features = planned_features(config)?;
        let widths = widths(config)?;
        let groups = planned_groups(config, &candidates, &account_of(&releases)?, Delta::new(delta)?)?;
        Ok(Self {
            epsilon,
            delta,
            releases,
            uncovered,
            n_training: n_records,
            table: None,
            n_test: None,
            ledger: None,
            started_from: config.start.as_ref().map(|start| start.from.clone()),
            features,
            widths,
            groups,
            candidates,
            budget,
        })
    }

    /// The mark that ε will have: conditional where constants were read from the records.
    pub fn mark(&self) -> Mark {
        if self.uncovered.is_empty() { Mark::Certified } else { Mark::Conditional }
    }

    /// Plans a run on this table. Plans and fits both call this function.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`FairdpError::TooFewRecords`] for a table whose model would be
    /// noise.
    pub fn of_table(config: &Config, path: &Path, table: TableSize) -> Result<Self> {
        let mut plan = Self::new(config, path, table.n_training(config))?;
        table.check(config, path, &plan)?;
        plan.n_test = Some(table.n_test(config));
        plan.table = Some(table);
        Ok(plan)
    }

    /// The plan of the same run at another ε.
    fn at(config: &Config, path: &Path, n_records: usize, epsilon: f64) -> Result<Self> {
        let mut config = config.clone();
        config.privacy.epsilon = epsilon;
        Self::new(&config, path, n_records)
    }

    /// The account of a run of this plan.
    fn account(&self) -> Result<Account> {
        account_of(&self.releases)
    }

    /// Whether there is a release on test records.
    fn has_test(&self) -> bool {
        self.releases.iter().any(|release| release.part == Subset::Test)
    }

    /// The model and the method of everything that may be trained, each with its reason.
    pub fn candidates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.candidates.iter().map(|candidate| (&*candidate.model, &*candidate.method))
    }

    /// The release of scores of a part's records, if there is one.
    fn scores_of(&self, part: Subset) -> Option<&Planned> {
        self.releases.iter().find(|release| release.part == part && release.purpose == SCORES)
    }

    /// A release by its purpose.
    fn release(&self, purpose: &str) -> Result<&Planned> {
        let found = self.releases.iter().find(|release| release.purpose == purpose);
        found.ok_or_else(|| FairdpError::Internal(format!("{purpose}: not in the plan")))
    }
}

/// The share of the scores of training records: as much as keeps the noise in the rates of a group of
/// the declared size within two points in 95 % of releases, and no more than a cap. It depends on public numbers
/// alone.
fn share_of_scores(config: &Config, budget: GaussianBudget) -> Result<f64> {
    if !config.has_scores() || config.n_groups() < 2 {
        return Ok(0.0);
    }
    let (sums, alone) = (PrefixSums::new(), budget.noise_multiplier(1.0, 1)?.get());
    let std = sums.noise_std(alone, config.counted_per_unit());
    let counts = CumulativeCounts::expected(&ScoreCells::of_classes(1, config.label.classes.len()), std);
    let noise = counts.encoding_noise(0) * sums.largest_error();
    let wanted = (noise / (ERROR * config.fairness.smallest as f64)).powi(2);
    let has_thresholds = config.fairness.mode != Mode::None || has_scores_in_trials(config);
    let most = if has_thresholds { MOST_FOR_THRESHOLDS } else { MOST_FOR_PRICES };
    Ok(wanted.min(most))
}

fn account_of(releases: &[Planned]) -> Result<Account> {
    let mut account = Account::default();
    releases.iter().try_for_each(|release| account.record(release))?;
    Ok(account)
}

/// Whether every trial of a search releases scores, and has its own thresholds.
fn has_scores_in_trials(config: &Config) -> bool {
    config.tuning.as_ref().is_some_and(TuningEntry::has_modes)
}

/// Everything that may be trained.
fn recipes(config: &Config) -> Result<Vec<Recipe>> {
    Ok(match &config.tuning {
        None => vec![config.recipe()?],
        Some(tuning) => config.candidates(tuning)?,
    })
}

/// Refuses a δ at which a mechanism could publish one of `n_records` records.
pub(crate) fn refuse_delta(delta: f64, n_records: usize) -> Result<()> {
    if n_records == 0 || delta < 1.0 / n_records as f64 {
        return Ok(());
    }
    Err(FairdpError::NotForThisTable {
        parameter: "privacy.delta",
        value: format!("{delta:e}"),
        expected: format!(
            "below one over the number of records, {:.1e}; a δ as large allows a mechanism that publishes a random record",
            1.0 / n_records as f64
        ),
    })
}

/// The purpose of a column's released bounds, or of its bins.
fn edges_of(column: &ColumnEntry) -> String {
    let what = if column.bins_are_released() { "bins" } else { "bounds" };
    format!("{what} of `{}`", column.name)
}

/// Trains, tests, and writes `release/` and `private/`. Each stage and step calls `progress`, which
/// may end the run.
///
/// # Errors
/// The errors of [`plan`]; [`FairdpError::Table`] for a table that does not fit its schema;
/// [`FairdpError::TooFewRecords`] for a budget that would drown the model in noise;
/// [`FairdpError::Folder`] for a folder that is not empty; [`FairdpError::InvalidParameter`] for a
/// device that this program cannot use, or that nothing would be trained on;
/// [`FairdpError::Interrupted`] if `progress` ended it.
pub fn fit(
    config: &Path,
    options: &FitOptions,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<Fitted> {
    let (text, parsed) = document(Config::text(config)?, config, options, &Config::of_file)?;
    run::fit(ConfigText { text: &text, config: &parsed, path: config }, options, progress)
}

/// The text of a configuration with the ε and the start of the options, and what it says.
fn document(
    text: String,
    path: &Path,
    options: &FitOptions,
    parse: &dyn Fn(&str, &Path) -> Result<Config>,
) -> Result<(String, Config)> {
    let start = options.from.as_deref().map(Start::open).transpose()?.map(Arc::new);
    let comment = start.as_ref().map_or(String::new(), |start| start.comment());
    let text = if comment.is_empty() { text } else { format!("{}\n{comment}", text.trim_end_matches('\n')) };
    let parse = |text: &str, path: &Path| {
        let config = parse(text, path)?;
        Ok::<_, FairdpError>(Config { reading: Reading(options.reading.clone()), start: start.clone(), ..config })
    };
    let config = parse(&text, path)?;
    let Some(choice) = options.epsilon else { return Ok((text, config)) };
    let epsilon = match choice {
        EpsilonChoice::Given(epsilon) => epsilon,
        EpsilonChoice::Rest => rest(&config, path, options)?,
    };
    let text = with_epsilon(&text, epsilon);
    let config = parse(&text, path)?;
    Ok((text, config))
}

/// What the ledger has left for a run, on every rank; a run that is continued has the ε that it began
/// with.
fn rest(config: &Config, path: &Path, options: &FitOptions) -> Result<f64> {
    let ranks = &options.ranks;
    let epsilon = if ranks.rank() == 0 {
        let Some(ledger) = &options.ledger else {
            return Err(FairdpError::invalid("--epsilon", "rest", "--ledger FILE with it, whose rest it is"));
        };
        let begun = if options.resume { Checkpoints::epsilon(&options.out.join(PRIVATE))? } else { None };
        if let Some(epsilon) = begun {
            epsilon
        } else {
            let at = |epsilon: f64| FitPlan::at(config, path, 0, epsilon)?.account();
            Entering { ledger, witness: options.witness.as_deref(), asked: config.into(), at: &at }.rest()?
        }
    } else {
        0.0
    };
    let bits = ranks.broadcast(epsilon.to_bits().to_le_bytes().to_vec())?;
    Ok(bits.first_chunk().map_or(epsilon, |bits| f64::from_le_bytes(*bits)))
}

/// Fits on a table in memory. `config` is the text of a configuration; its `table.files` are
/// ignored, and `table.vectors` refused. The records are written only in encoded form, to a file without a name in the private
/// folder.
///
/// # Errors
/// As [`fit`].
pub fn fit_table(
    config: &str,
    table: MemoryTable,
    options: &FitOptions,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<Fitted> {
    let path = Path::new("configuration");
    let (config, mut parsed) = document(config.to_owned(), path, options, &Config::from_toml)?;
    if let Some(column) = parsed.table.vectors.keys().next() {
        let expected = "none with a table in memory, which has a column of lists instead";
        return Err(FairdpError::invalid("table.vectors", column, expected));
    }
    let table = TableFiles::in_memory(table);
    parsed.table.files = table.paths().iter().map(|name| name.to_string_lossy().into_owned()).collect();
    parsed.in_memory = Some(table);
    run::fit(ConfigText { text: &config, config: &parsed, path }, options, progress)
}
