//! Resumed, narrowed and sharded studies against one that ran in one go.

use clap::Parser;
use dp_accounting::{Delta, Epsilon, NoiseMultiplier, TrialCount};
use dp_clipping::PresetParams;
use dp_data::dutch::{Encoding, GroupBy, Sampling};
use dp_data::{Dataset, Provenance, Split};
use dp_train::{
    CheckpointInterval, Checkpoints, Execution, LearningRate, Loss, ModelConfig, Observer, Randomness, StepState,
    TrainError, Trainer,
};
use indicatif::ProgressBar;
use ndarray::Array2;
use run_records::export::{Format, export};
use run_records::join::join;
use run_records::table::Table;
use run_records::{Database, MethodResults, PrivacyRecord, RunKey, SessionRecord, StudyResults, compact};

use super::data_setting::Source;
use super::experiment::{BatchCounting, BatchSize, Begins, Experiment, MethodSetting, NON_PRIVATE, Noise};
use super::given::GivenRuns;
use super::options::StudyOptions;
use super::plans::plan_of;
use super::random_search::RandomSearch;
use super::recorder::Recorder;
use super::records::ExperimentData;
use super::runner::{Prepared, run_all};
use super::session::Session;
use super::training::train;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: StudyOptions,
}

/// Runs a study of two groups on a line, with these methods and arguments, and two seeds; `None` if
/// other shards' runs are missing.
fn run(folder: &std::path::Path, methods: &[&'static str], arguments: &str) -> anyhow::Result<Option<StudyResults>> {
    run_experiment(folder, experiment(methods)?, arguments)
}

fn run_experiment(
    folder: &std::path::Path,
    experiment: Experiment,
    arguments: &str,
) -> anyhow::Result<Option<StudyResults>> {
    run_on(folder, experiment, arguments, provenance(), 0)
}

/// The same on records of another provenance, or moved by some rows.
fn run_on(
    folder: &std::path::Path,
    experiment: Experiment,
    arguments: &str,
    provenance: Provenance,
    moved: usize,
) -> anyhow::Result<Option<StudyResults>> {
    let words = format!("study --out {} --threads 2 {arguments}", folder.display());
    let options = Line::try_parse_from(words.split_whitespace())?.options;
    let session = Session::begin("line", &options, None)?;
    run_in(&session, experiment, provenance, moved)
}

/// The same in a session that has begun.
fn run_in(
    session: &Session,
    experiment: Experiment,
    provenance: Provenance,
    moved: usize,
) -> anyhow::Result<Option<StudyResults>> {
    let execution = Execution::default();
    let prepared = Prepared::new(experiment, data(provenance, moved))?;
    run_all(&[prepared], session, &execution)?.map(|experiments| session.results(experiments)).transpose()
}

fn data(provenance: Provenance, moved: usize) -> ExperimentData<'static> {
    ExperimentData {
        digest_key: None,
        provenance,
        encoding: "none".to_owned(),
        n_seeds: 2,
        keeps_rows: false,
        split: Box::new(move |seed| Ok(split(seed + moved))),
    }
}

fn split(seed: usize) -> Split {
    let part = |n: usize, offset: usize| Dataset {
        features: Array2::from_shape_fn((n, 2), |(row, column)| (((row + offset) * 7 + column * 3) % 11) as f32 / 11.0),
        labels: (0..n).map(|row| (((row + offset) * 7) % 11 > 5).into()).collect(),
        groups: (0..n).map(|row| row % 2).collect(),
        feature_names: vec!["x".to_owned(), "y".to_owned()],
        class_names: vec!["no".to_owned(), "yes".to_owned()],
        group_names: vec!["even".to_owned(), "odd".to_owned()],
        group_attribute: "parity".to_owned(),
    };
    Split {
        train: part(64, seed),
        test: part(22, 100 + seed),
        validation: Some(part(22, 200 + seed)),
        notes: Vec::new(),
        constants: Vec::new(),
    }
}

