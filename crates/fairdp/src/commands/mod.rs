//! The command line: a thin layer over the library.

mod account;
mod answer;
mod audit;
mod failure;
mod interrupt;
mod ledger;
mod log;
mod manual;
mod new_config;
mod new_records;
mod new_table;
mod out_of_memory;
mod progress;
mod shown;
mod stream;
mod summary;

use dp_train::DeviceName;
use dp_train::ranks::{self, Collective};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use self::failure::Failure;
use self::progress::Said;
use self::shown::Shown;
use self::stream::Inputs;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Args, ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;
use dp_table::Example;
use fairdp::fair_decisions::{Aim, Mode};
use fairdp::{EpsilonChoice, Exit, FairdpError, FitOptions, InitOptions, NamedFiles, PredictOptions};

/// Private and fair models of one's own table.
#[derive(Parser)]
#[command(version, after_help = Exit::line(), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    said: SaidArgs,
}

/// What is said besides the answer, and how.
#[derive(Args, Clone)]
struct SaidArgs {
    /// Colours of help and errors.
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto, hide_default_value = true)]
    color: ColorChoice,
    /// Says how far a command is once a second, in lines.
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Adds what is said on standard error to this file, with times.
    #[arg(long, global = true, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl SaidArgs {
    fn of(&self, quiet: bool) -> Said {
        match (quiet, self.verbose) {
            (true, _) => Said::Nothing,
            (false, true) => Said::More,
            (false, false) => Said::Usual,
        }
    }
}

/// Forms of a release.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Form {
    /// An entry of the registry of deployments that OpenDP keeps (YAML, tier 3).
    Registry,
    /// A model card with the header of Hugging Face (Markdown).
    ModelCard,
}

