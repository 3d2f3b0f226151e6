//! Rows of canaries, and rows that nobody has, from the declared schema alone.

use std::ops::Range;

use dp_linear::{RowSource, SparseBlock, SparseRow};
use dp_table::{BlockKind, Encoding};

use crate::subsets::GroupedRows;

/// A row that is as far out as the schema lets it: of every column one value at an end of its range, or
/// one of its list. `number` says which.
pub(super) fn extreme(encoding: &Encoding, number: usize, push: &mut dyn FnMut(usize, f32)) {
    let scale = encoding.scale();
    for (place, block) in encoding.blocks().iter().enumerate() {
        let first = block.features.start;
        // Another value for every number and column, and all of them in turn.
        let turn = number.wrapping_mul(2 * place + 1).wrapping_add(number / (place + 1));
        match &block.kind {
            BlockKind::Number { knots, .. } if knots.len() > 2 => {
                let knot = turn % knots.len();
                let (low, high) = (knots[0], knots[knots.len() - 1]);
                push(first, scale * (knots[knot] - low) / (high - low));
                push(first + 1 + knot, scale);
            }
            BlockKind::Number { .. } | BlockKind::Boolean { .. } => {
                if !turn.is_multiple_of(2) {
                    push(first, scale);
                }
            }
            // Black and white, each in a pattern of its own.
            BlockKind::Image { length, filters: None, .. } => {
                let is_white = |pixel: &usize| (pixel * (2 * number + 3) / 7 + number).is_multiple_of(2);
                (0..*length).filter(is_white).for_each(|pixel| push(first + pixel, scale));
            }
            BlockKind::Category { .. } | BlockKind::Vector { .. } | BlockKind::Image { .. } => {
                push(first + turn % block.features.len(), scale);
            }
            BlockKind::Constant => push(first, scale),
        }
    }
}

/// A group and a class, by their numbers; the class of a number is its lower or upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) group: usize,
    pub(super) class: usize,
}

/// What shapes rows: the encoding, and the label.
#[derive(Clone, Copy)]
pub(super) struct Shape<'a> {
    pub(super) encoding: &'a Encoding,
}

impl Shape<'_> {
    /// Classes; of a number its two ends.
    pub(super) fn n_classes(self) -> usize {
        self.encoding.schema().label.classes.len().max(2)
    }

    /// Every group and class.
    pub(super) fn kinds(self) -> Vec<Kind> {
        let classes = self.n_classes();
        let groups = 0..self.encoding.groups().len().max(1);
        groups.flat_map(|group| (0..classes).map(move |class| Kind { group, class })).collect()
    }
}

/// Rows in memory.
pub(super) struct MadeRows {
    block: SparseBlock,
    groups: Vec<usize>,
    width: usize,
    is_weighted: bool,
    is_number: bool,
}

impl MadeRows {
    pub(super) fn new(shape: Shape<'_>) -> Self {
        let schema = shape.encoding.schema();
        Self {
            block: SparseBlock::default(),
            groups: Vec::new(),
            width: shape.encoding.width(),
            is_weighted: schema.weight.is_some(),
            is_number: schema.label.number.is_some(),
        }
    }

    /// An extreme row, or with `number` of `None` a blank one.
    pub(super) fn push(&mut self, shape: Shape<'_>, kind: Kind, number: Option<usize>) {
        let features = |push: &mut dyn FnMut(usize, f32)| {
            if let Some(number) = number {
                extreme(shape.encoding, number, push);
            }
        };
        if self.is_number {
            self.block.push_number(if kind.class == 0 { -1.0 } else { 1.0 }, 1.0, features);
        } else {
            self.block.push_row(kind.class as u32, 1.0, features);
        }
        self.groups.push(kind.group);
    }

    /// This many rows of all kinds.
    pub(super) fn of_all_kinds(shape: Shape<'_>, n: usize) -> Self {
        let (mut rows, kinds) = (Self::new(shape), shape.kinds());
        (0..n).for_each(|number| rows.push(shape, kinds[number % kinds.len()], Some(number)));
        rows
    }
}

impl RowSource for MadeRows {
    fn len(&self) -> usize {
        self.groups.len()
    }

    fn width(&self) -> usize {
        self.width
    }

    fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    fn visit(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, SparseRow<'_>)) {
        range.for_each(|index| visit(index, self.block.row(index)));
    }
}

impl GroupedRows for MadeRows {
    fn groups(&self, range: Range<usize>) -> Vec<usize> {
        self.groups[range].to_vec()
    }
}

/// Records, and canaries behind them.
pub(super) struct WithCanaries<'a, R> {
    pub(super) records: &'a R,
    pub(super) canaries: &'a MadeRows,
}

impl<R: GroupedRows> WithCanaries<'_, R> {
    /// The part of a range that is records, and the part that is canaries.
    fn parts(&self, range: &Range<usize>) -> (Range<usize>, Range<usize>) {
        let n = self.records.len();
        (range.start.min(n)..range.end.min(n), range.start.saturating_sub(n)..range.end.saturating_sub(n))
    }
}

impl<R: GroupedRows> RowSource for WithCanaries<'_, R> {
    fn len(&self) -> usize {
        self.records.len() + self.canaries.len()
    }

    fn width(&self) -> usize {
        self.records.width()
    }

    fn is_weighted(&self) -> bool {
        self.records.is_weighted()
    }

    fn visit(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, SparseRow<'_>)) {
        let (records, canaries) = self.parts(&range);
        self.records.visit(records, visit);
        let n = self.records.len();
        self.canaries.visit(canaries, &mut |index, row| visit(n + index, row));
    }
}

impl<R: GroupedRows> GroupedRows for WithCanaries<'_, R> {
    fn groups(&self, range: Range<usize>) -> Vec<usize> {
        let (records, canaries) = self.parts(&range);
        let mut groups = self.records.groups(records);
        groups.extend(self.canaries.groups(canaries));
        groups
    }
}
