//! Dates and times as people write them, and their parts.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{Timestamp, civil};
use serde::{Deserialize, Serialize};

/// Seconds of a day; leap seconds are not counted.
const DAY: f64 = 86_400.0;

/// How the dates of a column are written.
///
/// A time of day may stand behind a date, with a blank or a `T` between them, as `14:30`,
/// `14:30:05.25` or `2:30 PM`. Where it has an offset from UTC, as only ISO dates do, the date is
/// that of UTC. A date alone is its midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DateFormat {
    /// `2024-01-31`: what Parquet's dates and times are read as, too.
    Iso,
    /// `31.1.2024`, `31/01/2024`, `31-01-2024`.
    DayFirst,
    /// `1/31/2024`, and the same with points or hyphens.
    MonthFirst,
    /// Seconds since 1970.
    EpochSeconds,
    /// Milliseconds since 1970.
    EpochMilliseconds,
}

/// A part of a date that becomes features of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatePart {
    /// One feature for each year of the declared range. A date beyond it has the nearest.
    Year,
    /// One feature for each of the twelve months.
    Month,
    /// One feature for each of the seven days.
    Weekday,
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Instant(DateTime);

impl DateFormat {
    /// A date in ISO format is no date in another one, and is read whatever is declared: so a file
    /// that stores dates, such as Parquet, needs no other declaration.
    pub(crate) fn parse(self, text: &str) -> Option<Instant> {
        if let Some(found) = iso(text) {
            return Some(found);
        }
        match self {
            Self::Iso => None,
            Self::DayFirst => numbered(text, |[day, month, year]| (year, month, day)),
            Self::MonthFirst => numbered(text, |[month, day, year]| (year, month, day)),
            Self::EpochSeconds => since_1970(text, 1.0),
            Self::EpochMilliseconds => since_1970(text, 1e3),
        }
    }

    /// Days from 1970 on, with the time of day as a fraction; `None` for a text that is no date in
    /// this format.
    ///
    /// ```
    /// use dp_table::DateFormat;
    /// assert_eq!(DateFormat::DayFirst.days("3.1.1970 12:00"), Some(2.5));
    /// ```
    pub fn days(self, text: &str) -> Option<f64> {
        self.parse(text).map(Instant::days)
    }

    /// The ISO text of the day that is this number of days after 1970-01-01; at most the last one of
    /// four digits.
    pub fn iso_day(days: f64) -> String {
        Instant::text_of_day(days)
    }

    /// An example of a date in this format, for messages.
    pub fn example(self) -> &'static str {
        match self {
            Self::Iso => "2024-01-31",
            Self::DayFirst => "31.1.2024",
            Self::MonthFirst => "1/31/2024",
            Self::EpochSeconds => "1706659200",
            Self::EpochMilliseconds => "1706659200000",
        }
    }
}

impl Instant {
    /// Days since 1970.
    pub(crate) fn days(self) -> f64 {
        let since = Offset::UTC.to_timestamp(self.0).map_or(0.0, |time| time.as_duration().as_secs_f64());
        since / DAY
    }

    /// The date of this number of days since 1970, as ISO text; at most the last one of four digits.
    pub(crate) fn text_of_day(days: f64) -> String {
        let date = Timestamp::from_second((days * DAY) as i64).map(|time| Offset::UTC.to_datetime(time).date());
        date.map_or_else(|_| "9999-12-31".into(), |date| date.to_string())
    }

    pub(crate) fn year(self) -> i16 {
        self.0.year()
    }

    /// From 0 for January.
    pub(crate) fn month(self) -> usize {
        usize::from(self.0.month().unsigned_abs()) - 1
    }

    /// From 0 for Monday.
    pub(crate) fn weekday(self) -> usize {
        usize::from(self.0.weekday().to_monday_zero_offset().unsigned_abs())
    }

    pub(crate) fn has_time(self) -> bool {
        self.0.time() != Time::midnight()
    }
}

/// A point in time as text, by what it counts since 1970: the date alone at midnight, in local time;
/// in UTC always with time and offset. `None` beyond the years that have one.
pub(crate) fn text_of(value: i64, per_second: i64, is_utc: bool) -> Option<String> {
    let second = value.div_euclid(per_second);
    let nanosecond = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
    let time = Offset::UTC.to_datetime(Timestamp::new(second, nanosecond.try_into().ok()?).ok()?);
    let (date, clock) = (time.date(), time.time());
    Some(match (is_utc, clock == Time::midnight()) {
        (true, _) => format!("{date} {clock}+00:00"),
        (false, true) => date.to_string(),
        (false, false) => format!("{date} {clock}"),
    })
}

fn iso(text: &str) -> Option<Instant> {
    // Four digits, a hyphen: other texts are told apart quickly.
    let bytes = text.as_bytes();
    if bytes.len() < 10 || bytes[4] != b'-' {
        return None;
    }
    let has_offset = text.get(10..)?.contains(['Z', 'z', '+', '-']);
    let time =
        if has_offset { Offset::UTC.to_datetime(text.parse().ok()?) } else { text.parse::<civil::DateTime>().ok()? };
    // An offset may lead to the year before the first.
    (time.year() >= 0).then_some(Instant(time))
}

