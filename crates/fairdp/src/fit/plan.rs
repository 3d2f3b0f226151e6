//! A fit up to its first release: its refusals and its planned releases.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dp_table::EncodedFile;
use dp_train::ranks::{Alone, Collective};

use super::journal::{Journal, Progress};
use super::run::{check, check_files, check_table, shares, threads};
use super::tables::Tables;
use super::{FitOptions, FitPlan, document, folder};
use crate::bounds;
use crate::config::{Config, ConfigText};
use crate::error::{FairdpError, Result};
use crate::key::DrawnKey;
use crate::rank_files::RankFiles;
use crate::shared_ledger::{Entering, Fit};
use crate::streams::TableStreams;
use crate::subsets::Division;

/// Reads the table as [`fit`](super::fit) does, and says what it would release. Nothing is drawn
/// and nothing is written; a folder that is named in the options must be one that the fit can take.
///
/// Bounds that are paid for are not released: a column of one value is found by the fit alone.
///
/// # Errors
/// The errors of [`fit`](super::fit) before its first release.
pub fn plan(
    config: &Path,
    options: &FitOptions,
    progress: &mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
) -> Result<FitPlan> {
    let path = config;
    let (text, config) = &document(Config::text(path)?, path, options, &Config::of_file)?;
    check(config, path, options)?;
    let streams = TableStreams::of(config, path, options.ranks.size())?;
    if streams.is_empty() {
        check_table(&ConfigText { text, config, path })?;
    }
    if !options.out.as_os_str().is_empty() {
        folder::check(&options.out, options.resume)?;
    }
    let mut journal = Journal::new(progress, None);
    let place = tempfile::tempdir().map_err(FairdpError::io("create a folder in", &std::env::temp_dir()))?;
    let spooled;
    let config = if streams.is_empty() {
        config
    } else {
        spooled = streams.spooled(place.path(), &mut |line| journal.stage(line))?;
        check_table(&ConfigText { text, config: &spooled, path })?;
        &spooled
    };
    let ranks: Arc<dyn Collective> = Arc::new(Alone);
    let mut source = RankFiles::new(config.training_files()?, &ranks, false)?;
    // Which records a part has depends on the key; how many records there are does not.
    let key = DrawnKey::new(options.seed)?;
    let division = Division { shares: shares(config), key: &key };
    let table = if bounds::private_columns(config).next().is_some() {
        journal.stage("reading the table")?;
        bounds::count(config, "", &mut source, &|_| true)?.table
    } else {
        let schema = config.schema(&|_| None)?;
        let folder = std::env::temp_dir();
        journal.stage(format!("reading {}", config.table.files.join(", ")))?;
        let place = EncodedFile::Temporary(&folder);
        let read = || Tables::read(config, &schema, source, place, &folder, division, &ranks);
        threads(options)?.install(read)?.size(config)?
    };
    let mut plan = FitPlan::of_table(config, path, table)?;
    if let Some(ledger) = &options.ledger {
        let at = |epsilon: f64| FitPlan::at(config, path, plan.n_training, epsilon)?.account();
        let entering = Entering { ledger, witness: options.witness.as_deref(), asked: config.into(), at: &at };
        plan.ledger = Some(entering.would_enter(Fit::planned(&key, &plan.account()?, config.scope()))?);
    }
    Ok(plan)
}

/// Plans without the table. Nothing that depends on its records or their number is checked.
///
/// # Errors
/// The errors of [`fit`](super::fit) before it reads a record.
pub fn plan_without_data(config: &Path, options: &FitOptions) -> Result<FitPlan> {
    let path = config;
    let config = &document(Config::text(path)?, path, options, &Config::of_file)?.1;
    check(config, path, options)?;
    if TableStreams::of(config, path, options.ranks.size())?.is_empty() {
        check_files(config)?;
    }
    FitPlan::new(config, path, 0)
}
