//! The privacy loss of one (sampled) mechanism, cut at the points of a grid: how much probability
//! lies in each cell, and how it divides between the cell's ends.

use super::base_loss::BaseLoss;
use crate::gauss_legendre::{RULE_3, RULE_5, RULE_8};

/// Probability in the cells of a grid, divided between the ends of each cell so that both
/// distributions keep their mass: then the privacy profile is the same at every grid point and
/// larger, being a chord of a convex curve, between them.
#[derive(Debug, Clone, Default)]
pub(super) struct Cells {
    /// Loss at grid index 0.
    pub(super) offset: f64,
    /// Grid index of the lower end of the first cell.
    pub(super) first: i64,
    /// Probability that goes to the lower end, by cell.
    pub(super) low: Vec<f64>,
    /// Probability that goes to the upper end, by cell.
    pub(super) high: Vec<f64>,
    /// How much of it rounding may have put at the wrong end, by cell.
    pub(super) rounding: Vec<f64>,
    /// Bound on the relative rounding error of every cell's probability.
    pub(super) relative: f64,
    /// Probability of the loss at grid index 0 exactly, beside what is in the cells.
    pub(super) at_zero: f64,
}

impl Cells {
    fn zeros(offset: f64, first: i64, cells: usize, relative: f64) -> Self {
        let zeros = || vec![0.0; cells];
        Self { offset, first, low: zeros(), high: zeros(), rounding: zeros(), relative, at_zero: 0.0 }
    }

    fn set(&mut self, cell: usize, total: f64, [low, high]: [f64; 2], rounding: f64) {
        self.low[cell] = total * low;
        self.high[cell] = total * high;
        self.rounding[cell] = total * rounding;
    }
}

/// Both directions of one mechanism on one grid, with a bound on the probability that lies outside
/// it.
#[derive(Debug, Clone)]
pub(super) struct BothDirections {
    /// Record present against record absent.
    pub(super) remove: Cells,
    /// Record absent against record present.
    pub(super) add: Cells,
    /// Bound on the probability outside the grid, in either direction.
    pub(super) outside: f64,
}

/// Integrals of the distribution of `y` over one cell.
#[derive(Debug, Clone, Copy, Default)]
struct Integrals {
    absent: f64,
    present: f64,
    /// `∫ present(y) (1 - e^-(y-a))`, with `a` the lower end.
    from_below: f64,
    /// `∫ present(y) (e^(b-y) - 1)`, with `b` the upper end.
    from_above: f64,
}

/// Where the grid of a sampled mechanism starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// At the infimum `ln(1-q)` of the loss, near which nearly all of the probability lies when q
    /// is small: then the grid need not resolve q. Without sampling, at 0.
    Infimum,
    /// At 0, and only losses above it.
    Zero,
}

/// A grid of losses `x = offset + k·interval`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LossGrid {
    q: f64,
    interval: f64,
    offset: f64,
    first: i64,
    last: i64,
}

impl LossGrid {
    /// The cells that span the loss of `base` sampled at rate `q`, up to `exp(log_tail)`.
    pub(super) fn new(base: BaseLoss, q: f64, anchor: Anchor, log_tail: f64, interval: f64) -> Self {
        let (low, high) = base.range(log_tail);
        let above_infimum = |y: f64| if q >= 1.0 { y } else { log_one_plus_exp(y + libm::log(q) - libm::log1p(-q)) };
        let (offset, low, high) = match anchor {
            Anchor::Infimum => (if q >= 1.0 { 0.0 } else { libm::log1p(-q) }, above_infimum(low), above_infimum(high)),
            Anchor::Zero => (0.0, 0.0, if q >= 1.0 { high } else { above_infimum(high) + libm::log1p(-q) }),
        };
        let first = (low / interval).floor() as i64;
        let last = ((high / interval).ceil() as i64).max(first + 1);
        Self { q, interval, offset, first, last }
    }

