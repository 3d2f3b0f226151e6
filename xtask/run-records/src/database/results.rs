//! The runs of a database as the records of a study, whether it is finished or not.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;

use super::Database;
use crate::record::{ExperimentResults, FailureRecord, MethodResults, StudyResults};

impl Database {
    /// Everything that is stored, experiments and methods in the order in which they were begun. An
    /// experiment without a run is left out.
    ///
    /// # Errors
    /// If the database cannot be read, or a method is there with two configurations or on two data
    /// sets, which a study's records have no room for.
    pub fn results(&self) -> anyhow::Result<StudyResults> {
        let mut experiments: Vec<ExperimentResults> = Vec::new();
        let mut methods: BTreeMap<(String, String, String), MethodResults> = BTreeMap::new();
        let mut seen: BTreeSet<(String, String, usize)> = BTreeSet::new();
        let keys = self.runs()?.into_iter().map(|run| (run.key, None));
        let failed = self.failures()?.into_iter().map(|failure| (failure.key, Some(failure.reason)));
        for (key, reason) in keys.chain(failed) {
            if !seen.insert((key.experiment.clone(), key.method.clone(), key.index)) {
                bail!("{}: {key} is there twice, in other settings or on other data", self.path().display());
            }
            let name = (key.experiment.clone(), key.method.clone(), key.config_hash.clone());
            let method = match methods.entry(name) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.method(&key)?),
            };
            match reason {
                None => method.runs.push(self.run(&key)?),
                Some(reason) => method.failures.push(FailureRecord { index: key.index, reason }),
            }
        }
        let order = self.query("SELECT experiment, name, config_hash FROM method ORDER BY rowid", |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        for name in order {
            let Some(method) = methods.remove(&name) else { continue };
            let position = experiments.iter().position(|experiment| experiment.id == name.0);
            let position = position.unwrap_or(experiments.len());
            if position == experiments.len() {
                experiments.push(self.experiment(&name.0)?);
            }
            experiments[position].methods.push(method);
        }
        Ok(StudyResults::new(self.source()?, self.sessions()?, experiments))
    }
}

#[cfg(test)]
mod tests {
    use crate::Database;
    use crate::fixture::{fill, source};
    use crate::made_up::study;

    #[test]
    fn what_is_stored_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.db");
        let mut stored = study();
        stored.experiments.truncate(1);
        fill(&path, &source(), &stored);
        let results = Database::read(&path).unwrap().results().unwrap();
        assert_eq!((results.seed, results.split_seed, results.private), (source().seed, source().split_seed, false));
        assert_eq!(results.experiments, stored.experiments);
        assert_eq!(results.study, "adult");
    }
}