#[derive(Subcommand)]
enum Command {
    /// Print a configuration for a table, one entry per column.
    Init(InitArgs),
    /// Train a model, and write a release with its statement.
    Fit(FitArgs),
    /// Answer the rows of a table.
    Predict {
        /// The folder of a run, or its release.
        folder: PathBuf,
        /// The table: files or patterns; - for standard input.
        #[arg(required = true)]
        table: Vec<String>,
        /// The file to write, in the format of its ending: .csv or .tsv (also .gz, .zst), or .parquet;
        /// - for CSV on standard output.
        #[arg(long)]
        out: PathBuf,
        /// Columns of the table to carry through, such as an id; separated by commas.
        #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
        keep: Vec<String>,
        /// The K columns that moved each answer most, with what they add to its log-odds.
        #[arg(long, value_name = "K", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
        explain: Option<usize>,
        /// Refuses a table with values that are not declared, beyond bounds or missing, where it
        /// would say so.
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        text: new_table::NewTableArgs,
        /// Machine-readable output, with counts by column.
        #[arg(long)]
        json: bool,
        /// No progress.
        #[arg(short, long)]
        quiet: bool,
    },
    /// Print what a run says of itself.
    Report {
        /// The folder of a run, or its release.
        folder: PathBuf,
        /// Machine-readable output: the statement and the figures by group.
        #[arg(long)]
        json: bool,
    },
    /// Attack a run of a configuration: how much of its ε can be found, or that its claim does not hold.
    Audit(audit::AuditArgs),
    /// Check a run or a release: digests, chain, and ε again by a second accountant.
    Verify {
        /// The folder of a run, or its release.
        folder: PathBuf,
        /// The public key, a file of minisign, of who must have signed the release.
        #[arg(long, value_name = "FILE")]
        public_key: Option<PathBuf>,
        /// Machine-readable output.
        #[arg(long)]
        json: bool,
    },
    /// Measure a released model on newly labelled records, within an ε of these records, and compare the
    /// figures with those of the release.
    Evaluate(new_records::EvaluateArgs),
    /// Say where a new table is not what a release was made for: values, groups and scores.
    Drift(new_records::DriftArgs),
    /// Make a pair of keys for signatures: OUT.key, which signs, and OUT.pub, which compares.
    Keygen {
        /// The name of both files without their endings.
        #[arg(long)]
        out: PathBuf,
    },
    /// Sign a release that holds.
    Sign {
        /// The folder of a run, or its release.
        folder: PathBuf,
        /// The secret key, of `fairdp keygen` or minisign.
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// Write another release of a run, with the decisions of another notion of fairness: from the scores that were
    /// released, at no further ε.
    Fairness {
        /// The folder of a run, or its release.
        folder: PathBuf,
        /// The notion.
        #[arg(long, value_parser = PossibleValuesParser::new(Mode::ALL.map(Mode::name)))]
        mode: String,
        /// The most that accuracy, accuracy as the decision weighs classes, and balanced accuracy may each fall by.
        #[arg(long, default_value_t = 0.02)]
        max_loss: f64,
        /// A gap that is small enough.
        #[arg(long, default_value_t = 0.0)]
        max_gap: f64,
        /// One threshold for all groups, where a decision may not depend on the group.
        #[arg(long)]
        one_threshold: bool,
        /// Let a coin decide between thresholds of a group, which the values of the record toss.
        #[arg(long, conflicts_with = "one_threshold")]
        coins: bool,
        /// The folder to make.
        #[arg(long)]
        out: PathBuf,
    },
    /// Write a release in a form that others ask for. What only a person can say comes from [card], or is named as
    /// missing.
    Export {
        /// The form.
        form: Form,
        /// The folder of a run, or its release.
        folder: PathBuf,
    },
    /// The methods that a configuration can name, each in one line: its name there, its name in the
    /// papers, what it does.
    Methods {
        /// Only those whose name, name in the papers, description or source has this text.
        #[arg(long, value_name = "TEXT")]
        like: Option<String>,
        /// Machine-readable output.
        #[arg(long)]
        json: bool,
    },
    /// ε, δ, noise, rate or steps of private training with given settings.
    Account(account::AccountArgs),
    /// What a ledger of fits has spent, what is left, and how to divide it.
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// Write a generated table to try things on.
    Example {
        /// Rows; at least 1.
        #[arg(long, default_value_t = 10_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
        rows: u64,
        /// Columns, with group and outcome; from 8 to 10,000.
        #[arg(long, default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new().range(8..=10_000))]
        columns: usize,
        /// Another seed gives other rows.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Print the JSON Schema of configurations, by which an editor checks one whose first line is `#:schema` with its
    /// path.
    Schema,
    /// Print completions for a shell, to be sourced or put where the shell looks for them.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual, a page for each command.
    Man {
        /// The folder for the pages.
        folder: PathBuf,
    },
}

impl Command {
    /// Whether failures are to be machine-readable too.
    fn is_json(&self) -> bool {
        match self {
            Self::Predict { json, .. }
            | Self::Report { json, .. }
            | Self::Verify { json, .. }
            | Self::Methods { json, .. } => *json,
            Self::Init(args) => args.json,
            Self::Fit(args) => args.json,
            Self::Audit(args) => args.json,
            Self::Account(args) => args.is_json(),
            Self::Ledger(command) => command.is_json(),
            Self::Evaluate(args) => args.table.json,
            Self::Drift(args) => args.table.json,
            Self::Fairness { .. }
            | Self::Keygen { .. }
            | Self::Sign { .. }
            | Self::Example { .. }
            | Self::Schema
            | Self::Completions { .. }
            | Self::Man { .. }
            | Self::Export { .. } => false,
        }
    }
}

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
struct InitArgs {
    /// The table: files or patterns; - for standard input.
    #[arg(required = true)]
    table: Vec<String>,
    /// The column to predict.
    #[arg(long)]
    label: String,
    /// Its positive value; of two, the last in order unless given.
    #[arg(long)]
    positive: Option<String>,
    /// A column whose values are groups; repeatable.
    #[arg(long)]
    group: Vec<String>,
    /// Takes columns of groups as inputs too.
    #[arg(long)]
    group_as_input: bool,
    /// The column that says whose record it is.
    #[arg(long)]
    unit: Option<String>,
    /// Records of one unit that are used.
    #[arg(long, requires = "unit")]
    max_records_per_unit: Option<u64>,
    /// The column that says how much a record counts in training, such as the weights of a survey.
    #[arg(long)]
    weight: Option<String>,
    /// ε of everything that is released; 1 unless given.
    #[arg(long)]
    epsilon: Option<f64>,
    /// δ; 1e-5, or less for a long table, unless given.
    #[arg(long)]
    delta: Option<f64>,
    /// Share of the records for the test; 0.2 unless given.
    #[arg(long)]
    test_fraction: Option<f64>,
    /// The model: `additive`, `mlp` or, on pixels, `network`; `auto` unless given.
    #[arg(long)]
    model: Option<String>,
    /// How it is trained: a name from `fairdp methods`; `auto` unless given.
    #[arg(long)]
    method: Option<String>,
    /// The encoding of text files, such as latin1; found unless given.
    #[arg(long)]
    encoding: Option<String>,
    /// The character between two fields of a text file; found unless given.
    #[arg(long, value_name = "CHARACTER", value_parser = character)]
    delimiter: Option<char>,
    /// The character around a field that holds delimiters, '' for none; " unless given.
    #[arg(long, value_name = "CHARACTER")]
    quote: Option<String>,
    /// A column of vectors in a file of NumPy, or of images in an IDX file, row by row beside the table;
    /// repeatable, once for each file of the table.
    #[arg(long, value_name = "COLUMN=FILE", value_parser = column_and_file)]
    vectors: Vec<(String, String)>,
    /// Trains on what is read from the records here; the statement then says what is not covered.
    #[arg(long)]
    accept_uncovered: bool,
    /// The file to write, which must not be there yet; standard output unless given, and for -.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Writes the JSON Schema of configurations to this file too, and the line by which editors find it.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Machine-readable output: the configuration, as text and as JSON.
    #[arg(long)]
    json: bool,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
struct FitArgs {
    /// The configuration; - for standard input.
    config: PathBuf,
    /// The folder to make.
    #[arg(long, required_unless_present = "plan")]
    out: Option<PathBuf>,
    /// Continues the run in that folder, which was killed.
    #[arg(long)]
    resume: bool,
    /// Threads; they change no bit of the result. All cores unless given.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_024))]
    threads: Option<usize>,
    /// Where networks and methods by name are trained: cpu, cuda or cuda:N for the CUDA device with
    /// that number, cuda-tf32 or cuda-tf32:N for its passes in TF32; without a number the first, or
    /// one for each process of a launcher. CUDA needs a build with the feature `cuda`
    /// (docs/cuda.md).
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    device: DeviceName,
    /// Makes the run repeatable, on the same type of processor or GPU, and thereby not private.
    #[arg(long, value_parser = whole_number)]
    seed: Option<u64>,
    /// Reads the table, prints every release with its share of the budget and stops; refuses what
    /// the fit would refuse before its first release.
    #[arg(long)]
    plan: bool,
    /// Plans without the table: what depends on it is then not known, and not checked.
    #[arg(long, requires = "plan")]
    no_data: bool,
    /// A file that several fits on one table share: together they stay below its cap.
    #[arg(long)]
    ledger: Option<PathBuf>,
    /// A file that remembers the ledger, best kept in another place: a ledger that was shortened or
    /// replaced is refused. The first fit that names it makes it.
    #[arg(long, requires = "ledger")]
    witness: Option<PathBuf>,
    /// The run or release whose model training starts from: at no further ε of its records. Columns, classes and
    /// ranges must be its own.
    #[arg(long, value_name = "RUN")]
    from: Option<PathBuf>,
    /// ε in the place of the configuration's: a number, or `rest` for what the ledger has left.
    #[arg(long, value_name = "EPSILON")]
    epsilon: Option<EpsilonChoice>,
    /// Trains a model without privacy too: its figures are in the private folder alone.
    #[arg(long)]
    reference: bool,
    /// Keeps the encoded table, a copy of private records, in the private folder.
    #[arg(long)]
    keep_encoded: bool,
    /// Machine-readable output: the statement, or the plan.
    #[arg(long)]
    json: bool,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run() -> ExitCode {
    // What is printed of a command line that is wrong obeys it, too.
    let asked = std::env::args().skip_while(|word| !word.starts_with("--color")).take(2).collect::<Vec<_>>().join("=");
    let color = asked.split('=').nth(1).and_then(|when| when.parse().ok()).unwrap_or(ColorChoice::Auto);
    let matches = Cli::command().color(color).try_get_matches();
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches)).unwrap_or_else(|error| {
        if error.use_stderr() && std::env::args().any(|word| word == "--json") {
            failure::print_usage_json(&error.render().to_string());
        }
        error.exit()
    });
    let is_json = cli.command.is_json();
    out_of_memory::answer_as(is_json);
    let opened = cli.said.log.as_deref().map_or(Ok(()), log::open);
    match opened.map_err(Failure::from).and_then(|()| execute(cli.command, &cli.said)) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(failure) => {
            if is_json {
                failure.print_json();
            }
            ExitCode::from(failure.told("", cli.said.color).code())
        }
    }
}

fn column_and_file(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((column, file)) if !column.is_empty() && !file.is_empty() => Ok((column.into(), file.into())),
        _ => Err("expected COLUMN=FILE, such as embedding=embeddings.npy".into()),
    }
}

