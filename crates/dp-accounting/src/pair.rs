//! Pairs of distributions that dominate a mechanism: what it releases with a record (`P`) and
//! without it (`Q`).

use std::sync::Arc;

use crate::{AccountingError, NeighbouringRelation};

/// A dominating pair. Which of its parts is met is decided by a public coin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    /// Probability of each part, and the part.
    parts: Arc<[(f64, SimplePair)]>,
    /// Whether exchanging `P` and `Q` changes nothing.
    is_symmetric: bool,
    /// ρ for outcomes that are points; infinite where none is known.
    concentration_of_points: f64,
    /// Probability, under `P` or under `Q`, of outcomes that are left out of the points, since they
    /// are next to impossible under the other.
    left_out: f64,
    /// The largest losses, of `P` against `Q` and of `Q` against `P`, of such outcomes.
    losses_left_out: [f64; 2],
}

/// Nothing is left out.
const NONE_LEFT_OUT: [f64; 2] = [f64::NEG_INFINITY; 2];

/// A pair whose likelihood ratio is known everywhere.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SimplePair {
    /// Finitely many outcomes.
    Points(Vec<Point>),
    /// Mixtures of normals of unit variance on a line.
    Normals(Normals),
    /// At `γ ≥ 1`, in both orders, the profile of these mixtures; where their likelihood ratio is
    /// below 1, its mirror image.
    Mirrored(Normals),
}

/// One outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// `ln(P/Q)`.
    pub(crate) loss: f64,
    /// Probability under `P`.
    pub(crate) present: f64,
    /// Probability under `Q`.
    pub(crate) absent: f64,
}

/// `P` and `Q` as mixtures; no mean of `P` is below one of `Q`, so that the likelihood ratio
/// increases.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Normals {
    pub(crate) present: Vec<Component>,
    pub(crate) absent: Vec<Component>,
}

/// A unit normal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Component {
    pub(crate) weight: f64,
    pub(crate) mean: f64,
}

/// Largest number of outcomes of a discrete mechanism.
const MAX_POINTS: f64 = 1e6;

/// Outcomes that are rarer under `P` or under `Q` are left out: as subnormal numbers they would have
/// no digits.
const LEAST: f64 = 1e-300;

/// Standard deviations of a discrete Gaussian beyond which less than e^-680 lies.
const REACH: f64 = 37.0;

impl Pair {
    fn of(part: SimplePair, is_symmetric: bool) -> Self {
        let parts = Arc::from([(1.0, part)]);
        Self {
            parts,
            is_symmetric,
            concentration_of_points: f64::INFINITY,
            left_out: 0.0,
            losses_left_out: NONE_LEFT_OUT,
        }
    }

    /// A list of outcomes; of what it leaves out somebody else takes care.
    pub(crate) fn of_points(points: Vec<Point>) -> Self {
        Self::of(SimplePair::Points(points), false)
    }

    /// Two numbers that tell most pairs apart.
    pub(crate) fn numbers(&self) -> [f64; 2] {
        match self.parts.first() {
            Some((weight, SimplePair::Points(points))) => [*weight, points.last().map_or(0.0, |point| point.loss)],
            Some((weight, SimplePair::Normals(normals) | SimplePair::Mirrored(normals))) => {
                [*weight, normals.present.iter().map(|component| component.mean + component.weight).sum()]
            }
            None => [0.0; 2],
        }
    }

    /// Probability of each part, and the part.
    pub(crate) fn parts(&self) -> &[(f64, SimplePair)] {
        &self.parts
    }

    pub(crate) const fn is_symmetric(&self) -> bool {
        self.is_symmetric
    }

    /// A sum to which a record adds one of several amounts, with public probabilities, under
    /// Gaussian noise.
    pub(crate) fn mixture_of_gaussians(sigma: f64, amounts: &[f64], probabilities: &[f64]) -> Self {
        let (present, absent) = (components(sigma, amounts, probabilities), vec![Component { weight: 1.0, mean: 0.0 }]);
        Self::of(SimplePair::Normals(Normals { present, absent }), false)
    }

