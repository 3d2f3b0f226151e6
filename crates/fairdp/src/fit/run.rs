//! The stages of a run.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dp_data::table::{EncodedFile, EncodedTable, TableCounts};

use super::checkpoint::{Checkpoints, TRAINER_CHECKPOINT};
use super::training::Training;
use super::{FitOptions, FitPlan, Fitted, bounds_of};
use crate::account::Account;
use crate::bounds;
use crate::card;
use crate::choice::Method;
use crate::config::{Config, Fairness};
use crate::diagnostics::{Answers, Diagnostics};
use crate::error::{FairdpError, Result};
use crate::fairness::{FairnessReport, NoisyCounts};
use crate::key::Key;
use crate::model::{Model, PIPELINE, Pipeline, WEIGHTS};
use crate::onnx::onnx;
use crate::output::{self, Readers};
use crate::parts::{Members, PartRows, beyond, feature_facts, is_test, split};
use crate::release::{Files, PRIVATE, RELEASE};
use crate::seal::sha256;
use crate::shared_ledger;
use crate::solver::rows::RowSource as _;
use crate::solver::{Settings, Streams as _};
use crate::statement::{Facts, Program, Statement, Unit};
use crate::thresholds::Scores;

/// Noise in a logit, in standard deviations of a typical one, beyond which a model would say nothing.
const DROWNED: f64 = 20.0;

/// The records of a run.
struct Tables {
    training: EncodedTable,
    counts: TableCounts,
    /// A test table of its own.
    test: Option<EncodedTable>,
    training_members: Members,
    test_members: Members,
}

impl Tables {
    fn test_table(&self) -> &EncodedTable {
        self.test.as_ref().unwrap_or(&self.training)
    }
}

