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

    /// What a number is printed as with enough digits is printed with no more and no less.
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

    proptest! {
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
