//! Who is trained on and who is tested on, and how a solver reads them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use dp_data::table::{BlockKind, EncodedTable};
use dp_train::ranks::{Alone, Collective};

use crate::account::Part;
use crate::key::Key;
use crate::solver::FeatureFacts;
use crate::solver::rows::{BLOCK, RowSource, SparseBlock, SparseRow, blocks_of};

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

/// Shares of the records: of all for the test, of the others for comparing trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shares {
    pub(crate) test: f64,
    pub(crate) validation: f64,
}

impl Shares {
    /// The part of the record of this number, or of the unit: by a keyed hash, so that no record moves another.
    pub(crate) fn part(self, number: u64, key: &Key) -> Part {
        if is_drawn("test part", number, self.test, key) {
            Part::Test
        } else if is_drawn("validation part", number, self.validation, key) {
            Part::Validation
        } else {
            Part::Training
        }
    }
}

/// Training, test and validation records, by their public numbers or their units.
pub(crate) fn split(table: &EncodedTable, has_units: bool, shares: Shares, key: &Key) -> [Members; 3] {
    let n = table.rows();
    if shares.test <= 0.0 && shares.validation <= 0.0 {
        return [Members::All(n), Members::Some(Vec::new()), Members::Some(Vec::new())];
    }
    let mut parts = [const { Vec::new() }; 3];
    for row in 0..n as u32 {
        let number = if has_units { table.unit(row as usize) } else { u64::from(row) };
        let part = shares.part(number, key);
        if let Some(place) = Part::ALL.iter().position(|one| *one == part) {
            parts[place].push(row);
        }
    }
    parts.map(Members::Some)
}

fn is_drawn(purpose: &str, number: u64, fraction: f64, key: &Key) -> bool {
    (key.hash(purpose, number) as f64) < fraction * 2f64.powi(64)
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
    ranks: Arc<dyn Collective>,
    /// What this rank sums, and where it begins.
    kept: Option<(usize, SparseBlock)>,
}

impl<'a> PartRows<'a> {
    /// Of several ranks, each keeps what it sums.
    pub(crate) fn new(
        table: &'a EncodedTable,
        members: &'a Members,
        left_out: &'a [bool],
        ranks: Arc<dyn Collective>,
    ) -> Self {
        let blocks = blocks_of(members.len(), &*ranks);
        let held = blocks.start * BLOCK..(blocks.end * BLOCK).min(members.len());
        let mut rows = Self { table, members, left_out, ranks, kept: None };
        if held.len().saturating_mul(table.encoding().most_entries()) <= KEPT_VALUES {
            let mut block = SparseBlock::default();
            rows.fill(held.clone(), &mut block);
            rows.kept = Some((held.start, block));
        }
        rows
    }

    /// The same for this process alone.
    pub(crate) fn alone(&self) -> Self {
        Self::new(self.table, self.members, self.left_out, Arc::new(Alone))
    }

    /// The group of every record of a range.
    pub(crate) fn groups(&self, range: Range<usize>) -> Vec<usize> {
        range.map(|index| self.table.group(self.members.row(index)) as usize).collect()
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

    fn ranks(&self) -> &dyn Collective {
        &*self.ranks
    }

    fn visit(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, SparseRow<'_>)) {
        if let Some((first, kept)) = &self.kept
            && *first <= range.start
            && range.end <= first + kept.len()
        {
            range.for_each(|index| visit(index, kept.row(index - first)));
            return;
        }
        let mut block = SparseBlock::default();
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + BLOCK);
            self.fill(start..end, &mut block);
            (start..end).for_each(|index| visit(index, block.row(index - start)));
            start = end;
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
