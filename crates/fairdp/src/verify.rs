//! Checks of a release against its statement.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dp_accounting::audit::Opinion;
use dp_accounting::{Delta, Epsilon, Mark};

use crate::account::Account;
use crate::error::{FairdpError, Result};
use crate::fairness::FairnessReport;
use crate::input;
use crate::model::FittedModel;
use crate::release::{FAIRNESS, LEDGER, LedgerFile, PRIVATE, RELEASE, STATEMENT, STATEMENT_TEXT};
use crate::seal::{sha256, unsealed};
use crate::statement::{ReleaseStatement, STATEMENT_VERSION};

const CHANGED: &str = "was changed: it does not have the digest of the statement";

/// Results of a successful check.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Verified {
    /// The statement.
    pub statement: ReleaseStatement,
    /// Fairness, within ε.
    pub fairness: FairnessReport,
    /// ε again, by the first accountant.
    pub epsilon: f64,
    /// ε by the second.
    pub epsilon_rdp: f64,
    /// Opinion of arithmetic of 200 bits on the statement's ε: never [`Opinion::Refuted`].
    pub opinion: Opinion,
    /// Files that were compared with their digests.
    pub files: usize,
    /// Whether the private ledger was there and compared too.
    pub with_ledger: bool,
}

/// Checks a run's folder, or its `release` alone.
///
/// - every file has the digest that the statement gives, and there is no file without one;
/// - the statement has the digest of its seal, and its text agrees with its data;
/// - ε follows from the events, by two accountants, and the chain of the ledgers does; arithmetic
///   of 200 bits, with separate formulas, does not refute it;
/// - in a run's folder: the private ledger is unchanged and names the same files and events.
///
/// # Errors
/// [`FairdpError::NotVerified`] with every problem; [`FairdpError::Io`] if there is no release.
pub fn verify(folder: &Path) -> Result<Verified> {
    let release = release_of(folder);
    let ledger = (release != folder).then(|| folder.join(PRIVATE).join(LEDGER));
    let path = release.join(STATEMENT);
    let text = input::bytes(&path)?;
    let mut problems = Vec::new();
    let statement: Option<ReleaseStatement> = match String::from_utf8(text.clone()) {
        Ok(text) => note(&mut problems, unsealed(&path, &text)),
        Err(error) => note(&mut problems, Err(FairdpError::file(&path, error))),
    };
    let mut files = note(&mut problems, digests(&release)).unwrap_or_default();
    if let Some(path) = ledger.clone() {
        check_ledger(&path, &files, statement.as_ref(), &mut problems);
    }
    files.remove(STATEMENT);
    let Some(statement) = statement else { return Err(FairdpError::NotVerified { problems }) };
    compare(&release, &statement.files, &files, &mut problems);
    let recomputed = note(&mut problems, check_statement(&path, &statement));
    if input::text(&release.join(STATEMENT_TEXT)).is_ok_and(|text| text != statement.markdown()) {
        problems.push(problem(&release.join(STATEMENT_TEXT), "does not say what statement.json says"));
    }
    if let Err(error) = FittedModel::load(&release) {
        problems.push(error.in_full());
    }
    let fairness = note(&mut problems, fairness_of(&release.join(FAIRNESS)));
    match (recomputed, fairness) {
        (Some((epsilon, epsilon_rdp, opinion)), Some(fairness)) if problems.is_empty() => {
            let (files, with_ledger) = (files.len() + 1, ledger.is_some());
            Ok(Verified { statement, fairness, epsilon, epsilon_rdp, opinion, files, with_ledger })
        }
        _ => Err(FairdpError::NotVerified { problems }),
    }
}

/// The release in a run's folder, or the folder itself.
pub(crate) fn release_of(folder: &Path) -> PathBuf {
    let whole = folder.join(RELEASE);
    if whole.is_dir() { whole } else { folder.to_path_buf() }
}

/// The model of a release, unless it is not the one of the release's statement. A copy of the
/// model's files alone has no statement.
///
/// # Errors
/// [`FairdpError::NotVerified`] for what [`verify`] would not let pass in these files.
pub(crate) fn model_of_statement(release: &Path) -> Result<FittedModel> {
    let path = release.join(STATEMENT);
    if !path.exists() {
        return FittedModel::load(release);
    }
    let text = input::bytes(&path)?;
    let load = || {
        let text = String::from_utf8(text).map_err(|error| FairdpError::file(&path, error))?;
        let statement: ReleaseStatement = unsealed(&path, &text)?;
        FittedModel::load_checked(release, |name, bytes| match statement.files.get(name) {
            Some(digest) if *digest == sha256(bytes) => Ok(()),
            _ => Err(FairdpError::file(&release.join(name), CHANGED)),
        })
    };
    load().map_err(|error| FairdpError::NotVerified { problems: vec![error.in_full()] })
}

