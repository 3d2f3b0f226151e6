//! Bounds and edges of numbers and dates, released within the budget.
//!
//! Each training record adds 1 to bins of a grid that is the same for every table: a number to
//! [one](numbers), a date to [two](dates). Counts are released with noise; those that cannot be told
//! from noise are dropped, and quantiles of the others are the bounds and the edges between them.

mod dates;
mod numbers;

use std::collections::HashMap;
use std::path::Path;

use dp_accounting::NoiseMultiplier;
use dp_engine::Grid;
use dp_linear::of_ranks;
use dp_table::{BadRows, DateFormat, Encoding, NumberFormat, RowHasher, RowsDigest, TableError, TableReader, TableRow};
use rand_chacha::ChaCha20Rng;

use crate::config::{ColumnEntry, ColumnKind, Config};
use crate::error::{FairdpError, Result};
use crate::fit::TableSize;
use crate::key::NoiseBinding;
use crate::rank_files::RankFiles;

/// Counts below this many standard deviations of the noise are dropped: of the 481 empty bins of
/// numbers one in 30 tables keeps one.
const CERTAIN: f64 = 4.0;
/// Bins that a column gets.
const QUANTILES: usize = 16;

/// Columns whose bounds, or whose bins alone, are released within the budget.
pub(crate) fn private_columns(config: &Config) -> impl Iterator<Item = &ColumnEntry> {
    let has_bounds = |entry: &&ColumnEntry| matches!(entry.kind, ColumnKind::Number | ColumnKind::Date);
    config.column.iter().filter(has_bounds).filter(|entry| entry.has_released_edges())
}

/// How a column's values are read, and the grid that they are counted on.
#[derive(Debug, Clone)]
enum Values {
    Numbers(NumberFormat),
    /// In days since 1970.
    Dates(DateFormat),
}

/// A range of values, and how many records have one.
struct Counted {
    range: (f64, f64),
    count: f64,
}

impl Values {
    fn of(entry: &ColumnEntry) -> Self {
        match entry.kind {
            ColumnKind::Date => Self::Dates(entry.format.unwrap_or(DateFormat::Iso)),
            _ => Self::Numbers(entry.number_format()),
        }
    }

    fn n_bins(&self) -> usize {
        match self {
            Self::Numbers(_) => numbers::N_BINS,
            Self::Dates(_) => dates::N_BINS,
        }
    }

    /// Counts a row's value, if it has one.
    fn count(&self, row: &TableRow, place: usize, counts: &mut [f64]) {
        match self {
            Self::Numbers(format) => {
                if let Some(value) = row.number(place, format) {
                    counts[numbers::bin(value)] += 1.0;
                }
            }
            Self::Dates(format) => {
                if let Some(days) = format.days(row.field(place)) {
                    for bin in dates::bins(days) {
                        counts[bin] += 1.0;
                    }
                }
            }
        }
    }

    /// The L2 sensitivity of the counts to one record.
    fn sensitivity(&self) -> f64 {
        match self {
            Self::Numbers(_) => 1.0,
            #[cfg(test)]
            Self::Dates(_) if crate::hook::DATES_IN_ONE_BIN.get() => 1.0,
            Self::Dates(_) => dates::SENSITIVITY,
        }
    }

    /// The ranges that have records for certain, ascending.
    fn ranges(&self, noisy: &[f64], certain: f64) -> Vec<Counted> {
        match self {
            Self::Numbers(_) => {
                let bins = noisy.iter().enumerate().filter(|(_, count)| **count >= certain);
                bins.map(|(bin, &count)| Counted { range: numbers::range(bin), count }).collect()
            }
            Self::Dates(_) => dates::ranges(noisy, certain),
        }
    }
}

/// Counts over the rows of all ranks.
pub(crate) struct BoundCounts {
    /// The data that the noise on them is bound to.
    pub(crate) bound: NoiseBinding,
    pub(crate) table: TableSize,
    /// Exact counts by column. **Not private.**
    pub(crate) by_column: HashMap<String, Vec<f64>>,
}

