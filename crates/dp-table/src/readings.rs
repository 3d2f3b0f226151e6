//! Ways in which the texts of a column may be read as numbers or dates.

use crate::column_stats::KnownText;
use crate::date_format::{DateFormat, Instant};
use crate::number_format::NumberFormat;
use crate::text_hash::TextMap;

/// Units that are looked for, as they stand before or behind a number.
const UNITS: [&str; 13] = ["%", "€", "$", "£", "¥", "EUR", "USD", "GBP", "CHF", "kg", "cm", "km", "‰"];

/// Signs that are tried: decimal, thousands.
const SIGNS: [(char, Option<char>); 6] =
    [('.', Some(',')), (',', Some('.')), ('.', Some(' ')), (',', Some(' ')), ('.', Some('\'')), (',', Some('\''))];

/// Longer texts are no numbers and no dates.
const LONGEST: usize = 48;

/// The texts of a column that one reading takes for numbers, or for days.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fit {
    /// Texts that it reads.
    pub(crate) n: u64,
    pub(crate) range: Option<(f64, f64)>,
    /// Whether a number has a fraction, or a date a time of day.
    pub(crate) has_fractions: bool,
    /// Whether a sign between thousands was met.
    has_thousands: bool,
}

impl Fit {
    fn add(&mut self, value: f64, has_fraction: bool, count: u64) {
        self.n += count;
        let (low, high) = self.range.unwrap_or((value, value));
        self.range = Some((low.min(value), high.max(value)));
        self.has_fractions |= has_fraction;
    }
}

/// Counts of the texts that are no plain numbers, and of the plain numbers that a decimal comma
/// reads in another way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readings {
    numbers: [Fit; SIGNS.len()],
    /// The unit of the texts, as far as they have one, and whether it is another one in some.
    unit: Option<String>,
    has_other_units: bool,
    dates: [Fit; 3],
    /// Plain numbers with a point, and those of them that a point between thousands fits.
    with_point: u64,
    pointed: Fit,
    /// The ranges of all plain numbers, and of those without a point.
    plain: Fit,
    whole: Fit,
}

/// A reading that fits, and the texts that it reads.
#[derive(Debug, Clone)]
pub(crate) struct NumberReading {
    pub(crate) format: NumberFormat,
    /// Of the texts that are no plain numbers; its range is that of all.
    pub(crate) fit: Fit,
    /// Plain numbers that it does not read.
    pub(crate) lost: u64,
    /// Whether texts such as `1,234` could be read with a decimal sign in the place of one between
    /// thousands.
    pub(crate) is_ambiguous: bool,
}

/// Dates that all texts are read as.
#[derive(Debug, Clone)]
pub(crate) struct DateReading {
    pub(crate) format: DateFormat,
    pub(crate) fit: Fit,
    pub(crate) is_ambiguous: bool,
}

const DATES: [DateFormat; 3] = [DateFormat::Iso, DateFormat::DayFirst, DateFormat::MonthFirst];

impl Readings {
    /// Whether a text that is no plain number may be read as one, or as a date.
    pub(crate) fn read(text: &str) -> bool {
        let mut readings = Self::default();
        readings.add_text(text, 1);
        readings.numbers.iter().chain(&readings.dates).any(|fit| fit.n > 0)
    }

    /// Counts a text that was met this often, with the plain number that it is.
    pub(crate) fn add(&mut self, text: &str, number: Option<f64>, count: u64) {
        match number {
            Some(number) => self.add_number(text, number, count),
            None => self.add_text(text, count),
        }
    }

    /// Counts texts that were met this often.
    pub(crate) fn add_all(&mut self, texts: &TextMap<KnownText>) {
        for (text, known) in texts {
            self.add(text, known.number, known.count);
        }
    }

    fn add_number(&mut self, text: &str, number: f64, count: u64) {
        self.plain.add(number, false, count);
        match text.split_once('.') {
            None => self.whole.add(number, false, count),
            Some((whole, fraction)) => {
                self.with_point += count;
                // With the point between thousands, of which it is the only one.
                let n_digits = whole.trim_start_matches(['+', '-']).len();
                if fraction.len() == 3 && (1..=3).contains(&n_digits) && !fraction.contains(['e', 'E']) {
                    self.pointed.add((number * 1e3).round(), false, count);
                }
            }
        }
    }

    fn add_text(&mut self, text: &str, count: u64) {
        let is_like_one = text.len() <= LONGEST && text.bytes().any(|byte| byte.is_ascii_digit());
        if !is_like_one {
            return;
        }
        // Every format reads dates in ISO format, which are counted once.
        let is_iso = DateFormat::Iso.parse(text).is_some();
        for (format, fit) in DATES.iter().zip(&mut self.dates) {
            if let Some(found) = format.parse(text).filter(|_| !is_iso || *format == DateFormat::Iso) {
                fit.add(found.days(), found.has_time(), count);
            }
        }
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let unit = UNITS.iter().copied().find(|unit| unsigned.starts_with(unit) || text.ends_with(unit));
        if let Some(unit) = unit {
            self.has_other_units |= self.unit.get_or_insert_with(|| unit.to_owned()) != unit;
        }
        // Other letters are in no number.
        if unit.is_none() && text.contains(|letter: char| letter.is_alphabetic() && !matches!(letter, 'e' | 'E')) {
            return;
        }
        for ((decimal, thousands), fit) in SIGNS.into_iter().zip(&mut self.numbers) {
            let format = NumberFormat { decimal, thousands, unit: unit.map(str::to_owned) };
            if let Some(value) = format.parse(text) {
                fit.add(value, value.fract() != 0.0, count);
                let bare = NumberFormat { thousands: None, ..format };
                fit.has_thousands |= bare.parse(text).is_none();
            }
        }
    }

