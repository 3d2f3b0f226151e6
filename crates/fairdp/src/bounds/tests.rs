//! Grids, and the noise on their counts.

use dp_table::{MemoryColumn, MemoryTable, TableFiles};
use rand_chacha::rand_core::SeedableRng as _;

use super::*;
use crate::hook;

fn entry(kind: &str) -> ColumnEntry {
    toml::from_str(&format!("name = \"x\"\nkind = \"{kind}\"\nbounds = \"private\"\n")).unwrap()
}

/// Counts of a column of texts.
fn counted(entry: &ColumnEntry, texts: &[&str]) -> Vec<f64> {
    let values = Values::of(entry);
    let levels: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let column = MemoryColumn::Texts { levels, positions: (0..texts.len() as u32).collect() };
    let table = MemoryTable::new("values", vec![("x".to_owned(), column)]).unwrap();
    let mut reader = TableFiles::in_memory(table).open().unwrap();
    let (mut row, mut counts) = (TableRow::default(), vec![0.0; values.n_bins()]);
    while reader.read(&mut row).unwrap() {
        values.count(&row, 0, &mut counts);
    }
    counts
}

fn release_of(entry: &ColumnEntry, counts: Vec<f64>, sigma: f64) -> Result<Vec<f64>> {
    release(entry, counts, NoiseMultiplier::new(sigma).unwrap(), &mut ChaCha20Rng::seed_from_u64(1))
}

#[test]
fn bins_ascend_and_hold_their_numbers() {
    let values = [-1e9, -3.0, -0.1, 0.0, 1e-9, 2e-6, 0.1, 1.0, 17.5, 90.0, 1e6];
    let mut last = 0;
    for value in values {
        let found = numbers::bin(value);
        let (low, high) = numbers::range(found);
        assert!(found >= last, "{value}");
        assert!(
            low <= value * (1.0 + 1e-12) + numbers::LEAST && value <= high + numbers::LEAST,
            "{value} in {low} {high}"
        );
        last = found;
    }
}

/// Uniform between 20 and 80: the bounds are near these, the edges nearly even.
#[test]
fn quantiles_of_uniform_numbers() {
    let mut counts = vec![0.0; numbers::N_BINS];
    for i in 0..60_000 {
        counts[numbers::bin(20.0 + f64::from(i) / 1_000.0)] += 1.0;
    }
    let edges = release_of(&entry("number"), counts, 20.0).unwrap();
    assert_eq!(edges.len(), QUANTILES + 1);
    for (i, edge) in edges.iter().enumerate() {
        let expected = 20.0 + 60.0 * i as f64 / QUANTILES as f64;
        assert!((edge - expected).abs() < 2.0, "{edge} for {expected}");
    }
    let nothing = release_of(&entry("number"), vec![0.0; numbers::N_BINS], 5.0);
    assert!(nothing.unwrap_err().to_string().starts_with("column `x`: too few records"));
}

/// The first of January 1900 begins the grid, the last day of 2099 ends it.
#[test]
fn dates_are_in_their_year_and_their_month() {
    let bins = |text: &str| dates::bins(DateFormat::Iso.days(text).unwrap());
    assert_eq!(bins("1900-01-01"), [0, 200]);
    assert_eq!(bins("1850-07-01"), [0, 200]);
    assert_eq!(bins("1969-12-31 23:59"), [69, 200 + 69 * 12 + 11]);
    assert_eq!(bins("1970-01-01"), [70, 200 + 70 * 12]);
    assert_eq!(bins("2024-02-29 12:00"), [124, 200 + 124 * 12 + 1]);
    assert_eq!(bins("2150-01-01"), [199, 200 + 199 * 12 + 11]);
}

/// Two years of visits are found by months, eighty years of birthdays by years.
#[test]
fn bounds_of_dates_follow_the_records() {
    let day = |text: &str| DateFormat::Iso.days(text).unwrap();
    for (first, last, slack) in [("2023-04-01", "2025-03-31", 20.0), ("1931-01-01", "2010-12-31", 250.0)] {
        let mut counts = vec![0.0; dates::N_BINS];
        let (low, high) = (day(first), day(last));
        for i in 0..20_000 {
            let found = dates::bins(low + (high - low) * f64::from(i) / 20_000.0);
            for bin in found {
                counts[bin] += 1.0;
            }
        }
        let edges = release_of(&entry("date"), counts, 20.0).unwrap();
        assert!((edges[0] - low).abs() < slack && (edges[edges.len() - 1] - high).abs() < slack, "{edges:?}");
        assert!(edges[0].fract() == 0.0 && edges.is_sorted());
        let middle = edges[edges.len() / 2];
        assert!((middle - f64::midpoint(low, high)).abs() < slack, "{middle}");
    }
    assert!(release_of(&entry("date"), vec![0.0; dates::N_BINS], 5.0).is_err());
}

/// Counts whose noise is smaller than the plan has it, in units of what one record changes. The
/// noise of empty bins shows: its standard deviation is the multiplier times the sensitivity. With
/// 2,600 bins a deviation of a tenth is no chance.
fn understated(entry: &ColumnEntry, with: &str) -> bool {
    let (with, without) = (counted(entry, &["", with]), counted(entry, &["", ""]));
    let changed: f64 = with.iter().zip(&without).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let (sigma, n) = (10.0, without.len() as f64);
    let std = sigma * Values::of(entry).sensitivity();
    let noisy = Grid::for_counts().release(without, std, &mut ChaCha20Rng::seed_from_u64(2));
    let found = (noisy.iter().map(|count| count * count).sum::<f64>() / n).sqrt();
    found < 0.9 * sigma * changed
}

#[test]
fn noise_that_forgets_the_second_bin_of_a_date_is_found() {
    assert!(!understated(&entry("number"), "17") && !understated(&entry("date"), "2024-05-06"));
    hook::DATES_IN_ONE_BIN.set(true);
    let found = understated(&entry("date"), "2024-05-06");
    hook::DATES_IN_ONE_BIN.set(false);
    assert!(found);
}