    /// The same where the record, or a user's records, are replaced by others that add such amounts
    /// too.
    ///
    /// For every event `A` with probability `a` without any of them, the sum with old records of
    /// total amount `c` is in `A` at most, and with new ones at least, as often as it is in the
    /// half-line with probability `a` if they pull it away in opposite directions, by `c` each. So
    /// no records have a larger profile.
    pub(crate) fn replaced_mixture(sigma: f64, amounts: &[f64], probabilities: &[f64]) -> Self {
        let present = components(sigma, amounts, probabilities);
        let mut absent: Vec<_> =
            present.iter().map(|component| Component { mean: -component.mean, ..*component }).collect();
        absent.reverse();
        Self::of(SimplePair::Normals(Normals { present, absent }), true)
    }

    /// A Poisson-sampled Gaussian whose record is replaced by another.
    pub(crate) fn replaced_in_poisson_batch(q: f64, sigma: f64) -> Self {
        Self::replaced_mixture(sigma, &[0.0, 1.0], &[1.0 - q, q])
    }

    /// A Poisson-sampled Gaussian on batches that are cut to `max_batch_size` at random.
    ///
    /// How many of the *other* records were drawn does not depend on the record. If they leave
    /// room, the record is added as in Poisson sampling. Otherwise it takes the place of another,
    /// `y`, with probability `q` at most.
    ///
    /// - Of a record that comes or goes, that is `x - y` with probability `q` against nothing: two
    ///   contributions.
    /// - Of a record `x` whose contribution becomes `x'` (another record's, or zero), it is `x - y`
    ///   against `x' - y`, each with probability `q`. At `γ ≥ 1` half-lines show, as above, that no
    ///   vectors are worse than `x = -y` and `x' = y`, and at `γ < 1` both sides change places: the
    ///   pair of batches of fixed size.
    pub(crate) fn truncated_poisson(
        q: f64,
        sigma: f64,
        n_records: u64,
        max_batch_size: u64,
        relation: NeighbouringRelation,
    ) -> Self {
        let at = |distance: f64| Normals {
            present: components(sigma, &[0.0, distance], &[1.0 - q, q]),
            absent: vec![Component { weight: 1.0, mean: 0.0 }],
        };
        let is_fixed_size = relation.record_count_is_public();
        let room = match Self::replaced_in_poisson_batch(q, sigma).parts {
            parts if relation == NeighbouringRelation::ReplaceOne => parts,
            _ => Arc::from([(1.0, SimplePair::Normals(at(1.0)))]),
        };
        let full = binomial_tail(n_records - 1, q, max_batch_size);
        let is_symmetric = relation == NeighbouringRelation::ReplaceOne;
        if full == 0.0 {
            return Self { parts: room, ..Self::of(SimplePair::Points(Vec::new()), is_symmetric) };
        }
        let cut = if is_fixed_size { SimplePair::Mirrored(at(2.0)) } else { SimplePair::Normals(at(2.0)) };
        let parts = room.iter().map(|(_, part)| (1.0 - full, part.clone())).chain([(full, cut)]).collect();
        Self { parts, ..Self::of(SimplePair::Points(Vec::new()), is_symmetric) }
    }

    /// Noise on the integers with `P(x) ∝ e^(-|x|/scale)`, of a sum that one record changes by
    /// `sensitivity`.
    pub(crate) fn discrete_laplace(scale: f64, sensitivity: u32) -> Result<Self, AccountingError> {
        if f64::from(sensitivity) > MAX_POINTS {
            return Err(AccountingError::invalid(
                "sensitivity",
                sensitivity,
                "at most 1e6, 5e5 where a record is replaced",
            ));
        }
        let rate = scale.recip();
        let end = (1.0 + libm::exp(-rate)).recip();
        let inner = libm::tanh(0.5 * rate);
        let points = (0..=sensitivity).map(|j| {
            let (k, n) = (f64::from(j), f64::from(sensitivity));
            // Outcome j of n: at distance j from the value without the record, n - j from the one
            // with it; the ends hold all beyond.
            let one = if j == 0 || j == sensitivity { end } else { inner };
            Point {
                loss: rate * (2.0 * k - n),
                present: one * libm::exp(rate * (k - n)),
                absent: one * libm::exp(-rate * k),
            }
        });
        Ok(Self::of(SimplePair::Points(points.collect()), true))
    }