fn provenance() -> Provenance {
    Provenance {
        name: "line".to_owned(),
        synthetic: true,
        source: "made here".to_owned(),
        sha256_ok: false,
        digest: "0".repeat(64),
        n_records: 86,
        files: Vec::new(),
        notes: Vec::new(),
    }
}

fn experiment(methods: &[&'static str]) -> anyhow::Result<Experiment> {
    let params = || PresetParams { clip_norm: 0.5, ..PresetParams::default() };
    let method = |name: &&'static str| MethodSetting::new(name, LearningRate::Constant(0.5), params());
    Ok(Experiment {
        id: "line".to_owned(),
        title: "A line".to_owned(),
        departures: Vec::new(),
        // Names no data that is read: the splits are made here.
        data: Source::Dutch { encoding: Encoding::Esipova, sampling: Sampling::Original, group_by: GroupBy::Sex }
            .into(),
        seeds: 2,
        is_search: false,
        model: ModelConfig::LogisticRegression,
        loss: Loss::BceWithLogits,
        batch_size: BatchSize::Records(16),
        epochs: 2,
        begins: None,
        counting: BatchCounting::Exact,
        early_stopping: None,
        l2: 0.0,
        noise: Noise::Multiplier(NoiseMultiplier::new(1.0)?),
        delta: Delta::new(1e-3)?,
        matches_dpsgd_budget: false,
        methods: methods.iter().map(method).collect(),
        published: None,
    })
}

const ALL: [&str; 3] = [NON_PRIVATE, "dpsgd", "dpsgd-f"];

/// The results without what depends on the clock and the number of sessions.
fn timeless(results: Option<StudyResults>) -> StudyResults {
    let mut results = results.unwrap();
    results.sessions.clear();
    for run in results.experiments.iter_mut().flat_map(|e| &mut e.methods).flat_map(|m| &mut m.runs) {
        run.seconds = 0.0;
    }
    results
}

#[test]
fn a_resumed_study_equals_one_that_was_not_interrupted() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = timeless(run(whole.path(), &ALL, "--seed 7").unwrap());
    assert_eq!(whole.experiments[0].methods.iter().map(|method| method.runs.len()).sum::<usize>(), 6);
    // Methods in another order and company: a run owes nothing to what is run beside it.
    run(parts.path(), &["dpsgd-f"], "--seed 7").unwrap();
    let resumed = run(parts.path(), &ALL, "--seed 7 --resume").unwrap();
    let sessions: Vec<u64> = resumed.as_ref().unwrap().sessions.iter().map(|session| session.n_runs).collect();
    assert_eq!(sessions, [2, 4], "nothing was trained twice");
    assert_eq!(timeless(resumed), whole);
    let again = run(parts.path(), &ALL, "--seed 7 --resume").unwrap();
    assert_eq!(again.as_ref().unwrap().sessions.len(), 2, "nothing was left to train");
    assert_eq!(timeless(again), whole);
    // What was not asked for stays in the records and out of the results.
    let narrow = timeless(run(parts.path(), &["dpsgd"], "--seed 7 --resume").unwrap());
    assert_eq!(narrow.experiments[0].methods, whole.experiments[0].methods[1..2]);
}

