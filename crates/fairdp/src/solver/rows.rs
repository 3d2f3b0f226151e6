//! Records as a solver reads them: sparse rows, block by block.

use std::ops::Range;

use dp_train::ranks::{Alone, Collective};

/// Records that are read together.
pub(crate) const BLOCK: usize = 4_096;

/// Some records: the features that are not 0, and the class of each.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparseBlock {
    /// Where each row begins; one more at the end.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
    labels: Vec<u32>,
}

impl SparseBlock {
    /// Forgets all rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.starts.clear();
        self.starts.push(0);
        self.columns.clear();
        self.values.clear();
        self.labels.clear();
    }

    /// Appends a row by its features in order. A row without any is a blank one: it counts nowhere.
    pub(crate) fn push_row(&mut self, label: u32, features: impl FnOnce(&mut dyn FnMut(usize, f32))) {
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
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// A row.
    pub(crate) fn row(&self, index: usize) -> SparseRow<'_> {
        let range = self.starts[index]..self.starts[index + 1];
        SparseRow {
            columns: &self.columns[range.clone()],
            values: &self.values[range],
            label: self.labels[index] as usize,
        }
    }
}

/// One record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparseRow<'a> {
    pub(crate) columns: &'a [u32],
    pub(crate) values: &'a [f32],
    pub(crate) label: usize,
}

impl SparseRow<'_> {
    /// Features that are not 0.
    pub(crate) fn features(&self) -> impl Iterator<Item = (usize, f64)> + Clone + '_ {
        self.columns.iter().zip(self.values).map(|(&column, &value)| (column as usize, f64::from(value)))
    }

    /// Whether the record was blanked.
    pub(crate) fn is_blank(&self) -> bool {
        self.columns.is_empty()
    }
}

/// Where rows come from: memory, or a file that is read again in every pass.
pub(crate) trait RowSource: Sync {
    /// Number of records, blank ones included: public.
    fn len(&self) -> usize;

    /// Number of features.
    fn width(&self) -> usize;

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
