//! The records a model is trained or evaluated on.

use std::ops::Range;

use candle_core::{DType, Device, Tensor, WithDType};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::collective::Collective;
use crate::error::{EngineError, Result};
use crate::ops;

/// Records with their labels and groups, on the device.
///
/// **Example**
/// ```
/// use dp_engine::{DType, Device, PublicFacts, Records};
/// let facts = PublicFacts { n_records: 2, n_inputs: 3, n_classes: 2, n_groups: 2 };
/// let records = Records::new(&[0.1, 0.2, 0.3, 1.1, 1.2, 1.3], &[0, 1], &[1, 0], facts, DType::F32, &Device::Cpu)?;
/// assert_eq!(records.facts(), facts);
/// let error = Records::new(&[0.0; 6], &[0, 2], &[1, 0], facts, DType::F32, &Device::Cpu).unwrap_err();
/// assert_eq!(error.to_string(), "label of record 1: expected 0..2, got 2");
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
#[derive(Clone)]
pub struct Records {
    features: Tensor,
    labels: Vec<u32>,
    groups: Vec<usize>,
    n_classes: usize,
    n_groups: usize,
    /// The numbers of those that are here, out of `n_all`.
    held: Range<usize>,
    n_all: usize,
}

/// What is public, and no record.
impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records")
            .field("facts", &self.facts())
            .field("held", &self.held)
            .field("dtype", &self.dtype())
            .finish_non_exhaustive()
    }
}

/// Everything about a data set that is treated as public: it shapes the model, the sampler and the
/// noise.
///
/// The number of records is among it, as usual, although neighbours under addition and removal
/// differ in it: it sets the sampling rate and the expected batch size. Classes and groups are
/// those that exist, not those that occur.
///
/// **Example**
/// ```
/// use dp_engine::PublicFacts;
/// // Adult: two classes of income, two sexes, 98 inputs after one-hot encoding.
/// let facts = PublicFacts { n_records: 36_178, n_inputs: 98, n_classes: 2, n_groups: 2 };
/// assert_eq!(PublicFacts { n_groups: 1, ..facts }.n_records, 36_178);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicFacts {
    /// Number of records.
    pub n_records: usize,
    /// Inputs (features) of a record.
    pub n_inputs: usize,
    /// Classes.
    pub n_classes: usize,
    /// Groups.
    pub n_groups: usize,
}

impl Records {
    /// Copies features, labels and groups to the device; `dtype` (`F32` to train, `F64` to check)
    /// is what the engine computes in.
    ///
    /// **Shapes.** Features row-major `[n_records, n_inputs]`; labels, in `0..n_classes`, and
    /// groups, in `0..n_groups`, `[n_records]`.
    ///
    /// **Edge cases.** Features that are not finite are accepted: such a record contributes nothing
    /// to a step, and is counted.
    ///
    /// # Errors
    /// [`EngineError::InvalidParameter`] if there are no records, no inputs, or `dtype` is another
    /// one; [`EngineError::Mismatch`] if lengths do not fit, or a label or group is out of range
    /// (the message names the record).
    pub fn new(
        features: &[f32],
        labels: &[u32],
        groups: &[usize],
        facts: PublicFacts,
        dtype: DType,
        device: &Device,
    ) -> Result<Self> {
        Self::part(features, labels, groups, 0..facts.n_records, facts, dtype, device)
    }