/// A study that goes on with a compact file of another's runs, where no database is left.
#[test]
fn runs_of_a_file_are_not_trained_again() {
    let first = tempfile::tempdir().unwrap();
    let file = first.path().join("line.runs.zst");
    run(first.path(), &["dpsgd-f"], "--seed 7").unwrap();
    join(&file, &[first.path().join("records.db")], "line").unwrap();
    let whole = run(first.path(), &ALL, "--seed 7 --resume").unwrap().unwrap();
    let going_on = |experiment: Experiment, seed: &str| {
        let second = tempfile::tempdir().unwrap();
        let words = format!("study --out {} --threads 2 --resume --seed {seed}", second.path().display());
        let options = Line::try_parse_from(words.split_whitespace()).unwrap().options;
        let given = GivenRuns::read(&file, "line").unwrap();
        let session = Session::begin("line", &options, Some(given))?;
        anyhow::Ok(run_in(&session, experiment, provenance(), 0)?.unwrap())
    };
    let results = going_on(experiment(&ALL).unwrap(), "7").unwrap();
    let n_runs =
        |results: &StudyResults| -> Vec<u64> { results.sessions.iter().map(|session| session.n_runs).collect() };
    let metrics = |results: &StudyResults| -> Vec<_> {
        let runs = results.experiments[0].methods.iter().flat_map(|method| &method.runs);
        runs.map(|run| (run.index, run.test.clone(), run.train.clone(), run.provenance.clone())).collect()
    };
    assert_eq!(n_runs(&results).iter().sum::<u64>(), 6);
    assert!(n_runs(&results).contains(&2) && n_runs(&results).contains(&4), "two were given");
    assert_eq!(metrics(&results), metrics(&whole));
    // Other settings.
    let longer = Experiment { epochs: 3, ..experiment(&ALL).unwrap() };
    assert_eq!(n_runs(&going_on(longer, "7").unwrap()), [6]);
    let error = going_on(experiment(&ALL).unwrap(), "8").unwrap_err().to_string();
    assert_eq!(error, format!("--from: the runs of {} are of --seed 7, not --seed 8", file.display()));
}

/// A step more than the configuration has, in the ledger of every run.
fn one_step_more(privacy: Option<&mut PrivacyRecord>) {
    let count = &mut privacy.unwrap().ledger["entries"][0]["count"];
    *count = (count.as_u64().unwrap() + 1).into();
}

/// What a run released is what its ε is of: one that released something else is not taken, whoever
/// gives it.
#[test]
fn given_runs_with_another_ledger_are_refused() {
    let first = tempfile::tempdir().unwrap();
    let file = first.path().join("line.runs.zst");
    let mut results = run(first.path(), &["dpsgd"], "--seed 7").unwrap().unwrap();
    one_step_more(results.experiments[0].methods[0].privacy.as_mut());
    std::fs::write(&file, compact::pack(&results).unwrap()).unwrap();
    let second = tempfile::tempdir().unwrap();
    let words = format!("study --out {} --resume --seed 7", second.path().display());
    let options = Line::try_parse_from(words.split_whitespace()).unwrap().options;
    let session = Session::begin("line", &options, Some(GivenRuns::read(&file, "line").unwrap())).unwrap();
    let error = format!("{:#}", run_in(&session, experiment(&["dpsgd"]).unwrap(), provenance(), 0).unwrap_err());
    assert_eq!(
        error,
        "--from: line: dpsgd, seed 1: its ledger is not the one that its ε is composed of: entries[0].count: 9 and 8"
    );
}

/// As another revision may have left them: method and run agree, and the configuration does not.
#[test]
fn stored_runs_with_another_ledger_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.db");
    let results = run(folder.path(), &["dpsgd"], "--seed 7").unwrap().unwrap();
    let before = Database::read(&path).unwrap();
    let mut table = Vec::new();
    export(&before, Table::Runs, Format::Json, &mut table).unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&table).unwrap();
    let source = before.source().unwrap();
    drop(before);
    std::fs::remove_file(&path).unwrap();
    let mut other = Database::create(&path, &source).unwrap();
    let record = SessionRecord { code_revision: "another".to_owned(), ..results.sessions[0].clone() };
    let session = other.begin_session(&record).unwrap();
    let experiment = &results.experiments[0];
    other.put_experiment(experiment).unwrap();
    let mut method = experiment.methods[0].clone();
    one_step_more(method.privacy.as_mut());
    let ledger = method.privacy.as_ref().unwrap().ledger.clone();
    for (row, run) in rows.iter().zip(&experiment.methods[0].runs) {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let key = RunKey {
            experiment: text("experiment"),
            method: text("method"),
            config_hash: text("config_hash"),
            data_digest: text("data_digest"),
            index: run.index,
        };
        other.put_run(&key, session, 1.0, &method, &ledger, run).unwrap();
    }
    drop(other);
    for arguments in ["--seed 7 --resume", "--seed 7 --resume --any-revision"] {
        let error = format!("{:#}", run(folder.path(), &["dpsgd"], arguments).unwrap_err());
        let expected = format!(
            "--resume: line: dpsgd, seed 1 in {}: go back to the revision that made it, or start new records (without --resume): its \
             ledger is not the one that its ε is composed of: entries[0].count: 9 and 8",
            path.display()
        );
        assert_eq!(error, expected);
    }
}

