//! Databases of made-up runs, for tests.

use std::path::Path;

use crate::{Database, MethodResults, RunKey, RunRecord, Source, StudyResults};

/// A study with the largest seed there is.
pub(super) fn source() -> Source {
    Source { study: "adult".to_owned(), quick: false, seed: Some(u64::MAX), split_seed: 7 }
}

/// The key under which [`fill`] stores a run.
pub(super) fn key(method: &MethodResults, run: &RunRecord) -> RunKey {
    RunKey {
        experiment: "esipova-adult".to_owned(),
        method: method.method.clone(),
        config_hash: "c".repeat(64),
        data_digest: "d".repeat(64),
        index: run.index,
    }
}

/// The ledger of a method's runs.
pub(super) fn ledger(method: &MethodResults) -> serde_json::Value {
    method.privacy.as_ref().map_or_else(|| serde_json::json!({"entries": []}), |privacy| privacy.ledger.clone())
}

/// A new database with these runs, closed again.
pub(super) fn fill(path: &Path, source: &Source, study: &StudyResults) {
    let mut database = Database::create(path, source).unwrap();
    let session = database.begin_session(&study.sessions[0]).unwrap();
    for experiment in &study.experiments {
        database.put_experiment(experiment).unwrap();
        for method in &experiment.methods {
            for run in &method.runs {
                database.put_run(&key(method, run), session, 2.5, method, &ledger(method), run).unwrap();
            }
            for failure in &method.failures {
                let key = RunKey { index: failure.index, ..key(method, &method.runs[0]) };
                database.put_failure(&key, session, 2.5, method, &failure.reason).unwrap();
            }
        }
    }
}