    /// The part that one of several ranks holds: the records of these numbers, out of
    /// `facts.n_records`.
    ///
    /// **Shapes.** As in [`Self::new`], with the held records instead of all.
    /// `dp_train::Plan::held_by` names the records that a rank must hold to train.
    ///
    /// # Errors
    /// The errors of [`Self::new`]; [`EngineError::Mismatch`] if the range is not within the
    /// records.
    pub fn part(
        features: &[f32],
        labels: &[u32],
        groups: &[usize],
        held: Range<usize>,
        facts: PublicFacts,
        dtype: DType,
        device: &Device,
    ) -> Result<Self> {
        let PublicFacts { n_inputs, n_classes, n_groups, .. } = facts;
        for (parameter, value) in [("n_records", facts.n_records), ("n_inputs", n_inputs)] {
            if value == 0 {
                return Err(EngineError::invalid(parameter, value, "at least 1"));
            }
        }
        check_dtype(dtype)?;
        if held.start > held.end || held.end > facts.n_records {
            let expected = format!("a part of 0..{}", facts.n_records);
            return Err(EngineError::mismatch("records of a rank", expected, format!("{held:?}")));
        }
        let n_records = held.len();
        if features.len() != n_records * n_inputs {
            return Err(EngineError::mismatch("values of all features", n_records * n_inputs, features.len()));
        }
        if labels.len() != n_records {
            return Err(EngineError::mismatch("labels", n_records, labels.len()));
        }
        if groups.len() != n_records {
            return Err(EngineError::mismatch("groups", n_records, groups.len()));
        }
        if let Some(i) = labels.iter().position(|&y| y as usize >= n_classes) {
            let what = format!("label of record {}", held.start + i);
            return Err(EngineError::mismatch(what, format!("0..{n_classes}"), labels[i]));
        }
        if let Some(i) = groups.iter().position(|&g| g >= n_groups) {
            let what = format!("group of record {}", held.start + i);
            return Err(EngineError::mismatch(what, format!("0..{n_groups}"), groups[i]));
        }
        let features = Tensor::from_slice(features, (n_records, n_inputs), device)?.to_dtype(dtype)?;
        let (labels, groups) = (labels.to_vec(), groups.to_vec());
        Ok(Self { features, labels, groups, n_classes, n_groups, held, n_all: facts.n_records })
    }

    /// A copy of the records of these numbers, in this order, in another number type: a training
    /// set in `F32` can be analysed in `F64`.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if a row is out of range; [`EngineError::InvalidParameter`] if
    /// `dtype` is neither `F32` nor `F64`; [`EngineError::Tensor`] if the device fails.
    pub fn select(&self, rows: &[usize], dtype: DType) -> Result<Self> {
        if let Some(&row) = rows.iter().find(|row| !self.held.contains(row)) {
            return Err(EngineError::mismatch("row of a record", format!("{:?}", self.held), row));
        }
        check_dtype(dtype)?;
        // Room for one, if there is none: CUDA has no memory of size 0.
        let shape = (rows.len().max(1), self.facts().n_inputs);
        let features = Tensor::zeros(shape, self.dtype(), self.features.device())?;
        if !rows.is_empty() {
            self.gather(rows, &features)?;
        }
        let (labels, groups) = self.labels_and_groups(rows);
        Ok(Self {
            features: features.to_dtype(dtype)?,
            labels,
            groups,
            n_classes: self.n_classes,
            n_groups: self.n_groups,
            held: 0..rows.len(),
            n_all: rows.len(),
        })
    }

    /// The same records with these blanked: a zero-out neighbour of this data set.
    ///
    /// A blanked record keeps its number, and with it its place in every draw and in every product;
    /// its features are not numbers, so that it adds 0 to every sum and count, as any record does
    /// whose gradient is not finite.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if a row is out of range; [`EngineError::Tensor`] if the device
    /// fails.
    pub fn blanked(&self, rows: &[usize]) -> Result<Self> {
        let all: Vec<usize> = self.held.clone().collect();
        let copy = self.select(&all, self.dtype())?;
        for row in rows {
            if !self.held.contains(row) {
                return Err(EngineError::mismatch("row of a record", format!("{:?}", self.held), row));
            }
            ops::fill(&copy.features.narrow(0, row - self.held.start, 1)?, f64::NAN)?;
        }
        Ok(Self { held: self.held.clone(), n_all: self.n_all, ..copy })
    }

    /// The records with these numbers, as a rank holds them, out of all records.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if a number is out of range;
    /// [`EngineError::Tensor`] if the device fails.
    pub fn held_part(&self, held: Range<usize>) -> Result<Self> {
        let rows: Vec<usize> = held.clone().collect();
        Ok(Self { held, n_all: self.n_all, ..self.select(&rows, self.dtype())? })
    }