/// Without a seed the whole run has noise of its own: the streams of its first epochs are in use.
#[test]
fn first_epochs_without_a_seed_are_a_run_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let whole = || experiment(&["dpsgd-f"]).unwrap();
    let begins = Some(Begins { experiment: whole().id, epochs: 1 });
    let first = Experiment { id: "line-after-1".to_owned(), begins, ..whole() };
    let words = format!("study --out {}", folder.path().display());
    let options = Line::try_parse_from(words.split_whitespace()).unwrap().options;
    let session = Session::begin("line", &options, None).unwrap();
    let first = run_in(&session, first, provenance(), 0).unwrap().unwrap();
    let whole = run_in(&session, whole(), provenance(), 0).unwrap().unwrap();
    // Those of one step alone may be equal by chance.
    let first = &first.experiments[0].methods[0].runs[0].thresholds;
    let whole = &whole.experiments[0].methods[0].runs[0].thresholds;
    assert_ne!(first[..], whole[..first.len()]);
}

/// Ends a run before this step.
struct Stop(u64);

impl Observer for Stop {
    fn wants_state(&self, step: u64) -> bool {
        step == self.0
    }

    fn before_step(&mut self, _: &StepState<'_>) -> dp_train::Result<()> {
        Err(TrainError::Mismatch { what: "step".into(), expected: "none".into(), got: "one".into() })
    }
}

#[test]
fn a_run_goes_on_from_its_checkpoint_with_all_that_it_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let experiment = experiment(&["dpsgd-f"]).unwrap();
    let records = data(provenance(), 0).load(0, &dp_train::Device::Cpu).unwrap();
    let facts = records.train.facts();
    let plan = plan_of(&experiment, &experiment.methods[0], facts, &[], &[]).unwrap();
    let batches = plan.config().batches;
    let execution = Execution::default();
    let streams = |seed| Randomness::from_seed(seed).streams(0, 0).unwrap();
    let run = |seed, checkpoint| {
        let outcome =
            train(&plan, &records, streams(seed), &execution, None, checkpoint, &ProgressBar::hidden()).unwrap();
        let model = outcome.map_err(|failure| failure.0).unwrap();
        model.into_run(0, || 0.0).unwrap().map_err(|failure| failure.0).unwrap()
    };
    let whole = run(7, None);
    assert!(whole.epochs.len() == 2 && !whole.thresholds.is_empty() && batches.steps == 8);
    let cut = |stop| {
        let recorder = Recorder::new(facts.n_groups, batches.steps, batches.epochs, ProgressBar::hidden());
        let checkpoints = Checkpoints::new(&path, CheckpointInterval::Steps(1));
        let mut trainer = Trainer::new(&plan, &records.train, streams(7), execution.clone()).unwrap();
        trainer = trainer.with_checkpoints(checkpoints).unwrap();
        assert!(trainer.run(&mut (recorder, Stop(stop))).is_err());
    };
    for stop in [1, 4, 6] {
        cut(stop);
        // Of another seed: all randomness is the checkpoint's.
        assert_eq!(run(8, Some(&path)), whole, "{stop}");
    }
    std::fs::write(&path, "no checkpoint").unwrap();
    assert_eq!(run(7, Some(&path)), whole, "begun anew");
}