    pub(super) fn n_cells(&self) -> f64 {
        (self.last - self.first) as f64
    }

    /// The `y` whose loss is grid point `k`; minus infinity at and below the infimum.
    fn ratio(&self, k: i64) -> f64 {
        let (q, x) = (self.q, k as f64 * self.interval);
        if q >= 1.0 {
            x
        } else if self.offset == 0.0 {
            // Losses from 0 on: ln(1 + (e^x - 1)/q).
            if x > 36.0 { x - libm::log(q) } else { libm::log1p(libm::expm1(x) / q) }
        } else if k <= 0 {
            f64::NEG_INFINITY
        } else if x > 36.0 || q < 1e-280 {
            // e^loss - (1-q) = (1-q)(e^x - 1) = q·e^y.
            libm::log1p(-q) - libm::log(q) + if x > 36.0 { x } else { libm::log(libm::expm1(x)) }
        } else {
            // One logarithm, of a number near 1 where most of the probability is: a difference of
            // large ones would be rounded more.
            libm::log((1.0 - q) / q * libm::expm1(x))
        }
    }
}

impl LossGrid {
    /// Bound on the rounding error of [`ratio`](Self::ratio): of the grid point, to which its
    /// exponential is as sensitive as it is large, and of the logarithms that may cancel.
    fn rounding_of_ratio(&self, k: i64, y: f64) -> f64 {
        let x = (k as f64 * self.interval).abs();
        let rate = if self.q < 1.0 && (x > 36.0 || self.q < 1e-280) { libm::log(self.q).abs() } else { 0.0 };
        8.0 * f64::EPSILON * (2.0 + x + rate + if y.is_finite() { y.abs() } else { 0.0 })
    }
}

/// `ln(1 + e^t)`.
fn log_one_plus_exp(t: f64) -> f64 {
    if t > 36.0 { t } else { libm::log1p(libm::exp(t)) }
}

/// Cuts the loss of `base`, sampled at the grid's rate, at the grid's points.
///
/// Every quantity is a sum of positive terms: the loss is `ln w`, `w = 1 + q(e^y - 1)`, and with
/// `w(a) = e^(x_a)` at a cell's ends the probability that connect-the-dots moves up is `∫
/// absent·(w - w(a))/(1 - e^-h) = q ∫ present·(1 - e^-(y-a))/(1 - e^-h)`. Differences of
/// distribution functions would lose all digits for small q and for fine grids.
pub(super) fn cut(base: BaseLoss, grid: LossGrid, log_tail: f64) -> BothDirections {
    let (y_low, y_high) = base.range(log_tail);
    let LossGrid { q, interval, offset, first, last } = grid;
    let atoms = base.atoms();
    let cells = (last - first) as usize;
    let relative = base.relative_error(log_tail);
    let (mut remove, mut add) =
        (Cells::zeros(offset, first, cells, relative), Cells::zeros(-offset, -last, cells, relative));
    let up = libm::exp(interval);
    let log_density = base.log_density();
    let mut a = grid.ratio(first);
    for k in first..last {
        let b = grid.ratio(k + 1);
        let mut cell = Integrals::default();
        if base.is_continuous() {
            integrate(base, &log_density, [a, b], [y_low, y_high], &mut cell);
        }
        for &(y, absent, present) in &atoms {
            // Half-open cells, closed at the far end, so that rounding of the ends cannot lose an
            // atom.
            let inside = (y >= a || (k == first && y > a - 1e-9)) && (y < b || k + 1 == last);
            if inside {
                cell.absent += absent;
                cell.present += present;
                cell.from_below += present * -libm::expm1(-(y - a).max(0.0));
                cell.from_above += present * libm::expm1((b - y).max(0.0));
            }
        }
        // With p = (e^y - e^a)/(e^b - e^a) the share of the upper end, |dp/db| ≤ 1/(1 - e^-(b-a))
        // and |dp/da| ≤ 1/(e^(b-a) - 1).
        let (a_error, b_error) = (grid.rounding_of_ratio(k, a), grid.rounding_of_ratio(k + 1, b));
        let rounding = if a.is_finite() {
            // 1/(1 - e^-(b-a)) is one more than 1/(e^(b-a) - 1).
            let inverse = libm::expm1(b - a).recip();
            (b_error * (1.0 + inverse) + a_error * inverse).min(1.0)
        } else {
            b_error
        };
        let (below, above) = (cell.from_below, cell.from_above);
        remove.set(
            (k - first) as usize,
            (1.0 - q) * cell.absent + q * cell.present,
            shares(above, below * up),
            rounding,
        );
        add.set((last - 1 - k) as usize, cell.absent, shares(below, above), rounding);
        a = b;
    }
    let outside = if base.is_unbounded() { 2.0 * libm::exp(log_tail) } else { 0.0 };
    BothDirections { remove, add, outside }
}

