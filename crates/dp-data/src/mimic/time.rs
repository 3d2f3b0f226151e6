//! Calendar times as MIMIC-III writes them.

/// Minutes since the beginning of the year 0 of `YYYY-MM-DD`, optionally followed by ` HH:MM:SS`;
/// `None` for anything else.
pub(super) fn minutes(text: &str) -> Option<i64> {
    let (date, time) = text.trim().split_once(' ').unwrap_or((text.trim(), "00:00:00"));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    valid.then(|| (days(year, month, day) * 24 + hour) * 60 + minute)
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut fields = text.split(separator).map(|field| field.parse::<u16>().ok().map(i64::from));
    let numbers = [fields.next()??, fields.next()??, fields.next()??];
    fields.next().is_none().then_some(numbers)
}

/// Days since the beginning of the year 0 in the Gregorian calendar, counting years from March so
/// that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let gap = |from: &str, to: &str| minutes(to).unwrap() - minutes(from).unwrap();
        assert_eq!(gap("2131-05-07 20:04:00", "2131-05-08 21:05:00"), 25 * 60 + 1);
        // 2128 is a leap year, 2100 is not.
        assert_eq!(gap("2128-02-28", "2128-03-01"), 2 * 24 * 60);
        assert_eq!(gap("2100-02-28", "2100-03-01 00:00:00"), 24 * 60);
        assert_eq!(gap("1999-12-31", "2000-12-31"), 366 * 24 * 60);
        for bad in ["", "2131", "2131-13-01", "2131-01-00", "2131-01-01 24:00:00", "2131-01-01-01", "x-y-z"] {
            assert_eq!(minutes(bad), None, "{bad}");
        }
    }
}