/// A run that goes on from its first epochs, which were stored as a run of their own, is the run
/// that was trained at once; so it is if the checkpoint between them is lost.
#[test]
fn a_run_goes_on_from_its_first_epochs() {
    let whole = || experiment(&["dpsgd", "dpsgd-f"]).unwrap();
    let begins = Some(Begins { experiment: whole().id, epochs: 1 });
    let first = || Experiment { id: "line-after-1".to_owned(), begins: begins.clone(), ..whole() };
    let at_once = tempfile::tempdir().unwrap();
    let expected = timeless(run_experiment(at_once.path(), whole(), "--seed 7").unwrap());
    for is_lost in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = || {
            let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
            files.filter(|path| path.to_str().unwrap().contains("records.db.run-")).collect::<Vec<_>>()
        };
        let begun = timeless(run_experiment(folder.path(), first(), "--seed 7").unwrap());
        for (method, whole) in begun.experiments[0].methods.iter().zip(&expected.experiments[0].methods) {
            for (run, whole) in method.runs.iter().zip(&whole.runs) {
                assert_eq!(run.epochs, whole.epochs[..1]);
                assert!(run.thresholds.iter().eq(whole.thresholds.iter().filter(|point| point.step < 4)));
            }
            let steps = |method: &MethodResults| method.privacy.as_ref().unwrap().steps;
            assert_eq!((steps(method), steps(whole)), (Some(4), Some(8)), "the first epochs pay for themselves");
        }
        assert_eq!(checkpoints().len(), 4);
        if is_lost {
            for path in checkpoints() {
                std::fs::remove_file(path).unwrap();
            }
        }
        let gone_on = timeless(run_experiment(folder.path(), whole(), "--seed 7 --resume").unwrap());
        assert_eq!(gone_on.experiments, expected.experiments);
        assert_eq!(checkpoints().len(), 0, "they left with the runs");
    }
}

/// A checkpoint beyond the epochs that are asked for is no failure of the method.
#[test]
fn first_epochs_do_not_begin_after_their_end() {
    let whole = || Experiment { epochs: 3, ..experiment(&["dpsgd"]).unwrap() };
    let first = |epochs| {
        let begins = Some(Begins { experiment: whole().id, epochs });
        Experiment { id: format!("line-after-{epochs}"), begins, ..whole() }
    };
    let folder = tempfile::tempdir().unwrap();
    run_experiment(folder.path(), first(2), "--seed 7").unwrap();
    let error = format!("{:#}", run_experiment(folder.path(), first(1), "--seed 7 --resume").unwrap_err());
    assert!(error.contains("line-after-1") && error.contains("8 (taken) to 12 (planned)"), "{error}");
}

#[test]
fn checkpoints_are_named_by_all_that_decides_a_run_and_leave_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let words = |arguments: &str| {
        let words = format!("study --out {} {arguments}", folder.path().display());
        Session::begin("line", &Line::try_parse_from(words.split_whitespace()).unwrap().options, None).unwrap()
    };
    let key = |index| run_records::RunKey {
        experiment: "line".into(),
        method: "dpsgd".into(),
        config_hash: "c".into(),
        data_digest: "d".into(),
        index,
    };
    assert_eq!(words("").checkpoint(&key(0), 0), None, "its noise is nobody's to know");
    let session = words("--seed 1");
    let first = session.checkpoint(&key(0), 0).unwrap();
    assert!(first.file_name().unwrap().to_str().unwrap().starts_with("records.db.run-"), "{}", first.display());
    let others = [session.checkpoint(&key(1), 0).unwrap(), session.checkpoint(&key(0), 1).unwrap()];
    drop(session);
    let other_seed = words("--seed 2").checkpoint(&key(0), 0).unwrap();
    assert!(others.iter().chain([&other_seed]).all(|path| *path != first));
    // A checkpoint that is there stays for a study that is resumed, and goes when it begins anew.
    std::fs::write(&other_seed, "").unwrap();
    drop(words("--seed 2 --resume"));
    assert!(other_seed.exists());
    drop(words("--seed 2"));
    assert!(!other_seed.exists());
}

