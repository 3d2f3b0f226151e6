//! The stages of a run.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use dp_linear::Streams as _;
use dp_table::{EncodedFile, EncodedTable, Schema, TableFiles};
use dp_train::{Device, DeviceName, NUMERICS, platform};
use fair_decisions::{CumulativeCounts, ScoreCells};
use rand_chacha::ChaCha20Rng;
use rayon::ThreadPool;

use super::candidates::{Candidate, trials};
use super::checkpoint::{Checkpoints, TRAINER_CHECKPOINT};
use super::decisions::with_thresholds;
use super::device;
use super::folder::RunFolder;
use super::journal::{Journal, Log, Progress};
use super::search::{Chosen, Searched, search};
use super::tables::{Measured, TableSubset, Tables, can_share};
use super::texts;
use super::training::{Continuation, Trained, Training};
use super::{ANSWERS, ERRORS, FitOptions, FitPlan, Fitted, edges_of, recipes};
use crate::account::Account;
use crate::bounds;
use crate::config::{Config, ConfigText, TuningEntry};
use crate::curves::Curves;
use crate::diagnostics::Diagnostics;
use crate::error::{FairdpError, Result};
use crate::exit::Exit;
use crate::fairness::{FairnessReport, release_counts};
use crate::input;
use crate::key::NoiseKey;
use crate::mean_errors::MeanErrorCorrections;
use crate::model::FittedModel;
use crate::numbers::{NumberAnswers, NumberReport};
use crate::output::{self, Readers};
use crate::planned::Planned;
use crate::post_processing;
use crate::rank_files::RankFiles;
use crate::release::{CONFIG, ReleaseFiles, json};
use crate::scores::{self, ScoresFile};
use crate::seal::sha256;
use crate::shared_ledger::{self, Entering, Fit};
use crate::statement::{Facts, Program, ReleaseStatement};
use crate::streams::TableStreams;
use crate::subset::Subset;
use crate::subsets::{Division, HeldOutShares};
use crate::unfinished;

/// More threads than any machine has cores.
const MOST_THREADS: usize = 1_024;