/// A seed.
fn whole_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

/// One character; `\t` is a tab, as a shell passes it on.
fn character(text: &str) -> Result<char, String> {
    let mut letters = text.chars();
    match (text, letters.next(), letters.next()) {
        ("\\t", ..) => Ok('\t'),
        (_, Some(letter), None) => Ok(letter),
        _ => Err("expected one character, such as ';' or '\\t'".into()),
    }
}

/// Files by column, in the order in which they were given.
fn by_column(vectors: Vec<(String, String)>) -> BTreeMap<String, Vec<String>> {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (column, file) in vectors {
        files.entry(column).or_default().push(file);
    }
    files
}

fn execute(command: Command, said: &SaidArgs) -> Result<Exit, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut exit = Exit::Done;
    match command {
        Command::Init(args) => init(args, said, &mut out)?,
        Command::Fit(args) => shared_fit(args, said, &mut out)?,
        Command::Audit(args) => args.answer(said, &mut out)?,
        Command::Predict { folder, table, out: file, keep, explain, strict, text, json, quiet } => {
            let shown = Shown::reading_of(said.of(quiet), &table);
            let table_options = text.options(shown.reading());
            let options =
                PredictOptions { is_strict: strict, keep, reasons: explain.unwrap_or_default(), table: table_options };
            let inputs = Inputs::new(table)?;
            if stream::is_output(&file) {
                let mut output = stream::output(&file)?;
                let predicted = fairdp::predict_to(&folder, &inputs.tables, &mut output, &options);
                let predicted = shown.ended(inputs.with_output(&file).named(predicted))?;
                drop(shown);
                summary::predicted(&mut io::stderr(), &predicted, &file, json)?;
            } else {
                let predicted = inputs.named(fairdp::predict(&folder, &inputs.tables, &file, &options));
                let predicted = shown.ended(predicted)?;
                drop(shown);
                summary::predicted(&mut out, &predicted, &file, json)?;
            }
        }
        Command::Report { folder, json } => {
            let verified = fairdp::verify(&folder)?;
            if json {
                summary::report(&mut out, &verified)?;
            } else {
                summary::rates(&mut out, &verified.fairness)?;
                writeln!(out)?;
                out.write_all(verified.statement.markdown().as_bytes())?;
            }
        }
        Command::Verify { folder, public_key, json } => {
            let verified = match public_key {
                Some(key) => fairdp::verify_author(&folder, &key)?,
                None => fairdp::verify(&folder)?,
            };
            summary::verified(&mut out, &verified, json)?;
        }
        Command::Evaluate(args) => exit = args.answer(said, &mut out)?,
        Command::Drift(args) => exit = args.answer(said, &mut out)?,
        Command::Keygen { out: name } => {
            let [secret, public] = fairdp::generate_key(&name)?;
            writeln!(out, "signs: {} (without a password: keep it as one)", secret.display())?;
            writeln!(out, "compares: {} (give it to who checks releases)", public.display())?;
        }
        Command::Sign { folder, key } => writeln!(out, "signed: {}", fairdp::sign(&folder, &key)?.display())?,
        Command::Fairness { folder, mode, max_loss, max_gap, one_threshold, coins, out: place } => {
            let aim = Mode::find(&mode).and_then(|mode| Aim::with_limits(mode, max_loss, max_gap));
            let fairness = fairdp::write_with_fairness(
                &folder,
                &aim.map_err(FairdpError::from)?.with_one_threshold(one_threshold).with_coins(coins),
                &place,
            )?;
            summary::rates(&mut out, &fairness)?;
            writeln!(out, "release: {} (may be published), at no further epsilon", place.join("release").display())?;
        }
        Command::Export { form, folder } => {
            let exported = match form {
                Form::Registry => fairdp::registry_entry(&folder)?,
                Form::ModelCard => fairdp::model_card(&folder)?,
            };
            out.write_all(exported.text.as_bytes())?;
            for field in &exported.missing {
                // What is missing stands in the text, too.
                let _ = writeln!(io::stderr(), "missing: {field}");
            }
        }
        Command::Methods { like, json } => summary::methods(&mut out, like.as_deref(), json)?,
        Command::Account(args) => args.answer(&mut out)?,
        Command::Ledger(command) => command.answer(&mut out)?,
        Command::Schema => answer::schema(&mut out)?,
        Command::Completions { shell } => manual::completions::<Cli>(shell, &mut out)?,
        Command::Man { folder } => manual::pages::<Cli>(&folder)?,
        Command::Example { rows, columns, seed } => Example { rows, columns, seed }.write(&mut out)?,
    }
    out.flush()?;
    Ok(exit)
}

