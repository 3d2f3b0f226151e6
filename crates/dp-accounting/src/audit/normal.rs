//! The normal distribution to 200 bits.

use super::ball::Ball;

/// `φ(t)`.
fn density(t: &Ball) -> Ball {
    (-(t.clone() * t.clone()) * Ball::exact(0.5)).exp() / (Ball::exact(2.0) * Ball::pi()).sqrt()
}

/// Probability that a standard normal exceeds `t`.
pub(super) fn survival(t: &Ball) -> Ball {
    if t.is_negative() {
        return Ball::exact(1.0) - survival(&-t.clone());
    }
    let size = t.to_f64();
    if size < 3.0 {
        // 1/2 - φ(t)·Σ t^(2k+1)/(2k+1)!!.
        let square = t.clone() * t.clone();
        let (mut term, mut sum, mut k) = (t.clone(), t.clone(), 1_u64);
        while term.to_f64() > 1e-80 || k < 40 {
            k += 2;
            term = term * square.clone() / Ball::from_count(k);
            sum = sum + term.clone();
            if k > 2_000 {
                break;
            }
        }
        // From here on each term is below half of the one before.
        sum = sum + Ball::within_power_of_two(-256);
        return Ball::exact(0.5) - density(t) * sum;
    }
    // The continued fraction t + 1/(t + 2/(t + …)): two successive convergents enclose the Mills
    // ratio.
    let depth = (0.5 * (190.0 / (2.0 * size)).powi(2)) as u64 + 24;
    let convergent = |depth: u64| (1..=depth).rev().fold(t.clone(), |inner, k| t.clone() + Ball::from_count(k) / inner);
    density(t) / convergent(depth).hull(&convergent(depth + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_expansions_agree_where_they_meet_and_with_known_values() {
        let (series, fraction) = (survival(&Ball::exact(2.999_999_999_999)), survival(&Ball::exact(3.0)));
        // The difference is φ(3)·1e-12.
        let slope = (series.to_f64() - fraction.to_f64()) / 1e-12;
        assert!((slope / 0.004_431_848_4 - 1.0).abs() < 1e-3, "{slope}");
        // mpmath 1.3, 60 digits: erfc(t/√2)/2.
        for (t, expected) in [
            (0.5, 0.308_537_538_725_986_9),
            (3.5, 2.326_290_790_355_250_4e-4),
            (38.0, 2.885_428_35e-316),
            (-1.0, 0.841_344_746_068_542_9),
        ] {
            assert!((survival(&Ball::exact(t)).to_f64() / expected - 1.0).abs() < 1e-7, "{t}");
        }
        // Known to far more digits than `f64` has.
        let half = survival(&Ball::exact(0.0)) - Ball::exact(0.5);
        assert!(half.is_certainly_below(&Ball::exact(1e-60)) && (-half).is_certainly_below(&Ball::exact(1e-60)));
    }
    #[test]
    fn radii_stay_small() {
        for i in -80..400 {
            let value = survival(&(Ball::exact(f64::from(i)) / Ball::exact(10.0)));
            let (one, little) = (Ball::exact(1.0), Ball::exact(1e-45));
            let (above, below) = (value.clone() * (one.clone() + little.clone()), value * (one - little));
            assert!(below.is_certainly_below(&above), "at {i} tenths");
        }
    }
}
