//! A generated table to try things on: no person is in it.
//!
//! Customers of a bank and whether they pay late. Some columns matter, some do not; amounts have
//! heavy tails; some values are missing; the three groups differ in size and in how well their
//! outcome can be predicted.

use std::io::{self, Write};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::number_format::NumberFormat;
use crate::schema::{BadRows, Bins, Column, GroupColumn, GroupValues, Label, Schema};

/// The name of the last column, the label.
const LABEL: &str = "outcome";

/// The name of the column before it, the groups.
const GROUP: &str = "group";

/// The fewest columns of a generated table.
const FEWEST_COLUMNS: usize = 8;

const GROUPS: [(&str, f64); 3] = [("a", 0.6), ("b", 0.3), ("c", 0.1)];
const REGIONS: [(&str, f64); 5] = [("north", 0.1), ("east", -0.2), ("south", 0.3), ("west", 0.0), ("abroad", 0.6)];
const HOUSING: [(&str, f64); 3] = [("owner", -0.5), ("rent", 0.3), ("family", 0.1)];

/// A generated table's size and seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// Number of rows.
    pub rows: u64,
    /// Number of columns with group and label; at least 8 are made.
    pub columns: usize,
    /// Another seed gives other rows.
    pub seed: u64,
}

impl Default for Example {
    fn default() -> Self {
        Self { rows: 10_000, columns: 10, seed: 1 }
    }
}

impl Example {
    /// Writes the table as CSV, row by row.
    ///
    /// # Errors
    /// If `out` refuses.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let n_more = self.n_more();
        write!(out, "age,income,debt,region,housing,visits")?;
        for more in 0..n_more {
            write!(out, ",{}", name(more))?;
        }
        writeln!(out, ",{GROUP},{LABEL}")?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut line = Vec::new();
        for _ in 0..self.rows {
            line.clear();
            row(n_more, &mut rng, &mut line)?;
            out.write_all(&line)?;
        }
        Ok(())
    }

    /// A schema that a careful person would declare without looking at the rows.
    pub fn schema(&self) -> Schema {
        let number = |low, high, missing| Column::Number {
            low,
            high,
            bins: Bins::for_bounds(low, high, false),
            missing,
            format: NumberFormat::default(),
        };
        let category = |values: &[(&str, f64)], missing| Column::Category {
            values: values.iter().map(|(value, _)| (*value).to_owned()).collect(),
            other: false,
            missing,
        };
        let mut columns = vec![
            ("age".into(), number(18.0, 90.0, None)),
            ("income".into(), number(0.0, 500_000.0, Some(0.0))),
            ("debt".into(), number(0.0, 200_000.0, None)),
            ("region".into(), category(&REGIONS, false)),
            ("housing".into(), category(&HOUSING, true)),
            ("visits".into(), number(0.0, 40.0, None)),
        ];
        columns.extend((0..self.n_more()).map(|more| {
            let levels: Vec<String> = (0..LEVELS).map(|level| format!("level {level}")).collect();
            let column = match more % 2 {
                0 => number(-4.0, 4.0, None),
                _ => Column::Category { values: levels, other: false, missing: false },
            };
            (name(more), column)
        }));
        let values = GROUPS.map(|(name, _)| name.to_owned()).to_vec();
        Schema {
            columns,
            label: Label::of_classes(LABEL, vec!["no".into(), "yes".into()]),
            groups: vec![GroupColumn {
                column: GROUP.into(),
                groups: GroupValues::Values { values, other: false, missing: false },
            }],
            group_as_input: false,
            unit: None,
            weight: None,
            bad_rows: BadRows::Refuse,
            missing: vec![String::new()],
        }
    }

    fn n_more(&self) -> usize {
        self.columns.saturating_sub(FEWEST_COLUMNS)
    }
}

/// Values of a generated category.
const LEVELS: u32 = 6;

/// Columns beyond the named ones: numbers and categories in turn.
fn name(more: usize) -> String {
    format!("{}_{}", if more.is_multiple_of(2) { "number" } else { "category" }, more / 2 + 1)
}

fn row(n_more: usize, rng: &mut ChaCha8Rng, out: &mut Vec<u8>) -> io::Result<()> {
    let normal = |rng: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
    let mut score = -2.0;
    let group = draw(&GROUPS, rng);
    let age = (18.0 + 72.0 * rng.random::<f64>().powf(1.3)).floor();
    score += 1.2 * ((age - 45.0) / 20.0).powi(2).min(2.0) - 0.8;
    let income = (10.2 + 0.7 * normal(rng)).exp().min(500_000.0).round();
    let debt = if rng.random_bool(0.4) { 0.0 } else { (8.5 + 1.3 * normal(rng)).exp().min(200_000.0).round() };
    score += 1.4 * ((debt + 1_000.0) / (income + 1_000.0)).ln().clamp(-3.0, 3.0) / 2.0 + 1.0;
    let (region, effect) = REGIONS[rng.random_range(0..REGIONS.len())];
    score += effect;
    let (housing, effect) = HOUSING[rng.random_range(0..HOUSING.len())];
    score += effect * if age < 40.0 { 2.0 } else { 0.5 };
    let visits = (rng.random::<f64>().powi(3) * 40.0).floor();
    score += if visits > 20.0 { 0.7 } else { 0.0 };

    write!(out, "{age},")?;
    if rng.random_bool(0.97) {
        write!(out, "{income}")?;
    }
    write!(out, ",{debt},{region},")?;
    if rng.random_bool(0.95) {
        write!(out, "{housing}")?;
    }
    write!(out, ",{visits}")?;
    for more in 0..n_more {
        // Every fourth of them matters, each less than the one before.
        let strength = if more % 4 < 2 { 0.8 / (1.0 + more as f64 / 4.0) } else { 0.0 };
        if more.is_multiple_of(2) {
            let value = normal(rng);
            score += strength * value.sin();
            write!(out, ",{value:.3}")?;
        } else {
            let level = rng.random_range(0..LEVELS);
            score += strength * (f64::from(level % 3) - 1.0);
            write!(out, ",level {level}")?;
        }
    }
    // The smaller the group, the less of the outcome is in the columns.
    let certainty = [1.0, 0.8, 0.5][group];
    let probability = 1.0 / (1.0 + (-certainty * score).exp());
    let outcome = if rng.random_bool(probability) { "yes" } else { "no" };
    writeln!(out, ",{},{outcome}", GROUPS[group].0)
}

fn draw(shares: &[(&str, f64)], rng: &mut ChaCha8Rng) -> usize {
    let mut left = rng.random::<f64>();
    shares
        .iter()
        .position(|(_, share)| {
            left -= share;
            left < 0.0
        })
        .unwrap_or(shares.len() - 1)
}
