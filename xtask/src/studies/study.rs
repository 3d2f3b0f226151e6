//! A study: experiments, the published tables they answer, and claims to test. Running one is the
//! same for all of them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use dp_train::{Execution, Randomness};
use run_records::output::{Contents, ReportFolder};
use run_records::shell;
use run_records::{Database, ExperimentResults, RunKey, Source, StudyResults, compact};
use study_report::{StudyPresentation, TablePresentation};

use crate::paths::{exports_folder, reports_root};
use crate::ranks::{ensure_alone, ranks};
use crate::run::data_setting::Tables;
use crate::run::experiment::Experiment;
use crate::run::given::GivenRuns;
use crate::run::kubernetes;
use crate::run::options::{Print, StudyOptions};
use crate::run::own_data::OwnData;
use crate::run::parts::Parts;
use crate::run::runner::{Prepared, run_all};
use crate::run::session::Session;
use crate::run::slurm;
use crate::run::step_analysis::AnalysisSchedule;
use crate::run::text_inputs::TextInputs;
use crate::run::workload;
use crate::terminal::{self, say};

/// Options of a study that trains.
#[derive(Args, Clone)]
pub(crate) struct StudyArgs {
    #[command(flatten)]
    pub(crate) options: StudyOptions,
    /// Only these published tables (comma-separated; an unknown name lists them) [default: all].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    table: Vec<String>,
    /// Only these experiments (comma-separated; an unknown name lists them) [default: all].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    experiment: Vec<String>,
    /// The settings as the papers' texts have them, or as the authors' code has them or is thought
    /// to, as a study of its own (adult, dutch, fashion, grid, income, mnist).
    #[arg(long, value_enum, default_value_t = Protocol::Text)]
    pub(crate) protocol: Protocol,
    /// Select hyper-parameters on the test part, as published. Figures are then marked (grid, mnist,
    /// fashion, resnet).
    #[arg(long)]
    pub(crate) select_on_test: bool,
    /// How rates and bounds are searched for [default: halving on images, grid elsewhere] (grid,
    /// mnist, fashion, resnet).
    #[arg(long, value_enum)]
    pub(crate) search: Option<SearchBy>,
    /// Folder of a frozen BERT or DistilBERT (config.json, tokenizer.json, model.safetensors) that
    /// texts go through. Without it inputs are counts of hashed words (mimic).
    #[arg(long, value_name = "DIR")]
    pub(crate) encoder: Option<PathBuf>,
    /// Instead of training, render the report from the records of an earlier run: `runs.zst` or
    /// `results.json` of its report, or its `metrics.csv`, from which follows what needs accuracy
    /// and loss of final models alone. With `--resume`, train all but the runs that such a
    /// `runs.zst` has, in the same settings and on the same data; with `--plan`, too, say what these
    /// are.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["slurm", "kubernetes"])]
    from: Option<PathBuf>,
}

/// How hyper-parameters are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SearchBy {
    /// Every point of the grid is trained to the end, as published.
    Grid,
    /// Every point for 3 epochs; of each strategy the best quarter of the points at each rate go on
    /// to 12, and of these the best quarter to the end.
    Halving,
}

/// Which description of a setting is followed where a paper and its authors' code differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// The paper.
    Text,
    /// The authors' code, or what explains their figures; reports say for each setting how sure
    /// that is.
    Code,
}

/// The end of the name of a study that follows the authors' code.
const CODE_SUFFIX: &str = "-code";

impl Protocol {
    /// The study that a report's name stands for, and what it follows.
    pub(crate) fn of_report(name: &str) -> (&str, Self) {
        name.strip_suffix(CODE_SUFFIX).map_or((name, Self::Text), |study| (study, Self::Code))
    }
}

/// What is run, and what is said about it.
pub(crate) struct Study {
    /// Name on the command line, with an ending of its own under [`Protocol::Code`].
    pub(crate) name: String,
    /// Tables and claims.
    pub(crate) presentation: StudyPresentation,
    /// What is trained.
    pub(crate) experiments: Vec<Experiment>,
    /// What is trained next, given the results so far: the settings that a search selected.
    pub(crate) follow_up: Option<FollowUp>,
    /// Whether `--search` and `--select-on-test` say how it selects them.
    selects_as_asked: bool,
    /// What texts are turned into, where records are texts.
    text_inputs: Option<TextInputs>,
    /// Records of one's own, where there are some.
    own: Option<OwnData>,
}

