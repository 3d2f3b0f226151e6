//! Subsets of the records: for training, test and validation, and their rows for a solver.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use dp_linear::{FeatureFacts, RowLabel, RowSource, SparseBlock, SparseRow};
use dp_table::{BlockKind, EncodedTable, Encoding};
use dp_train::ranks::{Alone, Collective};

use crate::config::UnitTarget;
use crate::error::{FairdpError, Result};
use crate::key::DrawnKey;
use crate::subset::Subset;
use crate::unit_means::UnitMeans;

/// Values that are kept in memory, in a GiB; longer tables are expanded again in every pass.
const KEPT_VALUES: usize = 128 << 20;
/// Rows that are expanded together: few enough that a pass finds them in the processor's nearest memory.
const TILE: usize = 64;

/// The rows of a subset: their number on all ranks, and the rows of this rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowList {
    len: usize,
    /// Position of this rank's first row.
    first: usize,
    rows: Rows,
}

/// Rows of a table.
#[derive(Debug, Clone, PartialEq)]
enum Rows {
    All(Range<usize>),
    Some(Vec<u32>),
    /// One record, or one of each class, for all rows of a unit.
    Means(UnitMeans),
}

impl RowList {
    /// All rows of a table.
    pub(crate) fn all(table: &EncodedTable) -> Self {
        let held = table.held();
        Self { len: table.rows(), first: held.start, rows: Rows::All(held) }
    }

    /// Number of rows on all ranks.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of records as they are counted: of units where each is one record, or shares one among
    /// the classes.
    pub(crate) fn n_records(&self) -> usize {
        match &self.rows {
            Rows::Means(means) => means.n_units(),
            Rows::All(_) | Rows::Some(_) => self.len,
        }
    }

    /// The means of each unit's rows; every rank has all of them.
    pub(crate) fn means(&self, table: &EncodedTable, target: UnitTarget) -> Result<Self> {
        refuse_long(table)?;
        let means = UnitMeans::new(table, self.held().map(|index| self.row(index)), target);
        Ok(Self { len: means.len(), first: 0, rows: Rows::Means(means) })
    }

    /// Rows of the table that this rank's records are made of.
    fn n_rows(&self) -> usize {
        match &self.rows {
            Rows::Means(means) => means.n_rows(),
            Rows::All(_) | Rows::Some(_) => self.held().len(),
        }
    }

    /// The group of the record at a position of this rank.
    pub(crate) fn group(&self, table: &EncodedTable, index: usize) -> u32 {
        match &self.rows {
            Rows::Means(means) => means.group(table, index),
            Rows::All(_) | Rows::Some(_) => table.group(self.row(index)),
        }
    }

    /// Positions of this rank's rows.
    pub(crate) fn held(&self) -> Range<usize> {
        let n = match &self.rows {
            Rows::All(rows) => rows.len(),
            Rows::Some(rows) => rows.len(),
            Rows::Means(means) => means.len(),
        };
        self.first..self.first + n
    }

    /// The row at a position of this rank, of several the last one.
    pub(crate) fn row(&self, index: usize) -> usize {
        match &self.rows {
            Rows::All(_) => index,
            Rows::Some(rows) => rows[index - self.first] as usize,
            Rows::Means(means) => means.last_row(index),
        }
    }

    /// Keeps the rows that `is_kept` accepts.
    fn filtered(&self, held: HeldTable<'_>, is_kept: &mut dyn FnMut(usize) -> bool) -> Result<Self> {
        refuse_long(held.table)?;
        let rows = self.held().map(|index| self.row(index)).filter(|&row| is_kept(row));
        let [members] = gathered([rows.map(|row| row as u32).collect()], held.ranks)?;
        Ok(members)
    }

    /// The table row at each of these positions, on every rank. A position behind the last one is
    /// behind the last row.
    pub(crate) fn rows_of(&self, positions: &[usize], n_rows: usize, ranks: &dyn Collective) -> Result<Vec<usize>> {
        let held = self.held();
        let here =
            |position: &usize| if held.contains(position) { self.row(*position).cast_signed() as i64 } else { 0 };
        let mut rows: Vec<i64> = positions.iter().map(here).collect();
        ranks.sum(&mut rows)?;
        let rows = positions.iter().zip(rows);
        Ok(rows.map(|(&position, row)| if position < self.len { row as usize } else { n_rows }).collect())
    }
}

