//! A checked schema: the features of each column, and the encoding of a row.

use std::path::Path;

use crate::blocks::{BlockKind, FeatureBlock};
use crate::codes::{Layout, MOST_CODES};
use crate::column_names::{InputColumns, find, find_vector, is_named};
use crate::counts::{ReadOutcome, RowOutcome, TableCounts};
use crate::error::TableError;
use crate::group::Group;
use crate::inputs::Input;
use crate::markers::Markers;
use crate::number_format::NumberFormat;
use crate::parse::{self, Groups, Target};
use crate::reader::TableRow;
use crate::schema::{Column, Schema, Weight};

/// Taken from the scale, so that rounding cannot lift a row's norm above 1.
const ROUNDING: f64 = 1.0 / 65_536.0;

/// The features of a schema.
///
/// Every feature is multiplied by [`scale`](Self::scale), which depends on the schema alone, so
/// that no row has a norm above 1:
///
/// - a number with bins has its scaled value `2z/k − 1`, where the position `z` counts the bins
///   below it plus the share of its bin, and `k + 1` hat functions, one per edge: 1 at its edge
///   and falling linearly to 0 at the two next to it. Squares add up to at most 2;
/// - a number in one bin has its scaled value alone;
/// - a missing number has the scaled value of the declared constant, no hats, and an indicator;
/// - a date is a number, of days, and has one feature for each value of each declared part;
/// - a boolean has one feature, and one for a missing value where declared;
/// - a category has one feature per listed value, then `other`, then `missing`, where declared; one
///   of them is 1;
/// - a vector has its numbers, brought into the unit ball by the declared bound, and one feature
///   for a missing vector where declared;
/// - an image has the features that fixed filters make of it, of norm 1, or its pixels, each from 0
///   to 1, and one feature for a missing image where declared;
/// - the last feature is 1 for every row.
#[derive(Debug, Clone)]
pub struct Encoding {
    schema: Schema,
    blocks: Vec<FeatureBlock>,
    /// Inputs in the order of the schema, each with its name and the position of its first block.
    inputs: Vec<(String, Input, usize)>,
    target: Target,
    markers: Markers,
    group_columns: Vec<Groups>,
    groups: Vec<Group>,
    layout: Layout,
    width: usize,
    most_entries: usize,
    scale: f32,
}

impl Encoding {
    /// Checks a schema.
    ///
    /// # Errors
    /// [`TableError::Schema`], naming the column, for parts that contradict each other and for
    /// values out of range.
    pub fn new(schema: &Schema) -> Result<Self, TableError> {
        schema.check()?;
        let markers = Markers::new(&schema.missing);
        let (mut blocks, mut inputs, mut widths) = (Vec::new(), Vec::new(), Vec::new());
        let (mut width, mut square) = (0, 0.0);
        for (name, column) in &schema.columns {
            let Some(input) = Input::new(name, column, &markers)? else { continue };
            let first = blocks.len();
            for (column, kind) in BlockKind::of(name, column, &input) {
                let features = width..width + kind.n_features();
                width = features.end;
                square += kind.largest_square();
                widths.push(kind.stored_width());
                blocks.push(FeatureBlock { column, features, kind });
            }
            inputs.push((name.clone(), input, first));
        }
        blocks.push(FeatureBlock { column: String::new(), features: width..width + 1, kind: BlockKind::Constant });
        let target = Target::new(&schema.label, &markers)?;
        let group_columns =
            schema.groups.iter().map(|group| Groups::new(group, &markers)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            groups: intersections(schema, &group_columns)?,
            layout: Layout::new(schema.unit.is_some(), schema.weight.is_some(), schema.label.number.is_some(), widths),
            width: width + 1,
            most_entries: blocks.iter().map(|block| block.kind.most_entries()).sum(),
            scale: ((1.0 - ROUNDING) / (square + 1.0_f64).sqrt()) as f32,
            schema: schema.clone(),
            blocks,
            inputs,
            target,
            markers,
            group_columns,
        })
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Number of features.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The features of each column, in order, with a block for each part of a date; the constant is
    /// last.
    pub fn blocks(&self) -> &[FeatureBlock] {
        &self.blocks
    }

    /// The factor of every feature.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// A name for every feature, such as `age`, `age @ 30`, `job = clerk`, `job other`, `age
    /// missing`, `constant`.
    pub fn feature_names(&self) -> Vec<String> {
        self.blocks.iter().flat_map(FeatureBlock::names).collect()
    }