    /// The way in which most texts are numbers; `None` if none of them is.
    pub(crate) fn numbers(&self) -> Option<NumberReading> {
        if self.has_other_units {
            return None;
        }
        // Plain numbers with a point are lost to a decimal comma unless it stands between thousands.
        let lost = |(decimal, thousands): (char, Option<char>)| match (decimal, thousands) {
            ('.', _) => 0,
            (_, Some('.')) => self.with_point - self.pointed.n,
            _ => self.with_point,
        };
        let best = SIGNS
            .into_iter()
            .zip(&self.numbers)
            .filter(|(_, fit)| fit.n > 0)
            // The first of several that are alike: a point, and a comma between thousands.
            .rev()
            .max_by_key(|(signs, fit)| fit.n.saturating_sub(lost(*signs)))?;
        let ((decimal, thousands), fit) = best;
        let is_alike = |(signs, other): &((char, Option<char>), &Fit)| {
            signs.0 != decimal && other.n == fit.n && lost(*signs) == 0 && fit.has_thousands
        };
        let is_ambiguous = decimal == '.' && SIGNS.into_iter().zip(&self.numbers).any(|pair| is_alike(&pair));
        let mut fit = fit.clone();
        // Plain numbers mean something else where a point stands between thousands.
        let others = match (decimal, thousands) {
            ('.', _) => [&self.plain, &self.plain],
            (_, Some('.')) => [&self.whole, &self.pointed],
            _ => [&self.whole, &self.whole],
        };
        fit.has_thousands |= thousands == Some('.') && self.pointed.n > 0;
        for (low, high) in others.iter().filter_map(|fit| fit.range) {
            fit.range = fit.range.map(|(least, most)| (least.min(low), most.max(high)));
        }
        let thousands = thousands.filter(|_| fit.has_thousands);
        let format = NumberFormat { decimal, thousands, unit: self.unit.clone() };
        Some(NumberReading { format, fit, lost: lost((decimal, thousands)), is_ambiguous })
    }

    /// The format in which most texts are dates; `None` if none of them is.
    pub(crate) fn dates(&self) -> Option<DateReading> {
        let best =
            DATES.into_iter().zip(&self.dates).filter(|(_, fit)| fit.n > 0).rev().max_by_key(|(_, fit)| fit.n)?;
        let (format, fit) = best;
        let is_ambiguous = format == DateFormat::DayFirst && self.dates[2].n == fit.n;
        Some(DateReading { format, fit: fit.clone(), is_ambiguous })
    }
}

impl DateReading {
    /// The first day and the one behind the last, as ISO texts.
    pub(crate) fn range(&self) -> (String, String) {
        let (low, high) = self.fit.range.unwrap_or_default();
        (
            Instant::text_of_day(low.floor()),
            Instant::text_of_day(if high > low.floor() { high.ceil() } else { high + 1.0 }),
        )
    }
}

/// The number that a text is without any format.
pub(crate) fn plain_number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Readings {
        let mut readings = Readings::default();
        for text in texts {
            readings.add(text, plain_number(text), 1);
        }
        readings
    }

    fn format(texts: &[&str]) -> (char, Option<char>, Option<String>, bool) {
        let NumberReading { format, is_ambiguous, .. } = of(texts).numbers().unwrap();
        (format.decimal, format.thousands, format.unit, is_ambiguous)
    }

    #[test]
    fn the_format_follows_from_the_texts() {
        assert_eq!(format(&["1.234,5", "7,25"]), (',', Some('.'), None, false));
        assert_eq!(format(&["1234,5", "7,25", "3"]), (',', None, None, false));
        assert_eq!(format(&["1,234.5", "7.25"]), ('.', Some(','), None, false));
        assert_eq!(format(&["1,234", "27,125"]), ('.', Some(','), None, true));
        assert_eq!(format(&["12 %", "7.5 %"]), ('.', None, Some("%".into()), false));
        assert_eq!(format(&["€3.00", "€1,203.00"]), ('.', Some(','), Some("€".into()), false));
        assert_eq!(format(&["1 234,5", "7,25"]), (',', Some(' '), None, false));
        assert!(of(&["a", "b 7x"]).numbers().is_none() && of(&["3 €", "4 $"]).numbers().is_none());
    }

    /// 1.234 is 1234 where a comma is the decimal sign, and no number where 1.5 stands beside it.
    #[test]
    fn plain_numbers_may_mean_something_else() {
        let german = of(&["1.234", "2.500,5"]).numbers().unwrap();
        assert_eq!((german.lost, german.fit.range), (0, Some((1234.0, 2500.5))));
        assert_eq!(of(&["1.5", "1,5", "2,5", "3,5"]).numbers().unwrap().lost, 1);
    }

    #[test]
    fn the_order_of_dates_follows_where_one_day_is_beyond_12() {
        let dates = |texts: &[&str]| {
            let DateReading { format, is_ambiguous, .. } = of(texts).dates().unwrap();
            (format, is_ambiguous)
        };
        assert_eq!(dates(&["2024-01-31", "2023-05-06"]), (DateFormat::Iso, false));
        assert_eq!(dates(&["31.1.2024", "6.5.2023"]), (DateFormat::DayFirst, false));
        assert_eq!(dates(&["1/31/2024", "5/6/2023"]), (DateFormat::MonthFirst, false));
        assert_eq!(dates(&["1/3/2024", "5/6/2023"]), (DateFormat::DayFirst, true));
        let range = of(&["2024-01-31 10:00", "2023-05-06"]).dates().unwrap().range();
        assert_eq!(range, ("2023-05-06".into(), "2024-02-01".into()));
    }
}
