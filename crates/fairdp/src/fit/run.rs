//! The stages of a run.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use dp_table::{BadRows, EncodedFile, EncodedTable, TableFiles};
use dp_train::{Device, DeviceName, NUMERICS, platform};

use super::candidates::trials;
use super::checkpoint::{Checkpoints, TRAINER_CHECKPOINT};
use super::device;
use super::folder::RunFolder;
use super::journal::{Journal, Progress};
use super::search::search;
use super::tables::{Tables, can_share};
use super::training::Training;
use super::{FitOptions, FitPlan, Fitted, bounds_of};
use crate::account::{Account, Part};
use crate::bounds;
use crate::card;
use crate::config::{Config, Fairness, TuningEntry};
use crate::diagnostics::Diagnostics;
use crate::error::{FairdpError, Result};
use crate::exit::Exit;
use crate::fairness::{FairnessReport, release_counts};
use crate::input;
use crate::key::{Bound, DrawnKey, NoiseKey};
use crate::model::{Model, PIPELINE, Pipeline, WEIGHTS};
use crate::onnx::onnx;
use crate::output::{self, Readers};
use crate::parts::{Shares, feature_facts};
use crate::release::{FAIRNESS, Files};
use crate::seal::sha256;
use crate::shared_ledger;
use crate::solver::Streams as _;
use crate::solver::exact::of_ranks;
use crate::source::Source;
use crate::statement::{Facts, Program, Statement, Unit};
use crate::thresholds::{Edges, Scores, offsets};

/// More threads than any machine has cores.
const MOST_THREADS: usize = 1_024;

