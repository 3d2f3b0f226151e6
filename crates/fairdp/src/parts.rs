//! Who is trained on and who is tested on, and how a solver reads them.

use std::collections::HashMap;
use std::ops::Range;

use dp_data::table::{BlockKind, EncodedTable};

use crate::key::Key;
use crate::solver::FeatureFacts;
use crate::solver::rows::{RowSource, SparseBlock, SparseRow};

/// Values that are kept in memory, in a GiB; longer tables are expanded again in every pass.
const KEPT_VALUES: usize = 128 << 20;

/// Numbers of the records of a part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Members {
    /// All records of a table.
    All(usize),
    /// These.
    Some(Vec<u32>),
}

impl Members {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::All(n) => *n,
            Self::Some(rows) => rows.len(),
        }
    }

    pub(crate) fn row(&self, index: usize) -> usize {
        match self {
            Self::All(_) => index,
            Self::Some(rows) => rows[index] as usize,
        }
    }
}

/// Training and test records: by the record's public number, or by a keyed hash of its unit, so that no record moves another.
pub(crate) fn split(table: &EncodedTable, has_units: bool, fraction: f64, key: &Key) -> (Members, Members) {
    let n = table.rows();
    if fraction <= 0.0 {
        return (Members::All(n), Members::Some(Vec::new()));
    }
    let number = |row: usize| if has_units { table.unit(row) } else { row as u64 };
    let (test, training) = (0..n as u32).partition(|&row| is_test(number(row as usize), fraction, key));
    (Members::Some(training), Members::Some(test))
}

/// Whether the record of this number, or the unit, is tested on.
pub(crate) fn is_test(number: u64, fraction: f64, key: &Key) -> bool {
    (key.hash("test part", number) as f64) < fraction * 2f64.powi(64)
}

/// Records beyond the most of a unit: they are left out, in the order of the table.
pub(crate) fn beyond(table: &EncodedTable, members: &Members, most: u64) -> Vec<bool> {
    let mut seen: HashMap<u64, u64> = HashMap::new();
    (0..members.len())
        .map(|index| {
            let row = members.row(index);
            if table.is_blank(row) {
                return false;
            }
            let count = seen.entry(table.unit(row)).or_default();
            *count += 1;
            *count > most
        })
        .collect()
}

/// A part's records for a solver.
pub(crate) struct PartRows<'a> {
    table: &'a EncodedTable,
    members: &'a Members,
    /// Records that are left out; none if empty.
    left_out: &'a [bool],
    kept: Option<SparseBlock>,
}

impl<'a> PartRows<'a> {
    pub(crate) fn new(table: &'a EncodedTable, members: &'a Members, left_out: &'a [bool]) -> Self {
        let mut rows = Self { table, members, left_out, kept: None };
        if members.len().saturating_mul(table.encoding().most_entries()) <= KEPT_VALUES {
            let mut block = SparseBlock::default();
            rows.fill(0..members.len(), &mut block);
            rows.kept = Some(block);
        }
        rows
    }

    /// The group of every record.
    pub(crate) fn groups(&self) -> Vec<usize> {
        (0..self.members.len()).map(|index| self.table.group(self.members.row(index)) as usize).collect()
    }

    fn fill(&self, range: Range<usize>, block: &mut SparseBlock) {
        block.clear();
        for index in range {
            let row = self.members.row(index);
            let is_out = self.left_out.get(index).copied().unwrap_or(false);
            block.push_row(self.table.label(row), |push| {
                if !is_out {
                    self.table.for_each_feature(row, push);
                }
            });
        }
    }
}

impl RowSource for PartRows<'_> {
    fn len(&self) -> usize {
        self.members.len()
    }

    fn width(&self) -> usize {
        self.table.width()
    }

    fn visit(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, SparseRow<'_>)) {
        if let Some(kept) = &self.kept {
            range.for_each(|index| visit(index, kept.row(index)));
            return;
        }
        let mut block = SparseBlock::default();
        self.fill(range.clone(), &mut block);
        for (index, number) in range.enumerate() {
            visit(number, block.row(index));
        }
    }
}

/// What the schema alone says of the features.
pub(crate) fn feature_facts(table: &EncodedTable) -> FeatureFacts {
    let encoding = table.encoding();
    let scale = f64::from(encoding.scale());
    let (mut fourth_powers, mut eigenvalue) = (0.0, 1.0);
    for block in encoding.blocks() {
        let sets = match &block.kind {
            // The scaled value, and hats of which two are next to each other.
            BlockKind::Number { knots, missing } => 1.0 + f64::from(u8::from(knots.len() > 2 || missing.is_some())),
            BlockKind::Category { .. } => 1.0,
            BlockKind::Constant => continue,
        };
        fourth_powers += sets;
        eigenvalue += sets;
    }
    FeatureFacts {
        constant: (encoding.width() - 1, scale),
        // A little more than the rounding of squares can add.
        squares: scale * scale * f64::sqrt(fourth_powers) * (1.0 + 1e-6),
        largest_eigenvalue: eigenvalue,
    }
}