    /// Noise on the integers with `P(x) ∝ e^(-x²/2σ²)`, of a sum that one record changes by
    /// `sensitivity`, on Poisson batches of rate `q`; `None` where it has too many outcomes to list.
    pub(crate) fn discrete_gaussian(sigma: f64, sensitivity: u32, q: f64) -> Option<Self> {
        let shift = f64::from(sensitivity);
        let reach = (REACH * sigma).ceil() + shift;
        if 2.0 * reach > MAX_POINTS {
            return None;
        }
        let log_weight = |x: f64| -0.5 * (x / sigma) * (x / sigma);
        let total = 1.0 + 2.0 * (1..=reach as u64).rev().map(|x| libm::exp(log_weight(x as f64))).sum::<f64>();
        let low = -reach as i64;
        let (mut points, mut left_out) = (Vec::new(), [0.0; 2]);
        for x in low..=reach as i64 + i64::from(sensitivity) {
            let x = x as f64;
            let (used, absent) = (libm::exp(log_weight(x - shift)) / total, libm::exp(log_weight(x)) / total);
            let present = (1.0 - q) * absent + q * used;
            if present > LEAST && absent > LEAST {
                points.push(Point {
                    loss: sampled_loss(shift * (x - 0.5 * shift) / (sigma * sigma), q),
                    present,
                    absent,
                });
            } else {
                left_out = [left_out[0] + present, left_out[1] + absent];
            }
        }
        // As many terms as points, each rounded.
        let left_out = left_out[0].max(left_out[1]) * (1.0 + MAX_POINTS * f64::EPSILON) + LEAST;
        // As concentrated as the continuous one (Canonne, Kamath & Steinke 2020, Theorem 4).
        let concentration_of_points = 0.5 * (shift / sigma) * (shift / sigma);
        let losses_left_out = [f64::INFINITY, if q < 1.0 { -libm::log1p(-q) } else { f64::INFINITY }];
        // On batches it is no more concentrated than without sampling.
        Some(Self {
            concentration_of_points,
            left_out,
            losses_left_out,
            ..Self::of(SimplePair::Points(points), q >= 1.0)
        })
    }

    /// This pair on Poisson batches; `None` for what is no whole list of outcomes.
    pub(crate) fn poisson_sampled(&self, q: f64) -> Option<Self> {
        let [(weight, SimplePair::Points(points))] = &self.parts[..] else {
            return None;
        };
        if self.is_truncated() {
            return None;
        }
        let sampled = |point: &Point| Point {
            loss: sampled_loss(point.loss, q),
            present: (1.0 - q) * point.absent + q * point.present,
            absent: point.absent,
        };
        let part = SimplePair::Points(points.iter().map(sampled).collect());
        Some(Self { parts: Arc::from([(*weight, part)]), is_symmetric: false, ..self.clone() })
    }

    /// ρ such that the Rényi divergence of order α is at most `ρ·α`: that of the outermost normals,
    /// of which the divergence of mixtures is a quasi-convex function, or infinite.
    pub(crate) fn concentration(&self) -> f64 {
        let of = |part: &SimplePair| match part {
            SimplePair::Points(_) => self.concentration_of_points,
            SimplePair::Normals(normals) | SimplePair::Mirrored(normals) => {
                let (low, high) = normals.means();
                0.5 * (high - low) * (high - low)
            }
        };
        self.parts.iter().map(|(_, part)| of(part)).fold(0.0, f64::max)
    }

    /// Bound on the probability of outcomes that are not among the points, under `P` or `Q`.
    pub(crate) const fn left_out(&self) -> f64 {
        self.left_out
    }

    /// Whether there are such outcomes.
    pub(crate) fn is_truncated(&self) -> bool {
        self.losses_left_out != NONE_LEFT_OUT
    }

    /// The largest losses: of `P` against `Q`, and of `Q` against `P`.
    pub(crate) fn largest_losses(&self) -> [f64; 2] {
        let largest = |part: &SimplePair| match part {
            SimplePair::Points(points) => {
                [1.0, -1.0].map(|sign| points.iter().map(|point| sign * point.loss).fold(f64::NEG_INFINITY, f64::max))
            }
            SimplePair::Normals(normals) => [f64::INFINITY, -normals.infimum()],
            SimplePair::Mirrored(_) => [f64::INFINITY; 2],
        };
        let all = self.parts.iter().map(|(_, part)| largest(part));
        all.fold(self.losses_left_out.map(|loss| loss.max(0.0)), |a, b| [a[0].max(b[0]), a[1].max(b[1])])
    }

