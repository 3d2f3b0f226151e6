//! Numbers as tables print them.

/// A number with a true minus sign, and without one in front of a zero.
///
/// **Example**
/// ```
/// use fair_report::number::{count, fixed, p_value, signed};
/// assert_eq!((fixed(-0.06, 1).as_str(), fixed(-0.04, 1).as_str()), ("−0.1", "0.0"));
/// assert_eq!((signed(0.25, 2).as_str(), p_value(0.000_042).as_str()), ("+0.25", "4.2e-5"));
/// assert_eq!(count(91_650), "91\u{2009}650");
/// ```
pub fn fixed(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let is_zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if value < 0.0 && !is_zero { format!("−{digits}") } else { digits }
}

/// A number that shows its sign unless it rounds to zero.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if text.starts_with('−') || is_zero { text } else { format!("+{text}") }
}

/// A probability: `0.031`, `4.2e-5` when small.
pub fn p_value(p: f64) -> String {
    if p >= 0.001 || p == 0.0 { format!("{p:.3}") } else { format!("{p:.1e}") }
}

/// A whole number with thin spaces between thousands.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs() {
        assert_eq!(fixed(-0.04, 1), "0.0");
        assert_eq!(fixed(-0.06, 1), "−0.1");
        assert_eq!(signed(0.06, 1), "+0.1");
        assert_eq!(signed(-0.06, 1), "−0.1");
        assert_eq!(signed(0.04, 1), "0.0");
    }

    #[test]
    fn probabilities_and_counts() {
        assert_eq!(p_value(0.031_25), "0.031");
        assert_eq!(p_value(0.000_042), "4.2e-5");
        assert_eq!(count(91_650), "91\u{2009}650");
        assert_eq!(count(7), "7");
    }
}
