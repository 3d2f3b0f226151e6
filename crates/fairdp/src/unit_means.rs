//! Records that are means: one record stands for all rows of a unit.

use std::collections::HashMap;

use dp_table::EncodedTable;

use crate::config::UnitTarget;

/// The rows of each unit, and the records that are made of them.
///
/// **Guarantee.** What the records of one unit add to a sum in which a record of weight 1 adds a
/// vector of norm at most `S` has a norm of at most `S`. Features are means of rows, and every bound
/// on a row is that of a norm: a mean keeps it. The weights of a unit's records add up to 1 at most.
/// So all rows of a unit count at the noise of one record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnitMeans {
    /// Where the rows of each unit begin; one more at the end.
    starts: Vec<u32>,
    /// Rows by unit, in the order of the table.
    rows: Vec<u32>,
    target: UnitTarget,
    n_classes: usize,
}

/// One record.
pub(crate) struct MeanRecord {
    /// Its rows: those that fit, and for a record of one class those of the class.
    pub(crate) rows: Vec<usize>,
    pub(crate) label: u32,
    /// The number that its rows' numbers make; 0 where classes are predicted.
    pub(crate) target: f32,
    pub(crate) weight: f32,
}

impl UnitMeans {
    /// Units in the order of their first rows.
    pub(crate) fn new(table: &EncodedTable, members: impl Iterator<Item = usize>, target: UnitTarget) -> Self {
        let mut units: HashMap<u64, usize> = HashMap::new();
        let mut by_unit: Vec<Vec<u32>> = Vec::new();
        for row in members {
            let place = *units.entry(table.unit(row)).or_insert(by_unit.len());
            if place == by_unit.len() {
                by_unit.push(Vec::new());
            }
            by_unit[place].push(row as u32);
        }
        let mut starts = vec![0];
        starts.extend(by_unit.iter().scan(0, |end, rows| {
            *end += rows.len() as u32;
            Some(*end)
        }));
        let n_classes = table.encoding().schema().label.classes.len();
        Self { starts, rows: by_unit.concat(), target, n_classes }
    }

    /// Number of units: public.
    pub(crate) fn n_units(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of records, those without a row among them: public.
    pub(crate) fn len(&self) -> usize {
        self.n_units() * self.per_unit()
    }

    /// Number of rows of all units.
    pub(crate) fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Whether a unit's records share its weight.
    pub(crate) fn is_weighted(&self) -> bool {
        self.target == UnitTarget::EachClass
    }

    fn per_unit(&self) -> usize {
        if self.target == UnitTarget::EachClass { self.n_classes } else { 1 }
    }

    /// The last row of the record's unit.
    pub(crate) fn last_row(&self, index: usize) -> usize {
        self.unit(index).last().map_or(0, |&row| row as usize)
    }

    fn unit(&self, index: usize) -> &[u32] {
        let unit = index / self.per_unit();
        &self.rows[self.starts[unit] as usize..self.starts[unit + 1] as usize]
    }

    /// A record; one without a row is blank.
    pub(crate) fn record(&self, table: &EncodedTable, index: usize) -> MeanRecord {
        let mut rows: Vec<usize> =
            self.unit(index).iter().map(|&row| row as usize).filter(|&row| !table.is_blank(row)).collect();
        let n = rows.len();
        let label = match self.target {
            UnitTarget::Last | UnitTarget::Mean => rows.last().map(|&row| table.label(row)),
            UnitTarget::Maximum => rows.iter().map(|&row| table.label(row)).max(),
            UnitTarget::EachClass => {
                let class = (index % self.n_classes) as u32;
                rows.retain(|&row| table.label(row) == class);
                Some(class)
            }
        };
        let share = rows.iter().map(|&row| f64::from(table.weight(row))).sum::<f64>() / n.max(1) as f64;
        let numbers = rows.iter().map(|&row| table.target(row));
        let target = match self.target {
            UnitTarget::Maximum => numbers.reduce(f32::max),
            UnitTarget::Mean => Some((numbers.map(f64::from).sum::<f64>() / n.max(1) as f64) as f32),
            UnitTarget::Last | UnitTarget::EachClass => rows.last().map(|&row| table.target(row)),
        };
        MeanRecord {
            rows,
            label: label.unwrap_or_default(),
            target: target.unwrap_or_default(),
            weight: rounded_down(share),
        }
    }

    /// The group of a record: of its last row.
    pub(crate) fn group(&self, table: &EncodedTable, index: usize) -> u32 {
        self.record(table, index).rows.last().map_or(0, |&row| table.group(row))
    }
}

impl MeanRecord {
    /// Calls `push` with the means of the features that are not 0 in every row, in ascending order.
    /// `sums` has one value for each feature, all 0, and is left so.
    pub(crate) fn features(&self, table: &EncodedTable, sums: &mut [f64], push: &mut dyn FnMut(usize, f32)) {
        let mut touched = Vec::new();
        for &row in &self.rows {
            table.for_each_feature(row, |feature, value| {
                if sums[feature] == 0.0 {
                    touched.push(feature);
                }
                sums[feature] += f64::from(value);
            });
        }
        touched.sort_unstable();
        touched.dedup();
        for feature in touched {
            push(feature, (sums[feature] / self.divisor()) as f32);
            sums[feature] = 0.0;
        }
    }

    fn divisor(&self) -> f64 {
        #[cfg(test)]
        if crate::hook::SUM_FOR_MEAN.get() {
            return 1.0;
        }
        self.rows.len() as f64
    }
}

/// The nearest number in single precision that is not larger: shares of a whole add up to at most 1.
fn rounded_down(share: f64) -> f32 {
    let nearest = share as f32;
    if f64::from(nearest) > share { nearest.next_down() } else { nearest }
}

#[cfg(test)]
mod tests;
