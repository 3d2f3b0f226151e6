//! Records as a solver reads them: sparse rows, block by block.

use std::ops::Range;

use dp_engine::collective::{Alone, Collective};
use dp_engine::vector_math::vectorise;

/// Records that are read together.
pub const BLOCK: usize = 4_096;
/// A row keeps its zeros where they are at most one of this many features: to sort them out takes longer.
const FEW: usize = 8;

/// Some records: the features that are not 0, perhaps with a few that are, and the class or the number of
/// each.
#[derive(Clone, Default)]
pub struct SparseBlock {
    /// Where each row begins; one more at the end.
    starts: Vec<usize>,
    /// Behind the last row there may be room.
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
        self.labels.clear();
        self.targets.clear();
        self.weights.clear();
    }

    /// Appends a row by its weight and its features in order. A row without any feature is a blank
    /// one: it counts nowhere. A weight outside `[0, 1]` is set to the nearer end, and one that is no
    /// number to 0.
    pub fn push_row(&mut self, label: u32, weight: f32, features: impl FnOnce(&mut dyn FnMut(usize, f32))) {
        self.push(RowLabel::Class(label), weight, features);
    }

    /// Appends a row with a number to predict, in place of a class. A number outside `[-1, 1]` is set to
    /// the nearer end, and what is none to 0.
    pub fn push_number(&mut self, target: f32, weight: f32, features: impl FnOnce(&mut dyn FnMut(usize, f32))) {
        self.push(RowLabel::Number(target), weight, features);
    }

    fn push(&mut self, label: RowLabel, weight: f32, features: impl FnOnce(&mut dyn FnMut(usize, f32))) {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        features(&mut |column, value| {
            columns.push(column as u32);
            values.push(value);
        });
        self.push_rows(std::iter::once((label, weight)), columns.len(), |places, of_places| {
            places.copy_from_slice(&columns);
            of_places.copy_from_slice(&values);
        });
    }

    /// Appends rows by what is to be predicted of each and its weight, under the rules of
    /// [`push_row`](Self::push_row) and [`push_number`](Self::push_number). `fill` has the columns and values of
    /// all of them to fill, `[rows, n_features]`, row by row and those of a row in order; some may be zeros.
    pub fn push_rows(
        &mut self,
        rows: impl IntoIterator<Item = (RowLabel, f32)>,
        n_features: usize,
        fill: impl FnOnce(&mut [u32], &mut [f32]),
    ) {
        let first = self.labels.len();
        for (label, weight) in rows {
            let (label, target) = match label {
                RowLabel::Class(label) => (label, 0.0),
                RowLabel::Number(target) => (0, if target.is_nan() { 0.0 } else { target.clamp(-1.0, 1.0) }),
            };
            self.labels.push(label);
            self.targets.push(target);
            self.weights.push(if weight.is_nan() { 0.0 } else { weight.clamp(0.0, 1.0) });
        }
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let n = self.labels.len() - first;
        let mut next = self.starts[first];
        let filled = next..next + n * n_features;
        if self.columns.len() < filled.end {
            self.columns.resize(filled.end, 0);
            self.values.resize(filled.end, 0.0);
        }
        fill(&mut self.columns[filled.clone()], &mut self.values[filled.clone()]);
        for row in 0..n {
            let start = filled.start + row * n_features;
            next = self.take(start..start + n_features, next);
            self.starts.push(next);
        }
    }

    /// Moves features to where the next row begins. Returns where it ends.
    fn take(&mut self, features: Range<usize>, to: usize) -> usize {
        let n_zeros = self.values[features.clone()].iter().map(|&value| u32::from(value == 0.0)).sum::<u32>() as usize;
        if n_zeros * FEW <= features.len() {
            if features.start > to {
                self.columns.copy_within(features.clone(), to);
                self.values.copy_within(features.clone(), to);
            }
            return to + features.len();
        }
        let mut end = to;
        for at in features {
            let value = self.values[at];
            self.columns[end] = self.columns[at];
            self.values[end] = value;
            end += usize::from(value != 0.0);
        }
        end
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

/// What is to be predicted of a record.
#[derive(Clone, Copy)]
pub enum RowLabel {
    /// A class.
    Class(u32),
    /// A number from -1 to 1.
    Number(f32),
}

/// Without what is to be predicted, which is private.
impl std::fmt::Debug for RowLabel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowLabel").finish_non_exhaustive()
    }
}