    /// The largest loss in either direction, infinite for normals and for discrete ones.
    pub(crate) fn pure_epsilon(&self) -> f64 {
        let [forward, backward] = self.largest_losses();
        forward.max(backward)
    }
}

/// `ln(1 - q + q·e^loss)`.
fn sampled_loss(loss: f64, q: f64) -> f64 {
    if q >= 1.0 {
        loss
    } else if loss < 700.0 {
        libm::log1p(q * libm::expm1(loss))
    } else {
        loss + libm::log(q)
    }
}

/// The components of a mixture in the order of their means, each mean once.
fn components(sigma: f64, amounts: &[f64], probabilities: &[f64]) -> Vec<Component> {
    let component = |(&mean, &weight): (&f64, &f64)| Component { weight, mean: mean / sigma };
    let mut all: Vec<_> = amounts.iter().zip(probabilities).map(component).collect();
    all.retain(|component| component.weight > 0.0);
    all.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    all.dedup_by(|next, kept| {
        let same = next.mean == kept.mean;
        kept.weight += if same { next.weight } else { 0.0 };
        same
    });
    all
}

impl Normals {
    /// `ln(P/φ)` and `ln(Q/φ)` at `x`, and the means of the two components that `x` may come from.
    fn tilted(&self, x: f64) -> [(f64, f64); 2] {
        [&self.present, &self.absent].map(|components| {
            let log = |c: &Component| libm::log(c.weight) + c.mean * (x - 0.5 * c.mean);
            let largest = components.iter().map(log).fold(f64::NEG_INFINITY, f64::max);
            let (mut sum, mut weighted) = (0.0, 0.0);
            for component in components {
                let share = libm::exp(log(component) - largest);
                sum += share;
                weighted += share * component.mean;
            }
            (largest + libm::log(sum), weighted / sum)
        })
    }

    /// `ln(P/φ)` and `ln(Q/φ)` at `x`.
    pub(crate) fn log_ratios(&self, x: f64) -> [f64; 2] {
        self.tilted(x).map(|(log, _)| log)
    }

    /// The loss at `x` and its slope.
    pub(crate) fn loss(&self, x: f64) -> (f64, f64) {
        let [(present, mean), (absent, other)] = self.tilted(x);
        (present - absent, (mean - other).max(0.0))
    }

    /// Logarithms of the two densities at `x`.
    pub(crate) fn log_densities(&self, x: f64) -> (f64, f64) {
        let log = |components: &[Component]| {
            let of = |c: &Component| libm::log(c.weight) - 0.5 * (x - c.mean) * (x - c.mean);
            let largest = components.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
            largest + libm::log(components.iter().map(|c| libm::exp(of(c) - largest)).sum::<f64>())
        };
        let scale = crate::normal::LOG_SQRT_TAU;
        (log(&self.present) - scale, log(&self.absent) - scale)
    }

    /// Smallest and largest mean.
    pub(crate) fn means(&self) -> (f64, f64) {
        let all = || self.present.iter().chain(&self.absent).map(|component| component.mean);
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max))
    }

    /// The limit of the loss far below, where the lowest components alone count.
    pub(crate) fn infimum(&self) -> f64 {
        let lowest = |components: &[Component]| {
            components
                .iter()
                .copied()
                .min_by(|a, b| a.mean.total_cmp(&b.mean))
                .unwrap_or(Component { weight: 0.0, mean: 0.0 })
        };
        let (present, absent) = (lowest(&self.present), lowest(&self.absent));
        if present.mean > absent.mean { f64::NEG_INFINITY } else { libm::log(present.weight / absent.weight) }
    }
}