/// Experiments that depend on the results of earlier ones. It is asked until it names none that is
/// new.
pub(crate) type FollowUp = Box<dyn Fn(&[ExperimentResults]) -> anyhow::Result<Vec<Experiment>>>;

impl StudyArgs {
    /// Those of a study that is no paper's.
    pub(crate) fn of_comparison(options: StudyOptions, experiment: Vec<String>, from: Option<PathBuf>) -> Self {
        Self {
            options,
            table: Vec::new(),
            experiment,
            protocol: Protocol::Text,
            select_on_test: false,
            search: None,
            encoder: None,
            from,
        }
    }

    /// The same with the report in this directory.
    pub(crate) fn with_out(&self, out: &Path) -> Self {
        Self { options: self.options.with_out(out), ..self.clone() }
    }

    /// An option that is given and says something about training.
    fn of_training(&self) -> Option<&'static str> {
        let part = [("--table", !self.table.is_empty()), ("--experiment", !self.experiment.is_empty())];
        let part = part.into_iter().find_map(|(name, is_given)| is_given.then_some(name));
        part.or_else(|| self.options.of_training())
    }

    /// Refuses options that name a part of one study, or a file of one.
    ///
    /// # Errors
    /// Names the option.
    pub(crate) fn ensure_whole_study(&self) -> anyhow::Result<()> {
        let options = &self.options;
        let given = [
            ("--table", !self.table.is_empty()),
            ("--experiment", !self.experiment.is_empty()),
            ("--methods", !options.methods.is_empty()),
            ("--records", options.has_own_records()),
            ("--from", self.from.is_some()),
            ("--slurm", options.slurm.is_some()),
            ("--kubernetes", options.kubernetes.is_some()),
            ("--protocol", self.protocol == Protocol::Code),
            ("--search", self.search.is_some()),
            ("--select-on-test", self.select_on_test),
            ("--encoder", self.encoder.is_some()),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
            bail!("{name}: an option of one study, and these are all");
        }
        Ok(())
    }
}

impl Study {
    /// Trains these experiments once.
    pub(crate) fn new(name: &str, presentation: StudyPresentation, experiments: Vec<Experiment>) -> Self {
        let name = name.to_owned();
        Self { name, presentation, experiments, follow_up: None, selects_as_asked: false, text_inputs: None, own: None }
    }

    /// The same, and then what depends on the results.
    #[must_use]
    pub(crate) fn followed_by(self, follow_up: FollowUp) -> Self {
        Self { follow_up: Some(follow_up), ..self }
    }

    /// The same, and then what a search selects, as `--search` and `--select-on-test` say.
    #[must_use]
    pub(crate) fn selecting(self, follow_up: FollowUp) -> Self {
        Self { selects_as_asked: true, ..self.followed_by(follow_up) }
    }

    /// The same on records that are texts.
    #[must_use]
    pub(crate) fn on_texts(self, inputs: TextInputs) -> Self {
        Self { text_inputs: Some(inputs), ..self }
    }

    /// The same on records of one's own.
    #[must_use]
    pub(crate) fn on_own(self, data: OwnData) -> Self {
        Self { own: Some(data), ..self }
    }

    /// The study under this protocol. What follows the authors' code has a name, and so records and
    /// a report, of its own.
    #[must_use]
    pub(crate) fn under(mut self, protocol: Protocol) -> Self {
        if protocol == Protocol::Code {
            self.name.push_str(CODE_SUFFIX);
            self.presentation.title.push_str(", as in the authors' code");
        }
        self
    }

