//! Vectors of numbers: embeddings and the like, bounded by a declared norm or range.

use serde::{Deserialize, Serialize};

use crate::error::TableError;

/// More numbers than this are a mistake.
pub(crate) const MOST_NUMBERS: usize = 16_384;

/// A norm that is larger by this share alone was rounded, and is not worth a remark.
const ROUNDING: f64 = 1e-4;

/// The declared bound on a vector.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorBound {
    /// The largest Euclidean norm: a longer vector is shortened to it.
    Norm(f64),
    /// The range of every number: one beyond it is set to the nearer end.
    Range {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
}

impl VectorBound {
    /// # Errors
    /// [`TableError::Schema`] for a length or a bound out of range.
    pub(crate) fn check(self, column: &str, length: usize) -> Result<(), TableError> {
        let refuse = |reason: String| Err(TableError::Schema { column: column.into(), reason });
        if !(1..=MOST_NUMBERS).contains(&length) {
            return refuse(format!("length = {length}: expected 1 to {MOST_NUMBERS}"));
        }
        let is_single = |number: f64| number.abs() <= f64::from(f32::MAX);
        match self {
            Self::Norm(norm) if !(norm >= f64::from(f32::MIN_POSITIVE) && is_single(norm)) => {
                refuse(format!("norm = {norm}: expected a number above 0, up to 3.4e38"))
            }
            Self::Range { low, high } if !(low < high && is_single(low) && is_single(high)) => {
                refuse(format!("bounds {low} and {high} are not two finite numbers, the lower one first"))
            }
            _ => Ok(()),
        }
    }

    /// Brings a vector into the unit ball: a norm by division, a range by mapping each number to
    /// [−1, 1] and dividing by the root of their number. Returns whether it was beyond the bound.
    ///
    /// **Guarantee.** The norm of the outcome is at most 1, up to rounding.
    pub(crate) fn apply(self, vector: &mut [f64]) -> bool {
        match self {
            Self::Norm(norm) => {
                let found = vector.iter().map(|number| number * number).sum::<f64>().sqrt();
                // Squares of huge numbers may be infinite; then each number is too small to tell.
                let by = found.max(norm);
                for number in vector.iter_mut() {
                    *number /= by;
                }
                found > norm * (1.0 + ROUNDING)
            }
            Self::Range { low, high } => {
                let root = (vector.len() as f64).sqrt();
                let mut is_beyond = false;
                for number in vector {
                    is_beyond |= !(low..=high).contains(number);
                    *number = (2.0 * (number.clamp(low, high) - low) / (high - low) - 1.0) / root;
                }
                is_beyond
            }
        }
    }
}

/// Reads the numbers of a list: between brackets or not, with commas, semicolons or blanks between
/// them. `None` if one of them is no finite number.
pub(crate) fn parse(text: &str, numbers: &mut Vec<f64>) -> Option<()> {
    numbers.clear();
    let inner = match (text.strip_prefix('['), text.strip_suffix(']')) {
        (Some(_), Some(_)) if text.len() > 1 => &text[1..text.len() - 1],
        (None, None) => text,
        _ => return None,
    };
    let sign = [b',', b';'].into_iter().find(|sign| inner.as_bytes().contains(sign));
    let mut push = |number: &str| {
        let number: f64 = number.trim().parse().ok()?;
        number.is_finite().then(|| numbers.push(number))
    };
    match sign {
        Some(sign) => inner.split(char::from(sign)).try_for_each(&mut push),
        None => inner.split_whitespace().try_for_each(&mut push),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_by_hand() {
        let read = |text: &str| {
            let mut numbers = Vec::new();
            parse(text, &mut numbers).map(|()| numbers)
        };
        for text in ["[1, -0.5,2e1]", "1;-0.5;20", "[ 1 -0.5\n 20 ]", "1 -0.5 20"] {
            assert_eq!(read(text), Some(vec![1.0, -0.5, 20.0]), "{text}");
        }
        assert_eq!(read("[]"), Some(Vec::new()));
        for text in ["[1, 2", "1, x", "[1, NaN]", "[1,,2]", "[1, inf]", "[[1]]"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    /// (3, 4) has norm 5. Of the range [0, 10], 5 is the middle and 12 beyond the end.
    #[test]
    fn bounds_by_hand() {
        let apply = |bound: VectorBound, vector: &[f64]| {
            let mut vector = vector.to_vec();
            (bound.apply(&mut vector), vector)
        };
        assert_eq!(apply(VectorBound::Norm(10.0), &[3.0, 4.0]), (false, vec![0.3, 0.4]));
        assert_eq!(apply(VectorBound::Norm(1.0), &[3.0, 4.0]), (true, vec![0.6, 0.8]));
        assert_eq!(apply(VectorBound::Norm(4.9999), &[3.0, 4.0]), (false, vec![0.6, 0.8]));
        assert_eq!(apply(VectorBound::Norm(1.0), &[1e200, 1e200]), (true, vec![0.0, 0.0]));
        let (is_beyond, vector) = apply(VectorBound::Range { low: 0.0, high: 10.0 }, &[5.0, 12.0, 0.0, 10.0]);
        assert_eq!((is_beyond, vector), (true, vec![0.0, 0.5, -0.5, 0.5]));
    }

    #[test]
    fn bounds_out_of_range_are_refused() {
        let refusal = |bound: VectorBound, length| bound.check("x", length).unwrap_err().to_string();
        assert_eq!(refusal(VectorBound::Norm(1.0), 0), "column `x`: length = 0: expected 1 to 16384");
        assert_eq!(
            refusal(VectorBound::Norm(f64::NAN), 2),
            "column `x`: norm = NaN: expected a number above 0, up to 3.4e38"
        );
        let range = VectorBound::Range { low: 1.0, high: 1.0 };
        assert_eq!(refusal(range, 2), "column `x`: bounds 1 and 1 are not two finite numbers, the lower one first");
    }
}