/// Three numbers between points, slashes or hyphens, and perhaps a time of day.
fn numbered(text: &str, order: impl Fn([i64; 3]) -> (i64, i64, i64)) -> Option<Instant> {
    let (date, time) = text.split_once([' ', 'T']).map_or((text, None), |(date, time)| (date, Some(time)));
    let sign = date.chars().find(|letter| ".-/".contains(*letter))?;
    let mut numbers = date.split(sign);
    let mut next = |longest: usize| {
        let digits = numbers.next()?;
        let is_number = (1..=longest).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { digits.parse::<i64>().ok() } else { None }
    };
    let [first, second, year] = [next(2)?, next(2)?, next(4)?];
    // A year of two digits does not say its century.
    if numbers.next().is_some() || year < 1000 {
        return None;
    }
    let (year, month, day) = order([first, second, year]);
    let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    let time = time.map_or(Some(Time::midnight()), time_of_day)?;
    Some(Instant(date.to_datetime(time)))
}

/// `14:30`, `14:30:05` or `2:30 PM`.
fn time_of_day(text: &str) -> Option<Time> {
    let text = text.trim();
    let upper = text.to_ascii_uppercase();
    let half = ["AM", "PM"].into_iter().find(|half| upper.ends_with(half));
    let Some(half) = half else { return if text.contains(':') { text.parse().ok() } else { None } };
    let clock = text[..text.len() - 2].trim_end();
    let (hour, rest) = clock.split_once(':')?;
    let hour: u8 = hour.parse().ok().filter(|hour| (1..=12).contains(hour))?;
    let hour = hour % 12 + if half == "PM" { 12 } else { 0 };
    format!("{hour:02}:{rest}").parse().ok()
}

fn since_1970(text: &str, per_second: f64) -> Option<Instant> {
    let seconds = text.parse::<f64>().ok()? / per_second;
    let whole = seconds.floor();
    let nanoseconds = ((seconds - whole) * 1e9) as i32;
    // Beyond, `as` would clamp.
    if !(-1e12..1e12).contains(&whole) {
        return None;
    }
    Timestamp::new(whole as i64, nanoseconds).ok().map(|time| Instant(Offset::UTC.to_datetime(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(format: DateFormat, text: &str) -> Option<f64> {
        format.parse(text).map(Instant::days)
    }

    /// 2024-01-31 is 19,753 days after 1970-01-01: 54 years of 365 days, 13 leap days, 30 days.
    #[test]
    fn dates_by_hand() {
        let day = f64::from(54 * 365 + 13 + 30);
        assert_eq!(day, 19_753.0);
        for (format, text) in [
            (DateFormat::Iso, "2024-01-31"),
            (DateFormat::Iso, "2024-01-31 00:00:00"),
            (DateFormat::Iso, "2024-01-31T02:00:00+02:00"),
            (DateFormat::Iso, "2024-01-31T00:00:00Z"),
            (DateFormat::DayFirst, "31.1.2024"),
            (DateFormat::DayFirst, "31.01.2024"),
            (DateFormat::DayFirst, "31/01/2024 00:00"),
            (DateFormat::MonthFirst, "1/31/2024"),
            (DateFormat::MonthFirst, "01-31-2024 12:00 AM"),
            (DateFormat::DayFirst, "2024-01-31"),
            (DateFormat::EpochSeconds, "1706659200"),
            (DateFormat::EpochMilliseconds, "1706659200000"),
        ] {
            assert_eq!(days(format, text), Some(day), "{format:?} {text}");
        }
        assert_eq!(days(DateFormat::Iso, "2024-01-31 12:00:00"), Some(day + 0.5));
        assert_eq!(days(DateFormat::Iso, "2024-01-31 06:00:00.000"), Some(day + 0.25));
        assert_eq!(days(DateFormat::MonthFirst, "1/31/2024 6:00 PM"), Some(day + 0.75));
        assert_eq!(days(DateFormat::EpochSeconds, "-43200"), Some(-0.5));
        assert_eq!((Instant::text_of_day(day), Instant::text_of_day(-1.0)), ("2024-01-31".into(), "1969-12-31".into()));
        assert_eq!(Instant::text_of_day(3e6), "9999-12-31");
    }

    #[test]
    fn what_is_no_date_is_none() {
        for (format, text) in [
            (DateFormat::Iso, "2024-02-30"),
            (DateFormat::Iso, "0000-01-01T00:00:00+02:00"),
            (DateFormat::Iso, "31.1.2024"),
            (DateFormat::Iso, "20240131"),
            (DateFormat::Iso, "2024-01-31x"),
            (DateFormat::DayFirst, "1/31/2024"),
            (DateFormat::DayFirst, "31.1.24"),
            (DateFormat::DayFirst, "31.1"),
            (DateFormat::DayFirst, "31.1.2024 noon"),
            (DateFormat::MonthFirst, "31.1.2024"),
            (DateFormat::MonthFirst, "1/31/2024 13:00 PM"),
            (DateFormat::EpochSeconds, "1e300"),
            (DateFormat::EpochSeconds, "NaN"),
            (DateFormat::EpochSeconds, "x"),
        ] {
            assert_eq!(days(format, text), None, "{format:?} {text}");
        }
    }

    #[test]
    fn counts_since_1970_are_written_as_dates() {
        let of = |value, per_second, is_utc| text_of(value, per_second, is_utc).unwrap();
        assert_eq!(of(19_753 * 86_400, 1, false), "2024-01-31");
        assert_eq!(of(19_753 * 86_400, 1, true), "2024-01-31 00:00:00+00:00");
        assert_eq!(of(-1_500, 1_000, false), "1969-12-31 23:59:58.5");
        assert_eq!(text_of(i64::MAX, 1, false), None);
    }

    /// 31 January 2024 was a Wednesday.
    #[test]
    fn parts_by_hand() {
        let found = DateFormat::Iso.parse("2024-01-31 10:00").unwrap();
        assert_eq!((found.year(), found.month(), found.weekday(), found.has_time()), (2024, 0, 2, true));
    }
}