    /// Checks that everything that tables, claims and rankings are about is trained: what they name
    /// is found, or belongs to an experiment that a search will make, which judges by what it selects
    /// by.
    ///
    /// # Errors
    /// Names what is not found, and where.
    pub(crate) fn ensure_names(&self) -> anyhow::Result<()> {
        let ensure = |place: &str, id: &str, name: Option<&str>| match (
            self.experiments.iter().find(|experiment| experiment.id == id),
            name,
        ) {
            (Some(experiment), Some(name)) if experiment.methods.iter().all(|method| method.id != name) => {
                bail!("{}: {place} names the method {name}, which {id} does not have", self.name)
            }
            (None, _) if self.follow_up.is_none() => {
                bail!("{}: {place} names the experiment {id}, which the study does not have", self.name)
            }
            _ => Ok(()),
        };
        for table in &self.presentation.tables {
            for method in table.published.methods() {
                ensure(&table.id, &table.experiment, Some(method))?;
            }
            for cause in &table.causes {
                ensure(&table.id, &table.experiment, Some(&cause.method))?;
            }
        }
        for claim in &self.presentation.claims {
            for (experiment, method) in claim.names() {
                ensure(&format!("the claim \"{}\"", claim.text), experiment, Some(method))?;
            }
        }
        for ranked in &self.presentation.ranked {
            ensure("a ranking", ranked.experiment, None)?;
        }
        for experiment in &self.experiments {
            let searches = experiment.id.contains("-grid") || experiment.methods.iter().any(|m| m.search.is_some());
            ensure!(
                !searches || self.presentation.declares_search(&experiment.id),
                "{}: {} searches, and does not say by what it selects",
                self.name,
                experiment.id
            );
        }
        self.presentation.ensure_judged_as_selected().with_context(|| self.name.clone())
    }

    /// Keeps the tables that were asked for and the experiments that they need; the reference of
    /// each experiment stays.
    fn narrow(&mut self, args: &StudyArgs) -> anyhow::Result<()> {
        let tables = &mut self.presentation.tables;
        if let Some(unknown) = args.table.iter().find(|name| tables.iter().all(|table| table.id != **name)) {
            let known: Vec<&str> = tables.iter().map(|table| table.id.as_str()).collect();
            bail!("--table {unknown}: expected some of {}", known.join(", "));
        }
        if !args.table.is_empty() {
            tables.retain(|table| args.table.contains(&table.id));
            // A search begins with experiments that are named after the one that it ends in.
            let needs = |table: &TablePresentation, id: &str| {
                id.strip_prefix(&table.experiment).is_some_and(|rest| rest.is_empty() || rest.starts_with("-grid-"))
            };
            self.experiments.retain(|experiment| tables.iter().any(|table| needs(table, &experiment.id)));
        }
        let known: Vec<&str> = self.experiments.iter().map(|experiment| experiment.id.as_str()).collect();
        if let Some(unknown) = args.experiment.iter().find(|name| !known.contains(&name.as_str())) {
            bail!("--experiment {unknown}: expected some of {}", known.join(", "));
        }
        if !args.experiment.is_empty() {
            self.experiments.retain(|experiment| args.experiment.contains(&experiment.id));
        }
        self.keep_methods(&args.options.methods)
    }

    /// Trains everything and writes the report.
    ///
    /// # Errors
    /// If a table or method is unknown, or data, training or report fail.
    pub(crate) fn run(self, args: &StudyArgs) -> anyhow::Result<()> {
        self.run_analysed(args, None)
    }

