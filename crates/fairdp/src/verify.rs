//! Checks of a release against its statement.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dp_accounting::audit::Opinion;
use dp_accounting::{Delta, Epsilon, Mark};
use minisign::PublicKey;

use crate::account::Account;
use crate::error::{FairdpError, Result};
use crate::fairness::FairnessReport;
use crate::input;
use crate::model::{FittedModel, PIPELINE, WEIGHTS};
use crate::release::{FAIRNESS, LEDGER, LedgerFile, PRIVATE, STATEMENT, STATEMENT_TEXT};
use crate::seal::{sha256, unsealed};
use crate::signature::{self, SIGNATURE, Signature};
use crate::statement::{ReleaseStatement, STATEMENT_VERSION};
use crate::unfinished::release_of;

/// Other processors may round the last digits otherwise.
const SLACK: f64 = 1.0 + 1e-9;

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
    /// Whether the statement is signed, and by whom.
    pub signature: Signature,
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
/// [`FairdpError::NotVerified`] with every problem; [`FairdpError::NotRead`] with every file that
/// cannot be read, if nothing is wrong in the others; [`FairdpError::Io`] if there is no release.
pub fn verify(folder: &Path) -> Result<Verified> {
    check(folder, None)
}

/// The same, and that the owner of a public key has signed the release: digests detect changes, not
/// authors.
///
/// # Errors
/// As [`verify`]; [`FairdpError::NotVerified`] also for a signature that is missing, or by another
/// key; [`FairdpError::File`] for a file that is no key.
pub fn verify_author(folder: &Path, public_key: &Path) -> Result<Verified> {
    check(folder, Some(&signature::public(public_key)?))
}

fn check(folder: &Path, key: Option<&PublicKey>) -> Result<Verified> {
    let release = release_of(folder)?;
    let ledger = (release != folder).then(|| folder.join(PRIVATE).join(LEDGER));
    let path = release.join(STATEMENT);
    let text = input::bytes(&path)?;
    let mut findings = Findings::default();
    let statement: Option<ReleaseStatement> = match String::from_utf8(text.clone()) {
        Ok(text) => findings.note(unsealed(&path, &text)),
        Err(error) => findings.note(Err(FairdpError::file(&path, error))),
    };
    let signature = findings.note(signature::compare(&release, &text, key));
    let mut files = digests(&release, &mut findings);
    files.remove(SIGNATURE);
    if let Some(path) = &ledger {
        let unread = findings.unread.len();
        check_ledger(path, &files, statement.as_ref(), &mut findings);
        if let Some(reason) = findings.unread.get_mut(unread) {
            let _ = write!(reason, "; the release alone: fairdp verify {}", release.display());
        }
    }
    files.remove(STATEMENT);
    let Some(statement) = statement else { return Err(findings.error()) };
    compare(&release, &statement.files, &files, &mut findings);
    let recomputed = findings.note(check_statement(&path, &statement));
    let is_digested = |name: &str| matches!(files.get(name), Some(Some(_)));
    if is_digested(STATEMENT_TEXT)
        && findings.note(input::text(&release.join(STATEMENT_TEXT))).is_some_and(|text| text != statement.markdown())
    {
        findings.problem(&release.join(STATEMENT_TEXT), "does not say what statement.json says");
    }
    // What is missing or cannot be read was said.
    if [PIPELINE, WEIGHTS].into_iter().all(is_digested)
        && let Some(model) = findings.note(FittedModel::load(&release))
        && recomputed.is_some()
    {
        findings.note(check_groups(&path, &statement, &model));
    }
    let fairness = is_digested(FAIRNESS).then(|| findings.note(fairness_of(&release.join(FAIRNESS)))).flatten();
    match (recomputed, fairness, signature) {
        (Some((epsilon, epsilon_rdp, opinion)), Some(fairness), Some(signature)) if findings.is_empty() => {
            let (files, with_ledger) = (files.len() + 1, ledger.is_some());
            Ok(Verified { statement, fairness, epsilon, epsilon_rdp, opinion, files, with_ledger, signature })
        }
        _ => Err(findings.error()),
    }
}

/// What a check found: what is wrong, and what could not be read and may be right.
#[derive(Debug, Default)]
struct Findings {
    problems: Vec<String>,
    unread: Vec<String>,
}

impl Findings {
    fn is_empty(&self) -> bool {
        self.problems.is_empty() && self.unread.is_empty()
    }

    fn problem(&mut self, path: &Path, what: impl std::fmt::Display) {
        self.problems.push(format!("`{}`: {what}", path.display()));
    }

    /// The value; an error is what could not be read, or what is wrong.
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        match &error {
            FairdpError::Io { path, source, .. } if source.kind() == io::ErrorKind::NotFound => {
                self.problem(path, "is missing");
            }
            FairdpError::Io { .. } => self.unread.push(error.in_full()),
            _ => self.problems.push(error.in_full()),
        }
        None
    }

    /// What is wrong counts more than what could not be read; both are said.
    fn error(mut self) -> FairdpError {
        if self.problems.is_empty() {
            return FairdpError::NotRead { files: self.unread };
        }
        self.problems.append(&mut self.unread);
        FairdpError::NotVerified { problems: self.problems }
    }
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

/// sha256 of every file below a folder, by its name there; `None` for one without a digest, whose
/// reason is among the findings.
type Digests = BTreeMap<String, Option<String>>;

