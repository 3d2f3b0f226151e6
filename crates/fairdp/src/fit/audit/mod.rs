//! Attacks on a run of a configuration, beside what its statement will claim.
//!
//! An audit trains as a fit does, with canaries among the records, and releases nothing. It draws a key
//! of its own. What it finds is computed from the records: **not private**.

mod in_public;
mod one_run;
mod options;
mod releases;
mod report;
mod rows;
#[cfg(test)]
mod trials;
mod watch;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dp_accounting::Delta;
use dp_linear::Streams as _;
use dp_table::{EncodedFile, Encoding, MemoryTable, TableFiles};
use dp_train::ranks::{Alone, Collective};
use dp_train::{Device, DeviceName};
use rayon::ThreadPool;

pub use self::options::{AuditFault, AuditOptions};
use self::releases::Attacks;
pub use self::report::{AttackedRelease, AttackedRun, AuditReport, OfKind};
use super::journal::{Journal, Progress};
use super::run::{check, shares, threads};
use super::tables::Tables;
use super::training::Training;
use super::{FitOptions, FitPlan, document, edges_of};
use crate::bounds;
use crate::config::{Config, ConfigText};
use crate::error::{FairdpError, Result};
use crate::input;
use crate::key::{DrawnKey, NoiseKey};
use crate::output::{self, Readers};
use crate::rank_files::RankFiles;
use crate::release::{PRIVATE, json};
use crate::subset::Subset;
use crate::subsets::{Division, GroupedRows};

/// The file of an audit in its private folder.
const FILE: &str = "audit.json";
/// Probability that any figure that refutes does so wrongly, at most: half of it for the attack on the
/// run, half for those on releases.
const FAILURE: f64 = 0.05;

