//! The stages of a run.

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dp_data::table::{EncodedFile, EncodedTable, TableCounts};
use dp_train::ranks::Alone;

use super::candidates::trials;
use super::checkpoint::{Checkpoints, TRAINER_CHECKPOINT};
use super::journal::{Journal, Progress};
use super::search::search;
use super::training::Training;
use super::{FitOptions, FitPlan, Fitted, bounds_of};
use crate::account::{Account, Part};
use crate::bounds;
use crate::card;
use crate::config::{Config, Fairness, TuningEntry};
use crate::diagnostics::{Answers, Diagnostics};
use crate::error::{FairdpError, Result};
use crate::fairness::{FairnessReport, NoisyCounts};
use crate::input;
use crate::key::Key;
use crate::model::{Model, PIPELINE, Pipeline, WEIGHTS};
use crate::onnx::onnx;
use crate::output::{self, Readers};
use crate::parts::{Members, PartRows, Shares, beyond, feature_facts, split};
use crate::release::{Files, PRIVATE, RELEASE};
use crate::seal::sha256;
use crate::shared_ledger;
use crate::solver::Streams as _;
use crate::solver::rows::RowSource as _;
use crate::statement::{Facts, Program, Statement, Unit};
use crate::thresholds::{Scores, least_records};

/// Noise in a logit, in standard deviations of a typical one, beyond which a model would say nothing.
const DROWNED: f64 = 20.0;
/// More threads than any machine has cores.
const MOST_THREADS: usize = 1_024;

/// The records of a run.
struct Tables {
    training: EncodedTable,
    counts: TableCounts,
    /// A test table of its own.
    test: Option<EncodedTable>,
    training_members: Members,
    test_members: Members,
    validation_members: Members,
}

impl Tables {
    fn test_table(&self) -> &EncodedTable {
        self.test.as_ref().unwrap_or(&self.training)
    }
}