    /// The groups, of several columns their intersections. Without a column of groups there is one,
    /// [`Group::all`].
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The features of a row that may differ from zero: as many in every row.
    pub fn most_entries(&self) -> usize {
        self.most_entries
    }

    /// Whether a text, without blanks around it, stands for a missing value.
    pub fn is_missing(&self, text: &str) -> bool {
        self.markers.contain(text)
    }

    /// Finds the inputs in a table's columns, whatever else there is. For prediction: label and
    /// unit are not looked for, and groups only by [`RowEncoder::with_groups`].
    ///
    /// # Errors
    /// [`TableError::MissingColumn`]; `file` is for the message.
    pub fn encoder(&self, columns: &[String], file: &Path) -> Result<RowEncoder<'_>, TableError> {
        let inputs = self.find_inputs(columns, file)?;
        Ok(RowEncoder {
            encoding: self,
            inputs,
            groups: Vec::new(),
            row: vec![0; self.layout.stride()],
            columns: vec![0; self.most_entries],
            values: vec![0.0; self.most_entries],
            counts: TableCounts::new(self.schema.inputs(), std::iter::empty()),
        })
    }

    /// A checker for the rows of a training table.
    ///
    /// # Errors
    /// [`TableError::MissingColumn`], and [`TableError::File`] for a column that is not declared;
    /// `file` is for the message.
    pub fn checker(&self, columns: &[String], file: &Path) -> Result<RowChecker<'_>, TableError> {
        let binding = self.bind(columns, file)?;
        Ok(RowChecker { encoding: self, binding, row: vec![0; self.layout.stride()] })
    }

    /// Finds every column that training needs, and refuses those that are declared nowhere.
    pub(crate) fn bind(&self, columns: &[String], file: &Path) -> Result<Binding, TableError> {
        let schema = &self.schema;
        let find = |name: &str| find(columns, name, file);
        let declared = |name: &String| {
            *name == schema.label.column
                || schema.unit.as_ref() == Some(name)
                || schema.weight.as_ref().is_some_and(|weight| weight.column == *name)
                || schema.groups.iter().any(|group| group.column == *name)
                || schema
                    .columns
                    .iter()
                    .any(|(entry, column)| is_named(name, entry, matches!(column, Column::Vector { .. })))
        };
        if let Some(unknown) = columns.iter().find(|name| !declared(name)) {
            let reason = format!("has a column `{unknown}` that is not declared; declare it, or declare it as dropped");
            return Err(TableError::File { path: file.into(), reason });
        }
        Ok(Binding {
            inputs: self.find_inputs(columns, file)?,
            label: find(&schema.label.column)?,
            groups: self.find_groups(columns, file)?,
            unit: schema.unit.as_deref().map(find).transpose()?,
            weight: schema.weight.as_ref().map(|weight| find(&weight.column)).transpose()?,
            n_columns: columns.len(),
        })
    }

    fn find_inputs(&self, columns: &[String], file: &Path) -> Result<Vec<InputColumns>, TableError> {
        let find = |(name, input, _): &(String, Input, usize)| match input {
            Input::Vector { length, .. } => find_vector(columns, name, *length, file),
            _ => find(columns, name, file).map(InputColumns::One),
        };
        self.inputs.iter().map(find).collect()
    }

    fn find_groups(&self, columns: &[String], file: &Path) -> Result<Vec<usize>, TableError> {
        self.schema.groups.iter().map(|group| find(columns, &group.column, file)).collect()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn counts(&self) -> TableCounts {
        let groups = self.schema.groups.iter().map(|group| &*group.column);
        TableCounts::new(self.schema.inputs(), groups)
            .with_weight(self.schema.weight.as_ref())
            .with_label(&self.schema.label)
    }

    /// Writes the codes of a row.
    pub(crate) fn store(&self, row: &TableRow, binding: &Binding, out: &mut [u8]) -> Result<RowOutcome, TableError> {
        let at = row.position();
        let schema = &self.schema;
        // First: a row that is dropped for what follows stays with its unit.
        if let (Some(index), Some(column)) = (binding.unit, &schema.unit) {
            let text = row.field(index);
            if text.chars().any(char::is_control) {
                return Err(at.unlisted(column, text, "texts without control characters"));
            }
            let unit = self.unit(text).ok_or_else(|| at.missing_value(column))?;
            self.layout.set_unit(out, unit);
        }
        let label = row.field(binding.label);
        let label = self.target.read(at, &schema.label.column, label, self.is_missing(label))?;
        let (group, groups) = self.group_of(row, &binding.groups)?;
        let weight = self.store_weight(row, binding, out)?;
        let inputs = self.store_inputs(row, &binding.inputs, out)?;
        Layout::set_label(out, label.class);
        Layout::set_group(out, group as u16);
        self.layout.set_target(out, label.place);
        Ok(RowOutcome { inputs, groups, weight, label: label.outcome })
    }

    fn store_weight(&self, row: &TableRow, binding: &Binding, out: &mut [u8]) -> Result<ReadOutcome, TableError> {
        let (Some(index), Some(Weight { column, high })) = (binding.weight, &self.schema.weight) else {
            return Ok(ReadOutcome::Declared);
        };
        let text = row.field(index);
        if self.is_missing(text) {
            return Err(row.position().missing_value(column));
        }
        let found = NumberFormat::default().parse(text).filter(|weight| *weight >= 0.0);
        let weight = found.ok_or_else(|| row.position().not_a_weight(column, text))?;
        self.layout.set_weight(out, (weight / high).min(1.0) as f32);
        Ok(if weight > *high { ReadOutcome::Clamped } else { ReadOutcome::Declared })
    }

    /// The position of a row's group among all intersections, and the outcome of each of these
    /// columns.
    fn group_of(&self, row: &TableRow, columns: &[usize]) -> Result<(usize, Vec<ReadOutcome>), TableError> {
        let (mut group, mut met) = (0, Vec::with_capacity(columns.len()));
        for ((column, groups), index) in self.schema.groups.iter().zip(&self.group_columns).zip(columns) {
            let is_missing = self.is_missing(row.field(*index));
            let (code, found) = groups.code(row, (&column.column, *index), is_missing)?;
            group = group * groups.levels().len() + code;
            met.push(found);
        }
        Ok((group, met))
    }

    /// The number of a unit; `None` if the text names none.
    fn unit(&self, text: &str) -> Option<u64> {
        let is_name = !text.is_empty() && !self.is_missing(text) && !text.chars().any(char::is_control);
        is_name.then(|| parse::unit(text))
    }

    /// The number of a row's unit, whose column stands at this place among so many; every spelling of a value has
    /// the same number. `wrong` is why the row does not fit, if it does not. `None` if its unit cannot be read for
    /// certain.
    pub fn unit_of(
        &self,
        row: &TableRow,
        (index, n_columns): (usize, usize),
        wrong: Option<&TableError>,
    ) -> Option<u64> {
        // Nobody knows which fields are missing or too many.
        if matches!(wrong, Some(TableError::WrongArity { .. } | TableError::EmptyLine { .. })) {
            return None;
        }
        let text = row.field(index);
        // Bytes that are no text were replaced.
        let is_there = !matches!(wrong, Some(TableError::NotUtf8 { .. }))
            || row.fields().count() == n_columns && !text.contains(char::REPLACEMENT_CHARACTER);
        self.unit(text).filter(|_| is_there)
    }

    /// Writes the codes of a row that does not fit, and returns the reason.
    ///
    /// The row keeps its unit. Units are public and decide which records are trained on. If a
    /// defect moved a record to another unit, the public numbers of records would reveal it. So a
    /// row whose unit cannot be read for certain is refused.
    pub(crate) fn blank(
        &self,
        row: &TableRow,
        binding: &Binding,
        out: &mut [u8],
        wrong: TableError,
    ) -> Result<TableError, TableError> {
        Layout::blank(out);
        #[cfg(test)]
        if crate::hook::LEAVES_ITS_UNIT.get() {
            return Ok(wrong);
        }
        let (Some(index), Some(column)) = (binding.unit, &self.schema.unit) else { return Ok(wrong) };
        match self.unit_of(row, (index, binding.n_columns), Some(&wrong)) {
            Some(unit) => {
                self.layout.set_unit(out, unit);
                Ok(wrong)
            }
            None => Err(TableError::NoUnit { column: column.clone(), reason: Box::new(wrong) }),
        }
    }

    fn store_inputs(
        &self,
        row: &TableRow,
        columns: &[InputColumns],
        out: &mut [u8],
    ) -> Result<Vec<ReadOutcome>, TableError> {
        let mut met = Vec::with_capacity(columns.len());
        for ((name, input, first), columns) in self.inputs.iter().zip(columns) {
            met.push(input.store(row, (name, columns), &self.markers, (&self.layout, *first, out))?);
        }
        Ok(met)
    }

    /// Fills the places of features that may differ from zero, in ascending order.
    ///
    /// **Shapes.** `columns` and `values`: `[rows, most_entries]`, row by row.
    pub(crate) fn expand(&self, rows: &[&[u8]], columns: &mut [u32], values: &mut [f32]) {
        let scale = self.scale;
        let mut places = Places { rows, columns, values, room: self.most_entries, start: 0 };
        for (input, block) in self.blocks.iter().enumerate() {
            let slot = self.layout.slot(input);
            let (first, last) = (block.features.start as u32, block.features.end as u32 - 1);
            match &block.kind {
                BlockKind::Number { knots, missing } if knots.len() > 2 => {
                    // At most as many as a column may have bins.
                    let n_bins = (knots.len() - 1) as u16;
                    let missing = missing.unwrap_or(0.0);
                    for (row, columns, values) in places.of::<3>() {
                        let position = slot.position(row);
                        let z = position.unwrap_or(missing);
                        let bin = (z as u16).min(n_bins - 1);
                        let share = z - f32::from(bin);
                        let hat = first + 1 + u32::from(bin);
                        let value = (2.0 * z / f32::from(n_bins) - 1.0) * scale;
                        *columns = [first, hat, hat + 1];
                        *values = [value, (1.0 - share) * scale, share * scale];
                        if position.is_none() {
                            *columns = [first, first + 1, last];
                            *values = [value, 0.0, scale];
                        }
                    }
                }
                BlockKind::Number { missing, .. } => {
                    let value = |z: f32| (2.0 * z - 1.0) * scale;
                    match missing {
                        Some(missing) => {
                            for (row, columns, values) in places.of::<2>() {
                                let position = slot.position(row);
                                let indicator = if position.is_none() { scale } else { 0.0 };
                                *columns = [first, last];
                                *values = [value(position.unwrap_or(*missing)), indicator];
                            }
                        }
                        None => {
                            for (row, columns, values) in places.of::<1>() {
                                *columns = [first];
                                *values = [value(slot.position(row).unwrap_or(0.0))];
                            }
                        }
                    }
                }
                BlockKind::Boolean { .. } => {
                    for (row, columns, values) in places.of::<1>() {
                        let index = slot.index(row);
                        *columns = [(first + index.saturating_sub(1)).min(last)];
                        *values = [if index > 0 { scale } else { 0.0 }];
                    }
                }
                BlockKind::Vector { length, .. } | BlockKind::Image { length, .. } => {
                    for (row, columns, values) in places.of_many(*length) {
                        columns.iter_mut().zip(first..).for_each(|(column, feature)| *column = feature);
                        if let Some(numbers) = slot.vector(row) {
                            values.iter_mut().zip(numbers).for_each(|(value, number)| *value = number * scale);
                        } else {
                            values.fill(0.0);
                            if let ([.., column], [.., value]) = (columns, values) {
                                (*column, *value) = (last, scale);
                            }
                        }
                    }
                }
                BlockKind::Category { .. } => {
                    for (row, columns, values) in places.of::<1>() {
                        *columns = [(first + slot.index(row)).min(last)];
                        *values = [scale];
                    }
                }
                BlockKind::Constant => {
                    for (_, columns, values) in places.of::<1>() {
                        *columns = [first];
                        *values = [scale];
                    }
                }
            }
        }
    }
}

