//! Bounds and edges of numbers, released within the budget.
//!
//! Each training record adds 1 to one bin of a grid that is the same for every table: zero, and for
//! either sign four bins per doubling between [`LEAST`] and 2⁶⁰ times that. Counts are released
//! with noise; those that cannot be told from noise are dropped, and quantiles of the others are
//! the bounds and the edges between them.

use std::collections::HashMap;
use std::path::Path;

use dp_accounting::NoiseMultiplier;
use dp_engine::Grid;
use dp_linear::of_ranks;
use dp_table::{BadRows, Encoding, NumberFormat, RowHasher, RowsDigest, TableError, TableReader, TableRow};
use rand_chacha::ChaCha20Rng;

use crate::config::{BoundEntry, ColumnEntry, ColumnKind, Config};
use crate::error::{FairdpError, Result};
use crate::fit::TableSize;
use crate::key::NoiseBinding;
use crate::rank_files::RankFiles;

/// Smaller numbers count as zero.
const LEAST: f64 = 1e-6;
/// Bins per doubling.
const PER_DOUBLING: usize = 4;
/// Bins of either sign.
const SIDE: usize = 60 * PER_DOUBLING;
/// Counts below this many standard deviations of the noise are dropped: of 481 empty bins one in 30
/// tables keeps one.
const CERTAIN: f64 = 4.0;
/// Bins that a column gets.
const QUANTILES: usize = 16;

/// Columns whose bounds, or whose bins alone, are released within the budget.
pub(crate) fn private_columns(config: &Config) -> impl Iterator<Item = &ColumnEntry> {
    config.column.iter().filter(|entry| entry.kind == ColumnKind::Number && entry.has_released_edges())
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

/// A column's numbers by bin.
struct BinnedColumn {
    name: String,
    place: usize,
    format: NumberFormat,
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
        let format = entry.number_format();
        columns.push(BinnedColumn { name: entry.name.clone(), place, format, counts: vec![0.0; 2 * SIDE + 1] });
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
            for BinnedColumn { place, format, counts, .. } in &mut columns {
                let text = row.field(*place);
                if encoding.is_missing(text) {
                    continue;
                }
                if let Some(value) = row.number(*place, format) {
                    counts[bin(value)] += 1.0;
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
        let (low, high) = match (&entry.low, &entry.high) {
            (Some(BoundEntry::Number(low)), Some(BoundEntry::Number(high))) if entry.bins_are_released() => {
                (*low, *high)
            }
            _ => (0.0, QUANTILES as f64),
        };
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
/// **Guarantee.** A record is in one bin: an L2 sensitivity of 1.
pub(crate) fn release(
    name: &str,
    counts: Vec<f64>,
    noise_multiplier: NoiseMultiplier,
    rng: &mut ChaCha20Rng,
) -> Result<Vec<f64>> {
    let std = noise_multiplier.get();
    let noisy: Vec<f64> = Grid::for_counts()
        .release(counts, std, rng)
        .into_iter()
        .map(|count| if count >= CERTAIN * std { count } else { 0.0 })
        .collect();
    let total: f64 = noisy.iter().sum();
    let mut edges: Vec<f64> = Vec::with_capacity(QUANTILES + 1);
    for quantile in 0..=QUANTILES {
        // The outermost hundredths are clamped: heavy tails would stretch the bounds for the sake
        // of few.
        let share = (quantile as f64 / QUANTILES as f64).clamp(0.005, 0.995);
        let edge = quantile_of(&noisy, share * total);
        let apart = |last: &f64| (edge - last) > 1e-5 * (edge.abs() + last.abs() + LEAST);
        if edges.last().is_none_or(apart) {
            edges.push(edge);
        }
    }
    if total <= 0.0 || edges.len() < 2 {
        return Err(FairdpError::NoBounds { column: name.to_owned() });
    }
    Ok(edges)
}

/// The value below which `target` records lie, if they are spread evenly in each bin.
fn quantile_of(counts: &[f64], target: f64) -> f64 {
    let mut below = 0.0;
    for (bin, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
        if below + count >= target {
            let (low, high) = range(bin);
            return low + (high - low) * ((target - below) / count).clamp(0.0, 1.0);
        }
        below += count;
    }
    counts.iter().rposition(|&count| count > 0.0).map_or(0.0, |bin| range(bin).1)
}

/// The bin of a number; they ascend.
fn bin(value: f64) -> usize {
    let size = value.abs() / LEAST;
    if size < 1.0 {
        return SIDE;
    }
    let step = ((size.log2() * PER_DOUBLING as f64) as usize).min(SIDE - 1);
    if value > 0.0 { SIDE + 1 + step } else { SIDE - 1 - step }
}

/// The numbers of a bin.
fn range(bin: usize) -> (f64, f64) {
    let edge = |step: usize| LEAST * 2f64.powf(step as f64 / PER_DOUBLING as f64);
    match bin {
        SIDE => (0.0, 0.0),
        bin if bin > SIDE => (edge(bin - SIDE - 1), edge(bin - SIDE)),
        bin => (-edge(SIDE - bin), -edge(SIDE - 1 - bin)),
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng as _;

    use super::*;

    #[test]
    fn bins_ascend_and_hold_their_numbers() {
        let values = [-1e9, -3.0, -0.1, 0.0, 1e-9, 2e-6, 0.1, 1.0, 17.5, 90.0, 1e6];
        let mut last = 0;
        for value in values {
            let found = bin(value);
            let (low, high) = range(found);
            assert!(found >= last, "{value}");
            assert!(low <= value * (1.0 + 1e-12) + LEAST && value <= high + LEAST, "{value} in {low} {high}");
            last = found;
        }
    }

    /// Uniform between 20 and 80: the bounds are near these, the edges nearly even.
    #[test]
    fn quantiles_of_uniform_numbers() {
        let mut counts = vec![0.0; 2 * SIDE + 1];
        for i in 0..60_000 {
            counts[bin(20.0 + f64::from(i) / 1_000.0)] += 1.0;
        }
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let edges = release("x", counts, NoiseMultiplier::new(20.0).unwrap(), &mut rng).unwrap();
        assert_eq!(edges.len(), QUANTILES + 1);
        for (i, edge) in edges.iter().enumerate() {
            let expected = 20.0 + 60.0 * i as f64 / QUANTILES as f64;
            assert!((edge - expected).abs() < 2.0, "{edge} for {expected}");
        }
        let nothing = release("x", vec![0.0; 2 * SIDE + 1], NoiseMultiplier::new(5.0).unwrap(), &mut rng);
        assert!(nothing.unwrap_err().to_string().starts_with("column `x`: too few records"));
    }
}