/// Counts the records, and the numbers of training records by column and bin. `text` is the text of
/// the configuration, to which the noise is bound.
pub(crate) fn count(
    config: &Config,
    text: &str,
    source: &mut RankFiles,
    is_training: &dyn Fn(u64) -> bool,
) -> Result<BoundCounts> {
    let table = source.path().to_path_buf();
    let test = match config.test_files()? {
        Some(files) => Some(check_rows(config, files.open()?)?),
        None => None,
    };
    let RankCounts { n_rows, columns, rows } =
        source.read(|reader, first| count_rows(config, reader, first as u64, &table, is_training))?;
    let n_rows = of_ranks(n_rows.map(|n| n as f64).to_vec(), source.ranks())?;
    let [records, blank] = [0, 1].map(|place| n_rows[place] as usize);
    if records == 0 {
        return Err(TableError::EmptyFile { path: table }.into());
    }
    if blank == records {
        return Err(FairdpError::file(&table, "has no row that fits its schema"));
    }
    let columns = columns.into_iter().map(|column| Ok((column.name, of_ranks(column.counts, source.ranks())?)));
    let by_column = columns.collect::<Result<_>>()?;
    let bound = NoiseBinding::new(source.sum(rows)?, test.map(|(_, digest)| digest), text);
    let test_records = test.map(|(n_rows, _)| n_rows);
    Ok(BoundCounts { bound, table: TableSize { records, test_records, features: widest(config)?.width() }, by_column })
}

/// Counts over the rows of one rank.
struct RankCounts {
    /// Numbers of all rows and of blank ones.
    n_rows: [usize; 2],
    columns: Vec<BinnedColumn>,
    rows: RowsDigest,
}

/// A column's values by bin.
struct BinnedColumn {
    name: String,
    place: usize,
    values: Values,
    counts: Vec<f64>,
}

/// Counts rows, dropped rows and the bins of private columns. A row that training would refuse is
/// refused here, before any budget is spent.
fn count_rows(
    config: &Config,
    mut reader: TableReader,
    first: u64,
    table: &Path,
    is_training: &dyn Fn(u64) -> bool,
) -> Result<RankCounts> {
    let mut columns = Vec::new();
    let (mut n_rows, mut rows) = ([0; 2], RowsDigest::default());
    for entry in private_columns(config) {
        let Some(place) = reader.columns().iter().position(|name| *name == entry.name) else {
            let problem = format!("has no column `{}`", entry.name);
            return Err(FairdpError::file(table, problem));
        };
        let values = Values::of(entry);
        let counts = vec![0.0; values.n_bins()];
        columns.push(BinnedColumn { name: entry.name.clone(), place, values, counts });
    }
    let encoding = widest(config)?;
    let mut checker = encoding.checker(reader.columns(), table)?;
    let hasher = RowHasher::new(reader.columns());
    let mut row = TableRow::default();
    for number in first.. {
        let found = reader.read(&mut row).and_then(|is_there| {
            if is_there {
                checker.check(&row)?;
            }
            Ok(is_there)
        });
        let is_blank = match found {
            Ok(true) => false,
            Ok(false) => break,
            Err(error) if config.table.bad_rows == BadRows::Drop && error.is_of_one_row() => true,
            Err(error) => return Err(error.into()),
        };
        rows = rows.plus(hasher.digest(number, &row));
        n_rows[0] += 1;
        n_rows[1] += usize::from(is_blank);
        if !is_blank && is_training(number) {
            for BinnedColumn { place, values, counts, .. } in &mut columns {
                if !encoding.is_missing(row.field(*place)) {
                    values.count(&row, *place, counts);
                }
            }
        }
    }
    Ok(RankCounts { n_rows, columns, rows })
}

/// The encoding with as many edges as can be released, which will take their place. Its bounds are
/// not 0 and 1, between which truth values are numbers.
pub(crate) fn widest(config: &Config) -> Result<Encoding> {
    let edges = |name: &str| {
        let entry = private_columns(config).find(|entry| entry.name == name)?;
        let declared = entry.declared_bounds().filter(|_| entry.bins_are_released());
        let (low, high) = declared.unwrap_or((0.0, QUANTILES as f64));
        let edge = |place: usize| low + (high - low) * (place as f64 + 0.5) / (QUANTILES as f64 + 1.0);
        let edge = |place: usize| if entry.bins_are_released() { edge(place) } else { place as f64 };
        Some((0..=QUANTILES).map(edge).collect())
    };
    Ok(Encoding::new(&config.schema(&edges)?)?)
}