/// Where the features of rows go, column by column.
struct Places<'a> {
    rows: &'a [&'a [u8]],
    /// `[rows, room]`
    columns: &'a mut [u32],
    values: &'a mut [f32],
    room: usize,
    /// The next place of each row.
    start: usize,
}

impl Places<'_> {
    /// Each row with its next places.
    fn of<const N: usize>(&mut self) -> impl Iterator<Item = (&[u8], &mut [u32; N], &mut [f32; N])> {
        let start = self.start;
        self.start += N;
        let columns = self.columns.chunks_exact_mut(self.room).filter_map(move |row| row[start..].first_chunk_mut());
        let values = self.values.chunks_exact_mut(self.room).filter_map(move |row| row[start..].first_chunk_mut());
        self.rows.iter().zip(columns).zip(values).map(|((row, columns), values)| (*row, columns, values))
    }

    /// The same with as many places as are asked for.
    fn of_many(&mut self, n: usize) -> impl Iterator<Item = (&[u8], &mut [u32], &mut [f32])> {
        let places = self.start..self.start + n;
        self.start = places.end;
        let of_values = places.clone();
        let columns = self.columns.chunks_exact_mut(self.room).map(move |row| &mut row[places.clone()]);
        let values = self.values.chunks_exact_mut(self.room).map(move |row| &mut row[of_values.clone()]);
        self.rows.iter().zip(columns).zip(values).map(|((row, columns), values)| (*row, columns, values))
    }
}

