//! Joins records of one study in a compact file: those that are committed, and new ones of compact
//! files or databases.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use crate::compact;
use crate::database::Database;
use crate::ledger::refuse_other_cost;
use crate::merge::Merged;
use crate::output::Output;
use crate::record::{ExperimentResults, MethodResults, RunRecord, StudyResults};

/// How a compact file's name ends.
pub const SUFFIX: &str = ".runs.zst";

/// Adds the runs of `inputs` to the compact file `out`, which is made if there is none. Experiments
/// that are new come last.
///
/// Two records of one run must have the same metrics; the one that was there stays. All runs of a
/// method must have one ledger, because its ε is shown for all of them.
///
/// # Errors
/// If the files are of different studies or seeds, two of them disagree about a run or the ledger of
/// a method, or a run was trained on other data than its experiment; the message says where.
pub fn join(out: &Path, inputs: &[PathBuf], study: &str) -> anyhow::Result<Merged> {
    let mut inputs = inputs.iter();
    let mut joined = if out.exists() {
        compact::read(out, study)?
    } else {
        read(inputs.next().context("nothing to merge")?, study)?
    };
    let mut merged = Merged { added: if out.exists() { 0 } else { n_runs(&joined) }, equal: 0 };
    let paths: Vec<&Path> = inputs.clone().map(PathBuf::as_path).collect();
    let output = Output::new(out, &paths)?;
    for path in inputs {
        let more = read(path, study)?;
        add(&mut joined, more, &mut merged).with_context(|| path.display().to_string())?;
    }
    output.write_bytes(&compact::pack(&joined)?)?;
    Ok(merged)
}

/// The records of a compact file or a database, which may be of a study that is not finished.
fn read(path: &Path, study: &str) -> anyhow::Result<StudyResults> {
    if !whole_file::is_database(path).with_context(|| format!("reading {}", path.display()))? {
        return compact::read(path, study);
    }
    let results = Database::read(path)?.results()?;
    ensure!(results.study == study, "{}: records of the study {}, not of {study}", path.display(), results.study);
    Ok(results)
}

fn n_runs(study: &StudyResults) -> usize {
    study.experiments.iter().flat_map(|experiment| &experiment.methods).map(|method| method.runs.len()).sum()
}

fn add(study: &mut StudyResults, more: StudyResults, merged: &mut Merged) -> anyhow::Result<()> {
    let of = |study: &StudyResults| (study.private, study.seed, study.split_seed, study.quick, study.synthetic);
    ensure!(
        of(study) == of(&more),
        "runs under other seeds, quick runs or generated records cannot be joined with others"
    );
    for session in more.sessions {
        if !study.sessions.contains(&session) {
            study.sessions.push(session);
        }
    }
    for experiment in more.experiments {
        match study.experiments.iter_mut().find(|known| known.id == experiment.id) {
            None => {
                merged.added += experiment.methods.iter().map(|method| method.runs.len()).sum::<usize>();
                study.experiments.push(experiment);
            }
            Some(known) => add_experiment(known, experiment, merged)?,
        }
    }
    Ok(())
}

fn add_experiment(known: &mut ExperimentResults, more: ExperimentResults, merged: &mut Merged) -> anyhow::Result<()> {
    let id = &known.id;
    ensure!(known.dataset == more.dataset && known.model == more.model, "{id}: other data or another model");
    for method in more.methods {
        match known.methods.iter_mut().find(|known| known.method == method.method) {
            None => {
                merged.added += method.runs.len();
                known.methods.push(method);
            }
            Some(known) => add_method(known, method, merged).with_context(|| id.clone())?,
        }
    }
    Ok(())
}

