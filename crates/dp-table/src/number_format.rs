//! Numbers as people write them: with a decimal comma, a sign between thousands, a unit.

use serde::{Deserialize, Serialize};

use crate::error::TableError;

/// How the numbers of a column are written. Plain numbers, such as `1234.5`, are the default.
///
/// A number is read as the same decimal, written plainly, would be: nothing is multiplied, so
/// `12 %` is 12. Where a sign between thousands is declared, it may be left out; where it stands,
/// three digits stand between two of them.
///
/// ```
/// use dp_table::NumberFormat;
/// let german = NumberFormat { decimal: ',', thousands: Some('.'), unit: Some("€".into()) };
/// assert_eq!(german.parse("1.234,5 €"), Some(1234.5));
/// assert_eq!(german.parse("1.5"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberFormat {
    /// Between whole part and fraction: a point or a comma.
    pub decimal: char,
    /// Between every three digits of the whole part: a point, a comma, a blank (of any width) or an
    /// apostrophe.
    pub thousands: Option<char>,
    /// A text before or behind the number, which may be left out.
    pub unit: Option<String>,
}

impl Default for NumberFormat {
    fn default() -> Self {
        Self { decimal: '.', thousands: None, unit: None }
    }
}

/// Signs that may stand between thousands, each with its other spellings.
const THOUSANDS: [(char, &[char]); 4] =
    [('.', &['.']), (',', &[',']), (' ', &[' ', '\u{a0}', '\u{202f}', '\u{2009}']), ('\'', &['\'', '\u{2019}'])];

impl NumberFormat {
    /// Whether numbers are written plainly.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// # Errors
    /// [`TableError::Schema`] for signs that are none of those listed, and for a unit that could be
    /// part of a number.
    pub(crate) fn check(&self, column: &str) -> Result<(), TableError> {
        let refuse = |reason: String| Err(TableError::Schema { column: column.into(), reason });
        if !matches!(self.decimal, '.' | ',') {
            return refuse(format!("decimal = `{}`: expected a point or a comma", self.decimal));
        }
        if let Some(sign) = self.thousands {
            if !THOUSANDS.iter().any(|(known, _)| *known == sign) {
                return refuse(format!("thousands = `{sign}`: expected a point, a comma, a blank or an apostrophe"));
            }
            if sign == self.decimal {
                return refuse(format!("thousands = `{sign}`: expected another sign than decimal"));
            }
        }
        if let Some(unit) = &self.unit {
            let is_of_numbers = |letter: char| letter.is_ascii_digit() || ".,+-".contains(letter);
            if unit.trim() != unit || unit.is_empty() || unit.contains(is_of_numbers) {
                return refuse(format!("unit = `{unit}`: expected a text without digits, signs and blanks around it"));
            }
        }
        Ok(())
    }

    /// The number that a text without blanks around it says; `None` for other texts and for
    /// numbers that are not finite.
    pub fn parse(&self, text: &str) -> Option<f64> {
        if self.is_plain() {
            return text.parse().ok().filter(|number: &f64| number.is_finite());
        }
        self.plain(text)?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The same decimal, written plainly.
    fn plain(&self, text: &str) -> Option<String> {
        let (sign, rest) = sign_of(text);
        let rest = self.without_unit(rest);
        // A sign may stand behind a unit: `€-3`.
        let (sign, rest) = if sign.is_empty() { sign_of(rest) } else { (sign, rest) };
        let (mantissa, exponent) = rest.find(['e', 'E']).map_or((rest, ""), |at| rest.split_at(at));
        let (whole, fraction) = mantissa.split_once(self.decimal).unwrap_or((mantissa, ""));
        let whole = self.without_thousands(whole)?;
        let is_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_digits(&whole) || !is_digits(fraction) {
            return None;
        }
        Some(format!("{sign}{whole}.{fraction}{exponent}"))
    }

    /// A number in this format, for messages.
    pub(crate) fn example(&self) -> String {
        let thousands = self.thousands.map_or_else(String::new, String::from);
        let unit = self.unit.as_deref().map_or_else(String::new, |unit| format!(" {unit}"));
        format!("1{thousands}234{}5{unit}", self.decimal)
    }

    fn without_unit<'a>(&self, text: &'a str) -> &'a str {
        let Some(unit) = self.unit.as_deref() else { return text };
        text.strip_suffix(unit).or_else(|| text.strip_prefix(unit)).unwrap_or(text).trim()
    }

    fn without_thousands(&self, whole: &str) -> Option<String> {
        let spellings = self.thousands.and_then(|sign| THOUSANDS.iter().find(|(known, _)| *known == sign));
        let Some((_, spellings)) = spellings else { return Some(whole.to_owned()) };
        let mut parts = whole.split(*spellings);
        let first = parts.next()?;
        let mut joined = first.to_owned();
        for part in parts {
            if part.len() != 3 || !(1..=3).contains(&first.len()) {
                return None;
            }
            joined.push_str(part);
        }
        Some(joined)
    }
}