pub(super) fn fit(
    document: ConfigText<'_>,
    options: &FitOptions,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<Fitted> {
    let device = check(document.config, document.path, options)?;
    let streams = TableStreams::of(document.config, document.path, options.ranks.size())?;
    if streams.is_empty() {
        check_table(&document)?;
    }
    if options.ranks.rank() > 0 {
        return run(document, options, device, &std::env::temp_dir(), &mut Journal::new(progress, None));
    }
    let folder = RunFolder::take(&options.out, options.resume)?;
    let mut journal = Journal::new(progress, Some(Log::open(folder.private())?));
    begin(&document, folder.private(), &mut journal)?;
    match fit_streams(&streams, document, options, device, folder.private(), &mut journal) {
        Ok(fitted) => {
            folder.close()?;
            Ok(fitted)
        }
        Err(error) => {
            journal.ended(&error);
            // A run whose noise was drawn can be continued: another one would be charged again. Who ended it
            // finds its log.
            if !options.resume && !matches!(error, FairdpError::Interrupted) {
                folder.give_up();
            }
            Err(error)
        }
    }
}

/// Logs that a run begins, or where it goes on.
fn begin(document: &ConfigText<'_>, private: &Path, journal: &mut Journal<'_>) -> Result<()> {
    let (program, process) = (env!("CARGO_PKG_VERSION"), std::process::id());
    let is_resumed = !Checkpoints::is_unspent(private);
    let what = match unfinished::place(private).filter(|_| is_resumed) {
        Some(place) => format!("resumed, {place} or later"),
        None if is_resumed => "resumed before the first step".to_owned(),
        None => format!("a fit of {} begins", document.path.display()),
    };
    journal.log(&format!("{what} (fairdp {program}, process {process})"))
}

/// Keeps what streams hold in the private folder until the run has ended: a run that is killed reads it
/// again.
fn fit_streams(
    streams: &TableStreams<'_>,
    document: ConfigText<'_>,
    options: &FitOptions,
    device: Device,
    private: &Path,
    journal: &mut Journal<'_>,
) -> Result<Fitted> {
    if streams.is_empty() {
        return run(document, options, device, private, journal);
    }
    let config = streams.spooled(private, &mut |line| journal.stage(line))?;
    let document = ConfigText { config: &config, ..document };
    check_table(&document)?;
    run(document, options, device, private, journal)
}

/// Refuses what can be refused before a record is read.
pub(super) fn check(config: &Config, path: &Path, options: &FitOptions) -> Result<Device> {
    let plan = FitPlan::new(config, path, 0)?;
    if let Some(start) = &config.start {
        start.check(config, &recipes(config)?)?;
    }
    if options.threads.get() > MOST_THREADS {
        return Err(FairdpError::invalid("threads", options.threads, format!("at most {MOST_THREADS}")));
    }
    let device = device::open(options.device, &plan)?;
    if let (None, Some(total)) = (&options.ledger, config.privacy.total_epsilon) {
        let expected = "--ledger FILE with it, which fits on one table share, or no total_epsilon";
        return Err(FairdpError::invalid("privacy.total_epsilon", total, expected));
    }
    if let (None, Some(witness)) = (&options.ledger, &options.witness) {
        let expected = "--ledger FILE with it, which it remembers";
        return Err(FairdpError::invalid("--witness", witness.display(), expected));
    }
    if let Some(ledger) = options.ledger.as_ref().filter(|_| options.ranks.rank() == 0) {
        shared_ledger::check(ledger, options.witness.as_deref(), config.into())?;
    }
    Ok(device)
}

/// Refuses files that are not there, or that would be trained on and tested on.
pub(super) fn check_files(config: &Config) -> Result<TableFiles> {
    let training = config.training_files()?;
    refuse_test_on_training(config, &training)?;
    Ok(training)
}

/// The same, and names that no column of the table has.
pub(super) fn check_table(document: &ConfigText<'_>) -> Result<()> {
    document.check_names(&check_files(document.config)?)
}

/// Shares of the parts of the training table.
pub(super) fn shares(config: &Config) -> HeldOutShares {
    HeldOutShares {
        test: if config.test.files.is_some() { 0.0 } else { config.test.fraction.unwrap_or(0.0) },
        validation: config.tuning.as_ref().map_or(0.0, TuningEntry::fraction),
    }
}

/// Threads of a run.
pub(super) fn threads(options: &FitOptions) -> Result<ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.get()).build();
    pool.map_err(|error| FairdpError::system("threads", error))
}