/// Upper bound on the probability that at least `at_least` of `n` are drawn, each with probability
/// `q`: close for up to some 1e10 records, beyond only as good as its logarithm.
fn binomial_tail(n: u64, q: f64, at_least: u64) -> f64 {
    if at_least > n {
        return 0.0;
    }
    if q >= 1.0 || at_least == 0 {
        return 1.0;
    }
    let (n, k) = (n as f64, at_least as f64);
    let below_mean = n * q - k;
    // Fewer than e^-450 lie 30 standard deviations below the mean; sums from there on have too many
    // terms, which overflow.
    if below_mean > 30.0 * (n * q * (1.0 - q)).sqrt() {
        return 1.0;
    }
    binomial_sum(n, q, k).min(binomial_chernoff(n, q, k)).min(1.0)
}

/// The sum of the terms from `k` on, as far as they count.
fn binomial_sum(n: f64, q: f64, k: f64) -> f64 {
    /// Terms that are added up at most: beyond, what remains is bounded.
    const MAX_TERMS: u32 = 1_000_000;
    let log_first = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
        + k * libm::log(q)
        + (n - k) * libm::log1p(-q);
    let odds = q / (1.0 - q);
    let (mut term, mut sum) = (1.0, 1.0);
    // Counted apart: beyond 2^53 a float no longer grows by 1.
    for j in 1..=MAX_TERMS {
        let i = k + f64::from(j);
        if i > n {
            break;
        }
        let ratio = (n - i + 1.0) / i * odds;
        term *= ratio;
        sum += term;
        // The ratios fall, so what remains is below a geometric series.
        let rest = if ratio < 1.0 { term * ratio / (1.0 - ratio) } else { f64::INFINITY };
        if rest < 1e-17 * sum || j == MAX_TERMS {
            sum += rest;
            break;
        }
    }
    // lgamma's error grows with its argument.
    let error = 1e-9 + 8.0 * f64::EPSILON * (libm::lgamma(n + 1.0) + n);
    libm::exp(log_first + error) * sum
}

/// `exp(-n·KL(k/n ‖ q))`, Chernoff's bound for `k` above the mean, else 1.
///
/// With `d = k/n - q` and `h(x) = (1+x)·ln(1+x) - x`, all of whose values are positive, the
/// divergence is `q·h(d/q) + (1-q)·h(-d/(1-q))`.
pub(crate) fn binomial_chernoff(n: f64, q: f64, k: f64) -> f64 {
    let share = k / n;
    let distance = (share - q) - 4.0 * f64::EPSILON * (share + q);
    if distance <= 0.0 {
        return 1.0;
    }
    // (1+x)·ln(1+x) - x = x²/2 - x³/6 + x⁴/12 - …, whose first two terms bound it from below.
    let h = |x: f64| if x.abs() < 1e-4 { x * x * (0.5 - x / 6.0) } else { (1.0 + x) * libm::log1p(x) - x };
    let rest = 1.0 - q;
    // At d = 1 - q the term is 0·ln 0.
    let other = if distance < rest { h(-distance / rest) } else { 1.0 };
    let divergence = q * h(distance / q) + rest * other;
    libm::exp(-n * divergence * (1.0 - 1e-7))
}

