//! Numbers in print: the one function that turns a bound into decimal digits.

/// Which way a number goes when it is printed with fewer digits than it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Up: for upper bounds, such as ε. A guarantee must not shrink in print.
    Up,
    /// Down: for lower bounds.
    Down,
    /// To the nearest: for what guarantees nothing, such as an ε recomputed the way a paper did.
    Nearest,
}

/// `value` with this many decimals, rounded in this direction; `∞` for infinity.
///
/// **Guarantee.** What is printed, read back as an `f64`, is never below `value` under
/// [`Rounding::Up`], never above it under [`Rounding::Down`], and within one unit of the last
/// decimal of it.
///
/// **Example**
/// ```
/// use dp_accounting::{Rounding, decimal};
/// assert_eq!(decimal(3.186_01, 3, Rounding::Up), "3.187");
/// assert_eq!(decimal(3.186_99, 3, Rounding::Down), "3.186");
/// assert_eq!(decimal(3.4, 2, Rounding::Up), "3.40");
/// assert_eq!(decimal(f64::INFINITY, 2, Rounding::Up), "∞");
/// ```
pub fn decimal(value: f64, decimals: usize, rounding: Rounding) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "∞".to_owned() } else { "-∞".to_owned() };
    }
    // Correctly rounded to the nearest decimal, hence at most one unit away from the one that is
    // asked for.
    let nearest = format!("{value:.decimals$}");
    let printed: f64 = nearest.parse().unwrap_or(value);
    match rounding {
        Rounding::Up if printed < value => one_unit_on(&nearest, value > 0.0),
        Rounding::Down if printed > value => one_unit_on(&nearest, value < 0.0),
        Rounding::Up | Rounding::Down | Rounding::Nearest => nearest,
    }
}

/// `value` with one digit before the point, this many after it, and an exponent, rounded in this
/// direction; `0` for 0 and `∞` for infinity.
///
/// **Guarantee.** That of [`decimal`].
///
/// **Example**
/// ```
/// use dp_accounting::{Rounding, scientific};
/// assert_eq!(scientific(4.999_91e-5, 3, Rounding::Up), "5.000e-5");
/// assert_eq!(scientific(9.999_91e-6, 3, Rounding::Up), "1.000e-5");
/// assert_eq!(scientific(4.999_91e-5, 3, Rounding::Down), "4.999e-5");
/// ```
pub fn scientific(value: f64, decimals: usize, rounding: Rounding) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.is_infinite() {
        return decimal(value, decimals, rounding);
    }
    let nearest = format!("{value:.decimals$e}");
    let printed: f64 = nearest.parse().unwrap_or(value);
    let larger = match rounding {
        Rounding::Up if printed < value => value > 0.0,
        Rounding::Down if printed > value => value < 0.0,
        Rounding::Up | Rounding::Down | Rounding::Nearest => return nearest,
    };
    let Some((mantissa, Ok(exponent))) = nearest.split_once('e').map(|(m, e)| (m, e.parse::<i32>())) else {
        return nearest;
    };
    let (sign, digits) = mantissa.strip_prefix('-').map_or(("", mantissa), |digits| ("-", digits));
    let is_power = |digit: u8| digits.bytes().skip(1).all(|d| d == b'.' || d == digit);
    // Across a power of ten the unit is another one.
    let (digits, exponent) = if larger && digits.starts_with('9') && is_power(b'9') {
        (digits.replace('9', "0").replacen('0', "1", 1), exponent + 1)
    } else if !larger && digits.starts_with('1') && is_power(b'0') {
        (digits.replace(['0', '1'], "9"), exponent - 1)
    } else {
        (one_unit_on(digits, larger), exponent)
    };
    format!("{sign}{digits}e{exponent}")
}

/// A bound in print: [`decimal`], or [`scientific`] with the same number of digits where a decimal
/// would show none.
pub(crate) fn bound(value: f64, decimals: usize, rounding: Rounding) -> String {
    let digits = decimals.saturating_sub(1);
    if value > 0.0 && value < libm::exp10(-(decimals as f64)) {
        scientific(value, digits, rounding)
    } else {
        decimal(value, decimals, rounding)
    }
}