/// Refuses a row that the test would refuse. Returns the number of rows and their digest.
fn check_rows(config: &Config, mut reader: TableReader) -> Result<(usize, RowsDigest)> {
    let encoding = widest(config)?;
    let hasher = RowHasher::new(reader.columns());
    let (mut n_rows, mut rows) = (0, RowsDigest::default());
    let mut row = TableRow::default();
    let mut is_there = reader.read(&mut row);
    let mut checker = encoding.checker(reader.columns(), row.file())?;
    loop {
        match is_there.and_then(|is_there| if is_there { checker.check(&row).map(|()| true) } else { Ok(false) }) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if config.table.bad_rows == BadRows::Drop && error.is_of_one_row() => {}
            Err(error) => return Err(error.into()),
        }
        rows = rows.plus(hasher.digest(n_rows as u64, &row));
        n_rows += 1;
        is_there = reader.read(&mut row);
    }
    Ok((n_rows, rows))
}

/// Bounds with the edges between them, ascending: from exact counts of one column.
///
/// **Guarantee.** That of the Gaussian mechanism with this noise multiplier: the noise is that many
/// times the L2 sensitivity of the counts.
pub(crate) fn release(
    entry: &ColumnEntry,
    counts: Vec<f64>,
    noise_multiplier: NoiseMultiplier,
    rng: &mut ChaCha20Rng,
) -> Result<Vec<f64>> {
    let values = Values::of(entry);
    let std = noise_multiplier.get() * values.sensitivity();
    let noisy = noisy(&values, counts, noise_multiplier, rng);
    let ranges = values.ranges(&noisy, CERTAIN * std);
    let total: f64 = ranges.iter().map(|range| range.count).sum();
    let mut edges: Vec<f64> = Vec::with_capacity(QUANTILES + 1);
    for quantile in 0..=QUANTILES {
        // The outermost hundredths are clamped: heavy tails would stretch the bounds for the sake
        // of few.
        let share = (quantile as f64 / QUANTILES as f64).clamp(0.005, 0.995);
        let edge = quantile_of(&ranges, share * total);
        // Bounds of dates are whole days.
        let edge = match (&values, quantile) {
            (Values::Dates(_), 0) => edge.floor(),
            (Values::Dates(_), QUANTILES) => edge.ceil(),
            _ => edge,
        };
        let apart = |last: &f64| (edge - last) > 1e-5 * (edge.abs() + last.abs() + numbers::LEAST);
        if edges.last().is_none_or(apart) {
            edges.push(edge);
        }
    }
    if total <= 0.0 || edges.len() < 2 {
        return Err(FairdpError::NoBounds { column: entry.name.clone() });
    }
    Ok(edges)
}

/// The counts of a column with their noise.
fn noisy(values: &Values, counts: Vec<f64>, noise_multiplier: NoiseMultiplier, rng: &mut ChaCha20Rng) -> Vec<f64> {
    Grid::for_counts().release(counts, noise_multiplier.get() * values.sensitivity(), rng)
}

/// What an attacker makes of a column's counts, who knows all records but those of one unit: `copies`
/// records in the bins of one record, or none.
pub(crate) fn attacked(
    entry: &ColumnEntry,
    copies: u64,
    noise_multiplier: NoiseMultiplier,
    rng: &mut ChaCha20Rng,
) -> f64 {
    let values = Values::of(entry);
    let mut counts = vec![0.0; values.n_bins()];
    // A date is in two bins.
    let of_one = (values.sensitivity().powi(2).round() as usize).min(counts.len());
    counts[..of_one].fill(copies as f64);
    noisy(&values, counts, noise_multiplier, rng)[..of_one].iter().sum()
}

/// The value below which `target` records lie, if they are spread evenly in each range.
fn quantile_of(ranges: &[Counted], target: f64) -> f64 {
    let mut below = 0.0;
    for &Counted { range: (low, high), count } in ranges {
        if below + count >= target {
            return low + (high - low) * ((target - below) / count).clamp(0.0, 1.0);
        }
        below += count;
    }
    ranges.last().map_or(0.0, |last| last.range.1)
}

#[cfg(test)]
mod tests;