/// Everything from the key to the release. `private` is the run's private folder, and on other
/// ranks than the first a folder for temporary files.
fn run(
    document: ConfigText<'_>,
    options: &FitOptions,
    device: Device,
    private: &Path,
    journal: &mut Journal<'_>,
) -> Result<Fitted> {
    let pool = &threads(options)?;
    let program = program(options.program.as_deref())?;
    let arithmetic = format!("{NUMERICS}, {}, {}, {}", platform(), program.sha256, device::kind(options.device));
    let mut checkpoints = Checkpoints::of_ranks(private, &document, &arithmetic, options)?;
    let drawn = checkpoints.drawn().clone();
    let division = Division { shares: shares(document.config), key: &drawn };
    let run = Run { document, options, private, pool, division };

    let (schema, mut tables) = run.read_tables(&mut checkpoints, journal)?;
    let plan = FitPlan::of_table(document.config, document.path, tables.size(document.config)?)?;
    let remarks = describe(&tables, &schema, journal)?;
    let key = run.bind(&tables, &mut checkpoints)?;
    pool.install(|| tables.share_out(document.config, &plan.candidates[0].recipe, division, private))?;
    let account = plan.account()?;
    let total_epsilon = run.enter_ledger(&mut checkpoints, &key, &plan)?;

    let training = Training::new(document.config, &plan, tables.training.encoding(), options, device, pool);
    let (mut model, curves, chosen) = run.train(&training, &tables, schema, &key, &mut checkpoints, journal)?;
    let candidate = chosen.candidate;
    let of_scores = if candidate.scores.is_some() { &chosen.key } else { &key };
    let mut scores = run.choose_thresholds(&mut model, candidate, &plan, &tables, of_scores, journal)?;
    let measured = if plan.has_test() { tables.test() } else { tables.training() };
    if plan.has_test() {
        journal.stage("testing")?;
    }
    let mut answers = measured.answers(&model)?;
    let fairness = run.fairness(&model, candidate, (&tables, &answers), scores.as_mut(), &plan, &key)?;
    if let Some(corrections) = fairness.numbers.as_ref().and_then(|numbers| numbers.corrections.as_ref()) {
        model.subtract(corrections.subtracted());
        answers = measured.answers(&model)?;
    }
    let mut diagnostics = tables.diagnostics(&model, &answers, plan.has_test())?;
    (diagnostics.test_table, diagnostics.remarks) = (tables.test_counts.clone(), remarks);
    if options.reference {
        let reference = run.reference(&training, &tables, measured, candidate, &model, &key, journal)?;
        diagnostics.reference = Some(Box::new(reference));
    }

    let statement = run.statement(&account, &plan, &tables, candidate, &fairness, total_epsilon, program)?;
    let weights = model.safetensors()?;
    options.ranks.agree("the model", sha256(&weights).as_bytes())?;
    let fitted = Fitted { statement, fairness, diagnostics };
    if options.ranks.rank() == 0 {
        run.publish((&model, weights), &curves, scores.as_ref(), &fitted, &account, journal)?;
    }
    Ok(fitted)
}

/// The context of every stage.
#[derive(Clone, Copy)]
struct Run<'a> {
    document: ConfigText<'a>,
    options: &'a FitOptions,
    private: &'a Path,
    pool: &'a ThreadPool,
    division: Division<'a>,
}