/// Row lists of each subset from the rows of this rank: counts their rows on all ranks.
fn gathered<const N: usize>(here: [Vec<u32>; N], ranks: &dyn Collective) -> Result<[RowList; N]> {
    let lengths: Vec<u8> = here.iter().flat_map(|rows| (rows.len() as u64).to_le_bytes()).collect();
    let lengths = ranks.gather(lengths)?;
    let length = |rank: usize, part: usize| {
        let bytes = lengths[rank].as_chunks().0.get(part).copied().unwrap_or_default();
        u64::from_le_bytes(bytes) as usize
    };
    let mut part = 0;
    Ok(here.map(|rows| {
        let up_to = |rank: usize| (0..rank).map(|rank| length(rank, part)).sum();
        let members = RowList { len: up_to(lengths.len()), first: up_to(ranks.rank()), rows: Rows::Some(rows) };
        part += 1;
        members
    }))
}

/// Shares of the records: of all for the test, of the others for comparing trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HeldOutShares {
    pub(crate) test: f64,
    pub(crate) validation: f64,
}

/// How the records are divided: the shares of the parts, and the key that draws them.
#[derive(Clone, Copy)]
pub(crate) struct Division<'a> {
    pub(crate) shares: HeldOutShares,
    pub(crate) key: &'a DrawnKey,
}

impl Division<'_> {
    /// The part of a record, by its number or its unit. A keyed hash decides, so that no record
    /// moves another.
    pub(crate) fn part(self, number: u64) -> Subset {
        if is_drawn("test part", number, self.shares.test, self.key) {
            Subset::Test
        } else if is_drawn("validation part", number, self.shares.validation, self.key) {
            Subset::Validation
        } else {
            Subset::Training
        }
    }
}

/// A table and the ranks that hold its rows together.
#[derive(Clone, Copy)]
pub(crate) struct HeldTable<'a> {
    pub(crate) table: &'a EncodedTable,
    pub(crate) ranks: &'a dyn Collective,
}

/// Training, test and validation records, by their public numbers or their units.
pub(crate) fn split(held: HeldTable<'_>, has_units: bool, division: Division<'_>) -> Result<[RowList; 3]> {
    let (table, shares) = (held.table, division.shares);
    if shares.test <= 0.0 && shares.validation <= 0.0 {
        let none = || RowList { len: 0, first: 0, rows: Rows::Some(Vec::new()) };
        return Ok([RowList::all(table), none(), none()]);
    }
    refuse_long(table)?;
    let mut parts = [const { Vec::new() }; 3];
    for row in table.held() {
        let number = if has_units { table.unit(row) } else { row as u64 };
        let part = division.part(number);
        if let Some(place) = Subset::ALL.iter().position(|one| *one == part) {
            parts[place].push(row as u32);
        }
    }
    gathered(parts, held.ranks)
}

/// Rows are listed by numbers of 32 bits.
fn refuse_long(table: &EncodedTable) -> Result<()> {
    match u32::try_from(table.rows()) {
        Ok(_) => Ok(()),
        Err(_) => Err(FairdpError::NotForThisTable {
            parameter: "rows of a table that is divided",
            value: table.rows().to_string(),
            expected: format!("at most {}", u32::MAX),
        }),
    }
}

fn is_drawn(purpose: &str, number: u64, fraction: f64, key: &DrawnKey) -> bool {
    (key.hash(purpose, number) as f64) < fraction * 2f64.powi(64)
}

/// Leaves out records beyond the most of a unit. The first ones of the table are used, and records
/// that were dropped count. So the number of used records is as public as the units are.
pub(crate) fn within_most(held: HeldTable<'_>, members: &RowList, most: u64) -> Result<RowList> {
    let HeldTable { table, ranks } = held;
    let rows = || members.held().map(|index| members.row(index));
    let mut seen: HashMap<u64, u64> = HashMap::new();
    if ranks.size() > 1 {
        let mut here: HashMap<u64, u64> = HashMap::new();
        for row in rows() {
            *here.entry(table.unit(row)).or_default() += 1;
        }
        let message =
            here.iter().flat_map(|(unit, count)| [unit.to_le_bytes(), count.to_le_bytes()]).flatten().collect();
        // The records of a unit that other ranks have before these.
        for earlier in ranks.gather(message)?.into_iter().take(ranks.rank()) {
            for pair in earlier.as_chunks::<16>().0 {
                let [unit, count] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|i| pair[at + i])));
                if here.contains_key(&unit) {
                    *seen.entry(unit).or_default() += count;
                }
            }
        }
    }
    let mut is_used = |row: usize| {
        let count = seen.entry(table.unit(row)).or_default();
        *count += 1;
        *count <= most
    };
    members.filtered(held, &mut is_used)
}