/// How what is in a cell divides between its lower and its upper end, each to its own digits; all
/// of it upwards when there is nothing to compare.
pub(super) fn shares(low: f64, high: f64) -> [f64; 2] {
    let total = low + high;
    if total > 0.0 && total.is_finite() { [low / total, high / total] } else { [0.0, 1.0] }
}

/// Adds the integrals over `[a, b]`, clipped to the range.
fn integrate(
    base: BaseLoss,
    log_density: &impl Fn(f64) -> f64,
    [a, b]: [f64; 2],
    [y_low, y_high]: [f64; 2],
    cell: &mut Integrals,
) {
    let (mut y, end) = (a.max(y_low), b.min(y_high));
    while y < end {
        // Relative errors below 1e-15: with n nodes the error is (n!)⁴/((2n+1)(2n)!³)·width²ⁿ times
        // the 2n-th derivative over the density, for a normal density He₂ₙ: 4e-7·15·s⁶,
        // 4e-13·945·s¹⁰ and 2e-23·2027025·s¹⁶ at its centre, less elsewhere.
        let roughness = base.roughness(y);
        let width = (1.0 / roughness).min(end - y);
        match width * roughness {
            s if s < 0.02 => panel(log_density, &RULE_3, y, width, [a, b], cell),
            s if s < 0.2 => panel(log_density, &RULE_5, y, width, [a, b], cell),
            _ => panel(log_density, &RULE_8, y, width, [a, b], cell),
        }
        y = if end - y <= width { end } else { y + width };
    }
}

#[inline]
fn panel<const N: usize>(
    log_density: &impl Fn(f64) -> f64,
    rule: &[(f64, f64); N],
    start: f64,
    width: f64,
    [a, b]: [f64; 2],
    cell: &mut Integrals,
) {
    let half = 0.5 * width;
    for &(node, weight) in rule {
        let y = start + half * (1.0 + node);
        let log_absent = log_density(y);
        let absent = libm::exp(log_absent) * half * weight;
        let present = libm::exp(log_absent + y) * half * weight;
        cell.absent += absent;
        cell.present += present;
        cell.from_below += present * one_minus_exp(y - a);
        // present·(e^(b-y) - 1) = absent·e^b·(1 - e^-(b-y)), which does not overflow far below b.
        cell.from_above += if b - y < 1.0 {
            -present * one_minus_exp(y - b)
        } else {
            libm::exp(log_absent + b) * half * weight * one_minus_exp(b - y)
        };
    }
}

/// `1 - e^-t`; the series saves a library call for the fine grids where most of the time goes.
#[inline]
fn one_minus_exp(t: f64) -> f64 {
    if t.abs() < 1e-2 {
        t * (1.0 - t / 2.0 * (1.0 - t / 3.0 * (1.0 - t / 4.0 * (1.0 - t / 5.0 * (1.0 - t / 6.0)))))
    } else {
        -libm::expm1(-t)
    }
}