pub(super) fn fit(
    (text, config, path): (&str, &Config, &Path),
    options: &FitOptions,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<Fitted> {
    let device = check(config, path, options)?;
    if options.ranks.rank() > 0 {
        return run((text, config, path), (options, device), &std::env::temp_dir(), progress);
    }
    let folder = RunFolder::take(&options.out, options.resume)?;
    match run((text, config, path), (options, device), folder.private(), progress) {
        Ok(fitted) => {
            folder.close()?;
            Ok(fitted)
        }
        Err(error) => {
            // A run whose noise was drawn can be continued: another one would be charged again.
            if !options.resume {
                folder.give_up();
            }
            Err(error)
        }
    }
}

/// Everything that can be refused without a record, before one is read.
pub(super) fn check(config: &Config, path: &Path, options: &FitOptions) -> Result<Device> {
    let plan = FitPlan::new(config, path, 0)?;
    if options.threads.get() > MOST_THREADS {
        return Err(FairdpError::invalid("threads", options.threads, format!("at most {MOST_THREADS}")));
    }
    let device = device::open(options.device, &plan)?;
    if let (None, Some(total)) = (&options.ledger, config.privacy.total_epsilon) {
        let expected = "--ledger FILE with it, which fits on one table share, or no total_epsilon";
        return Err(FairdpError::invalid("privacy.total_epsilon", total, expected));
    }
    refuse_test_on_training(config, &config.training_files()?)?;
    if let Some(ledger) = options.ledger.as_ref().filter(|_| options.ranks.rank() == 0) {
        shared_ledger::check(ledger, config.privacy.delta, config.unit_column())?;
    }
    Ok(device)
}

/// Shares of the parts of the training table.
pub(super) fn shares(config: &Config) -> Shares {
    Shares {
        test: if config.test.files.is_some() { 0.0 } else { config.test.fraction.unwrap_or(0.0) },
        validation: config.tuning.as_ref().map_or(0.0, TuningEntry::fraction),
    }
}

/// `private` is the run's private folder, and on other ranks than the first a folder for what is
/// temporary.
#[expect(clippy::too_many_lines, reason = "the stages of a run, one after another")]
fn run(
    (text, config, path): (&str, &Config, &Path),
    (options, device): (&FitOptions, Device),
    private: &Path,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<Fitted> {
    let ranks = &options.ranks;
    let is_first = ranks.rank() == 0;
    let mut journal = Journal::new(progress);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.get()).build();
    let pool = pool.map_err(|error| FairdpError::system("threads", error))?;
    let program = program(options.program.as_deref())?;
    let arithmetic = format!("{NUMERICS}, {}, {}, {}", platform(), program.sha256, device::kind(options.device));
    let mut checkpoints = Checkpoints::of_ranks(private, (text, &arithmetic), options.seed, options.resume, &**ranks)?;
    let drawn = checkpoints.drawn().clone();

    let shares = shares(config);
    let chosen = FitPlan::new(config, path, 0)?;
    let files = config.training_files()?;
    let is_shared = can_share(config, &chosen.candidates[0].choice, options);
    let mut source = Source::new(files, ranks, is_shared)?;
    let mut bind = |bound: &Bound, plan: &FitPlan| {
        let key = checkpoints.bind(bound)?;
        enter_ledger(config, options, &mut checkpoints, &key, plan)?;
        Ok(key)
    };
    let released = release_bounds((text, config, path), &mut source, (shares, &drawn), &mut bind, &mut journal)?;
    let schema = config.schema(&|name| released.get(name).cloned())?;
    journal.stage(format!("reading {}", config.table.files.join(", ")))?;
    let place = private.join("encoded");
    let is_kept = options.keep_encoded && is_first;
    let place = if is_kept { EncodedFile::Kept(&place) } else { EncodedFile::Temporary(private) };
    let mut tables =
        pool.install(|| Tables::read(config, &schema, source, (place, private), (shares, &drawn), ranks))?;
    let [n, n_test, n_validation] = tables.sizes();
    let plan = FitPlan::of_table(config, path, tables.size(config)?)?;
    journal.stage(format!(
        "{} records of {} features; {n} to train on, {n_test} to test on",
        tables.training.rows(),
        tables.training.width(),
    ))?;
    let mut remarks = tables.counts.remarks(&schema);
    if let Some(counts) = &tables.test_counts {
        remarks.extend(counts.remarks(&schema).into_iter().map(|remark| format!("test table: {remark}")));
    }
    for remark in &remarks {
        journal.stage(remark)?;
    }
    let max_records = config.unit.as_ref().map_or(1, |unit| unit.max_records);
    let key = checkpoints.bind(&tables.bound(text)?)?;
    // Nobody goes on before all have bound the key, to the same records.
    let encoded: Vec<&str> = tables.all().map(EncodedTable::digest).collect();
    ranks.agree("the table", sha256(format!("{} {encoded:?}", key.bound_to()).as_bytes()).as_bytes())?;

    pool.install(|| tables.share_out((config, &plan.candidates[0].choice), (shares, &drawn), private))?;
    let account = account_of(&plan)?;
    let total_epsilon = enter_ledger(config, options, &mut checkpoints, &key, &plan)?;
    let classes = schema.label.classes.clone();
    let training = Training {
        plan: &plan,
        records_per_unit: max_records,
        n_classes: classes.len(),
        n_groups: tables.training.encoding().groups().len(),
        threads: options.threads,
        device,
        pool: &pool,
        facts: feature_facts(&tables.training),
        ranks: ranks.clone(),
    };
    if options.device != DeviceName::Cpu {
        journal.stage(format!("training on {}", options.device))?;
    }
    let training_part = tables.training();
    let rows = training_part.rows(ranks.clone());
    let place = private.join(TRAINER_CHECKPOINT);
    let (trained, candidate) = match &config.tuning {
        None => {
            let candidate = &plan.candidates[0];
            let kept = Some((checkpoints.take_state(), &mut checkpoints, &*place));
            let prepared = training.prepare(candidate, &rows, &key)?;
            (training.run(candidate, &rows, &prepared, &key, kept, &mut journal)?, candidate)
        }
        Some(tuning) => {
            let validation = tables.validation().rows(ranks.clone());
            search(&training, trials(tuning)?, [&rows, &validation], &schema, &key, &mut journal)?
        }
    };
    let pipeline = Pipeline::new(schema, trained.priors, config.model.decision);
    let mut model = Model::new(pipeline, trained.layers)?;

    let groups = model.encoding().groups().to_vec();
    let thresholds = match config.fairness {
        Fairness::None => None,
        mode => {
            journal.stage("choosing thresholds")?;
            let planned = plan.release("scores by group and class")?;
            let common = &model.pipeline().offsets[0];
            let edges = Edges::around(common[0] - common[1]);
            let counts = of_ranks(training_part.scores_here(&model, &edges), training_part.ranks())?;
            let mut rng = key.stream("scores", 0);
            let scores = Scores::release(counts, planned.noise_multiplier, max_records, &mut rng);
            let chosen = scores.choose(mode, &edges, &groups, &classes);
            model.pipeline_mut().fairness = mode;
            model.pipeline_mut().offsets = chosen.by_group.iter().map(|&edge| offsets(edge).to_vec()).collect();
            Some(chosen)
        }
    };
    let has_test = plan.has_test();
    let measured = if has_test { tables.test() } else { tables.training() };
    if has_test {
        journal.stage("testing")?;
    }
    let answers = measured.answers(&model)?;
    let mut fairness = if has_test {
        let planned = plan.release("answers by group and class")?;
        let shape = (groups.len(), classes.len());
        let mut rng = key.stream("answers", 0);
        let exact = answers.counts(shape.0, shape.1);
        let counts = release_counts(exact, shape, planned.noise_multiplier, max_records, &mut rng)?;
        FairnessReport::of(&counts, &groups, &classes)?
    } else {
        FairnessReport::unmeasured(&classes)
    };
    fairness.thresholds = thresholds;
    let sizes = (n, n_test);
    let mut diagnostics = Diagnostics::of(&answers, (sizes, has_test), &groups, classes.len(), tables.counts.clone())?;
    (diagnostics.test_table, diagnostics.remarks) = (tables.test_counts.clone(), remarks);
    if options.reference {
        journal.stage("training without privacy")?;
        let trained = training.without_privacy(candidate, &rows, &key, &mut journal)?;
        let pipeline = Pipeline::new(model.encoding().schema().clone(), trained.priors, config.model.decision);
        let reference = Model::new(pipeline, trained.layers)?;
        let answers = measured.answers(&reference)?;
        let found = Diagnostics::of(&answers, (sizes, has_test), &groups, classes.len(), tables.counts.clone())?;
        diagnostics.reference = Some(Box::new(found));
    }

    let statement = Statement::of(Facts {
        account: &account,
        delta: plan.delta,
        seed: drawn.seed,
        uncovered: plan.uncovered.clone(),
        existence: existence(config),
        covers: covers(has_test),
        unit: match &config.unit {
            None => Unit {
                what: "one record (a row of the table; a person with several rows, say in a bootstrap sample, has \
                       less protection)"
                    .into(),
                max_records: 1,
            },
            Some(unit) => {
                let what =
                    format!("all records with one value of `{}` (which records share one is public)", unit.column);
                Unit { what, max_records: unit.max_records }
            }
        },
        records: [sizes.0, sizes.1, n_validation],
        test_figures: test_figures(&fairness),
        tuning: settings(config, &plan, options.known_of_settings.as_deref()),
        model: candidate.model.clone(),
        method: candidate.method.clone(),
        sampling: sampling(&plan),
        total_epsilon,
        program,
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
    files.add(FAIRNESS, json(&fairness)?);
    files.add("card.html", card::html(&model, &statement, &fairness));
    output::write(&private.join("diagnostics.json"), json(&diagnostics)?.as_bytes(), Readers::Owner)?;
    output::write(&private.join("config.toml"), text.as_bytes(), Readers::Owner)?;
    journal.stage("done")?;
    output::write(&private.join("log.txt"), journal.text().as_bytes(), Readers::Owner)?;
    files.publish(&options.out, statement.clone(), &account)?;
    Ok(Fitted { statement, fairness, diagnostics })
}

/// What a run of this plan releases.
pub(super) fn account_of(plan: &FitPlan) -> Result<Account> {
    let mut account = Account::default();
    for release in &plan.releases {
        account.record(release)?;
    }
    Ok(account)
}

/// Enters a fit into the ledger file, if there is one, and says the ε of all its fits on every
/// rank. It may be asked again.
fn enter_ledger(
    config: &Config,
    options: &FitOptions,
    checkpoints: &mut Checkpoints,
    key: &NoiseKey,
    plan: &FitPlan,
) -> Result<Option<f64>> {
    let Some(file) = &options.ledger else { return Ok(None) };
    let ranks = &options.ranks;
    let total = if ranks.rank() == 0 {
        let is_continued = checkpoints.note_entry(true)?;
        let fit = shared_ledger::Fit::new(key, &account_of(plan)?);
        let total = shared_ledger::enter(file, fit, is_continued, &config.privacy, config.unit_column());
        if total.as_ref().is_err_and(|error| error.exit() == Exit::Refused) && !is_continued {
            checkpoints.withdraw()?;
        }
        total?
    } else {
        0.0
    };
    let bits = ranks.broadcast(total.to_bits().to_le_bytes().to_vec())?;
    Ok(bits.first_chunk().map(|bits| f64::from_le_bytes(*bits)))
}

/// Bounds that are paid for, by column: made after the key is bound and the fit has entered the
/// ledger, which is what `bind` does.
fn release_bounds(
    (text, config, path): (&str, &Config, &Path),
    source: &mut Source,
    (shares, drawn): (Shares, &DrawnKey),
    bind: &mut dyn FnMut(&Bound, &FitPlan) -> Result<NoiseKey>,
    journal: &mut Journal<'_>,
) -> Result<HashMap<String, Vec<f64>>> {
    if bounds::paid_for(config).next().is_none() {
        return Ok(HashMap::new());
    }
    journal.stage("releasing bounds")?;
    let counts = bounds::count((text, config), source, &|row| shares.part(row, drawn) == Part::Training)?;
    let plan = FitPlan::of_table(config, path, counts.table)?;
    let key = bind(&counts.bound, &plan)?;
    let release = |(name, counts): (String, Vec<f64>)| {
        let purpose = bounds_of(&name);
        let sigma = plan.release(&purpose)?.noise_multiplier;
        let edges = bounds::release(&name, counts, sigma, &mut key.stream(&purpose, 0))?;
        Ok((name, edges))
    };
    counts.by_column.into_iter().map(release).collect()
}

/// Refuses a file that would be trained on and tested on.
fn refuse_test_on_training(config: &Config, training: &TableFiles) -> Result<()> {
    let Some(files) = &config.test.files else { return Ok(()) };
    let test = config.files(files)?;
    if let Some(path) = test.shared_with(training) {
        let expected = "files that are not in table.files: a record is trained on or tested on, never both";
        return Err(FairdpError::invalid("test.files", path.display(), expected));
    }
    Ok(())
}

fn covers(has_test: bool) -> Vec<String> {
    let mut covers = vec!["the model".to_owned(), "its pipeline".to_owned(), "its card".to_owned()];
    if has_test {
        covers.push("the fairness figures".to_owned());
    }
    covers
}

/// What a release tells by being there: a run that refuses its table has none.
fn existence(config: &Config) -> String {
    let says = match (config.table.bad_rows, &config.unit) {
        (BadRows::Refuse, _) => "every record fitted the configuration (`bad_rows = \"refuse\"`)",
        (BadRows::Drop, None) => "the table could be read to its end (`bad_rows = \"drop\"`)",
        (BadRows::Drop, Some(_)) => {
            "the table could be read to its end, and the unit of every record (`bad_rows = \"drop\"`)"
        }
    };
    format!("that this release exists: it says that {says}")
}

/// Where the test figures come from, and who may be served worst.
fn test_figures(fairness: &FairnessReport) -> String {
    if !fairness.measured {
        return "none: all records were trained on".into();
    }
    let lowest = fairness.lowest().map_or(String::new(), |lowest| format!("; {lowest}"));
    format!(
        "from counts by group, class and answer on records that were not trained on, each with Gaussian noise of standard \
         deviation {:.2}; a record is in one part alone, so ε is the largest of the parts'{lowest}",
        fairness.noise_std
    )
}

/// How settings were chosen.
fn settings(config: &Config, plan: &FitPlan, known: Option<&str>) -> String {
    let Some(tuning) = &config.tuning else {
        let given = config.given_settings();
        if let Some(known) = known {
            let given = if given.is_empty() { String::new() } else { format!(", with {}", given.join(", ")) };
            return format!(
                "none within this fit{given}. Whether its settings were chosen by a look at these records, or by earlier fits, is not \
                 known here, and no ε here covers it: {known}"
            );
        }
        if given.is_empty() {
            return "none: every setting follows from public numbers and from the releases below".into();
        }
        return format!(
            "{}, as the configuration has them. Choosing them by a look at these records costs privacy, and no ε here covers it",
            given.join(", ")
        );
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
    text.map(|text| text + "\n").map_err(FairdpError::json("a document cannot be written"))
}
