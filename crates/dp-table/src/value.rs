//! The meaning of a text in a table, in whatever spelling.

use std::cmp::Ordering;

/// The meaning of a text: two texts are one value if and only if their meanings are equal.
///
/// Programs write one value in several ways. A whole number is `1` in one file and `1.0` in the
/// next, once a column of it has a gap; a truth value is `true`, `True` or `TRUE`. Everything that
/// compares a table's texts with declared ones compares their meanings.
///
/// - A number is an exact decimal: `1`, `1.0`, `+1`, `1e0` and `10E-1` are one. Nothing is rounded,
///   so 2⁵³ and 2⁵³ + 1 differ, and `1e400` is a number.
/// - A number with a zero before another digit, such as `01`, is a text: a code.
/// - Any other text means itself.
///
/// Numbers come before truth values and these before texts, each in their own order.
///
/// ```
/// use dp_table::Value;
/// assert_eq!(Value::of("1.0"), Value::of("+1"));
/// assert_eq!(Value::of("True"), Value::of("true"));
/// assert_ne!(Value::of("01"), Value::of("1"));
/// assert!(Value::of("2") < Value::of("10"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value<'a> {
    /// A number.
    Number(Decimal),
    /// A truth value.
    Truth(bool),
    /// Another text.
    Text(&'a str),
}

/// An exact decimal number: `0.d₁d₂… · 10^exponent`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    is_negative: bool,
    /// Without zeros at either end; empty for 0, which has no sign and the exponent 0.
    digits: String,
    exponent: i64,
}

/// Spellings of the truth values.
const TRUE: [&str; 3] = ["true", "True", "TRUE"];
const FALSE: [&str; 3] = ["false", "False", "FALSE"];

impl<'a> Value<'a> {
    /// The meaning of a text without blanks around it.
    pub fn of(text: &'a str) -> Self {
        match text {
            _ if TRUE.contains(&text) => Self::Truth(true),
            _ if FALSE.contains(&text) => Self::Truth(false),
            _ if is_code(text) => Self::Text(text),
            _ => Decimal::of(text).map_or(Self::Text(text), Self::Number),
        }
    }

    /// The meanings of each value of a list. If the list holds only truth values, 1 and 0 included,
    /// each value means both the number and the truth value. In any other list each value has one
    /// meaning.
    ///
    /// ```
    /// use dp_table::Value;
    /// let [one, yes] = [Value::of("1"), Value::of("true")];
    /// assert_eq!(Value::all_of(&["0", "1"])[1], [one.clone(), yes]);
    /// assert_eq!(Value::all_of(&["0", "1", "2"])[1], [one]);
    /// ```
    pub fn all_of<S: AsRef<str>>(values: &'a [S]) -> Vec<Vec<Self>> {
        let meanings: Vec<Self> = values.iter().map(|text| Self::of(text.as_ref())).collect();
        let truths: Option<Vec<bool>> = meanings.iter().map(Self::truth).collect();
        let Some(truths) = truths else { return meanings.into_iter().map(|meaning| vec![meaning]).collect() };
        let both = |truth| vec![Self::Number(Decimal::of_truth(truth)), Self::Truth(truth)];
        truths.into_iter().map(both).collect()
    }

    /// All spellings of a truth value.
    pub fn spellings_of_truth(truth: bool) -> [&'static str; 3] {
        if truth { TRUE } else { FALSE }
    }

    /// The meaning of a text that identifies somebody: `017` is the number 17 too, because a
    /// program that reads identifiers as numbers drops their zeros.
    pub(crate) fn of_identifier(text: &'a str) -> Self {
        if is_code(text) { Decimal::of(text).map_or(Self::Text(text), Self::Number) } else { Self::of(text) }
    }

    /// The truth value that it may stand for.
    fn truth(&self) -> Option<bool> {
        match self {
            Self::Truth(truth) => Some(*truth),
            Self::Number(number) => [false, true].into_iter().find(|&truth| *number == Decimal::of_truth(truth)),
            Self::Text(_) => None,
        }
    }

    /// A text that only equal values have.
    pub(crate) fn canonical(&self) -> String {
        match self {
            Self::Number(Decimal { is_negative, digits, exponent }) => {
                let sign = if *is_negative { "-" } else { "" };
                format!("{sign}0.{digits}e{exponent}")
            }
            Self::Truth(truth) => truth.to_string(),
            Self::Text(text) => (*text).to_owned(),
        }
    }
}

impl Decimal {
    /// 1 or 0.
    fn of_truth(truth: bool) -> Self {
        let digits = if truth { "1" } else { "" };
        Self { is_negative: false, digits: digits.into(), exponent: truth.into() }
    }

    /// The number in double precision where at most 15 digits and an exponent of two digits make
    /// it, so that no other such number has the same double.
    pub fn as_double(&self) -> Option<f64> {
        let is_short = self.digits.len() <= 15 && (-99..=99).contains(&self.exponent);
        is_short.then(|| Value::Number(self.clone()).canonical().parse().ok()).flatten()
    }