/// Probabilities of 0 to `n` successes.
pub(crate) fn binomial(n: u32, q: f64) -> Vec<f64> {
    let n = f64::from(n);
    let log = |k: f64| {
        let ways = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
        let successes = if k > 0.0 { k * libm::log(q) } else { 0.0 };
        let failures = if k < n { (n - k) * libm::log1p(-q) } else { 0.0 };
        ways + successes + failures
    };
    (0..=n as u32).map(|k| libm::exp(log(f64::from(k)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discrete_probabilities_sum_to_one_and_have_their_loss() {
        let pairs = [
            Pair::discrete_laplace(1.5, 3).unwrap(),
            Pair::discrete_laplace(0.2, 1).unwrap(),
            Pair::discrete_gaussian(0.7, 1, 1.0).unwrap(),
            Pair::discrete_gaussian(20.0, 5, 1.0).unwrap(),
            Pair::discrete_gaussian(3.0, 2, 0.3).unwrap(),
            Pair::discrete_laplace(1.5, 3).unwrap().poisson_sampled(0.1).unwrap(),
        ];
        for pair in &pairs {
            let [(_, SimplePair::Points(points))] = pair.parts() else { panic!("points") };
            let sum = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>();
            assert!((sum(|p| p.present) - 1.0).abs() < 1e-13 && (sum(|p| p.absent) - 1.0).abs() < 1e-13);
            for point in points {
                assert!(((point.present / point.absent).ln() - point.loss).abs() < 1e-10, "{point:?}");
            }
        }
    }

    #[test]
    fn tails_of_binomials_are_bounded_closely() {
        // mpmath 1.4: P(Bin(1000, 0.1) ≥ 130) = 0.0013968…, by the sum of its terms here.
        let exact: f64 = binomial(1_000, 0.1)[130..].iter().sum();
        let bound = binomial_tail(1_000, 0.1, 130);
        assert!(bound >= exact && bound < exact * (1.0 + 1e-7), "{bound} {exact}");
        assert_eq!(binomial_tail(5, 0.5, 6), 0.0);
        assert!((binomial_tail(2, 0.5, 2) - 0.25).abs() < 1e-8);
        assert_eq!(binomial_tail(1_000, 0.5, 10), 1.0);
        // Every k, whether its terms or Chernoff's bound are smaller.
        for (n, q) in [(60, 0.3), (400, 1e-3), (900, 0.97)] {
            let terms = binomial(n, q);
            for k in 0..=n {
                let exact: f64 = terms[k as usize..].iter().rev().sum();
                let bound = binomial_tail(u64::from(n), q, u64::from(k));
                assert!(
                    bound >= exact * (1.0 - 1e-10) && bound <= exact * (1.0 + 1e-6),
                    "{n} {q} {k}: {bound} {exact}"
                );
                let chernoff = binomial_chernoff(f64::from(n), q, f64::from(k));
                assert!(chernoff >= exact * (1.0 - 1e-10), "{n} {q} {k}: {chernoff} {exact}");
            }
        }
    }

    /// mpmath 1.3, 60 digits: `loggamma` for the first term, then ratios.
    const TAILS: [(u64, f64, u64, f64); 6] = [
        (10_000_000_000, 0.5, 5_000_250_000, 2.866_664_379_591_427e-7),
        (10_000_000_000, 0.5, 5_000_050_000, 0.158_657_673_650_720_23),
        (10_000_000_000, 1e-3, 10_020_000, 1.261_995_007_173_635e-10),
        (10_000_000_000, 0.01, 99_997_000, 0.618_501_167_592_238_6),
        (1_000_000_000_000, 1e-6, 1_004_500, 3.457_294_043_811_922_6e-6),
        (10_000_000_000, 1e-9, 30, 2.509_951_152_748_116_7e-7),
    ];

    #[test]
    fn tails_of_many_records_end() {
        let start = std::time::Instant::now();
        for (n, q, k, exact) in TAILS {
            let bound = binomial_tail(n, q, k);
            assert!(bound >= exact * (1.0 - 1e-9) && bound <= exact * 1.1, "{n} {q} {k}: {bound} {exact}");
        }
        // Six standard deviations: 9.87e-10 of a normal distribution, at most e^-18 by Chernoff.
        let bound = binomial_tail(1_000_000_000_000_000, 0.5, 500_000_094_868_329);
        assert!((9.865e-10..=1.53e-8).contains(&bound), "{bound}");
        for n in [1 << 40, 1 << 53, u64::MAX - 1] {
            for k in [1, n / 3, n / 2, n / 2 + 1, n] {
                let bound = binomial_tail(n, 0.5, k);
                assert!((0.0..=1.0).contains(&bound), "{n} {k}: {bound}");
            }
        }
        assert_eq!(binomial_tail(u64::MAX, 0.5, u64::MAX), 0.0);
        assert!(start.elapsed().as_secs() < 5);
    }

    #[test]
    fn the_loss_of_mixtures_increases_from_its_infimum() {
        let Pair { parts, .. } = Pair::mixture_of_gaussians(0.5, &[2.0, 0.0, 1.0], &[0.1, 0.7, 0.2]);
        let [(_, SimplePair::Normals(normals))] = &parts[..] else { panic!("normals") };
        assert!((normals.infimum() - 0.7_f64.ln()).abs() < 1e-15);
        let mut last = normals.infimum();
        for i in -40..40 {
            let (loss, slope) = normals.loss(f64::from(i) * 0.25);
            assert!(loss >= last && slope >= 0.0);
            last = loss;
        }
    }
}