impl Run<'_> {
    fn config(&self) -> &Config {
        self.document.config
    }

    /// Reads and encodes the tables, after their private bounds are released.
    fn read_tables(&self, checkpoints: &mut Checkpoints, journal: &mut Journal<'_>) -> Result<(Schema, Tables)> {
        let (config, options) = (self.config(), self.options);
        let planned = FitPlan::new(config, self.document.path, 0)?;
        let is_shared = can_share(config, &planned.candidates[0].recipe, options);
        let mut source = RankFiles::new(config.training_files()?, &options.ranks, is_shared)?;
        let released = self.release_bounds(&mut source, checkpoints, journal)?;
        let schema = config.schema(&|name| released.get(name).cloned())?;
        journal.stage(format!("reading {}", config.table.files.join(", ")))?;
        let place = self.private.join("encoded");
        let is_kept = options.keep_encoded && options.ranks.rank() == 0;
        let place = if is_kept { EncodedFile::Kept(&place) } else { EncodedFile::Temporary(self.private) };
        let tables = self
            .pool
            .install(|| Tables::read(config, &schema, source, place, self.private, self.division, &options.ranks))?;
        Ok((schema, tables))
    }

    /// Bounds that are paid for, by column: made after the key is bound and the fit has entered the
    /// ledger.
    fn release_bounds(
        &self,
        source: &mut RankFiles,
        checkpoints: &mut Checkpoints,
        journal: &mut Journal<'_>,
    ) -> Result<HashMap<String, Vec<f64>>> {
        let ConfigText { text, config, path } = self.document;
        if bounds::private_columns(config).next().is_none() {
            return Ok(HashMap::new());
        }
        journal.stage("releasing bounds")?;
        let counts = bounds::count(config, text, source, &|row| self.division.part(row) == Subset::Training)?;
        let plan = FitPlan::of_table(config, path, counts.table)?;
        let key = checkpoints.bind(&counts.bound)?;
        self.enter_ledger(checkpoints, &key, &plan)?;
        let release = |(name, counts): (String, Vec<f64>)| {
            let column = bounds::private_columns(config).find(|column| column.name == name);
            let column = column.ok_or_else(|| FairdpError::Internal(format!("{name}: not private")))?;
            let purpose = edges_of(column);
            let sigma = plan.release(&purpose)?.noise_multiplier;
            let edges = bounds::release(column, counts, sigma, &mut key.stream(&purpose, 0))?;
            Ok((name, edges))
        };
        counts.by_column.into_iter().map(release).collect()
    }

    /// Binds the key of the noise to the tables, on all ranks before one goes on.
    fn bind(&self, tables: &Tables, checkpoints: &mut Checkpoints) -> Result<NoiseKey> {
        let key = checkpoints.bind(&tables.bound(self.document.text)?)?;
        let encoded: Vec<&str> = tables.all().map(EncodedTable::digest).collect();
        let digest = sha256(format!("{} {encoded:?}", key.bound_to()).as_bytes());
        self.options.ranks.agree("the table", digest.as_bytes())?;
        Ok(key)
    }

    /// Enters a fit into the ledger file, if there is one, and says the ε of all its fits on every
    /// rank. It may be asked again.
    fn enter_ledger(&self, checkpoints: &mut Checkpoints, key: &NoiseKey, plan: &FitPlan) -> Result<Option<f64>> {
        let Some(file) = &self.options.ledger else { return Ok(None) };
        let (config, ranks) = (self.config(), &self.options.ranks);
        let total = if ranks.rank() == 0 {
            let is_continued = checkpoints.note_entry(true)?;
            let fit = Fit::new(key, &plan.account()?, config.scope());
            let at = |epsilon: f64| FitPlan::at(config, self.document.path, plan.n_training, epsilon)?.account();
            let witness = self.options.witness.as_deref();
            let entering = Entering { ledger: file, witness, asked: config.into(), at: &at };
            let total = entering.enter(fit, is_continued);
            if total.as_ref().is_err_and(|error| error.exit() == Exit::Refused) && !is_continued {
                checkpoints.withdraw()?;
            }
            total?.total
        } else {
            0.0
        };
        let bits = ranks.broadcast(total.to_bits().to_le_bytes().to_vec())?;
        Ok(bits.first_chunk().map(|bits| f64::from_le_bytes(*bits)))
    }

    /// Trains the one candidate, or the best of a search.
    fn train<'a>(
        &self,
        training: &Training<'a>,
        tables: &Tables,
        schema: Schema,
        key: &NoiseKey,
        checkpoints: &mut Checkpoints,
        journal: &mut Journal<'_>,
    ) -> Result<(FittedModel, Curves, Chosen<'a>)> {
        if self.options.device != DeviceName::Cpu {
            journal.stage(format!("training on {}", self.options.device))?;
        }
        let rows = tables.training().rows(self.options.ranks.clone());
        let (trained, prepared, chosen) = match &self.config().tuning {
            None => {
                let candidate = &training.plan.candidates[0];
                let place = self.private.join(TRAINER_CHECKPOINT);
                let continuation = Continuation { state: checkpoints.take_state(), checkpoints, trainer: &place };
                let prepared = training.prepare(candidate, &rows, key)?;
                let trained = training.run(candidate, &rows, &prepared, key, Some(continuation), journal)?;
                (trained, prepared, Chosen { candidate, key: key.clone() })
            }
            Some(tuning) => {
                let validation = tables.validation().rows(self.options.ranks.clone());
                let records = Searched {
                    config: self.config(),
                    training: tables.training(),
                    rows: &rows,
                    validation: &validation,
                };
                search(training, trials(tuning)?, records, &schema, key, journal)?
            }
        };
        let model = self.model(trained, schema, chosen.candidate)?;
        let curves = training.curves(&model, chosen.candidate, &prepared)?;
        Ok((model, curves, chosen))
    }

    fn model(&self, trained: Trained, schema: Schema, candidate: &Candidate) -> Result<FittedModel> {
        let mut model = trained.into_model(schema, self.config().decision(&candidate.recipe))?;
        model.set_text(self.config().table.marks());
        Ok(model)
    }

    /// Releases the scores of training records by group, and gives a model thresholds from them where these are
    /// asked for.
    fn choose_thresholds(
        &self,
        model: &mut FittedModel,
        candidate: &Candidate,
        plan: &FitPlan,
        tables: &Tables,
        key: &NoiseKey,
        journal: &mut Journal<'_>,
    ) -> Result<Option<ScoresFile>> {
        if !self.config().has_scores() {
            return Ok(None);
        }
        // Of a trial these are the scores that it released: key and records are the same.
        let noise = candidate.scores.or(plan.scores_of(Subset::Training).map(|planned| planned.noise_multiplier));
        let Some(noise) = noise else {
            return Ok(Some(ScoresFile::of(model, self.config().fairness.class.clone())));
        };
        journal.stage("releasing scores")?;
        let rng = &mut key.stream("scores", 0);
        with_thresholds(model, self.config(), candidate.fairness, tables.training(), noise, rng).map(Some)
    }

    fn release_scores(&self, planned: &Planned, cells: &ScoreCells, rng: &mut ChaCha20Rng) -> Result<CumulativeCounts> {
        scores::release(cells, planned.noise_multiplier, self.config().counted_per_unit(), rng)
    }

    /// Figures by group from counts of test records, if there are any, and the price list.
    fn fairness(
        &self,
        model: &FittedModel,
        candidate: &Candidate,
        (tables, measured): (&Tables, &Measured),
        scores: Option<&mut ScoresFile>,
        plan: &FitPlan,
        key: &NoiseKey,
    ) -> Result<FairnessReport> {
        let (groups, classes) = (model.encoding().groups(), model.classes());
        let answers = match measured {
            Measured::Classes(answers) => answers,
            Measured::Numbers(numbers) => return self.errors(model, numbers, plan, key),
        };
        let Some(scores) = scores else {
            if !plan.has_test() {
                return Ok(FairnessReport::unmeasured(classes));
            }
            let planned = plan.release(ANSWERS)?;
            let shape = (groups.len(), classes.len());
            let mut rng = key.stream("answers", 0);
            let exact = answers.counts(shape.0, shape.1);
            let records_per_unit = self.config().counted_per_unit();
            let counts = release_counts(exact, shape, planned.noise_multiplier, records_per_unit, &mut rng)?;
            return FairnessReport::of(&counts, groups, classes);
        };
        if let Some(planned) = plan.scores_of(Subset::Test) {
            let cells = tables.test().scores(model, scores)?;
            scores.test = Some(self.release_scores(planned, &cells, &mut key.stream("test scores", 0))?);
        }
        post_processing::report(scores, &self.config().fairness.aim_of(candidate.fairness)?, model)
    }

    /// Errors of predicted numbers by group from sums over test records, if there are any.
    fn errors(
        &self,
        model: &FittedModel,
        numbers: &NumberAnswers,
        plan: &FitPlan,
        key: &NoiseKey,
    ) -> Result<FairnessReport> {
        let Some(range) = model.number().filter(|_| plan.has_test()) else {
            return Ok(FairnessReport::unmeasured(&[]));
        };
        let groups = model.encoding().groups();
        let (noise, records_per_unit) = (plan.release(ERRORS)?.noise_multiplier, self.config().counted_per_unit());
        let sums = numbers.release(groups.len(), range, noise, records_per_unit, &mut key.stream("errors", 0))?;
        let of_records = sums.first().map_or(0.0, |sums| sums.variances[0].sqrt());
        let mut report = NumberReport::of(&sums, groups, range)?;
        if self.config().fairness.takes_off_mean_error {
            report = MeanErrorCorrections::of(&report).report(&sums, groups, range)?;
        }
        Ok(FairnessReport::of_numbers(report, of_records))
    }

    /// Exact figures of a model that is trained without privacy, for comparison.
    #[expect(clippy::too_many_arguments, reason = "the parts of one computation, each of another origin")]
    fn reference(
        &self,
        training: &Training<'_>,
        tables: &Tables,
        measured: TableSubset<'_>,
        candidate: &Candidate,
        model: &FittedModel,
        key: &NoiseKey,
        journal: &mut Journal<'_>,
    ) -> Result<Diagnostics> {
        journal.stage("training without privacy")?;
        let rows = tables.training().rows(self.options.ranks.clone());
        let trained = training.without_privacy(candidate, &rows, key, journal)?;
        let reference = self.model(trained, model.encoding().schema().clone(), candidate)?;
        let answers = measured.answers(&reference)?;
        tables.diagnostics(&reference, &answers, training.plan.has_test())
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one document, each of another origin")]
    fn statement(
        &self,
        account: &Account,
        plan: &FitPlan,
        tables: &Tables,
        candidate: &Candidate,
        fairness: &FairnessReport,
        total_epsilon: Option<f64>,
        program: Program,
    ) -> Result<ReleaseStatement> {
        let config = self.config();
        ReleaseStatement::of(Facts {
            account,
            delta: plan.delta,
            seed: self.division.key.seed,
            uncovered: plan.uncovered.clone(),
            existence: texts::existence(config),
            covers: texts::covers(plan.has_test()),
            unit: texts::unit(config),
            records: tables.sizes(),
            test_figures: texts::test_figures(fairness),
            tuning: texts::settings(config, plan, self.options.settings_note.as_deref()),
            model: candidate.model.clone(),
            method: texts::method(config, candidate),
            sampling: texts::sampling(plan),
            scope: total_epsilon.and_then(|_| config.scope().map(ToOwned::to_owned)),
            total_epsilon,
            program,
            card: config.card.clone(),
            started_from: plan.started_from.clone(),
            fixed: texts::fixed(config, tables.training.encoding()),
            epsilon_of_groups: plan.groups.iter().map(|group| (group.group.clone(), group.epsilon)).collect(),
        })
    }

    /// Writes the private files, then the release.
    fn publish(
        &self,
        (model, weights): (&FittedModel, Vec<u8>),
        curves: &Curves,
        scores: Option<&ScoresFile>,
        fitted: &Fitted,
        account: &Account,
        journal: &mut Journal<'_>,
    ) -> Result<()> {
        let Fitted { statement, fairness, diagnostics } = fitted;
        let mut files = ReleaseFiles::default();
        files.add_model(model, weights, curves, scores, statement, fairness)?;
        let write = |name: &str, text: &str| output::write(&self.private.join(name), text.as_bytes(), Readers::Owner);
        write("diagnostics.json", &json(diagnostics)?)?;
        write(CONFIG, self.document.text)?;
        journal.stage("done")?;
        files.publish(&self.options.out, statement.clone(), account)
    }
}