    /// Returns an error unless every input that is a number is an id of a table of `vocabulary`
    /// rows.
    pub(crate) fn check_ids(&self, vocabulary: usize) -> Result<()> {
        let n_inputs = self.facts().n_inputs;
        let features = self.features_on_host()?;
        for record in self.held.clone() {
            let ids = values_of(&features, record - self.held.start)?;
            let is_id = |id: f64| id >= 0.0 && id < vocabulary as f64 && id.fract() == 0.0;
            if let Some(position) = (0..n_inputs).find(|&i| ids[i].is_finite() && !is_id(ids[i])) {
                let expected = format!("a whole number in 0..{vocabulary}");
                return Err(EngineError::mismatch(
                    format!("id at position {position} of record {record}"),
                    expected,
                    ids[position],
                ));
            }
        }
        Ok(())
    }

    /// Number of records that are here.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Their numbers: all, unless it is the part of a rank.
    pub fn held(&self) -> Range<usize> {
        self.held.clone()
    }

    /// Label of each record that is here.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Group of each record that is here.
    pub fn groups(&self) -> &[usize] {
        &self.groups
    }

    /// The facts about these records that are treated as public.
    pub fn facts(&self) -> PublicFacts {
        PublicFacts {
            n_records: self.n_all,
            n_inputs: self.features.dims().get(1).copied().unwrap_or(0),
            n_classes: self.n_classes,
            n_groups: self.n_groups,
        }
    }

    /// A digest that identifies the data set, in hexadecimal, over number type, sizes, and each
    /// record's number, features, label and group. It does not depend on the division of the
    /// records among ranks.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails; the errors of [`Collective::sum`].
    pub fn digest(&self, ranks: &dyn Collective) -> Result<String> {
        // The sum of the records' digests, in parts that cannot overflow: order and ranks do not
        // matter.
        let mut sums = vec![0_i64; 8];
        let features = self.features_on_host()?;
        for row in self.held.clone() {
            let place = row - self.held.start;
            let mut hasher = Sha256::new();
            hasher.update((row as u64).to_le_bytes());
            hash_features(&features, place, &mut hasher)?;
            hasher.update(self.labels[place].to_le_bytes());
            hasher.update((self.groups[place] as u64).to_le_bytes());
            let digest: [u8; 32] = hasher.finalize().into();
            for (sum, part) in sums.iter_mut().zip(digest.as_chunks::<4>().0) {
                *sum += i64::from(u32::from_le_bytes(*part));
            }
        }
        ranks.sum(&mut sums)?;
        let facts = self.facts();
        let mut hasher = Sha256::new();
        hasher.update(self.dtype().as_str());
        for size in [facts.n_records, facts.n_inputs, facts.n_classes, facts.n_groups] {
            hasher.update((size as u64).to_le_bytes());
        }
        for sum in sums {
            hasher.update(sum.to_le_bytes());
        }
        Ok(hex::encode(hasher.finalize()))
    }

    /// SHA-256 over features and label of one record.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if the row is out of range;
    /// [`EngineError::Tensor`] if the device fails.
    pub fn row_digest(&self, row: usize) -> Result<[u8; 32]> {
        let place = row - self.held.start;
        let mut hasher = Sha256::new();
        hash_features(&self.features, place, &mut hasher)?;
        hasher.update(self.labels[place].to_le_bytes());
        Ok(hasher.finalize().into())
    }

    /// All features in one copy, if they are on a device: a copy of each record would take longer
    /// than a run.
    fn features_on_host(&self) -> Result<Tensor> {
        Ok(self.features.to_device(&Device::Cpu)?)
    }

    /// Where the features are.
    pub fn device(&self) -> &Device {
        self.features.device()
    }

