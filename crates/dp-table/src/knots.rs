//! The edges of a number's bins, and its position between them.

use crate::error::TableError;
use crate::schema::Bins;

/// More edges than this are a mistake.
const MOST_BINS: usize = 4096;

/// How much wider the range of growing bins is than their first unit: widths grow by a factor of
/// 991 over the whole range.
const LOG_RANGE: f64 = 990.0;

/// The edges of a column's bins, both bounds included, in single precision: what a model file can
/// compare exactly.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Knots(Vec<f32>);

impl Knots {
    /// # Errors
    /// [`TableError::Schema`] for bounds that are not finite or not ascending, and for edges that
    /// are not ascending strictly within them, also after rounding to single precision.
    pub(crate) fn new(column: &str, low: f64, high: f64, bins: &Bins) -> Result<Self, TableError> {
        let refuse = |reason: String| TableError::Schema { column: column.into(), reason };
        if !(low.is_finite() && high.is_finite() && low < high) {
            return Err(refuse(format!("bounds {low} and {high} are not two finite numbers, the lower one first")));
        }
        if [low, high].iter().any(|bound| !(*bound as f32).is_finite()) {
            return Err(refuse(format!("bounds {low:e} and {high:e}: expected from −3.4e38 to 3.4e38")));
        }
        let between = |n: usize, share: &dyn Fn(f64) -> f64| -> Vec<f64> {
            (1..n).map(|edge| low + (high - low) * share(edge as f64 / n as f64)).collect()
        };
        let inner = match bins {
            Bins::Equal(n @ 1..=MOST_BINS) => between(*n, &|share| share),
            Bins::Log(n @ 1..=MOST_BINS) => between(*n, &|share| ((1.0 + LOG_RANGE).powf(share) - 1.0) / LOG_RANGE),
            Bins::SignedLog(n @ 1..=MOST_BINS) => {
                if !(low..=high).contains(&0.0) {
                    return Err(refuse(format!("bins grow to both sides of 0: {low} and {high} do not include it")));
                }
                let side = high.max(-low);
                let place = |value: f64| (1.0 + LOG_RANGE * (value.abs() / side)).ln().copysign(value);
                let (first, last) = (place(low), place(high));
                let edge = |share: f64| {
                    let place = first + (last - first) * share;
                    (side * (place.abs().exp() - 1.0) / LOG_RANGE).copysign(place)
                };
                (1..*n).map(|at| edge(at as f64 / *n as f64)).collect()
            }
            Bins::Equal(n) | Bins::Log(n) | Bins::SignedLog(n) => {
                return Err(refuse(format!("bins = {n}: expected 1 to {MOST_BINS}")));
            }
            Bins::Edges(edges) if edges.len() < MOST_BINS => edges.clone(),
            Bins::Edges(edges) => {
                return Err(refuse(format!("edges = {}: expected up to {}", edges.len(), MOST_BINS - 1)));
            }
        };
        let knots: Vec<f32> =
            std::iter::once(low).chain(inner).chain(std::iter::once(high)).map(|edge| edge as f32).collect();
        let ascends = |pair: &[f32]| pair[0] < pair[1] && (pair[1] - pair[0]).is_normal();
        match knots.windows(2).position(|pair| !ascends(pair)) {
            None if knots.iter().all(|knot| knot.is_finite()) => Ok(Self(knots)),
            found => {
                let at = found.unwrap_or(0);
                let (a, b) = (knots[at], knots[at + 1]);
                Err(refuse(format!("edges {a} and {b} do not ascend between the bounds in single precision")))
            }
        }
    }