pub(super) fn fit(
    (text, config, path): (&str, &Config, &Path),
    options: &FitOptions,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<Fitted> {
    // Everything that can be refused without a record is refused before one is read.
    FitPlan::new(config, path, 0)?;
    if options.threads.get() > MOST_THREADS {
        return Err(FairdpError::invalid("threads", options.threads, format!("at most {MOST_THREADS}")));
    }
    if options.ranks.rank() > 0 {
        return run((text, config, path), options, &std::env::temp_dir(), progress);
    }
    if let Some(ledger) = &options.ledger {
        shared_ledger::check(ledger, config.privacy.delta)?;
    }
    let private = begin(options)?;
    let ended = run((text, config, path), options, &private, progress);
    if ended.is_err() && !options.resume && Checkpoints::is_without_table(&private) {
        // The next attempt finds the place as it was.
        let _ = fs::remove_dir_all(&private).and_then(|()| fs::remove_dir(&options.out));
    }
    ended
}

/// `private` is the run's private folder, and on other ranks than the first a folder for what is temporary.
#[expect(clippy::too_many_lines, reason = "the stages of a run, one after another")]
fn run(
    (text, config, path): (&str, &Config, &Path),
    options: &FitOptions,
    private: &Path,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<Fitted> {
    let ranks = &options.ranks;
    let is_first = ranks.rank() == 0;
    let mut journal = Journal::new(progress);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.get()).build();
    let pool = pool.map_err(|error| FairdpError::Refused(format!("no threads: {error}")))?;
    let mut checkpoints = Checkpoints::of_ranks(private, text, options.seed, options.resume, &**ranks)?;
    let key = checkpoints.checkpoint.key.clone();

    let shares = Shares {
        test: if config.test.files.is_some() { 0.0 } else { config.test.fraction.unwrap_or(0.0) },
        validation: config.tuning.as_ref().map_or(0.0, TuningEntry::fraction),
    };
    let released = release_bounds(config, path, shares, &key, &mut journal)?;
    let schema = config.schema(&|name| released.get(name).cloned())?;
    journal.stage(format!("reading {}", config.table.files.join(", ")))?;
    let place = private.join("encoded");
    let is_kept = options.keep_encoded && is_first;
    let place = if is_kept { EncodedFile::Kept(&place) } else { EncodedFile::Temporary(private) };
    let (training, counts) =
        pool.install(|| EncodedTable::create(&config.training_files()?, &schema, place).map_err(FairdpError::from))?;
    let test = match &config.test.files {
        None => None,
        Some(files) => {
            let files = config.files(files)?;
            Some(EncodedTable::create(&files, &schema, EncodedFile::Temporary(private))?.0)
        }
    };
    let [training_members, test_members, validation_members] = split(&training, config.unit.is_some(), shares, &key);
    let test_members = test.as_ref().map_or(test_members, |test| Members::All(test.rows()));
    let tables = Tables { training, counts, test, training_members, test_members, validation_members };
    let n = tables.training_members.len();
    let plan = FitPlan::new(config, path, n)?;
    journal.stage(format!(
        "{} records of {} features; {n} to train on, {} to test on",
        tables.training.rows(),
        tables.training.width(),
        tables.test_members.len()
    ))?;
    let max_records = config.unit.as_ref().map_or(1, |unit| unit.max_records);
    refuse_drowned(&plan, n, tables.training.width())?;
    if config.fairness != Fairness::None {
        let planned = plan.release("scores by group and class")?;
        refuse_short(config, n, least_records(planned.noise_multiplier, max_records))?;
    }
    let table = key.name_of(&tables.training);
    ranks.agree("the table", table.as_bytes())?;
    let saved = checkpoints.bind(table)?;

    let left_out = match &config.unit {
        Some(unit) => beyond(&tables.training, &tables.training_members, unit.max_records),
        None => Vec::new(),
    };
    let mut account = Account::default();
    for release in &plan.releases {
        account.record(release)?;
    }
    let total_epsilon = match &options.ledger {
        Some(file) => {
            let limits = (config.privacy.total_epsilon, plan.delta);
            let total =
                if is_first { shared_ledger::enter(file, &key.name(), &account, limits, plan.epsilon)? } else { 0.0 };
            let bits = ranks.broadcast(total.to_bits().to_le_bytes().to_vec())?;
            bits.first_chunk().map(|bits| f64::from_le_bytes(*bits))
        }
        None => None,
    };
    let classes = schema.label.classes.clone();
    let training = Training {
        plan: &plan,
        records_per_unit: max_records,
        n_classes: classes.len(),
        n_groups: tables.training.encoding().group_names().len(),
        threads: options.threads,
        pool: &pool,
        facts: feature_facts(&tables.training),
        ranks: ranks.clone(),
    };
    let rows = PartRows::new(&tables.training, &tables.training_members, &left_out, ranks.clone());
    let place = private.join(TRAINER_CHECKPOINT);
    let (trained, candidate) = match &config.tuning {
        None => {
            let candidate = &plan.candidates[0];
            let kept = Some((saved, &mut checkpoints, &*place));
            let prepared = training.prepare(candidate, &rows, &key)?;
            (training.run(candidate, &rows, &prepared, &key, kept, &mut journal)?, candidate)
        }
        Some(tuning) => {
            let left_out = match &config.unit {
                Some(unit) => beyond(&tables.training, &tables.validation_members, unit.max_records),
                None => Vec::new(),
            };
            let validation = PartRows::new(&tables.training, &tables.validation_members, &left_out, ranks.clone());
            search(&training, trials(tuning)?, [&rows, &validation], &schema, &key, &mut journal)?
        }
    };
    let pipeline = Pipeline::new(schema, trained.priors, config.model.decision);
    let mut model = Model::new(pipeline, trained.layers)?;

    let groups = model.encoding().group_names().to_vec();
    let thresholds = match config.fairness {
        Fairness::None => None,
        mode => {
            journal.stage("choosing thresholds")?;
            let planned = plan.release("scores by group and class")?;
            let answers = answers(&model, &tables.training, &tables.training_members, &left_out);
            let mut rng = key.stream("scores", 0);
            let scores =
                Scores::release(answers.log_odds(), groups.len(), planned.noise_multiplier, max_records, &mut rng);
            let offsets = &model.pipeline().offsets[0];
            let chosen = scores.choose(mode, offsets[0] - offsets[1], &groups);
            model.pipeline_mut().fairness = mode;
            model.pipeline_mut().offsets = chosen.by_group.iter().map(|&threshold| vec![threshold, 0.0]).collect();
            Some(chosen)
        }
    };
    let has_test = tables.test_members.len() > 0;
    let test_left_out = match &config.unit {
        Some(unit) if has_test => beyond(tables.test_table(), &tables.test_members, unit.max_records),
        _ => Vec::new(),
    };
    let (mut fairness, answers) = if has_test {
        journal.stage("testing")?;
        let answers = answers(&model, tables.test_table(), &tables.test_members, &test_left_out);
        let planned = plan.release("answers by group and class")?;
        let shape = (groups.len(), classes.len());
        let mut rng = key.stream("answers", 0);
        let exact = answers.counts(shape.0, shape.1);
        let counts = NoisyCounts::release(exact, shape, planned.noise_multiplier, max_records, &mut rng);
        (FairnessReport::of(&counts, &groups, &classes), answers)
    } else {
        let answers = self::answers(&model, &tables.training, &tables.training_members, &left_out);
        (FairnessReport::unmeasured(&classes), answers)
    };
    fairness.thresholds = thresholds;
    let (sizes, n_validation) = ((n, tables.test_members.len()), tables.validation_members.len());
    let mut diagnostics = Diagnostics::of(&answers, sizes, &groups, classes.len(), tables.counts.clone())?;
    if options.reference {
        journal.stage("training without privacy")?;
        let trained = training.without_privacy(candidate, &rows, &key, &mut journal)?;
        let pipeline = Pipeline::new(model.encoding().schema().clone(), trained.priors, config.model.decision);
        let reference = Model::new(pipeline, trained.layers)?;
        let answers = if has_test {
            self::answers(&reference, tables.test_table(), &tables.test_members, &test_left_out)
        } else {
            self::answers(&reference, &tables.training, &tables.training_members, &left_out)
        };
        let found = Diagnostics::of(&answers, sizes, &groups, classes.len(), tables.counts.clone())?;
        diagnostics.reference = Some(Box::new(found));
    }

    let statement = Statement::of(Facts {
        account: &account,
        delta: plan.delta,
        seed: key.seed,
        uncovered: plan.uncovered.clone(),
        covers: covers(has_test),
        unit: match &config.unit {
            None => Unit { what: "one record (a row of the table)".into(), max_records: 1 },
            Some(unit) => {
                Unit { what: format!("all records with one value of `{}`", unit.column), max_records: unit.max_records }
            }
        },
        records: [sizes.0, sizes.1, n_validation],
        test_figures: test_figures(has_test, fairness.noise_std),
        tuning: tuning(config, &plan),
        model: candidate.model.clone(),
        method: candidate.method.clone(),
        sampling: sampling(&plan),
        total_epsilon,
        program: program(options.program.as_deref())?,
    })?;
    let weights = model.safetensors()?;
    ranks.agree("the model", sha256(&weights).as_bytes())?;
    if !is_first {
        return Ok(Fitted { statement, fairness, diagnostics });
    }
    let mut files = Files::default();
    files.add(WEIGHTS, weights);
    files.add("model.onnx", onnx(&model));
    files.add(PIPELINE, json(model.pipeline())?);
    files.add("fairness.json", json(&fairness)?);
    files.add("card.html", card::html(&model, &statement, &fairness));
    output::write(&private.join("diagnostics.json"), json(&diagnostics)?.as_bytes(), Readers::Owner)?;
    output::write(&private.join("config.toml"), text.as_bytes(), Readers::Owner)?;
    journal.stage("done")?;
    output::write(&private.join("log.txt"), journal.text().as_bytes(), Readers::Owner)?;
    files.publish(&options.out, statement.clone(), &account)?;
    checkpoints.end()?;
    Ok(Fitted { statement, fairness, diagnostics })
}

/// Bounds that are paid for, by column. With a shared ledger they are made after the fit has entered it.
fn release_bounds(
    config: &Config,
    path: &Path,
    shares: Shares,
    key: &Key,
    journal: &mut Journal<'_>,
) -> Result<HashMap<String, Vec<f64>>> {
    if bounds::paid_for(config).next().is_none() {
        return Ok(HashMap::new());
    }
    journal.stage("releasing bounds")?;
    let plan = FitPlan::new(config, path, 0)?;
    let counts = bounds::count(config, &|row| shares.part(row, key) == Part::Training)?;
    let release = |(name, counts): (String, Vec<f64>)| {
        let purpose = bounds_of(&name);
        let sigma = plan.release(&purpose)?.noise_multiplier;
        let edges = bounds::release(&name, counts, sigma, &mut key.stream(&purpose, 0))?;
        Ok((name, edges))
    };
    counts.into_iter().map(release).collect()
}

/// Takes the folder: a new or empty one, or that of the run that is continued.
fn begin(options: &FitOptions) -> Result<PathBuf> {
    let out = &options.out;
    if out.join(RELEASE).exists() {
        return Err(FairdpError::Refused(format!("{} holds a release: give another folder", out.display())));
    }
    let is_taken = out.exists() && fs::read_dir(out).map_err(FairdpError::io("read", out))?.next().is_some();
    if is_taken && !options.resume {
        let advice = "give another folder, or --resume to continue the run in it";
        return Err(FairdpError::Refused(format!("{} is not empty: {advice}", out.display())));
    }
    let private = out.join(PRIVATE);
    output::private_folder(&private)?;
    Ok(private)
}

/// Refuses a run whose model would be noise, and says what would do.
fn refuse_drowned(plan: &FitPlan, n_records: usize, width: usize) -> Result<()> {
    for candidate in &plan.candidates {
        let rate = candidate.choice.sampling_rate();
        let one = candidate.noise_multiplier.get() / (candidate.steps as f64).sqrt() / rate;
        // A row's length is about the root of the number of features; a balanced class has a variance of a quarter, halved.
        let in_logits = one * width as f64 / (n_records.max(1) as f64 * 0.125);
        if in_logits > DROWNED {
            let factor = in_logits / DROWNED;
            return Err(FairdpError::Refused(format!(
                "{n_records} records are too few for {width} features at ε = {}: the noise would be {in_logits:.0} times a \
                 logit. About {:.0} records, or ε = {:.1}, or {:.0} features (fewer columns or bins) would do",
                plan.epsilon,
                n_records as f64 * factor,
                plan.epsilon * factor,
                (width as f64 / factor).floor().max(1.0)
            )));
        }
    }
    Ok(())
}

/// Refuses thresholds by group where no group could have one of its own, and says what would do.
fn refuse_short(config: &Config, n_records: usize, least: usize) -> Result<()> {
    if n_records >= least {
        return Ok(());
    }
    let epsilon = config.privacy.epsilon;
    Err(FairdpError::Refused(format!(
        "fairness: {n_records} training records are too few for thresholds by group at ε = {epsilon}: two groups need {least} \
         at least. So many, or about ε = {:.1}, or fairness = \"none\" would do",
        epsilon * least as f64 / n_records.max(1) as f64
    )))
}

/// What the model says of a part.
fn answers(model: &Model, table: &EncodedTable, members: &Members, left_out: &[bool]) -> Answers {
    let rows = PartRows::new(table, members, left_out, Arc::new(Alone));
    let mut answers = Answers::default();
    let mut probabilities = vec![0.0; model.classes().len()];
    rows.visit(0..members.len(), &mut |index, row| {
        if row.is_blank() {
            return;
        }
        let group = table.group(members.row(index));
        let features = row.columns.iter().map(|&column| column as usize).zip(row.values.iter().copied());
        model.probabilities(features, &mut probabilities);
        answers.labels.push(row.label as u32);
        answers.answers.push(model.decide(&probabilities, group as usize) as u32);
        answers.groups.push(group);
        answers.scores.push(probabilities[probabilities.len() - 1]);
    });
    answers
}

fn covers(has_test: bool) -> Vec<String> {
    let mut covers = vec!["the model".to_owned(), "its pipeline".to_owned(), "its card".to_owned()];
    if has_test {
        covers.push("the fairness figures".to_owned());
    }
    covers
}

fn test_figures(has_test: bool, std: f64) -> String {
    if has_test {
        format!(
            "from counts by group, class and answer on records that were not trained on, each with Gaussian noise of standard \
             deviation {std:.2}; a record is in one part alone, so ε is the largest of the parts'"
        )
    } else {
        "none: all records were trained on".into()
    }
}

/// How settings were chosen.
fn tuning(config: &Config, plan: &FitPlan) -> String {
    let Some(tuning) = &config.tuning else {
        return "none: every setting follows from public numbers and from the releases below".into();
    };
    format!(
        "the best of a random number of trials, {} expected, each a candidate out of {} that was drawn without a look at the \
         records; compared by the noisy sum of 1 less the Brier score over records that were neither trained nor tested on \
         (Papernot and Steinke 2022); the other trials and their number stay secret",
        tuning.mean_trials,
        plan.candidates.len()
    )
}

/// How records came into batches and parts.
fn sampling(plan: &FitPlan) -> String {
    let mut rates: Vec<f64> = plan.candidates.iter().map(|candidate| candidate.choice.sampling_rate()).collect();
    rates.retain(|rate| *rate < 1.0);
    let batches = if rates.is_empty() {
        "none: every step uses all training records, so nothing is amplified and nothing assumed of a sampler".into()
    } else {
        format!(
            "Poisson: this program drew every record into every batch with probability {}, independently, by ChaCha20; which \
             records a batch has is not released",
            rates.iter().map(f64::to_string).collect::<Vec<_>>().join(" or ")
        )
    };
    format!(
        "{batches}; the parts of the records were divided by this program, by the record's number or by a keyed hash of its \
         unit"
    )
}

/// The program that runs.
fn program(path: Option<&Path>) -> Result<Program> {
    let path = match path {
        Some(path) => path.to_path_buf(),
        None => std::env::current_exe().map_err(FairdpError::io("find", Path::new("this program")))?,
    };
    let bytes = input::bytes(&path)?;
    Ok(Program { version: env!("CARGO_PKG_VERSION").into(), sha256: sha256(&bytes) })
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| FairdpError::Refused(format!("a document cannot be written: {error}")))
}