    /// The same with steps of every private run taken apart, where a schedule is given.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) fn run_analysed(mut self, args: &StudyArgs, analysis: Option<AnalysisSchedule>) -> anyhow::Result<()> {
        self.ensure_names()?;
        let options = &args.options;
        if args.protocol == Protocol::Code && Protocol::of_report(&self.name).1 == Protocol::Text {
            bail!("--protocol code: {} has settings of its papers' texts alone; expected text", self.name);
        }
        let asked = [("--search", args.search.is_some()), ("--select-on-test", args.select_on_test)];
        if let (false, Some((name, _))) = (self.selects_as_asked, asked.iter().find(|(_, given)| *given)) {
            bail!("{name}: {} does not choose points of a grid; grid, mnist, fashion and resnet do", self.name);
        }
        if args.encoder.is_some() && self.text_inputs.is_none() {
            bail!("--encoder: the records of {} are not texts; those of mimic are", self.name);
        }
        if args.from.is_some() || options.plan || options.slurm.or(options.kubernetes).is_some() {
            ensure_alone("--from, --plan, --slurm and --kubernetes")?;
        }
        if let Some(path) = args.from.as_ref().filter(|_| !options.resume) {
            if options.plan {
                bail!("--plan: --from renders a report without training; to plan what its runs lack, add --resume");
            }
            if let Some(name) = args.of_training() {
                bail!("{name}: --from renders a report without training; to go on with its runs, add --resume");
            }
            let out = self.claim(options)?;
            return write(&self.presentation, &compact::read(path, &self.name)?, &out, options.print);
        }
        self.narrow(args)?;
        if let Some(n) = options.slurm {
            let parts = Parts::of_command("--slurm", n, &self.name, options)?;
            parts.ensure_shared(options.data.data_dir())?;
            return terminal::write(format_args!("{}", slurm::script(&parts)));
        }
        if let Some(n) = options.kubernetes {
            let parts = Parts::of_command("--kubernetes", n, &self.name, options)?;
            parts.ensure_mounted(options.data.data_dir())?;
            return terminal::write(format_args!("{}", kubernetes::manifest(&parts)?));
        }
        let execution = options.device.execution()?;
        let texts = self.text_inputs.take().unwrap_or_else(TextInputs::hashed_words);
        let tables = Tables::new(options.data.locator(), texts, self.own.take());
        if options.plan {
            let given = args.from.as_ref().map(|path| GivenRuns::read(path, &self.name)).transpose()?;
            return self.plan(options, given.as_ref(), &tables, &execution, analysis);
        }
        // First of all: a study may take days, and its report must then have a place.
        let is_first = ranks().rank() == 0;
        let out = is_first.then(|| self.claim(options)).transpose()?;
        // Data that are refused leave no records behind.
        self.experiments.iter().try_for_each(|experiment| tables.read(experiment.data.source).map(drop))?;
        let given =
            args.from.as_ref().filter(|_| is_first).map(|path| GivenRuns::read(path, &self.name)).transpose()?;
        let session = Session::begin(&self.name, options, given)?;
        let mut begun = Vec::new();
        let train = |next| train(next, &tables, options, &session, &execution, analysis, &mut begun);
        let outcome = train_all(self.experiments, self.follow_up.as_ref(), train)?;
        // What nothing went on from.
        for run in begun.iter().filter(|_| is_first) {
            session.forget_checkpoint(run)?;
        }
        let Some(experiments) = outcome else { return say!("{}", session.how_to_merge()) };
        match out {
            Some(out) => write(&self.presentation, &session.results(experiments)?, &out, options.print),
            // Rank 0 writes for all.
            None => Ok(()),
        }
    }

    /// Takes the report's directory.
    fn claim(&self, options: &StudyOptions) -> anyhow::Result<ReportFolder> {
        let out = options.out(&self.name);
        if out.starts_with(reports_root()) {
            study_report::refuse_foreign_index(&reports_root().join("index.html"))?;
        }
        ReportFolder::claim(&out, &self.name, &self.presentation.title, Contents::ReportAndRecords)
    }
}

/// Writes the report, and says in the terminal what is in it.
fn write(
    presentation: &StudyPresentation,
    results: &StudyResults,
    out: &ReportFolder,
    print: Print,
) -> anyhow::Result<()> {
    study_report::write(results, presentation, out)?;
    let out = out.path();
    if out.starts_with(reports_root()) {
        study_report::write_index(&reports_root(), Some(&exports_folder()))?;
    }
    match print {
        Print::Full => say!("{}", study_report::at_length(results, presentation)?)?,
        Print::Summary => say!("{}", study_report::short(results, presentation)?)?,
        Print::None => {}
    }
    say!("Trained in {:.1} s. Report: {}", results.wall_seconds(), shell::path(&out.join("report.html")))
}