    /// A number in decimal digits, with a point and an exponent if it has them; `None` for other
    /// texts, and for an exponent that no machine writes.
    fn of(text: &str) -> Option<Self> {
        let is_negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            // `+` and `-` are for `parse` to judge, which refuses an empty text.
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let all = [whole, fraction].concat();
        let digits = all.trim_start_matches('0');
        let length = |digits: &str| i64::try_from(digits.len()).ok();
        let n_before = length(whole)? + length(digits)? - length(&all)?;
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self { is_negative: false, digits: String::new(), exponent: 0 });
        }
        Some(Self { is_negative, digits: digits.into(), exponent: exponent.checked_add(n_before)? })
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.is_negative, number.digits.is_empty()) {
            (true, _) => -1,
            (false, true) => 0,
            (false, false) => 1,
        };
        let size = |number: &Self, other: &Self| {
            number.exponent.cmp(&other.exponent).then_with(|| number.digits.cmp(&other.digits))
        };
        sign(self).cmp(&sign(other)).then_with(|| if self.is_negative { size(other, self) } else { size(self, other) })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether a text has a zero before another digit of its whole part.
fn is_code(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned.as_bytes(), [b'0', b'0'..=b'9', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each list is one value, and no two lists are.
    const VALUES: [&[&str]; 26] = [
        &["-1e400"],
        &["-2.50", "-2.5", "-25E-1", "-0.25e+01"],
        &["-1", "-1.0", "-1e0"],
        &["0", "-0", "+0.00", ".0", "0.", "0e5", "-0E-300"],
        &["1e-400"],
        &["0.1", ".1", "1e-1", "1E-01", "0.10"],
        &["0.10000000149011612"],
        &["1", "1.0", "+1", "1.", "1e0", "1E+00", "10e-1", "0.1e1"],
        &["2"],
        &["10", "1e1", "10.0"],
        &["9007199254740992", "9007199254740992.0"],
        &["9007199254740993", "9.007199254740993e15"],
        &["18446744073709551615"],
        &["18446744073709551616"],
        &["1e400", "10e399"],
        &["false", "False", "FALSE"],
        &["true", "True", "TRUE"],
        &[""],
        &["+"],
        &["."],
        &["01"],
        &["1e"],
        &["1e99999999999999999999"],
        &["1e9223372036854775807"],
        &["inf"],
        &["tRUE"],
    ];

    #[test]
    fn spellings_of_one_value_are_equal_and_others_are_not() {
        for (place, texts) in VALUES.iter().enumerate() {
            assert!(texts.iter().all(|text| Value::of(text) == Value::of(texts[0])), "{texts:?}");
            for others in &VALUES[place + 1..] {
                assert_ne!(Value::of(texts[0]), Value::of(others[0]));
                assert_ne!(Value::of(texts[0]).canonical(), Value::of(others[0]).canonical());
            }
        }
        for text in ["NaN", "infinity", "1_000", "1,000", "0x1", "1.2.3", "--1", "1e1.0", "1e+", "e1", "١", "yes", "00"]
        {
            assert!(matches!(Value::of(text), Value::Text(_)), "{text}");
        }
    }

    #[test]
    fn values_are_in_the_order_of_numbers() {
        let sorted = VALUES[..17].iter().map(|texts| Value::of(texts[0])).collect::<Vec<_>>();
        assert!(sorted.is_sorted_by(|a, b| a < b), "{sorted:?}");
        assert!(Value::of("9") < Value::of("10") && Value::of("15") > Value::of("1.49"));
        assert!(Value::of("TRUE") < Value::of("") && Value::of("a") < Value::of("b"));
    }

    #[test]
    fn short_numbers_have_a_double_of_their_own() {
        let double = |text: &str| match Value::of(text) {
            Value::Number(number) => number.as_double(),
            _ => None,
        };
        assert_eq!(
            ["1.50", "-2e-3", "0", "123456789012345"].map(double),
            [1.5, -0.002, 0.0, 123_456_789_012_345.0].map(Some)
        );
        assert_eq!(["9007199254740993", "1e400", "1e-400", "x"].map(double), [None; 4]);
    }

    #[test]
    fn an_identifier_keeps_no_zeros_before_it() {
        for texts in [&["17", "17.0", "017", "0017", "+017", "1.7e1"][..], &["0", "00", "-00.0"], &["true", "True"]] {
            assert!(texts.iter().all(|text| Value::of_identifier(text) == Value::of_identifier(texts[0])), "{texts:?}");
        }
        assert_ne!(Value::of_identifier("017a"), Value::of_identifier("17a"));
        assert_ne!(Value::of_identifier("1"), Value::of_identifier("true"));
    }
}
