//! Records as a solver reads them: sparse rows, block by block.

use std::ops::Range;

use dp_engine::collective::{Alone, Collective};

/// Records that are read together.
pub const BLOCK: usize = 4_096;

/// Some records: the features that are not 0, and the class or the number of each.
#[derive(Clone, Default)]
pub struct SparseBlock {
    /// Where each row begins; one more at the end.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
    labels: Vec<u32>,
    targets: Vec<f32>,
    weights: Vec<f32>,
}

/// Without the rows, which are private.
impl std::fmt::Debug for SparseBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparseBlock").field("n_rows", &self.labels.len()).finish_non_exhaustive()
    }
}

#[expect(clippy::len_without_is_empty, reason = "nobody asks")]
impl SparseBlock {
    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.starts.clear();
        self.starts.push(0);
        self.columns.clear();
        self.values.clear();
        self.labels.clear();
        self.targets.clear();
        self.weights.clear();
    }

    /// Appends a row by its weight and its features in order. A row without any feature is a blank
    /// one: it counts nowhere. A weight outside `[0, 1]` is set to the nearer end, and one that is no
    /// number to 0.
    pub fn push_row(&mut self, label: u32, weight: f32, features: impl FnOnce(&mut dyn FnMut(usize, f32))) {
        self.push(label, 0.0, weight, features);
    }

    /// Appends a row with a number to predict, in place of a class. A number outside `[-1, 1]` is set to
    /// the nearer end, and what is none to 0.
    pub fn push_number(&mut self, target: f32, weight: f32, features: impl FnOnce(&mut dyn FnMut(usize, f32))) {
        self.push(0, if target.is_nan() { 0.0 } else { target.clamp(-1.0, 1.0) }, weight, features);
    }

    fn push(&mut self, label: u32, target: f32, weight: f32, features: impl FnOnce(&mut dyn FnMut(usize, f32))) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        features(&mut |column, value| {
            if value != 0.0 {
                self.columns.push(column as u32);
                self.values.push(value);
            }
        });
        self.starts.push(self.columns.len());
        self.labels.push(label);
        self.targets.push(target);
        self.weights.push(if weight.is_nan() { 0.0 } else { weight.clamp(0.0, 1.0) });
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// A row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, index: usize) -> SparseRow<'_> {
        let range = self.starts[index]..self.starts[index + 1];
        SparseRow {
            columns: &self.columns[range.clone()],
            values: &self.values[range],
            label: self.labels[index] as usize,
            target: self.targets[index],
            weight: self.weights[index],
        }
    }
}

/// One record.
#[derive(Clone, Copy)]
pub struct SparseRow<'a> {
    /// Columns of the features that are not 0.
    pub columns: &'a [u32],
    /// Their values.
    pub values: &'a [f32],
    /// The class; 0 where a number is predicted.
    pub label: usize,
    /// The number, from -1 to 1; 0 where a class is predicted.
    pub target: f32,
    /// Its part in every sum, from 0 to 1.
    pub weight: f32,
}

/// Without the values, the class and the number, which are private.
impl std::fmt::Debug for SparseRow<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparseRow").finish_non_exhaustive()
    }
}

impl SparseRow<'_> {
    /// Features that are not 0.
    pub fn features(&self) -> impl Iterator<Item = (usize, f64)> + Clone + '_ {
        self.columns.iter().zip(self.values).map(|(&column, &value)| (column as usize, f64::from(value)))
    }

    /// Whether the record was blanked.
    pub fn is_blank(&self) -> bool {
        self.columns.is_empty()
    }
}

/// Where rows come from: memory, or a file that is read again in every pass.
#[expect(clippy::len_without_is_empty, reason = "a training has records")]
pub trait RowSource: Sync {
    /// Number of records, blank ones included: public.
    fn len(&self) -> usize;

    /// Number of features.
    fn width(&self) -> usize;

    /// Whether records have other weights than 1: public.
    fn is_weighted(&self) -> bool {
        false
    }

    /// Who else sums these records, each a share of them.
    fn ranks(&self) -> &dyn Collective {
        &Alone
    }

    /// The records that this rank sums.
    fn share(&self) -> Range<usize> {
        0..self.len()
    }

    /// Calls `visit` with every row of a range, in order.
    fn visit(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, SparseRow<'_>));
}

impl RowSource for (SparseBlock, usize) {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn width(&self) -> usize {
        self.1
    }

    fn visit(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, SparseRow<'_>)) {
        for index in range {
            visit(index, self.0.row(index));
        }
    }
}

/// Scales a row to a norm just below 1, or to zeros where that cannot be done.
///
/// Values are rounded to single precision after scaling, by at most 2⁻²⁴ of each and 2⁻¹⁵⁰ for the
/// smallest, so a factor of `1 − 2⁻²³` keeps the norm of what is stored at most 1.
pub(crate) fn scale_to_unit(row: &mut [f32]) {
    let norm = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
    if !(norm.is_finite() && norm > 1e-30) {
        row.fill(0.0);
        return;
    }
    let factor = (1.0 - 2f64.powi(-23)) / norm;
    for value in row {
        *value = (f64::from(*value) * factor) as f32;
    }
}

/// Scales every row, `[n_records, n_features]`, to a norm just below 1, by no look at any other
/// row.
///
/// **Edge cases.** A row of zeros, or one that is not finite, becomes a row of zeros. Values left
/// over that are no whole row stay as they are.
pub fn unit_rows(rows: &mut [f32], n_features: usize) {
    for row in rows.chunks_exact_mut(n_features.max(1)) {
        scale_to_unit(row);
    }
}