#[test]
fn without_a_seed_a_resumed_study_keeps_its_partitions_and_draws_new_noise() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = run(one.path(), &["dpsgd"], "").unwrap().unwrap();
    let resumed = run(one.path(), &[NON_PRIVATE, "dpsgd"], "--resume").unwrap().unwrap();
    assert_eq!((first.seed, resumed.seed), (None, None));
    assert_eq!(first.split_seed, resumed.split_seed);
    assert_eq!(first.experiments[0].methods[0].runs, resumed.experiments[0].methods[1].runs);
    // The split seed is public; noise does not follow from it.
    let other = run(two.path(), &["dpsgd"], &format!("--split-seed {}", first.split_seed)).unwrap().unwrap();
    assert_ne!(timeless(Some(first)).experiments[0].methods, timeless(Some(other)).experiments[0].methods);
}

#[test]
fn records_of_another_seed_or_kind_are_not_resumed() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &[NON_PRIVATE], "--seed 7").unwrap();
    let refusal = |arguments: &str| format!("{:#}", run(folder.path(), &ALL, arguments).unwrap_err());
    assert!(refusal("--resume").ends_with("records.db are of --seed 7, not no --seed"), "{}", refusal("--resume"));
    let other = refusal("--resume --seed 8");
    assert!(other.ends_with("records.db are of --seed 7, not --seed 8"), "{other}");
    let quick = refusal("--resume --seed 7 --quick");
    assert!(quick.ends_with("records.db are of no --quick, not --quick"), "{quick}");
    // Without --resume, the earlier records are moved, not deleted.
    run(folder.path(), &[NON_PRIVATE], "--seed 8").unwrap();
    assert!(folder.path().join("records.earlier-1.db").exists());
}

#[test]
fn other_data_are_not_resumed_on() {
    let folder = tempfile::tempdir().unwrap();
    let all = || experiment(&ALL).unwrap();
    let first = run(folder.path(), &[NON_PRIVATE], "--seed 7").unwrap().unwrap();
    let of_run = first.experiments[0].methods[0].runs[0].provenance.as_ref().unwrap();
    assert!(of_run.synthetic && !of_run.quick && of_run.data_digest == "0".repeat(64));
    let real = Provenance { synthetic: false, digest: "1".repeat(64), ..provenance() };
    let error = format!("{:#}", run_on(folder.path(), all(), "--seed 7 --resume", real, 0).unwrap_err());
    assert!(error.contains("were trained on SYNTHETIC data") && error.contains("this is real data"), "{error}");
    let error = format!("{:#}", run_on(folder.path(), all(), "--seed 7 --resume", provenance(), 1).unwrap_err());
    assert!(
        error.contains("line: non-private, seed 1 is in the records") && error.contains("on other data"),
        "{error}"
    );
    let resumed = run(folder.path(), &ALL, "--seed 7 --resume").unwrap().unwrap();
    assert!(resumed.synthetic, "as it was");
}

#[test]
fn records_of_another_study_are_not_moved_aside() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &[NON_PRIVATE], "--seed 7").unwrap();
    let path = folder.path().join("records.db");
    let error = run_records::Database::set_aside(&path, "circle").unwrap_err().to_string();
    assert!(error.ends_with("records.db holds runs of the study line, not of circle"), "{error}");
}

#[test]
fn shards_need_common_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let error = format!("{:#}", run(folder.path(), &ALL, "--shard 1/2").unwrap_err());
    assert!(error.starts_with("--shard 1/2: without --seed, all parts need the same --split-seed"), "{error}");
    assert!(run(folder.path(), &ALL, "--shard 1/2 --seed 3").unwrap().is_none(), "the other half is missing");
    assert!(folder.path().join("records.shard-1-of-2.db").exists());
}

/// The records of a rank of a command that was killed, beside those of the study.
#[test]
fn what_a_rank_has_left_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    assert!(run(folder.path(), &ALL, "--shard 1/2 --seed 3").unwrap().is_none());
    assert!(run(folder.path(), &ALL, "--shard 2/2 --seed 3").unwrap().is_none());
    std::fs::rename(path("records.shard-1-of-2.db"), path("records.db")).unwrap();
    std::fs::rename(path("records.shard-2-of-2.db"), path("records.rank-1.db")).unwrap();
    let n_sessions = |results: StudyResults| results.sessions.iter().filter(|session| session.n_runs > 0).count();
    assert_eq!(n_sessions(run(folder.path(), &ALL, "--resume --seed 3").unwrap().unwrap()), 2, "nothing was trained");
    assert!(!path("records.rank-1.db").exists());
}

