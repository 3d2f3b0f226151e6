//! Values of columns that are not declared.

use dp_accounting::NoiseMultiplier;
use dp_engine::Grid;
use dp_table::{Column, ColumnCounts, Group, GroupValues, Schema, TableCounts};
use fair_metrics::noisy::{Share, mean_of_shares};
use rand_chacha::ChaCha20Rng;

use super::ColumnDrift;
use crate::fairness::{CONFIDENCE, Rate};

/// What may become of a value: unseen, beyond, missing or unreadable.
const KINDS: usize = 4;

/// Counts by column and kind, of all rows and of each group's.
pub(crate) struct Columns {
    names: Vec<String>,
    rows: f64,
    /// `[columns][KINDS]`.
    all: Vec<[f64; KINDS]>,
    /// Rows and counts of each group; none where groups are not looked for, or not released.
    groups: Vec<(Group, f64, Vec<[f64; KINDS]>)>,
    /// Variance of the noise of a count.
    noise: f64,
    before: Vec<[u64; KINDS]>,
}

fn of(counts: &TableCounts) -> impl Iterator<Item = &ColumnCounts> {
    counts.columns.iter().chain(&counts.groups)
}

fn kinds(counts: &ColumnCounts) -> [u64; KINDS] {
    [counts.other, counts.clamped, counts.missing, counts.refused]
}

impl Columns {
    pub(crate) fn new(counts: &TableCounts, groups: &[Group]) -> Self {
        let names: Vec<String> = of(counts).map(|column| column.column.clone()).collect();
        let none = vec![[0.0; KINDS]; names.len()];
        Self {
            rows: 0.0,
            groups: groups.iter().map(|group| (group.clone(), 0.0, none.clone())).collect(),
            noise: 0.0,
            before: vec![[0; KINDS]; names.len()],
            all: none,
            names,
        }
    }

    /// Takes over the counts after another row, of this group.
    pub(crate) fn count(&mut self, counts: &TableCounts, group: Option<usize>) {
        self.rows += 1.0;
        let mut of_group = group.and_then(|group| self.groups.get_mut(group));
        if let Some((_, rows, _)) = &mut of_group {
            *rows += 1.0;
        }
        for (place, column) in of(counts).enumerate() {
            let now = kinds(column);
            for (kind, now) in now.into_iter().enumerate() {
                if now > self.before[place][kind] {
                    self.before[place][kind] = now;
                    self.all[place][kind] += 1.0;
                    if let Some((.., counts)) = &mut of_group {
                        counts[place][kind] += 1.0;
                    }
                }
            }
        }
    }

    /// The counts of all rows with noise; those of groups are not released.
    ///
    /// **Guarantee.** A row adds 1 to one kind of each column at most: a unit of `k` rows changes the
    /// counts of `c` columns by `k·√c` at most.
    pub(crate) fn released(&self, noise: NoiseMultiplier, records_per_unit: u64, rng: &mut ChaCha20Rng) -> Self {
        let std = noise.get() * records_per_unit as f64 * (self.names.len() as f64).sqrt().next_up();
        let exact: Vec<f64> = self.all.iter().flatten().copied().collect();
        let noisy = Grid::for_counts().release(exact, std, rng);
        Self {
            names: self.names.clone(),
            rows: self.rows,
            all: noisy.as_chunks().0.to_vec(),
            groups: Vec::new(),
            noise: std * std,
            before: Vec::new(),
        }
    }

    /// The counts of all rows.
    #[cfg(test)]
    pub(crate) fn values(&self) -> Vec<f64> {
        self.all.iter().flatten().copied().collect()
    }

    /// Shares of values with their intervals, and the alarms.
    pub(crate) fn compared(&self, schema: &Schema, tolerance: f64, alarms: &mut Vec<String>) -> Vec<ColumnDrift> {
        // Every share may be an alarm: none of them is a false one with the confidence of all.
        let n = self.names.len() * KINDS * (1 + self.groups.len());
        let level = 1.0 - (1.0 - CONFIDENCE) / n.max(1) as f64;
        let mut drifts = Vec::new();
        let all = std::iter::once((Group::all(), self.rows, &self.all));
        let groups = self.groups.iter().map(|(group, rows, counts)| (group.clone(), *rows, counts));
        for (group, rows, counts) in all.chain(groups) {
            for (column, counts) in self.names.iter().zip(counts) {
                let has_any = counts.iter().any(|count| *count > 0.0);
                if group != Group::all() && !has_any {
                    continue;
                }
                let share = |kind: usize| Share {
                    noise_covariance: -self.noise,
                    ..Share::independent(counts[kind], rows - counts[kind], self.noise, self.noise)
                };
                let rate = |kind: usize, level: f64| -> Rate { mean_of_shares(&[share(kind)], level) };
                let missing_is_declared = is_missing_declared(schema, column);
                let what = [
                    "none of those declared",
                    "beyond the declared bounds",
                    "missing, and nothing is declared for that",
                    "not readable, or missing where nothing is declared for that",
                ];
                for (kind, what) in what.into_iter().enumerate() {
                    let low = rate(kind, level).low;
                    if low > tolerance && !(kind == 2 && missing_is_declared) {
                        let of = if group == Group::all() { String::new() } else { format!(" of {group}") };
                        let share = 100.0 * counts[kind] / rows;
                        alarms.push(format!("column {column}: {share:.1} % of the values{of} are {what}"));
                    }
                }
                let rate = |kind: usize| rate(kind, CONFIDENCE);
                drifts.push(ColumnDrift {
                    column: column.clone(),
                    group: group.clone(),
                    unseen: rate(0),
                    beyond: rate(1),
                    missing: rate(2),
                    unreadable: rate(3),
                    missing_is_declared,
                });
            }
        }
        drifts
    }
}

fn is_missing_declared(schema: &Schema, name: &str) -> bool {
    let column = schema.columns.iter().find(|(column, _)| column == name).map(|(_, column)| column);
    let group = || schema.groups.iter().find(|group| group.column == name).map(|group| &group.groups);
    match (column, group()) {
        (Some(Column::Category { missing, .. }), _)
        | (None, Some(GroupValues::Values { missing, .. } | GroupValues::Bands { missing, .. })) => *missing,
        (Some(_), _) => true,
        (None, None) => false,
    }
}