/// Tells the journal how large the tables are, and what they hold that is not declared: the
/// remarks.
fn describe(tables: &Tables, schema: &Schema, journal: &mut Journal<'_>) -> Result<Vec<String>> {
    let [n, n_test, _] = tables.sizes();
    journal.stage(format!(
        "{} records of {} features; {n} to train on, {n_test} to test on",
        tables.training.rows(),
        tables.training.width(),
    ))?;
    let remarks = tables.remarks(schema);
    remarks.iter().try_for_each(|remark| journal.stage(remark))?;
    Ok(remarks)
}

/// Refuses a file that would be trained on and tested on.
fn refuse_test_on_training(config: &Config, training: &TableFiles) -> Result<()> {
    let Some(test) = config.test_files()? else { return Ok(()) };
    if let Some(path) = test.shared_with(training) {
        let expected = "files that are not in table.files: a record is trained on or tested on, never both";
        return Err(FairdpError::invalid("test.files", path.display(), expected));
    }
    Ok(())
}

/// The program that runs.
pub(crate) fn program(path: Option<&Path>) -> Result<Program> {
    let path = match path {
        Some(path) => path.to_path_buf(),
        None => std::env::current_exe().map_err(FairdpError::io("find", Path::new("this program")))?,
    };
    let bytes = input::bytes(&path)?;
    Ok(Program { version: env!("CARGO_PKG_VERSION").into(), sha256: sha256(&bytes) })
}