/// One record.
#[derive(Clone, Copy)]
pub struct SparseRow<'a> {
    /// Columns of the features that are not 0, in order, and perhaps of a few that are.
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
    /// A record without features.
    pub(crate) const BLANK: Self = Self { columns: &[], values: &[], label: 0, target: 0.0, weight: 0.0 };

    /// Features that are not 0, and perhaps a few that are.
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

    /// Calls `visit` with all rows of a range in order, any number at a time, and the index of the first
    /// of these.
    fn visit_several(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, &[SparseRow<'_>])) {
        self.visit(range, &mut |index, row| visit(index, &[row]));
    }
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
    let norm = square_of(row).sqrt();
    if !(norm.is_finite() && norm > 1e-30) {
        row.fill(0.0);
        return;
    }
    scale(row, (1.0 - 2f64.powi(-23)) / norm);
}

/// Multiplies every value, rounded once.
pub(crate) fn scale(row: &mut [f32], factor: f64) {
    vectorise(
        #[inline(always)]
        || {
            for value in row.iter_mut() {
                *value = (f64::from(*value) * factor) as f32;
            }
        },
    );
}

/// `Σ v²`, in lanes, so that the loop vectorises.
pub(crate) fn square_of(values: &[f32]) -> f64 {
    const LANES: usize = 16;
    let mut lanes = [0.0; LANES];
    let mut rest = 0.0;
    vectorise(
        #[inline(always)]
        || {
            let (whole, others) = values.as_chunks::<LANES>();
            for values in whole {
                for (lane, &value) in lanes.iter_mut().zip(values) {
                    *lane += f64::from(value) * f64::from(value);
                }
            }
            rest = others.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
        },
    );
    lanes.iter().sum::<f64>() + rest
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Many zeros are sorted out, a few stay; a row of zeros is blank; bounds hold as for single rows.
    #[test]
    fn rows_are_appended_together() {
        let mut block = SparseBlock::default();
        for _ in 0..2 {
            block.clear();
            block.push_row(3, 0.5, |feature| {
                feature(1, 2.0);
                feature(4, 0.0);
            });
            let rows =
                [(RowLabel::Class(1), 7.0), (RowLabel::Number(-4.0), f32::NAN), (RowLabel::Number(f32::NAN), 0.25)];
            block.push_rows(rows, 8, |columns, values| {
                assert_eq!((columns.len(), values.len()), (24, 24));
                columns.iter_mut().zip((0..8).cycle()).for_each(|(place, column)| *place = column);
                values.fill(1.0);
                values[5] = 0.0;
                values[8..16].fill(-0.0);
                values[16..20].fill(0.0);
            });
            let rows: Vec<_> = (0..block.len()).map(|index| block.row(index)).collect();
            assert_eq!((rows[0].columns, rows[0].values), (&[1][..], &[2.0][..]));
            assert_eq!(rows[1].columns, [0, 1, 2, 3, 4, 5, 6, 7]);
            assert_eq!(rows[1].values, [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
            assert!(rows[2].is_blank());
            assert_eq!((rows[3].columns, rows[3].values), (&[4, 5, 6, 7][..], &[1.0; 4][..]));
            let facts = |row: &SparseRow<'_>| (row.label, row.target, row.weight);
            let expected = [(3, 0.0, 0.5), (1, 0.0, 1.0), (0, -1.0, 0.0), (0, 0.0, 0.25)];
            assert_eq!(rows.iter().map(facts).collect::<Vec<_>>(), expected);
        }
    }
}