fn add_method(known: &mut MethodResults, more: MethodResults, merged: &mut Merged) -> anyhow::Result<()> {
    ensure!(known.config == more.config, "{}: another configuration", known.method);
    refuse_other_cost(known.privacy.as_ref(), more.privacy.as_ref()).with_context(|| known.method.clone())?;
    for run in more.runs {
        match known.runs.iter().find(|known| known.index == run.index) {
            None => {
                merged.added += 1;
                known.runs.push(run);
            }
            Some(known) if metrics(known) == metrics(&run) => merged.equal += 1,
            Some(_) => bail!("{}, seed {}: two results", more.method, run.index + 1),
        }
    }
    known.runs.sort_by_key(|run| run.index);
    for failure in more.failures {
        if !known.failures.contains(&failure) {
            known.failures.push(failure);
        }
    }
    Ok(())
}

fn metrics(run: &RunRecord) -> [Option<&crate::MetricsRecord>; 3] {
    [Some(&run.test), run.validation.as_ref(), Some(&run.train)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::study;

    #[test]
    fn compact_files_are_joined_and_what_disagrees_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let write = |name: &str, study: &StudyResults| {
            std::fs::write(at(name), compact::pack(study).unwrap()).unwrap();
        };
        let whole = study();
        let (mut first, mut second) = (whole.clone(), whole.clone());
        first.experiments[0].methods.truncate(3);
        second.experiments[0].methods.drain(..2);
        second.experiments[0].methods[0].runs.truncate(1);
        write("first.runs.zst", &first);
        write("second.runs.zst", &second);
        let inputs = [at("first.runs.zst"), at("second.runs.zst")];
        let merged = join(&at("out.runs.zst"), &inputs, "adult").unwrap();
        assert_eq!((merged.added, merged.equal), (25, 1));
        let joined = compact::read(&at("out.runs.zst"), "adult").unwrap();
        assert_eq!(n_runs(&joined), n_runs(&whole));
        assert_eq!(joined.sessions, whole.sessions);
        let again = join(&at("out.runs.zst"), &inputs, "adult").unwrap();
        assert_eq!((again.added, again.equal), (0, 26));

        let mut other = whole.clone();
        other.experiments[0].methods[1].runs[2].test.overall.accuracy = Some(0.1);
        write("other.runs.zst", &other);
        let error = join(&at("out.runs.zst"), &[at("other.runs.zst")], "adult").unwrap_err();
        assert!(
            format!("{error:#}").ends_with("other.runs.zst: esipova-adult: dpsgd, seed 3: two results"),
            "{error:#}"
        );
        // One method, two ledgers: its ε would be shown for both.
        let mut other = whole.clone();
        let entry = &mut other.experiments[0].methods[1].privacy.as_mut().unwrap().ledger["entries"][0];
        entry["count"] = 1.into();
        write("other.runs.zst", &other);
        let error = format!("{:#}", join(&at("out.runs.zst"), &[at("other.runs.zst")], "adult").unwrap_err());
        assert!(
            error.contains("other.runs.zst: esipova-adult: dpsgd: its ledger is not the one that its ε is composed of"),
            "{error}"
        );
        // A run on other data than its experiment's.
        let mut other = whole.clone();
        let run = &mut other.experiments[0].methods[1].runs[0];
        run.provenance = Some(crate::RunProvenance {
            synthetic: false,
            quick: false,
            data_digest: "of other files".to_owned(),
            code_revision: "0123456789ab".to_owned(),
            numerics: 3,
        });
        write("other.runs.zst", &other);
        for inputs in [vec![at("other.runs.zst")], vec![at("first.runs.zst"), at("other.runs.zst")]] {
            let error = format!("{:#}", join(&at("new.runs.zst"), &inputs, "adult").unwrap_err());
            assert!(error.contains("dpsgd, seed 1: trained on files of digest of other files"), "{error}");
        }
        other = StudyResults { seed: Some(8), ..whole };
        write("other.runs.zst", &other);
        assert!(join(&at("out.runs.zst"), &[at("other.runs.zst")], "adult").is_err());
        assert_eq!(n_runs(&compact::read(&at("out.runs.zst"), "adult").unwrap()), 25);
    }
}
