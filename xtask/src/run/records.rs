//! Records of an experiment in memory: those of the seeds whose runs are being trained, and no
//! others.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use dp_data::{Dataset, Provenance, Split};
use dp_train::{DType, Device, PublicFacts, Records};
use run_records::GroupSize;
use sha2::{Digest, Sha256};

/// The data of one experiment: a split for each seed.
pub(crate) struct ExperimentData<'a> {
    /// Where the records came from.
    pub(crate) provenance: Provenance,
    /// Encoding by name.
    pub(crate) encoding: String,
    /// Secret with which digests are keyed, for data that are not public: a plain digest would tell
    /// who holds a copy which records they are.
    pub(crate) digest_key: Option<[u8; 32]>,
    /// Number of splits.
    pub(crate) n_seeds: usize,
    /// Whether methods ask for the rows of the records on the host.
    pub(crate) keeps_rows: bool,
    /// The split of a seed, 0-based; the same at every call.
    pub(crate) split: Box<dyn Fn(usize) -> anyhow::Result<Split> + Sync + 'a>,
}

impl ExperimentData<'_> {
    /// What there is to say of each split, in the order of the seeds. One of them is in memory at a
    /// time.
    ///
    /// # Errors
    /// If a split cannot be made.
    pub(crate) fn summaries(&self) -> anyhow::Result<Vec<SplitSummary>> {
        let key = self.digest_key.as_ref();
        (0..self.n_seeds).map(|seed| Ok(SplitSummary::of(&(self.split)(seed)?, key))).collect()
    }

    /// The digest of the data as a report may show it.
    pub(crate) fn public_digest(&self) -> String {
        match self.digest_key {
            None => self.provenance.digest.clone(),
            Some(_) => "left out, since the data are not public".to_owned(),
        }
    }

    /// The records of a seed on the device.
    ///
    /// # Errors
    /// If the split cannot be made, or the device fails.
    pub(crate) fn load(&self, seed: usize, device: &Device) -> anyhow::Result<SeedRecords> {
        let split = (self.split)(seed)?;
        let kept = self.keeps_rows.then(|| split.clone());
        let Split { train, test, validation, .. } = split;
        // By value: each part is dropped as soon as it has been copied.
        let on_device = |part: Dataset| to_records(&part, device);
        Ok(SeedRecords {
            train: on_device(train)?,
            test: on_device(test)?,
            validation: validation.map(on_device).transpose()?,
            split: kept,
        })
    }
}

/// A split without its records.
pub(crate) struct SplitSummary {
    /// Facts of the training part.
    pub(crate) facts: PublicFacts,
    /// sha256 of everything in the split that training or evaluation sees; keyed where the data are
    /// not public.
    pub(crate) digest: String,
    /// What a guarantee is conditional on.
    pub(crate) given: Vec<String>,
    /// What the groups are.
    pub(crate) group_attribute: String,
    /// Sizes of the groups.
    pub(crate) groups: Vec<GroupSize>,
    /// Class names in label order.
    pub(crate) classes: Vec<String>,
    /// How the records were chosen.
    pub(crate) notes: Vec<String>,
}

impl SplitSummary {
    fn of(split: &Split, key: Option<&[u8; 32]>) -> Self {
        let Split { train, test, notes, .. } = split;
        let sizes = train.group_names.iter().zip(train.group_sizes()).zip(test.group_sizes());
        Self {
            facts: facts(train),
            digest: digest(split, key),
            given: split.given(),
            group_attribute: train.group_attribute.clone(),
            groups: sizes.map(|((name, n_train), n_test)| GroupSize { name: name.clone(), n_train, n_test }).collect(),
            classes: train.class_names.clone(),
            notes: notes.clone(),
        }
    }
}

/// The records of one seed.
#[derive(Clone)]
pub(crate) struct SeedRecords {
    pub(crate) train: Records,
    pub(crate) test: Records,
    pub(crate) validation: Option<Records>,
    /// The same on the host, where methods transform rows.
    pub(crate) split: Option<Split>,
}