impl Study {
    /// Says what there is to train here, and how long that takes: of the runs that the records and
    /// those given lack with `--resume`, this part's with `--shard`.
    fn plan(
        self,
        options: &StudyOptions,
        given: Option<&GivenRuns>,
        tables: &Tables,
        execution: &Execution,
        analysis: Option<AnalysisSchedule>,
    ) -> anyhow::Result<()> {
        let stored = stored(&self.name, options)?;
        let split_seed = match &stored {
            Some(stored) => stored.source()?.split_seed,
            None => options.seed.or(options.split_seed).unwrap_or(0),
        };
        if let Some(given) = given {
            given.ensure_of(&Source {
                study: self.name.clone(),
                quick: options.quick,
                seed: options.seed,
                split_seed,
            })?;
        }
        let mut workloads = Vec::new();
        let mut first = 0;
        for experiment in self.experiments {
            let n_seeds = options.n_seeds(&experiment);
            // Only a look into the records needs the splits of all seeds.
            let n_splits = if stored.is_some() || given.is_some() { n_seeds } else { 1 };
            let data = tables.data(&experiment.data, n_splits, &Randomness::from_seed(split_seed))?;
            let prepared = Prepared::new(experiment, data)?.analysed(analysis);
            let description = given.map(|_| prepared.description()).transpose()?;
            let has = |key: &RunKey| {
                let is_given = given.zip(description.as_ref()).is_some_and(|(given, of)| given.find(of, key).is_some());
                Ok(is_given || stored.as_ref().map_or(anyhow::Ok(false), |s| Ok(s.revision_of(key)?.is_some()))?)
            };
            say!("{}: timing a few steps", prepared.id())?;
            let is_here = |position| options.shard.is_none_or(|shard| shard.has(first + position));
            let workload = prepared.workload(n_seeds, is_here, has, execution)?;
            first += prepared.n_jobs(n_seeds);
            say!("{workload}")?;
            workloads.push(workload);
        }
        say!("{}", workload::total(&workloads, options.n_threads(), self.follow_up.is_some()))
    }
}

/// The records that `--resume` would go on with.
fn stored(study: &str, options: &StudyOptions) -> anyhow::Result<Option<Database>> {
    let path = options.records(study);
    if !options.resume || !path.exists() {
        return Ok(None);
    }
    let stored = Database::read(&path)?;
    options.ensure_same_source(study, &stored)?;
    Ok(Some(stored))
}

/// The results of these experiments, and of all that follow from them; `None` if other shards' runs
/// are missing.
fn train_all(
    experiments: Vec<Experiment>,
    follow_up: Option<&FollowUp>,
    mut train: impl FnMut(Vec<Experiment>) -> anyhow::Result<Option<Vec<ExperimentResults>>>,
) -> anyhow::Result<Option<Vec<ExperimentResults>>> {
    let Some(mut trained) = train(experiments)? else { return Ok(None) };
    let Some(follow_up) = follow_up else { return Ok(Some(trained)) };
    loop {
        let mut next = follow_up(&trained)?;
        next.retain(|experiment| trained.iter().all(|trained| trained.id != experiment.id));
        if next.is_empty() {
            return Ok(Some(trained));
        }
        let Some(next) = train(next)? else { return Ok(None) };
        trained.extend(next);
    }
}

/// The experiments as the records have them after training what they lack; `None` if other shards'
/// runs are missing. Adds the runs that theirs are the first epochs of.
fn train(
    experiments: Vec<Experiment>,
    tables: &Tables,
    options: &StudyOptions,
    session: &Session,
    execution: &Execution,
    analysis: Option<AnalysisSchedule>,
    begun: &mut Vec<RunKey>,
) -> anyhow::Result<Option<Vec<ExperimentResults>>> {
    let prepared = experiments
        .into_iter()
        .map(|experiment| {
            let data = tables.data(&experiment.data, options.n_seeds(&experiment), session.public())?;
            Ok(Prepared::new(experiment, data)?.analysed(analysis))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    for prepared in &prepared {
        begun.extend(prepared.begun()?);
    }
    run_all(&prepared, session, execution)
}