/// The decimal whose magnitude is one unit of the last digit larger, or smaller.
fn one_unit_on(text: &str, larger: bool) -> String {
    let (from, to, turned) = if larger { (b'9', b'0', 1) } else { (b'0', b'9', -1_i8) };
    let mut bytes = text.as_bytes().to_vec();
    for byte in bytes.iter_mut().rev().filter(|byte| byte.is_ascii_digit()) {
        if *byte == from {
            *byte = to;
        } else {
            *byte = byte.wrapping_add_signed(turned);
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    // All nines: a digit more. A magnitude of 0 is never asked to shrink, since nothing lies below
    // it.
    let sign = usize::from(bytes.first() == Some(&b'-'));
    bytes.insert(sign, b'1');
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(decimal(9.999_1, 3, Rounding::Up), "10.000");
        assert_eq!(decimal(0.000_01, 3, Rounding::Up), "0.001");
        assert_eq!(decimal(0.000_01, 3, Rounding::Down), "0.000");
        assert_eq!(decimal(10.999_9, 3, Rounding::Down), "10.999");
        assert_eq!(decimal(99.6, 0, Rounding::Up), "100");
        assert_eq!(decimal(99.4, 0, Rounding::Up), "100");
        assert_eq!(decimal(-1.000_4, 3, Rounding::Up), "-1.000");
        assert_eq!(decimal(-1.000_4, 3, Rounding::Down), "-1.001");
        assert_eq!(decimal(-0.999_6, 3, Rounding::Up), "-0.999");
        assert_eq!(decimal(3.41, 2, Rounding::Nearest), "3.41");
        assert_eq!(decimal(0.0, 2, Rounding::Up), "0.00");
        assert!(decimal(f64::NAN, 2, Rounding::Up).contains("NaN"));
    }

    /// A number that was printed with enough digits is printed the same again.
    #[test]
    fn decimals_that_fit_stay() {
        for hundredths in 0..2_000_u32 {
            let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            let value: f64 = text.parse().unwrap();
            for rounding in [Rounding::Up, Rounding::Down, Rounding::Nearest] {
                assert_eq!(decimal(value, 2, rounding), text);
            }
        }
    }

    #[test]
    fn exponents_by_hand() {
        assert_eq!(scientific(1.000_01e-5, 3, Rounding::Down), "1.000e-5");
        assert_eq!(scientific(0.999_96e-5, 3, Rounding::Down), "9.999e-6");
        assert_eq!(scientific(9.999_6e-300, 3, Rounding::Up), "1.000e-299");
        assert_eq!(scientific(f64::from_bits(1), 3, Rounding::Up), "4.941e-324");
        assert_eq!(scientific(-1.000_4, 3, Rounding::Up), "-1.000e0");
        assert_eq!(scientific(0.0, 3, Rounding::Up), "0");
        assert_eq!(scientific(f64::INFINITY, 3, Rounding::Up), "∞");
        assert_eq!(bound(4.2e-5, 4, Rounding::Up), "4.200e-5");
        assert_eq!(bound(1.01e-4, 4, Rounding::Up), "0.0002");
        assert_eq!(bound(0.0, 4, Rounding::Up), "0.0000");
    }

    proptest! {
        #[test]
        fn exponents_stay_bounds(log in -300.0..300.0_f64, decimals in 0..9_usize) {
            let value = libm::exp10(log);
            let unit = libm::exp10(-(decimals as f64)) * value * (1.0 + 1e-6);
            let read = |rounding| scientific(value, decimals, rounding).parse::<f64>().unwrap();
            prop_assert!(read(Rounding::Up) >= value && read(Rounding::Up) - value <= unit);
            prop_assert!(read(Rounding::Down) <= value && value - read(Rounding::Down) <= unit);
        }

        #[test]
        fn bounds_stay_bounds(value in -1e6..1e6_f64, decimals in 0..9_usize) {
            let unit = 0.1_f64.powf(decimals as f64);
            // A decimal of many digits is itself rounded when it is read.
            let read_error = f64::EPSILON * value.abs();
            let read = |rounding| decimal(value, decimals, rounding).parse::<f64>().unwrap();
            prop_assert!(read(Rounding::Up) >= value && read(Rounding::Up) - value <= unit * (1.0 + 1e-6) + read_error);
            prop_assert!(read(Rounding::Down) <= value && value - read(Rounding::Down) <= unit * (1.0 + 1e-6) + read_error);
            prop_assert!((read(Rounding::Nearest) - value).abs() <= 0.5 * unit * (1.0 + 1e-6) + read_error);
        }
    }
}