/// A sign, if the text begins with one, and the rest. A minus may be a real one.
fn sign_of(text: &str) -> (&'static str, &str) {
    for (written, sign) in [("-", "-"), ("\u{2212}", "-"), ("+", "")] {
        if let Some(rest) = text.strip_prefix(written) {
            return (sign, rest.trim_start());
        }
    }
    ("", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(decimal: char, thousands: Option<char>, unit: &str) -> NumberFormat {
        NumberFormat { decimal, thousands, unit: (!unit.is_empty()).then(|| unit.to_owned()) }
    }

    #[test]
    fn numbers_by_hand() {
        let german = format(',', Some('.'), "");
        let read = |format: &NumberFormat, texts: &[&str]| -> Vec<Option<f64>> {
            texts.iter().map(|text| format.parse(text)).collect()
        };
        assert_eq!(
            read(&german, &["1.234,5", "1234,5", "-0,25", "7", "12.345.678", "1,5e3", ",5"]),
            [1234.5, 1234.5, -0.25, 7.0, 12_345_678.0, 1500.0, 0.5].map(Some)
        );
        // Three digits stand behind each sign between thousands.
        assert_eq!(read(&german, &["1.5", "1234.567", ".123", "1.23,5", "1,2,3", "", "x", "1,5x", "-"]), [None; 9]);
        let english = format('.', Some(','), "");
        assert_eq!(read(&english, &["1,234.5", "1,234", "1234.5", "0.1"]), [1234.5, 1234.0, 1234.5, 0.1].map(Some));
        assert_eq!(read(&english, &["1,5", "1,23,456"]), [None; 2]);
        let percent = format('.', None, "%");
        assert_eq!(read(&percent, &["12 %", "12%", "12", "-1.5 %"]), [12.0, 12.0, 12.0, -1.5].map(Some));
        let euro = format('.', Some(','), "€");
        assert_eq!(
            read(&euro, &["€3.00", "-€1,003.5", "€-3", "3 €", "\u{2212}3 €"]),
            [3.0, -1003.5, -3.0, 3.0, -3.0].map(Some)
        );
        assert_eq!(read(&format(',', Some(' '), ""), &["1\u{202f}234,5", "1 234"]), [1234.5, 1234.0].map(Some));
        assert_eq!(read(&format('.', Some('\''), ""), &["1’234.5", "1'234"]), [1234.5, 1234.0].map(Some));
        assert_eq!(read(&NumberFormat::default(), &["1e3", "inf", "NaN", "1,5"]), [Some(1000.0), None, None, None]);
    }

    #[test]
    fn formats_that_cannot_be_read_are_refused() {
        for (format, expected) in [
            (format(';', None, ""), "column `x`: decimal = `;`: expected a point or a comma"),
            (format('.', Some('.'), ""), "column `x`: thousands = `.`: expected another sign than decimal"),
            (
                format('.', Some('_'), ""),
                "column `x`: thousands = `_`: expected a point, a comma, a blank or an apostrophe",
            ),
            (
                format('.', None, "1x"),
                "column `x`: unit = `1x`: expected a text without digits, signs and blanks around it",
            ),
        ] {
            assert_eq!(format.check("x").unwrap_err().to_string(), expected);
        }
    }
}
