//! Tails of sums of binomial counts and Gaussian noise.

/// Steps of a search for a root; it ends after about ten.
pub(super) const MAX_STEPS: usize = 100;

/// A binomial count around its mean, plus Gaussian noise, times a scale.
pub(super) struct Term {
    pub(super) scale: f64,
    /// Records.
    pub(super) n: f64,
    /// Probability that one counts.
    pub(super) rate: f64,
    /// Variance of the noise, before it is scaled.
    pub(super) noise: f64,
}

impl Term {
    /// The cumulant generating function at `u` and its first two derivatives.
    fn cumulants(&self, u: f64) -> [f64; 3] {
        let Self { scale, n, rate, noise } = *self;
        let s = scale * u;
        // ln(1 − r + r·e^s), from the side that does not overflow.
        let (log, tilted) = if s <= 0.0 {
            let e = rate * s.exp_m1();
            (e.ln_1p(), rate * s.exp() / (1.0 + e))
        } else {
            let e = (1.0 - rate) * (-s).exp_m1();
            (s + e.ln_1p(), rate / (1.0 + e))
        };
        [
            n * (log - rate * s) + 0.5 * noise * s * s,
            scale * (n * (tilted - rate) + noise * s),
            scale * scale * (n * tilted * (1.0 - tilted) + noise),
        ]
    }
}

fn cumulants(terms: &[Term], u: f64) -> [f64; 3] {
    terms.iter().map(|term| term.cumulants(u)).fold([0.0; 3], |sum, own| [0, 1, 2].map(|i| sum[i] + own[i]))
}

/// How far above 0 a sum of independent terms is that came out as `sum`: the standard normal
/// deviate of the same upper tail, and some deviate below 0 where `sum` is.
///
/// # Source
/// Lugannani and Rice 1980 in the form of Barndorff-Nielsen 1986, `w + ln(v/w)/w`.
pub(super) fn deviate(terms: &[Term], sum: f64) -> f64 {
    let variance = cumulants(terms, 0.0)[2];
    if variance <= 0.0 {
        // Nothing varies.
        return if sum > 0.0 { f64::INFINITY } else { 0.0 };
    }
    if sum <= 0.0 {
        // Nobody asks for this tail: the normal deviate is monotone, and enough.
        return sum / variance.sqrt();
    }
    let Some(u) = saddlepoint(terms, sum, sum / variance) else { return f64::INFINITY };
    let [k, _, k2] = cumulants(terms, u);
    let w = (2.0 * (u * sum - k)).max(0.0).sqrt();
    let v = u * k2.sqrt();
    // Near the mean the correction is a quotient of two small numbers.
    if w < 0.05 || v <= 0.0 { w } else { w + (v / w).ln() / w }
}

/// The `u > 0` at which the first derivative is `sum`; none where the terms cannot add up to it.
fn saddlepoint(terms: &[Term], sum: f64, start: f64) -> Option<f64> {
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut u = start;
    for _ in 0..MAX_STEPS {
        let [_, k1, k2] = cumulants(terms, u);
        let error = k1 - sum;
        if error.abs() <= 1e-10 * sum {
            return Some(u);
        }
        let end = if error > 0.0 { &mut high } else { &mut low };
        *end = u;
        // Newton's step, or a step that keeps the root between two ends.
        let step = u - error / k2;
        u = if low < step && step < high {
            step
        } else if high.is_finite() {
            f64::midpoint(low, high)
        } else {
            2.0 * u
        };
        if !u.is_finite() || u > 1e12 * start {
            return None;
        }
    }
    Some(u)
}

/// The root of a falling function that is positive at `low` and not at `high`, from its left: an
/// interval is rather too wide.
///
/// # Source
/// The Illinois method: Dowell and Jarratt 1971.
pub(super) fn root(f: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
    // Infinite deviates would not be interpolated.
    let f = |x: f64| f(x).min(1e3);
    let (mut a, mut b) = (low, high);
    let (mut at_a, mut at_b) = (f(a), f(b));
    let mut kept = 0;
    for _ in 0..MAX_STEPS {
        if b - a <= 1e-9 || at_b >= 0.0 {
            break;
        }
        let guess = (a * at_b - b * at_a) / (at_b - at_a);
        let x = if a < guess && guess < b { guess } else { f64::midpoint(a, b) };
        let at = f(x);
        if at > 0.0 {
            (a, at_a) = (x, at);
            at_b *= if kept == 1 { 0.5 } else { 1.0 };
            kept = 1;
        } else {
            (b, at_b) = (x, at);
            at_a *= if kept == -1 { 0.5 } else { 1.0 };
            kept = -1;
        }
        if at.abs() < 1e-9 {
            return x;
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::normal_upper_tail;

    /// The exact upper tail of `X − n·r` plus noise, added up over X.
    fn tail(n: i32, rate: f64, noise: f64, sum: f64) -> f64 {
        let mut probability = (1.0 - rate).powi(n);
        let mut tail = 0.0;
        for x in 0..=n {
            tail += probability * normal_upper_tail((sum - (f64::from(x) - f64::from(n) * rate)) / noise.sqrt());
            probability *= f64::from(n - x) / f64::from(x + 1) * rate / (1.0 - rate);
        }
        tail
    }

    #[test]
    fn tails_are_those_of_the_convolution() {
        for (n, rate, noise) in [(30, 0.01, 2.0), (100, 0.5, 9.0), (500, 0.01, 1.0), (200, 0.1, 50.0)] {
            for multiple in [1.0, 2.0, 3.0, 4.0] {
                let sum = multiple * (f64::from(n) * rate * (1.0 - rate) + noise).sqrt();
                let term = Term { scale: 1.0, n: f64::from(n), rate, noise };
                let (found, exact) = (normal_upper_tail(deviate(&[term], sum)), tail(n, rate, noise, sum));
                assert!((found / exact - 1.0).abs() < 0.02, "{n} {rate} {noise} {multiple}: {found} {exact}");
            }
        }
    }

    #[test]
    fn noise_alone_is_normal_and_nothing_is_certain() {
        let noise = |scale| Term { scale, n: 0.0, rate: 0.5, noise: 4.0 };
        assert!((deviate(&[noise(1.0), noise(-1.0)], 8.0_f64.sqrt() * 1.5) - 1.5).abs() < 1e-9);
        let nothing = || Term { scale: 1.0, n: 10.0, rate: 1.0, noise: 0.0 };
        assert_eq!(deviate(&[nothing()], 0.1), f64::INFINITY);
        assert_eq!(deviate(&[nothing()], -0.1), 0.0);
        // Ten records cannot be six more than five.
        assert_eq!(deviate(&[Term { scale: 1.0, n: 10.0, rate: 0.5, noise: 0.0 }], 6.0), f64::INFINITY);
    }

    #[test]
    fn roots_are_found_from_the_left() {
        let found = root(|x| 1.0 - x * x, 0.0, 7.0);
        assert!(found <= 1.0 + 1e-9 && found > 1.0 - 1e-6, "{found}");
        let steep = root(|x| if x < 0.3 { f64::INFINITY } else { -1.0 }, 0.0, 1.0);
        assert!(steep <= 0.3 && steep > 0.3 - 1e-6, "{steep}");
    }
}