#[expect(clippy::too_many_lines, reason = "the stages of a run, one after another")]
pub(super) fn fit(path: &Path, options: &FitOptions, progress: &mut (dyn FnMut(&str) + Send)) -> Result<Fitted> {
    let start = Instant::now();
    let text = fs::read_to_string(path).map_err(FairdpError::io("read", path))?;
    let config = Config::read(path)?;
    // Everything that can be refused without a record is refused before one is read.
    FitPlan::new(&config, path, 0)?;
    let private = begin(options)?;
    let mut log = Vec::new();
    let mut say = |line: String| {
        progress(&line);
        log.push(format!("{:8.2} s  {line}", start.elapsed().as_secs_f64()));
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.get()).build();
    let pool = pool.map_err(|error| FairdpError::Refused(format!("no threads: {error}")))?;
    let mut checkpoints = Checkpoints::begin(&private, &text, options.seed, options.resume)?;
    let key = checkpoints.checkpoint.key.clone();

    let fraction = if config.test.files.is_some() { 0.0 } else { config.test.fraction.unwrap_or(0.0) };
    let released = release_bounds(&config, path, fraction, &key, &mut say)?;
    let schema = config.schema(&|name| released.get(name).cloned())?;
    say(format!("reading {}", config.table.files.join(", ")));
    let place = private.join("encoded");
    let place = if options.keep_encoded { EncodedFile::Kept(&place) } else { EncodedFile::Temporary(&private) };
    let (training, counts) = pool.install(|| {
        EncodedTable::create(&config.files(&config.table.files)?, &schema, place).map_err(FairdpError::from)
    })?;
    let test = match &config.test.files {
        None => None,
        Some(files) => {
            let files = config.files(files)?;
            Some(EncodedTable::create(&files, &schema, EncodedFile::Temporary(&private))?.0)
        }
    };
    let (training_members, test_members) = split(&training, config.unit.is_some(), fraction, &key);
    let test_members = test.as_ref().map_or(test_members, |test| Members::All(test.rows()));
    let tables = Tables { training, counts, test, training_members, test_members };
    let n = tables.training_members.len();
    let plan = FitPlan::new(&config, path, n)?;
    say(format!(
        "{} records of {} features; {n} to train on, {} to test on",
        tables.training.rows(),
        tables.training.width(),
        tables.test_members.len()
    ));
    refuse_drowned(&plan, n, tables.training.width())?;
    let saved = checkpoints.bind(key.name_of(&tables.training))?;

    let max_records = config.unit.as_ref().map_or(1, |unit| unit.max_records);
    let left_out = match &config.unit {
        Some(unit) => beyond(&tables.training, &tables.training_members, unit.max_records),
        None => Vec::new(),
    };
    let settings = Settings {
        counts: plan.release("class counts")?.noise_multiplier,
        squares: plan.release("mean squares of the features")?.noise_multiplier,
        gradients: plan.release("gradients")?.noise_multiplier,
        steps: plan.release("gradients")?.count,
        records_per_unit: max_records,
    };
    let mut account = Account::default();
    for release in &plan.releases {
        account.record(release)?;
    }
    let total_epsilon = match &options.ledger {
        Some(file) => {
            let limits = (config.privacy.total_epsilon, plan.delta);
            Some(shared_ledger::enter(file, &key.name(), &account, limits, plan.epsilon)?)
        }
        None => None,
    };
    let classes = schema.label.classes.clone();
    let training = Training {
        plan: &plan,
        settings: &settings,
        n_classes: classes.len(),
        n_groups: tables.training.encoding().group_names().len(),
        threads: options.threads,
        pool: &pool,
        key: &key,
    };
    let rows = PartRows::new(&tables.training, &tables.training_members, &left_out);
    let facts = feature_facts(&tables.training);
    let place = private.join(TRAINER_CHECKPOINT);
    let trained = training.run(&rows, facts, Some((saved, &mut checkpoints, &place)), &mut say)?;
    let pipeline = Pipeline::new(schema, trained.priors, config.model.decision);
    let mut model = Model::new(pipeline, trained.layers)?;

    let groups = model.encoding().group_names().to_vec();
    let thresholds = match config.fairness {
        Fairness::None => None,
        mode => {
            say("choosing thresholds".into());
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
        say("testing".into());
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
    let sizes = (n, tables.test_members.len());
    let mut diagnostics = Diagnostics::of(&answers, sizes, &groups, classes.len(), tables.counts.clone())?;
    if options.reference {
        say("training without privacy".into());
        let trained = training.without_privacy(&rows, facts, &mut say)?;
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
        records: [sizes.0, sizes.1],
        test_figures: test_figures(has_test, fairness.noise_std),
        tuning: "none: every setting follows from public numbers and from the releases below".into(),
        model: plan.model.clone(),
        method: plan.method.clone(),
        sampling: sampling(&plan),
        total_epsilon,
        program: program()?,
    })?;
    let mut files = Files::default();
    files.add(WEIGHTS, model.safetensors()?);
    files.add("model.onnx", onnx(&model));
    files.add(PIPELINE, json(model.pipeline())?);
    files.add("fairness.json", json(&fairness)?);
    files.add("card.html", card::html(&model, &statement, &fairness));
    output::write(&private.join("diagnostics.json"), json(&diagnostics)?.as_bytes(), Readers::Owner)?;
    output::write(&private.join("config.toml"), text.as_bytes(), Readers::Owner)?;
    say("done".into());
    output::write(&private.join("log.txt"), (log.join("\n") + "\n").as_bytes(), Readers::Owner)?;
    files.publish(&options.out, statement.clone(), &account)?;
    checkpoints.end()?;
    Ok(Fitted { statement, fairness, diagnostics })
}

/// Bounds that are paid for, by column. With a shared ledger they are made after the fit has entered it.
fn release_bounds(
    config: &Config,
    path: &Path,
    fraction: f64,
    key: &Key,
    say: &mut dyn FnMut(String),
) -> Result<HashMap<String, Vec<f64>>> {
    if bounds::paid_for(config).next().is_none() {
        return Ok(HashMap::new());
    }
    say("releasing bounds".into());
    let plan = FitPlan::new(config, path, 0)?;
    let counts = bounds::count(config, &|row| !is_test(row, fraction, key))?;
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
    let gradients = plan.release("gradients")?;
    let one = gradients.noise_multiplier.get() / (gradients.count as f64).sqrt();
    // A row's length is about the root of the number of features; a balanced class has a variance of a quarter, halved.
    let in_logits = one * width as f64 / (n_records.max(1) as f64 * 0.125);
    if in_logits <= DROWNED {
        return Ok(());
    }
    let factor = in_logits / DROWNED;
    Err(FairdpError::Refused(format!(
        "{n_records} records are too few for {width} features at ε = {}: the noise would be {in_logits:.0} times a logit. \
         About {:.0} records, or ε = {:.1}, or {:.0} features (fewer columns or bins) would do",
        plan.epsilon,
        n_records as f64 * factor,
        plan.epsilon * factor,
        (width as f64 / factor).floor().max(1.0)
    )))
}

/// What the model says of a part.
fn answers(model: &Model, table: &EncodedTable, members: &Members, left_out: &[bool]) -> Answers {
    let rows = PartRows::new(table, members, left_out);
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
             deviation {std:.2}; a record is trained on or tested on, never both, so ε is the larger of the two"
        )
    } else {
        "none: all records were trained on".into()
    }
}

/// How records came into batches and parts.
fn sampling(plan: &FitPlan) -> String {
    let rate = match &plan.choice.method {
        Method::Named(named) => named.sampling_rate.get(),
        Method::FullDescent => 1.0,
    };
    let batches = if rate < 1.0 {
        format!(
            "Poisson: this program drew every record into every batch with probability {rate}, independently, by ChaCha20; \
             which records a batch has is not released"
        )
    } else {
        "none: every step uses all training records, so nothing is amplified and nothing assumed of a sampler".into()
    };
    format!(
        "{batches}; training and test records were divided by this program, by the record's number or by a keyed hash of its \
         unit"
    )
}

/// This program.
fn program() -> Result<Program> {
    let path = std::env::current_exe().map_err(FairdpError::io("find", Path::new("this program")))?;
    let bytes = fs::read(&path).map_err(FairdpError::io("read", &path))?;
    Ok(Program { version: env!("CARGO_PKG_VERSION").into(), sha256: sha256(&bytes) })
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| FairdpError::Refused(format!("a document cannot be written: {error}")))
}