/// Records that runs share, by their digest.
#[derive(Default)]
pub(crate) struct RecordCache(Mutex<Vec<(String, Arc<SeedRecords>)>>);

impl RecordCache {
    /// The records with this digest, loaded if they are not in memory. What no run uses any more is
    /// dropped before anything is loaded: there are never more splits in memory than runs side by
    /// side.
    ///
    /// # Errors
    /// Those of `load`.
    pub(crate) fn get(
        &self,
        digest: &str,
        load: impl FnOnce() -> anyhow::Result<SeedRecords>,
    ) -> anyhow::Result<Arc<SeedRecords>> {
        // Held while they are loaded: another run may be about to ask for the same.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, records)) = held.iter().find(|(known, _)| known == digest) {
            return Ok(Arc::clone(records));
        }
        held.retain(|(_, records)| Arc::strong_count(records) > 1);
        let records = Arc::new(load()?);
        held.push((digest.to_owned(), Arc::clone(&records)));
        Ok(records)
    }
}

fn facts(part: &Dataset) -> PublicFacts {
    PublicFacts {
        n_records: part.len(),
        n_inputs: part.n_inputs(),
        n_classes: part.class_names.len(),
        n_groups: part.group_names.len(),
    }
}

/// A part of a split on the device.
///
/// # Errors
/// If the device fails.
pub(crate) fn to_records(part: &Dataset, device: &Device) -> anyhow::Result<Records> {
    let features = part.features.as_standard_layout();
    let features = features.as_slice().context("features are not contiguous")?;
    Ok(Records::new(features, &part.labels, &part.groups, facts(part), DType::F32, device)?)
}

fn digest(split: &Split, key: Option<&[u8; 32]>) -> String {
    let mut digest = Sha256::new();
    if let Some(key) = key {
        digest.update(key);
    }
    for part in [&split.train, &split.test].into_iter().chain(&split.validation) {
        for n in [part.len(), part.n_inputs(), part.class_names.len(), part.group_names.len()] {
            digest.update((n as u64).to_le_bytes());
        }
        for row in part.features.rows() {
            digest.update(row.iter().map(|value| value.to_le_bytes()).collect::<Vec<_>>().as_flattened());
        }
        for (label, group) in part.labels.iter().zip(&part.groups) {
            digest.update(label.to_le_bytes());
            digest.update((*group as u64).to_le_bytes());
        }
    }
    let digest = digest.finalize();
    match key {
        None => hex::encode(digest),
        // Once more under the key: a digest that only begins with it could be continued.
        Some(key) => hex::encode(Sha256::new().chain_update(key).chain_update(digest).finalize()),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    fn one_record() -> anyhow::Result<SeedRecords> {
        let facts = PublicFacts { n_records: 1, n_inputs: 1, n_classes: 2, n_groups: 1 };
        let records = Records::new(&[0.0], &[0], &[0], facts, DType::F32, &Device::Cpu)?;
        Ok(SeedRecords { train: records.clone(), test: records, validation: None, split: None })
    }

    #[test]
    fn records_are_shared_while_they_are_used_and_dropped_before_others_are_loaded() {
        let cache = RecordCache::default();
        let first = cache.get("a", one_record).unwrap();
        let again = cache.get("a", || bail!("already in memory")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        drop(again);
        let weak = Arc::downgrade(&first);
        cache.get("b", one_record).unwrap();
        assert!(weak.upgrade().is_some(), "still in use");
        drop(first);
        let in_memory = || weak.upgrade().is_some();
        assert!(in_memory(), "the next run may want them");
        cache.get("c", || if in_memory() { bail!("two splits in memory") } else { one_record() }).unwrap();
        assert!(cache.get("d", || bail!("no such file")).is_err());
        cache.get("d", one_record).unwrap();
    }
}