/// Leaves out records whose unit has records in another table.
pub(crate) fn not_in(other: HeldTable<'_>, held: HeldTable<'_>, members: &RowList) -> Result<RowList> {
    let here = other.table.held().map(|row| other.table.unit(row));
    let message = here.flat_map(u64::to_le_bytes).collect();
    let mut units = HashSet::new();
    for bytes in other.ranks.gather(message)? {
        units.extend(bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
    }
    members.filtered(held, &mut |row| !units.contains(&held.table.unit(row)))
}

/// The rows of a subset for a solver.
pub(crate) struct SubsetRows<'a> {
    table: &'a EncodedTable,
    members: &'a RowList,
    ranks: Arc<dyn Collective>,
    /// The positions that this rank sums.
    share: Range<usize>,
    /// Their rows, if there is memory for them.
    kept: Option<SparseBlock>,
}

impl<'a> SubsetRows<'a> {
    /// Rows for several ranks. Each sums the records that it has, or its share where each has
    /// all of them.
    pub(crate) fn new(
        table: &'a EncodedTable,
        members: &'a RowList,
        ranks: Arc<dyn Collective>,
        is_shared: bool,
    ) -> Self {
        let boundary = |rank: usize| members.len() * rank / ranks.size();
        let even = boundary(ranks.rank())..boundary(ranks.rank() + 1);
        let share = if is_shared { members.held() } else { even };
        let mut rows = Self { table, members, ranks, share: share.clone(), kept: None };
        if share.len().max(members.n_rows()).saturating_mul(table.encoding().most_entries()) <= KEPT_VALUES {
            let mut block = SparseBlock::default();
            tiles(share).for_each(|tile| rows.fill(tile, &mut block));
            rows.kept = Some(block);
        }
        rows
    }

    /// The same rows for this process alone, which has all records.
    pub(crate) fn alone(&self) -> Self {
        Self::new(self.table, self.members, Arc::new(Alone), false)
    }

    fn is_number(&self) -> bool {
        self.table.encoding().schema().label.number.is_some()
    }

    /// Appends the rows of a range.
    fn fill(&self, range: Range<usize>, block: &mut SparseBlock) {
        if let Rows::Means(means) = &self.members.rows {
            let mut sums = vec![0.0; self.table.width()];
            for index in range {
                let record = means.record(self.table, index);
                let features = |push: &mut dyn FnMut(usize, f32)| record.features(self.table, &mut sums, push);
                if self.is_number() {
                    block.push_number(record.target, record.weight, features);
                } else {
                    block.push_row(record.label, record.weight, features);
                }
            }
            return;
        }
        let table = self.table;
        let rows: Vec<usize> = range.map(|index| self.members.row(index)).collect();
        let label = |row: usize| {
            if self.is_number() { RowLabel::Number(table.target(row)) } else { RowLabel::Class(table.label(row)) }
        };
        let records = rows.iter().map(|&row| (label(row), table.weight(row)));
        block.push_rows(records, table.encoding().most_entries(), |columns, values| {
            table.expand(&rows, columns, values);
        });
    }
}

/// A range in parts of at most [`TILE`].
fn tiles(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(TILE).map(move |start| start..end.min(start + TILE))
}

/// Rows whose groups are known.
pub(crate) trait GroupedRows: RowSource {
    /// The group of every record of a range.
    fn groups(&self, range: Range<usize>) -> Vec<usize>;
}

impl GroupedRows for SubsetRows<'_> {
    fn groups(&self, range: Range<usize>) -> Vec<usize> {
        range.map(|index| self.members.group(self.table, index) as usize).collect()
    }
}

impl RowSource for SubsetRows<'_> {
    fn len(&self) -> usize {
        self.members.len()
    }

    fn width(&self) -> usize {
        self.table.width()
    }

    fn is_weighted(&self) -> bool {
        let shares = matches!(&self.members.rows, Rows::Means(means) if means.is_weighted());
        shares || self.table.encoding().schema().weight.is_some()
    }

    fn ranks(&self) -> &dyn Collective {
        &*self.ranks
    }

    fn share(&self) -> Range<usize> {
        self.share.clone()
    }

    fn visit(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, SparseRow<'_>)) {
        self.visit_several(range, &mut |first, rows| (first..).zip(rows).for_each(|(index, row)| visit(index, *row)));
    }

    fn visit_several(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, &[SparseRow<'_>])) {
        let share = &self.share;
        let kept = self.kept.as_ref().filter(|_| share.start <= range.start && range.end <= share.end);
        let mut expanded = SparseBlock::default();
        for tile in tiles(range) {
            let (block, first) = if let Some(kept) = kept {
                (kept, share.start)
            } else {
                expanded.clear();
                self.fill(tile.clone(), &mut expanded);
                (&expanded, tile.start)
            };
            let rows: Vec<_> = tile.clone().map(|index| block.row(index - first)).collect();
            visit(tile.start, &rows);
        }
    }
}

