//! An attack whose outcome may be published: on records that nobody has.

use std::path::Path;

use dp_table::RowsDigest;
use rayon::ThreadPool;

use super::rows::{MadeRows, Shape};
use super::{Attacked, AuditOptions, AuditReport, write};
use crate::config::ConfigText;
use crate::error::{FairdpError, Result};
use crate::fit::journal::Journal;
use crate::fit::{FitOptions, FitPlan};
use crate::key::{DrawnKey, NoiseBinding};
use crate::model::{FittedModel, PIPELINE, WEIGHTS};
use crate::post_processing::files_of;
use crate::release::{ReleaseFiles, STATEMENT, STATEMENT_TEXT};
use crate::statement::{AttackOnRun, StartedFrom};
use crate::subset::Subset;

/// Attacks a run on as many made-up records as the release had, and writes the release again with a line
/// on it. Nothing is written where the claim is refuted.
pub(super) fn run(
    document: ConfigText<'_>,
    release: &Path,
    options: &AuditOptions,
    fit: &FitOptions,
    pool: &ThreadPool,
    journal: &mut Journal<'_>,
) -> Result<AuditReport> {
    let ConfigText { text, config, path } = document;
    let (files, mut statement) = files_of(release)?;
    let file = |name: &str| {
        files.get(name).ok_or_else(|| FairdpError::file(Path::new(name), "is not in the release")).map(Vec::as_slice)
    };
    let own = config.start.as_ref().map(|start| &start.from);
    if own != statement.started_from.as_ref() {
        let told = |from: Option<&StartedFrom>| {
            from.map_or("none".to_owned(), |from| format!("the release whose statement has sha256 {}", from.statement))
        };
        let expected = format!("{}, as the release has it", told(statement.started_from.as_ref()));
        return Err(FairdpError::invalid("--from", told(own), expected));
    }
    let model = FittedModel::from_bytes(file(PIPELINE)?, file(WEIGHTS)?)?;
    let n = statement.records.get(Subset::Training.name()).copied().unwrap_or_default();
    let plan = FitPlan::new(config, path, n)?;
    let account = plan.account()?;
    if account.releases() != statement.events {
        return Err(FairdpError::OtherInput { input: "configuration" });
    }
    let shape = Shape { encoding: model.encoding() };
    let key = DrawnKey::new(options.seed)?.bind(&NoiseBinding::new(RowsDigest::default(), None, text));
    let attacked = Attacked { config, plan: &plan, encoding: model.encoding(), key: &key, options, fit, pool };
    let report = attacked.report(&MadeRows::of_all_kinds(shape, n), journal)?;
    let Some(out) = options.out.as_ref().filter(|_| !report.refuted) else { return Ok(report) };
    let white_box = &report.white_box;
    statement.attacked = Some(AttackOnRun {
        canaries: white_box.bounds.canaries,
        epsilon: white_box.claim.epsilon,
        found: white_box.bounds.gaussian,
        found_without_assumption: white_box.bounds.without_assumption(),
    });
    statement.files.clear();
    let mut again = ReleaseFiles::default();
    for (name, bytes) in files.into_iter().filter(|(name, _)| name != STATEMENT && name != STATEMENT_TEXT) {
        again.add(&name, bytes);
    }
    write(&report, out)?;
    again.publish(out, statement, &account)?;
    Ok(report)
}