#[test]
fn a_configuration_twice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = format!("{:#}", run(folder.path(), &["dpsgd", "dpsgd"], "--seed 1").unwrap_err());
    assert_eq!(error, "line: dpsgd, seed 1: the study has this method with this configuration twice");
}

#[test]
fn a_run_that_diverges_is_stored_as_failed_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let diverging = || {
        let mut experiment = experiment(&ALL).unwrap();
        experiment.methods[1].learning_rate = LearningRate::Constant(1e300);
        experiment
    };
    let results = run_experiment(folder.path(), diverging(), "--seed 7").unwrap().unwrap();
    let [reference, dpsgd, dpsgd_f] = &results.experiments[0].methods[..] else { panic!("three methods") };
    assert_eq!((reference.runs.len(), dpsgd.runs.len(), dpsgd_f.runs.len()), (2, 0, 2));
    assert!(reference.failures.is_empty() && dpsgd_f.failures.is_empty());
    assert_eq!(dpsgd.failures.iter().map(|failure| failure.index).collect::<Vec<_>>(), [0, 1]);
    let reason = &dpsgd.failures[0].reason;
    assert!(reason.starts_with("parameters or gradients are not finite at step "), "{reason}");
    assert!(dpsgd.privacy.is_some(), "what the plan would have cost is known all the same");
    let again = run_experiment(folder.path(), diverging(), "--seed 7 --resume").unwrap();
    assert_eq!(again.as_ref().unwrap().sessions.len(), 1, "a failed run is not trained again");
    assert_eq!(timeless(again), timeless(Some(results)));
}

#[test]
fn a_search_releases_its_best_trial_at_the_price_of_all() {
    let searching = || {
        let mut experiment = experiment(&["bounded-adaptive"]).unwrap();
        experiment.methods[0].search = Some(RandomSearch {
            rates: vec![0.1, 1.0],
            bounds: vec![0.1, 1.0],
            batch_sizes: vec![16, 100],
            epsilon: Epsilon::new(2.0).unwrap(),
            trials: TrialCount::negative_binomial(1.0, 0.2).unwrap(),
        });
        experiment
    };
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let results = run_experiment(one.path(), searching(), "--seed 7").unwrap().unwrap();
    let method = &results.experiments[0].methods[0];
    let privacy = method.privacy.as_ref().unwrap();
    let epsilon = privacy.least_epsilon();
    // Dearer than a trial, cheaper than the five that there are on average.
    assert!(privacy.certified && epsilon > 2.0 && epsilon < 10.0, "{epsilon}");
    let coordinate = method.coordinates.last().unwrap().value;
    assert!(coordinate >= epsilon && coordinate < epsilon + 1e-3, "{coordinate} {epsilon}");
    for run in &method.runs {
        let search = run.search.as_ref().unwrap();
        let best = search.trials.iter().filter_map(|trial| trial.score).fold(f64::MIN, f64::max);
        assert_eq!(search.trials[search.released].score, Some(best));
        assert!(search.trials.iter().all(|trial| trial.batch_size == 16.0 || trial.batch_size == 64.0));
    }
    let again = run_experiment(two.path(), searching(), "--seed 7").unwrap();
    assert_eq!(timeless(again), timeless(Some(results)));
}

#[test]
fn a_point_of_a_search_has_its_usual_runs() {
    let options = Line::try_parse_from(["study", "--seeds", "5"]).unwrap().options;
    let methods = experiment(&["dpsgd"]).unwrap();
    let points = Experiment { is_search: true, ..methods.clone() };
    assert_eq!([methods, points].map(|experiment| options.n_seeds(&experiment)), [5, 2]);
}