fn digests(folder: &Path, findings: &mut Findings) -> Digests {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let at = folder.join(&inner);
        let Some(entries) = findings.note(fs::read_dir(&at).map_err(FairdpError::io("read", &at))) else { continue };
        let mut is_empty = true;
        for entry in entries {
            is_empty = false;
            let Some(entry) = findings.note(entry.map_err(FairdpError::io("read", &at))) else { continue };
            let name = inner.join(entry.file_name());
            let path = folder.join(&name);
            let Some(kind) = findings.note(entry.file_type().map_err(FairdpError::io("read", &path))) else { continue };
            if kind.is_dir() {
                folders.push(name);
                continue;
            }
            let bytes = if kind.is_symlink() {
                // It may lead out of the folder, or back to it.
                Err(FairdpError::file(&path, "is a link, expected files and folders"))
            } else {
                input::bytes(&path)
            };
            let digest = findings.note(bytes).map(|bytes| sha256(&bytes));
            files.insert(name.to_string_lossy().into_owned(), digest);
        }
        if is_empty && at != folder {
            findings.problem(&at, "is an empty folder that no release has");
        }
    }
    files
}

/// Names of the files that were read.
fn with_digest(files: &Digests) -> impl Iterator<Item = &String> {
    files.iter().filter_map(|(name, digest)| digest.as_ref().map(|_| name))
}

fn compare(folder: &Path, expected: &BTreeMap<String, String>, found: &Digests, findings: &mut Findings) {
    for (name, digest) in expected {
        match found.get(name) {
            None => findings.problem(&folder.join(name), "is missing"),
            Some(Some(found)) if found != digest => findings.problem(&folder.join(name), CHANGED),
            Some(_) => {}
        }
    }
    for name in with_digest(found).filter(|name| !expected.contains_key(*name)) {
        findings.problem(&folder.join(name), "has no entry in the statement");
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
    if statement.epsilon * SLACK < epsilon {
        return Err(FairdpError::file(path, format!("says ε = {}, but its events cost {epsilon}", statement.epsilon)));
    }
    // A bound by Rényi divergences is looser; one below the other's proven lower end would refute
    // it.
    if rdp * SLACK < lower {
        return Err(FairdpError::file(
            path,
            format!("two accountants contradict each other: {rdp} and at least {lower}"),
        ));
    }
    let opinion = account.judge(Epsilon::new(statement.epsilon * SLACK)?, delta);
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

/// ε of each group again, where groups were drawn at rates of their own. Their order is that of the model.
fn check_groups(path: &Path, statement: &ReleaseStatement, model: &FittedModel) -> Result<()> {
    let account = Account::of(statement.events.iter().cloned())?;
    let found = account.epsilon_by_group(Delta::new(statement.delta)?)?;
    let (groups, said) = (model.encoding().groups(), &statement.epsilon_of_groups);
    if found.is_empty() && said.is_empty() {
        return Ok(());
    }
    if found.len() != groups.len() || said.len() != groups.len() {
        let (said, found, of_model) = (said.len(), found.len(), groups.len());
        let problem =
            format!("has ε of {said} groups, and events of {found}: expected those of the model's {of_model}");
        return Err(FairdpError::file(path, problem));
    }
    for (group, found) in groups.iter().zip(found) {
        let group = group.to_string();
        let epsilon = said.get(&group).copied().unwrap_or(0.0);
        if epsilon * SLACK < found {
            let problem = format!("says ε = {epsilon} of the group {group}, but its events cost {found}");
            return Err(FairdpError::file(path, problem));
        }
    }
    Ok(())
}

fn check_ledger(path: &Path, files: &Digests, statement: Option<&ReleaseStatement>, findings: &mut Findings) {
    let read = || -> Result<LedgerFile> {
        let text = input::text(path)?;
        unsealed(path, &text)
    };
    let Some(ledger) = findings.note(read()) else { return };
    if let Err(error) = ledger.account.verify() {
        findings.problem(path, error);
    }
    for (name, digest) in &ledger.release {
        // What is missing is said of the statement's files.
        if matches!(files.get(name), Some(Some(found)) if found != digest) {
            findings.problem(path, format!("names another `{name}` than the one in the release"));
        }
    }
    for name in with_digest(files).filter(|name| !ledger.release.contains_key(*name)) {
        findings.problem(path, format!("has no entry for `{name}` of the release"));
    }
    if statement.is_some_and(|statement| statement.events != ledger.account.releases()) {
        findings.problem(path, "has other events than the statement");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody's release is called broken because it cannot be read; what is wrong is said first.
    #[test]
    fn unread_is_not_wrong() {
        let unread = || {
            let mut findings = Findings::default();
            let denied =
                FairdpError::io("read", Path::new("release/card.html"))(io::ErrorKind::PermissionDenied.into());
            assert!(findings.note::<()>(Err(denied)).is_none());
            findings
        };
        let error = unread().error();
        assert_eq!(error.exit(), crate::Exit::Failed);
        insta::assert_snapshot!(error, @r"
        cannot be checked, for these files cannot be read, and nothing is wrong in the others:
        cannot read `release/card.html`: permission denied
        ");
        let mut both = unread();
        both.note::<()>(Err(FairdpError::io("read", Path::new("a"))(io::ErrorKind::NotFound.into())));
        let error = both.error();
        assert_eq!(error.exit(), crate::Exit::NotVerified);
        assert_eq!(error.to_string(), "`a`: is missing\ncannot read `release/card.html`: permission denied");
    }
}