    pub(crate) fn n_bins(&self) -> usize {
        self.0.len() - 1
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// Index of the bin plus the share of it that lies below the value: from 0 at the lower bound
    /// to the number of bins at the upper one.
    pub(crate) fn position(&self, value: f32) -> f32 {
        let (low, high) = (self.0[0], self.0[self.n_bins()]);
        let value = value.clamp(low, high);
        let bin = self.0.partition_point(|knot| *knot <= value).clamp(1, self.n_bins()) - 1;
        let (from, to) = (self.0[bin], self.0[bin + 1]);
        bin as f32 + ((value - from) / (to - from)).min(1.0)
    }

    /// Whether the bounds contain it.
    pub(crate) fn contain(&self, value: f32) -> bool {
        (self.0[0]..=self.0[self.n_bins()]).contains(&value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn positions_by_hand() {
        let knots = Knots::new("x", 0.0, 10.0, &Bins::Edges(vec![1.0, 5.0])).unwrap();
        for (value, position) in [(-1.0, 0.0), (0.5, 0.5), (1.0, 1.0), (2.0, 1.25), (5.0, 2.0), (7.5, 2.5), (99.0, 3.0)]
        {
            assert_eq!(knots.position(value), position, "{value}");
        }
    }

    /// (991^(1/2) − 1) / 990 = 0.030788.
    #[test]
    fn growing_bins() {
        let knots = Knots::new("x", 0.0, 1000.0, &Bins::Log(2)).unwrap();
        assert!((knots.as_slice()[1] - 30.788).abs() < 1e-3, "{knots:?}");
    }

    /// As wide to either side: (991^(1/2) − 1) / 990 of it.
    #[test]
    fn bins_that_grow_to_both_sides() {
        let knots = Knots::new("x", -1000.0, 1000.0, &Bins::SignedLog(4)).unwrap();
        let expected = [-1000.0, -30.788, 0.0, 30.788, 1000.0];
        assert!(knots.as_slice().iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-2), "{knots:?}");
        // From 0 on they are the bins that grow from there.
        let [one, other] = [Bins::SignedLog(5), Bins::Log(5)].map(|bins| Knots::new("x", 0.0, 70.0, &bins).unwrap());
        assert!(one.as_slice().iter().zip(other.as_slice()).all(|(a, b)| (a - b).abs() < 1e-3), "{one:?} {other:?}");
    }

    #[test]
    fn errors_name_the_column() {
        let error = |low, high, bins| Knots::new("x", low, high, &bins).unwrap_err().to_string();
        insta::assert_snapshot!(
            error(1.0, 1.0, Bins::Equal(4)),
            @"column `x`: bounds 1 and 1 are not two finite numbers, the lower one first"
        );
        insta::assert_snapshot!(error(0.0, 1.0, Bins::Equal(0)), @"column `x`: bins = 0: expected 1 to 4096");
        insta::assert_snapshot!(
            error(0.0, 1.0, Bins::Edges(vec![0.5, 0.2])),
            @"column `x`: edges 0.5 and 0.2 do not ascend between the bounds in single precision"
        );
        for (low, high) in
            [(f64::NAN, 1.0), (0.0, f64::INFINITY), (0.0, 1e39), (-1e308, 1e308), (1e30, 1e30 + 1.0), (0.0, 1e-44)]
        {
            assert!(Knots::new("x", low, high, &Bins::Equal(4)).is_err(), "{low} {high}");
        }
    }

    proptest! {
        #[test]
        fn positions_ascend_and_stay_in_range(low in -1e6..1e6f64, width in 1.0..1e6f64, n in 1..64usize, a: f32, b: f32) {
            for bins in [Bins::Equal(n), Bins::Log(n), Bins::SignedLog(n)] {
                let Ok(knots) = Knots::new("x", low, low + width, &bins) else { continue };
                let (a, b) = (if a.is_nan() { 0.0 } else { a }, if b.is_nan() { 0.0 } else { b });
                let (pa, pb) = (knots.position(a.min(b)), knots.position(a.max(b)));
                prop_assert!(0.0 <= pa && pa <= pb && pb <= n as f32, "{pa} {pb}");
            }
        }
    }
}