/// Positions of the columns that training needs.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    inputs: Vec<InputColumns>,
    label: usize,
    groups: Vec<usize>,
    unit: Option<usize>,
    weight: Option<usize>,
    n_columns: usize,
}

/// Encodes rows one by one, by the same arithmetic as [`EncodedTable`](crate::EncodedTable).
#[derive(Debug, Clone)]
pub struct RowEncoder<'a> {
    encoding: &'a Encoding,
    inputs: Vec<InputColumns>,
    /// Columns of groups; empty where they are not looked for.
    groups: Vec<usize>,
    row: Vec<u8>,
    /// Its features, of which some may be zeros.
    columns: Vec<u32>,
    values: Vec<f32>,
    counts: TableCounts,
}

impl RowEncoder<'_> {
    /// Finds the columns of groups too.
    ///
    /// # Errors
    /// [`TableError::MissingColumn`]; `file` is for the message.
    pub fn with_groups(self, columns: &[String], file: &Path) -> Result<Self, TableError> {
        let groups = self.encoding.find_groups(columns, file)?;
        Ok(Self { groups, counts: self.encoding.counts(), ..self })
    }

    /// Fills the features of a row. Returns its group, as a position in [`Encoding::groups`]; 0
    /// where groups are not looked for.
    ///
    /// **Shapes.** `features`: [`Encoding::width`].
    ///
    /// # Errors
    /// [`TableError::InvalidNumber`], [`TableError::UnknownCategory`],
    /// [`TableError::MissingValue`], with file and line; [`TableError::InvalidParameter`] for a
    /// slice of another length.
    pub fn encode(&mut self, row: &TableRow, features: &mut [f32]) -> Result<usize, TableError> {
        if features.len() != self.encoding.width {
            return Err(TableError::InvalidParameter {
                parameter: "number of features",
                value: features.len().to_string(),
                expected: self.encoding.width.to_string(),
            });
        }
        let found = self.encoding.group_of(row, &self.groups).and_then(|(group, groups)| {
            let inputs = self.encoding.store_inputs(row, &self.inputs, &mut self.row)?;
            self.counts.accept(&RowOutcome {
                inputs,
                groups,
                weight: ReadOutcome::Declared,
                label: ReadOutcome::Declared,
            });
            Ok(group)
        });
        let group = found.inspect_err(|error| self.counts.refuse(error))?;
        features.fill(0.0);
        self.encoding.expand(&[&self.row], &mut self.columns, &mut self.values);
        for (&column, &value) in self.columns.iter().zip(&self.values) {
            features[column as usize] = value;
        }
        Ok(group)
    }

    /// Counts a row that could not be read and is skipped.
    pub fn pass_over(&mut self, reason: &TableError) {
        self.counts.refuse(reason);
    }

    /// Counts of the rows so far. They are exact counts of private records.
    pub fn counts(&self) -> &TableCounts {
        &self.counts
    }
}