/// The features of a row, by position, as models take them.
pub(crate) fn features(row: SparseRow<'_>) -> impl Iterator<Item = (usize, f32)> + Clone {
    row.columns.iter().map(|&column| column as usize).zip(row.values.iter().copied())
}

/// Facts about the features that follow from the schema alone.
pub(crate) fn feature_facts(encoding: &Encoding) -> FeatureFacts {
    let scale = f64::from(encoding.scale());
    let (mut fourth_powers, mut eigenvalue) = (0.0, 1.0);
    for block in encoding.blocks() {
        if block.kind != BlockKind::Constant {
            fourth_powers += block.kind.largest_fourth_power();
            eigenvalue += block.kind.n_sets() as f64;
        }
    }
    FeatureFacts {
        constant: (encoding.width() - 1, scale),
        // A little more than the rounding of squares can add.
        squares: scale * scale * f64::sqrt(fourth_powers) * (1.0 + 1e-6),
        largest_eigenvalue: eigenvalue,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;

    use dp_table::{BadRows, Bins, Column, EncodedFile, Label, NumberFormat, Schema, TableFiles};

    use super::*;

    /// Rows are the same whether they are kept or expanded in every pass, in whatever parts they are
    /// asked for, and have the features that the table says.
    #[test]
    fn rows_are_the_same_kept_and_expanded() {
        let bins = Bins::Equal(4);
        let number = Column::Number { low: 0.0, high: 10.0, bins, missing: Some(5.0), format: NumberFormat::default() };
        let category = Column::Category { values: vec!["a".into(), "b".into()], other: true, missing: false };
        let schema = Schema {
            columns: vec![("x".into(), number), ("kind".into(), category)],
            label: Label::of_classes("y", vec!["no".into(), "yes".into()]),
            groups: Vec::new(),
            group_as_input: false,
            unit: None,
            weight: None,
            missing: vec![String::new()],
            bad_rows: BadRows::Drop,
        };
        let mut csv = "x,kind,y\n".to_owned();
        for row in 0..3 * TILE + 5 {
            let (x, kind) = (["0", "2.5", "", "9.9", "10"][row % 5], ["a", "b", "c"][row % 3]);
            let _ = writeln!(csv, "{x},{kind},{}", ["no", "yes", "yes", "unknown"][row % 4]);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        fs::write(&path, csv).unwrap();
        let files = TableFiles::new(&[path.to_string_lossy()]).unwrap();
        let (table, _) = EncodedTable::create(&files, &schema, EncodedFile::Temporary(folder.path())).unwrap();

        let members = RowList::all(&table);
        let kept = SubsetRows::new(&table, &members, Arc::new(Alone), false);
        let expanded = SubsetRows { kept: None, ..SubsetRows::new(&table, &members, Arc::new(Alone), false) };
        assert!(kept.kept.is_some());
        let seen = |rows: &SubsetRows<'_>, range: Range<usize>| {
            let mut seen = Vec::new();
            rows.visit(range, &mut |index, row| seen.push((index, row.label, row.features().collect::<Vec<_>>())));
            seen
        };
        for range in [0..kept.len(), 3..TILE + 9, 2 * TILE..2 * TILE] {
            let found = seen(&expanded, range.clone());
            assert_eq!(found, seen(&kept, range.clone()));
            assert_eq!(found.iter().map(|(index, ..)| *index).collect::<Vec<_>>(), range.collect::<Vec<_>>());
            for (index, label, features) in found {
                let mut of_table = vec![0.0; table.width()];
                table.gather(&[index], &mut of_table);
                assert_eq!((features.is_empty(), label), (table.is_blank(index), table.label(index) as usize));
                let mut given = vec![0.0; table.width()];
                for (column, value) in features {
                    given[column] = value;
                }
                assert_eq!(given, of_table.into_iter().map(f64::from).collect::<Vec<_>>());
            }
        }
    }
}