fn init(mut args: InitArgs, said: &SaidArgs, out: &mut impl Write) -> Result<(), Failure> {
    args.out = args.out.filter(|file| !stream::is_stdout(file));
    let vectors = by_column(args.vectors);
    let from = |files: &[String]| new_config::named(files, args.out.as_deref());
    let vectors_named = vectors.iter().map(|(column, files)| Ok((column.clone(), from(files)?)));
    let vectors_named = vectors_named.collect::<Result<_, FairdpError>>()?;
    let named = NamedFiles { tables: from(&args.table)?, vectors: vectors_named };
    let options = InitOptions {
        label: args.label,
        positive: args.positive,
        groups: args.group,
        group_as_input: args.group_as_input,
        unit: args.unit,
        max_records_per_unit: args.max_records_per_unit,
        weight: args.weight,
        epsilon: args.epsilon,
        delta: args.delta,
        test_fraction: args.test_fraction,
        model: args.model,
        method: args.method,
        encoding: args.encoding,
        delimiter: args.delimiter,
        quote: args.quote,
        vectors,
        accept_uncovered: args.accept_uncovered,
        named: Some(named),
        reading: None,
    };
    let shown = Shown::reading_of(said.of(args.quiet), &args.table);
    let options = InitOptions { reading: Some(shown.reading()), ..options };
    let inputs = Inputs::new(args.table)?;
    let header = args.schema.as_deref().map(|schema| new_config::schema(schema, args.out.as_deref()));
    let header = header.transpose()?.unwrap_or_default();
    let text = || fairdp::init(&inputs.tables, &options).map(|text| header + &text);
    let text = match &args.out {
        Some(file) => inputs.named(new_config::write(file, text)),
        None => inputs.named(text()),
    };
    let text = shown.ended(text)?;
    drop(shown);
    match args.out {
        file if args.json => answer::document(out, new_config::answer(&text, file.as_deref()))?,
        Some(_) => {}
        None => out.write_all(text.as_bytes())?,
    }
    Ok(())
}