/// Checks rows against a schema, with label, groups and unit.
#[derive(Debug, Clone)]
pub struct RowChecker<'a> {
    encoding: &'a Encoding,
    binding: Binding,
    row: Vec<u8>,
}

impl RowChecker<'_> {
    /// Checks a row.
    ///
    /// # Errors
    /// The errors of one row that [`EncodedTable::create`](crate::EncodedTable::create) lists.
    pub fn check(&mut self, row: &TableRow) -> Result<(), TableError> {
        self.encoding.store(row, &self.binding, &mut self.row).map(drop)
    }
}

/// All intersections, the last column's group changing fastest.
fn intersections(schema: &Schema, groups: &[Groups]) -> Result<Vec<Group>, TableError> {
    let n = groups.iter().try_fold(1_usize, |n, groups| n.checked_mul(groups.levels().len()));
    if n.is_none_or(|n| n > MOST_CODES) {
        let column = schema.groups.iter().map(|group| group.column.as_str()).collect::<Vec<_>>().join(" × ");
        return Err(TableError::Schema { column, reason: format!("more than {MOST_CODES} groups") });
    }
    Ok(groups.iter().fold(vec![Group::all()], |list, groups| {
        list.iter().flat_map(|group| groups.levels().iter().map(move |level| group.and(level))).collect()
    }))
}
