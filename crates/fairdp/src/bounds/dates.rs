//! The grid of dates: the years from 1900 to 2099, and their months. A record adds 1 to its year and 1
//! to its month.
//!
//! Years find the range of birthdays, of which a month has few. Months find the range of a register
//! of two years. An earlier date counts as the first one, a later date as the last one.

use std::f64::consts::SQRT_2;
use std::sync::LazyLock;

use dp_table::DateFormat;

use super::Counted;

const FIRST_YEAR: usize = 1900;
const N_YEARS: usize = 200;
const MONTHS: usize = 12;
/// The years, then the months.
pub(super) const N_BINS: usize = N_YEARS * (1 + MONTHS);
/// Of a record that adds 1 to two bins.
pub(super) const SENSITIVITY: f64 = SQRT_2;

/// Days from 1970 to the first of each month, and of the one behind the last.
static FIRST_DAYS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let first = |month: usize| {
        let text = format!("{}-{:02}-01", FIRST_YEAR + month / MONTHS, 1 + month % MONTHS);
        DateFormat::Iso.days(&text).unwrap_or(f64::INFINITY)
    };
    (0..=N_YEARS * MONTHS).map(first).collect()
});

/// The two bins of a number of days since 1970.
pub(super) fn bins(days: f64) -> [usize; 2] {
    let begun = FIRST_DAYS.partition_point(|first| *first <= days);
    let month = begun.clamp(1, N_YEARS * MONTHS) - 1;
    [month / MONTHS, N_YEARS + month]
}

/// Years that have records for certain; a year is divided into the months that have, where these
/// have most of its records.
pub(super) fn ranges(noisy: &[f64], certain: f64) -> Vec<Counted> {
    let (years, months) = noisy.split_at(N_YEARS);
    let mut ranges = Vec::new();
    for (year, &count) in years.iter().enumerate().filter(|(_, count)| **count >= certain) {
        let range = |first: usize, n: usize| (FIRST_DAYS[first], FIRST_DAYS[first + n]);
        let first = year * MONTHS;
        let found: Vec<Counted> = (first..first + MONTHS)
            .filter(|&month| months[month] >= certain)
            .map(|month| Counted { range: range(month, 1), count: months[month] })
            .collect();
        if found.iter().map(|month| month.count).sum::<f64>() >= 0.5 * count {
            ranges.extend(found);
        } else {
            ranges.push(Counted { range: range(first, MONTHS), count });
        }
    }
    ranges
}