fn fairness_of(path: &Path) -> Result<FairnessReport> {
    serde_json::from_slice(&input::bytes(path)?).map_err(|error| FairdpError::file(path, error))
}

fn problem(path: &Path, what: impl std::fmt::Display) -> String {
    format!("`{}`: {what}", path.display())
}

/// A problem, or the value.
fn note<T>(problems: &mut Vec<String>, result: Result<T>) -> Option<T> {
    result.map_err(|error| problems.push(error.in_full())).ok()
}

/// sha256 of every file below a folder, by its name there.
fn digests(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let at = folder.join(&inner);
        for entry in fs::read_dir(&at).map_err(FairdpError::io("read", &at))? {
            let entry = entry.map_err(FairdpError::io("read", &at))?;
            let name = inner.join(entry.file_name());
            let path = folder.join(&name);
            let kind = entry.file_type().map_err(FairdpError::io("read", &path))?;
            if kind.is_dir() {
                folders.push(name);
            } else if kind.is_symlink() {
                // It may lead out of the folder, or back to it.
                return Err(FairdpError::file(&path, "is a link, expected files and folders"));
            } else {
                let bytes = input::bytes(&path)?;
                files.insert(name.to_string_lossy().into_owned(), sha256(&bytes));
            }
        }
    }
    Ok(files)
}

fn compare(
    folder: &Path,
    expected: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
    problems: &mut Vec<String>,
) {
    for (name, digest) in expected {
        match found.get(name) {
            None => problems.push(problem(&folder.join(name), "is missing")),
            Some(found) if found != digest => {
                problems.push(problem(&folder.join(name), CHANGED));
            }
            Some(_) => {}
        }
    }
    for name in found.keys().filter(|name| !expected.contains_key(*name)) {
        problems.push(problem(&folder.join(name), "has no entry in the statement"));
    }
}

/// ε again, by two accountants, and a second opinion on it.
fn check_statement(path: &Path, statement: &ReleaseStatement) -> Result<(f64, f64, Opinion)> {
    if statement.version != STATEMENT_VERSION {
        let found = statement.version;
        return Err(FairdpError::file(path, format!("version {found}: this program reads {STATEMENT_VERSION}")));
    }
    let account = Account::of(statement.events.iter().cloned())?;
    if account.digests() != statement.chain {
        return Err(FairdpError::file(path, "its events do not have the digests of its chain"));
    }
    let delta = Delta::new(statement.delta)?;
    let bound = account.epsilon(delta)?;
    let (epsilon, lower) = (bound.epsilon.get(), bound.lower.map_or(0.0, dp_accounting::Epsilon::get));
    let rdp = account.epsilon_by_rdp(delta)?.epsilon.get();
    // Other processors may round the last digits otherwise.
    let slack = 1.0 + 1e-9;
    if statement.epsilon * slack < epsilon {
        return Err(FairdpError::file(path, format!("says ε = {}, but its events cost {epsilon}", statement.epsilon)));
    }
    // A bound by Rényi divergences is looser; one below the other's proven lower end would refute
    // it.
    if rdp * slack < lower {
        return Err(FairdpError::file(
            path,
            format!("two accountants contradict each other: {rdp} and at least {lower}"),
        ));
    }
    let opinion = account.judge(Epsilon::new(statement.epsilon * slack)?, delta);
    if opinion == Opinion::Refuted {
        let epsilon = statement.epsilon;
        return Err(FairdpError::file(path, format!("says ε = {epsilon}, which arithmetic of 200 bits refutes")));
    }
    let conditional = !statement.given.is_empty();
    if (statement.mark == Mark::Certified) == conditional {
        return Err(FairdpError::file(path, "its mark does not fit what it is given"));
    }
    Ok((epsilon, rdp, opinion))
}

fn check_ledger(
    path: &Path,
    files: &BTreeMap<String, String>,
    statement: Option<&ReleaseStatement>,
    problems: &mut Vec<String>,
) {
    let read = || -> Result<LedgerFile> {
        let text = input::text(path)?;
        unsealed(path, &text)
    };
    let Some(ledger) = note(problems, read()) else { return };
    if let Err(error) = ledger.account.verify() {
        problems.push(problem(path, error));
    }
    for (name, digest) in &ledger.release {
        if files.get(name) != Some(digest) {
            problems.push(problem(path, format!("names another `{name}` than the one in the release")));
        }
    }
    for name in files.keys().filter(|name| !ledger.release.contains_key(*name)) {
        problems.push(problem(path, format!("has no entry for `{name}` of the release")));
    }
    if statement.is_some_and(|statement| statement.events != ledger.account.releases()) {
        problems.push(problem(path, "has other events than the statement"));
    }
}