/// Fits on the processes of the launcher, if there is one. If one of them fails, all end: the
/// others would wait for it.
fn shared_fit(args: FitArgs, said: &SaidArgs, out: &mut impl Write) -> Result<(), Failure> {
    let ranks = ranks::from_environment().map_err(FairdpError::from)?;
    let result = fit(args, said, &ranks, out);
    if let Err(failure) = &result
        && ranks.size() > 1
    {
        let who = if ranks.rank() == 0 { String::new() } else { format!("rank {}: ", ranks.rank()) };
        ranks.abort(failure.told(&who, said.color).code().into());
    }
    result
}

fn fit(args: FitArgs, said: &SaidArgs, ranks: &Arc<dyn Collective>, out: &mut impl Write) -> Result<(), Failure> {
    let is_first = ranks.rank() == 0;
    if args.plan && !is_first {
        return Ok(());
    }
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let options = FitOptions {
        out: args.out.unwrap_or_default(),
        seed: args.seed,
        threads: args.threads.and_then(NonZeroUsize::new).unwrap_or(cores),
        device: args.device,
        resume: args.resume,
        ledger: args.ledger,
        witness: args.witness,
        from: args.from,
        epsilon: args.epsilon,
        reference: args.reference,
        keep_encoded: args.keep_encoded,
        program: None,
        settings_note: None,
        ranks: ranks.clone(),
        reading: None,
    };
    if is_first && let Some(verified) = fairdp::finished(&args.config, &options)? {
        return Ok(summary::finished(out, &verified, &options.out, args.json)?);
    }
    let shown = Shown::new(said.of(args.quiet || !is_first));
    let options = FitOptions { reading: Some(shown.reading()), ..options };
    let mut progress = |progress: fairdp::Progress<'_>| shown.note(progress);
    if args.plan {
        let plan = if args.no_data {
            fairdp::plan_without_data(&args.config, &options)
        } else {
            fairdp::plan(&args.config, &options, &mut progress)
        };
        drop(shown);
        return Ok(summary::plan(out, &plan?, args.json)?);
    }
    let fitted = fairdp::fit(&args.config, &options, &mut progress);
    if is_first && matches!(fitted, Err(FairdpError::Interrupted)) {
        return Err(shown.interrupted(&options.out));
    }
    drop(shown);
    let fitted = fitted?;
    if is_first {
        summary::fitted(out, &fitted, &options.out, args.json)?;
    }
    Ok(())
}