    /// An error unless they are on this device. A GPU that was opened twice is two devices: nothing
    /// orders what is done on one and on the other.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if they are elsewhere.
    pub fn check_device(&self, device: &Device) -> Result<()> {
        if self.device().same_device(device) {
            return Ok(());
        }
        let (expected, got) = (device.location(), self.device().location());
        let again = if got == expected { " opened a second time" } else { "" };
        Err(EngineError::mismatch("device of the records", format!("{expected:?}"), format!("{got:?}{again}")))
    }

    /// Number type of the features.
    pub fn dtype(&self) -> DType {
        self.features.dtype()
    }

    /// Labels and groups of the records of these numbers.
    pub fn labels_and_groups(&self, rows: &[usize]) -> (Vec<u32>, Vec<usize>) {
        let places = || rows.iter().map(|row| row - self.held.start);
        (places().map(|place| self.labels[place]).collect(), places().map(|place| self.groups[place]).collect())
    }

    /// The features of these rows, `[rows, n_inputs]`, in memory that the processor reads.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if a row is out of range;
    /// [`EngineError::Tensor`] if the device fails.
    pub fn inputs<T: WithDType>(&self, rows: &[usize]) -> Result<Vec<T>> {
        let features = Tensor::zeros((rows.len(), self.facts().n_inputs), self.dtype(), self.features.device())?;
        self.gather(rows, &features)?;
        Ok(features.to_dtype(T::DTYPE)?.flatten_all()?.to_vec1()?)
    }

    /// Copies the features of `rows` into `destination`, `[rows, n_inputs]`.
    pub(crate) fn gather(&self, rows: &[usize], destination: &Tensor) -> candle_core::Result<()> {
        let places: Vec<usize>;
        let rows = if self.held.start == 0 {
            rows
        } else {
            places = rows.iter().map(|row| row - self.held.start).collect();
            &places
        };
        ops::gather_rows(destination, &self.features, rows)
    }
}

/// An error for number types that the engine does not compute in.
fn check_dtype(dtype: DType) -> Result<()> {
    match dtype {
        DType::F32 | DType::F64 => Ok(()),
        other => Err(EngineError::invalid("dtype", other.as_str(), "f32 or f64")),
    }
}

/// The features of a record, `[inputs]`.
fn values_of(features: &Tensor, place: usize) -> Result<Vec<f64>> {
    // Every single-precision number is a double-precision number, and back.
    Ok(features.get(place)?.flatten_all()?.to_dtype(DType::F64)?.to_vec1::<f64>()?)
}

fn hash_features(features: &Tensor, place: usize, hasher: &mut Sha256) -> Result<()> {
    for value in values_of(features, place)? {
        hasher.update(value.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_fail_later_are_refused() {
        let facts = PublicFacts { n_records: 2, n_inputs: 1, n_classes: 2, n_groups: 1 };
        let error = |facts: PublicFacts, dtype| {
            let n = facts.n_records;
            let features = vec![0.5; n * facts.n_inputs];
            Records::new(&features, &vec![0; n], &vec![0; n], facts, dtype, &Device::Cpu).unwrap_err()
        };
        insta::assert_snapshot!(error(PublicFacts { n_records: 0, ..facts }, DType::F32), @"n_records = 0: expected at least 1");
        insta::assert_snapshot!(error(PublicFacts { n_inputs: 0, ..facts }, DType::F32), @"n_inputs = 0: expected at least 1");
        insta::assert_snapshot!(error(facts, DType::BF16), @"dtype = bf16: expected f32 or f64");
        insta::assert_snapshot!(error(facts, DType::U8), @"dtype = u8: expected f32 or f64");
    }

    #[test]
    fn debug_shows_no_record() {
        let facts = PublicFacts { n_records: 2, n_inputs: 1, n_classes: 2, n_groups: 1 };
        let records = Records::new(&[0.5, 1.5], &[0, 1], &[0, 0], facts, DType::F32, &Device::Cpu).unwrap();
        insta::assert_snapshot!(format!("{records:?}"), @"Records { facts: PublicFacts { n_records: 2, n_inputs: 1, n_classes: 2, n_groups: 1 }, held: 0..2, dtype: F32, .. }");
    }
}