/// Attacks a run of this configuration. With a folder in the options the report is written to its
/// private part.
///
/// # Errors
/// Those of [`fit`](super::fit) before its first release; [`FairdpError::NotForThisTable`] for a
/// configuration whose settings the records choose.
pub fn audit(
    config: &Path,
    options: &AuditOptions,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<AuditReport> {
    let fit = fit_options(options);
    let (text, parsed) = document(input::text(config)?, config, &fit, &Config::of_file)?;
    run(ConfigText { text: &text, config: &parsed, path: config }, options, &fit, progress)
}

/// The same for a table in memory, as [`fit_table`](super::fit_table).
///
/// # Errors
/// As [`audit`].
pub fn audit_table(
    config: &str,
    table: MemoryTable,
    options: &AuditOptions,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<AuditReport> {
    let (path, fit) = (Path::new("configuration"), fit_options(options));
    let (text, mut parsed) = document(config.to_owned(), path, &fit, &Config::from_toml)?;
    let table = TableFiles::in_memory(table);
    parsed.table.files = table.paths().iter().map(|name| name.to_string_lossy().into_owned()).collect();
    parsed.in_memory = Some(table);
    run(ConfigText { text: &text, config: &parsed, path }, options, &fit, progress)
}

/// The options of the fit that is attacked.
fn fit_options(options: &AuditOptions) -> FitOptions {
    FitOptions {
        seed: options.seed,
        from: options.from.clone(),
        threads: options.threads,
        device: DeviceName::Cpu,
        ..FitOptions::new(options.out.clone().unwrap_or_default())
    }
}

fn run(
    document: ConfigText<'_>,
    options: &AuditOptions,
    fit: &FitOptions,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<AuditReport> {
    let ConfigText { text, config, path } = document;
    options.check()?;
    if config.tuning.is_some() {
        return Err(FairdpError::NotForThisTable {
            parameter: "[tuning]",
            value: "a search".into(),
            expected: "none: an audit attacks one training, such as that of the settings that a search found".into(),
        });
    }
    if options.fault == Some(AuditFault::GroupThreshold) && !config.recipe()?.has_thresholds_by_rate() {
        let expected = "with method.name = \"asc\" or \"asc-by-loss\" alone, whose groups have thresholds of their own";
        return Err(FairdpError::invalid("--plant", AuditFault::GroupThreshold.name(), expected));
    }
    if let Some(out) = options.out.as_ref().filter(|out| out.exists()) {
        return Err(FairdpError::folder(out, "exists", "give a new folder for the audit"));
    }
    check(config, path, fit)?;
    let mut journal = Journal::new(progress, None);
    let pool = &threads(fit)?;
    if let Some(release) = &options.release {
        return in_public::run(document, release, options, fit, pool, &mut journal);
    }
    let ranks: Arc<dyn Collective> = Arc::new(Alone);
    let drawn = DrawnKey::new(options.seed)?;
    let division = Division { shares: shares(config), key: &drawn };
    let folder = std::env::temp_dir();
    let mut source = RankFiles::new(config.training_files()?, &ranks, false)?;
    let mut edges = std::collections::HashMap::new();
    if bounds::private_columns(config).next().is_some() {
        journal.stage("releasing bounds")?;
        let counts = bounds::count(config, text, &mut source, &|row| division.part(row) == Subset::Training)?;
        let plan = FitPlan::of_table(config, path, counts.table)?;
        let key = drawn.bind(&counts.bound);
        for (name, counts) in counts.by_column {
            let column = bounds::private_columns(config).find(|column| column.name == name);
            let column = column.ok_or_else(|| FairdpError::Internal(format!("{name}: not private")))?;
            let purpose = edges_of(column);
            let sigma = plan.release(&purpose)?.noise_multiplier;
            edges.insert(name, bounds::release(column, counts, sigma, &mut key.stream(&purpose, 0))?);
        }
    }
    let schema = config.schema(&|name| edges.get(name).cloned())?;
    journal.stage(format!("reading {}", config.table.files.join(", ")))?;
    let read = || Tables::read(config, &schema, source, EncodedFile::Temporary(&folder), &folder, division, &ranks);
    let tables = pool.install(read)?;
    let plan = FitPlan::of_table(config, path, tables.size(config)?)?;
    let key = drawn.bind(&tables.bound(text)?);
    let encoding = tables.training.encoding();
    let attacked = Attacked { config, plan: &plan, encoding, key: &key, options, fit, pool };
    let report = attacked.report(&tables.training().rows(ranks), &mut journal)?;
    if let Some(out) = &options.out {
        write(&report, out)?;
    }
    Ok(report)
}

/// A run that is attacked, without its records.
struct Attacked<'a> {
    config: &'a Config,
    plan: &'a FitPlan,
    encoding: &'a Encoding,
    key: &'a NoiseKey,
    options: &'a AuditOptions,
    fit: &'a FitOptions,
    pool: &'a ThreadPool,
}

impl Attacked<'_> {
    fn report(&self, records: &impl GroupedRows, journal: &mut Journal<'_>) -> Result<AuditReport> {
        let Self { config, plan, encoding, key, options, .. } = *self;
        let training = &Training::new(config, plan, encoding, self.fit, Device::Cpu, self.pool);
        let attack = one_run::OneRunAttack { config, plan, encoding, training, key, options };
        let (white_box, black_box) = attack.run(records, 0.5 * FAILURE, journal)?;
        journal.stage("attacking every release")?;
        let (fault, repeats) = (options.fault, options.repeats);
        let attacks = Attacks { config, plan, encoding, training, key, fault, repeats, failure: 0.5 * FAILURE };
        let releases = attacks.all(journal)?;
        let epsilon = plan.account()?.epsilon(Delta::new(plan.delta)?)?.epsilon.get();
        Ok(AuditReport::new(options, (epsilon, plan.delta), white_box, black_box, releases))
    }
}

fn write(report: &AuditReport, out: &Path) -> Result<()> {
    let private = out.join(PRIVATE);
    output::private_folder(&private)?;
    output::write(&private.join(FILE), json(report)?.as_bytes(), Readers::Owner)?;
    output::write(&private.join("audit.md"), report.markdown().as_bytes(), Readers::Owner)
}
