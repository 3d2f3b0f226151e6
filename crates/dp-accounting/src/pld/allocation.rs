//! The privacy loss of a record that is used in one step out of several, drawn at random.
//!
//! With `W = e^(μu - μ²/2)`, `u ~ N(0, 1)`, the likelihood ratio of "record present" to "record
//! absent" is `S/t`, the mean of `t` independent copies of W. Both profiles, `E[(S/t - γ)⁺]` and
//! `E[(1 - γS/t)⁺]`, are expectations of convex functions of S. Dividing a cell's probability
//! between its ends at unchanged mean makes a variable larger in convex order, moving it to its
//! mean makes it smaller, and sums of independent variables keep the order: so both bounds follow
//! from sums of atoms, by squaring, on grids that are laid anew for each sum.

use std::cell::RefCell;
use std::rc::Rc;

use super::mechanism::Cut;
use super::pair_cells;
use crate::gauss_legendre::RULE_8;
use crate::normal::{LOG_SQRT_TAU, log_survival};
use crate::pair::{Pair, Point};

/// Least noise multiplier: with less, sums span more orders of magnitude than numbers do.
const LEAST_SIGMA: f64 = 0.1;

/// Largest number of steps: rounding of one step's probabilities counts that often.
const MOST_STEPS: u64 = 1 << 24;

/// Half of the rounding of one operation.
const HALF_ULP: f64 = 0.5 * f64::EPSILON;

/// Cells for each standard deviation of the sums that only say where the grids lie.
const SKETCHED: f64 = 4.0;

/// Distance of knots in standard deviations.
const KNOTS: f64 = 0.25;

/// Atoms times atoms that take as long as one point of a transform.
const PRODUCTS_PER_POINT: f64 = 48.0;

/// Random allocation with one participation.
#[derive(Debug, Clone)]
pub(super) struct Allocation {
    sigma: f64,
    steps: u64,
    sketch: RefCell<Option<Rc<Sketch>>>,
}

impl PartialEq for Allocation {
    fn eq(&self, other: &Self) -> bool {
        (self.sigma, self.steps) == (other.sigma, other.steps)
    }
}

/// Which way a discretisation errs in convex order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Upper,
    Lower,
}

/// Probabilities at increasing positive values.
#[derive(Debug, Clone, Default)]
struct Atoms {
    values: Vec<f64>,
    masses: Vec<f64>,
}

/// A distribution of atoms with its errors.
#[derive(Debug, Clone)]
struct Sum {
    atoms: Atoms,
    /// Summands.
    n: f64,
    /// Relative error of the masses.
    relative: f64,
    /// Relative error of the values.
    scale: f64,
}

/// Where the sums lie.
#[derive(Debug)]
struct Sketch {
    log_tail: f64,
    /// Logarithms of values at equal distances in standard deviations of a normal score, for every
    /// sum on the way to `t` terms.
    knots: Vec<Vec<f64>>,
}

impl Allocation {
    /// `None` where there is so little noise, or so many steps, that rounding would not be
    /// negligible.
    pub(super) fn new(sigma: f64, steps: u64) -> Option<Self> {
        (sigma >= LEAST_SIGMA && (2..=MOST_STEPS).contains(&steps)).then(|| Self {
            sigma,
            steps,
            sketch: RefCell::new(None),
        })
    }

    fn mu(&self) -> f64 {
        self.sigma.recip()
    }

    /// Terms of the sums on the way to `t`: doubled, and one more where `t` has a bit.
    fn counts(&self) -> Vec<(u64, bool)> {
        let bits = u64::BITS - self.steps.leading_zeros();
        let mut counts = Vec::new();
        let mut n = 1;
        for bit in (0..bits - 1).rev() {
            n *= 2;
            counts.push((n, false));
            if self.steps >> bit & 1 == 1 {
                n += 1;
                counts.push((n, true));
            }
        }
        counts
    }

    /// Standard deviations of `u` beyond which next to nothing lies, for all steps together.
    fn reach(&self, log_tail: f64) -> f64 {
        (-2.0 * (log_tail - libm::log(self.steps as f64))).sqrt()
    }

    fn sketch(&self, log_tail: f64) -> Rc<Sketch> {
        if let Some(known) = self.sketch.borrow().as_ref().filter(|known| known.log_tail <= log_tail) {
            return Rc::clone(known);
        }
        let new = Rc::new(self.new_sketch(log_tail));
        *self.sketch.borrow_mut() = Some(Rc::clone(&new));
        new
    }

    fn new_sketch(&self, log_tail: f64) -> Sketch {
        let one = one_step(self.mu(), SKETCHED, self.reach(log_tail), Side::Lower);
        let (mut sum, mut knots) = (one.clone(), Vec::new());
        let tail = libm::exp(log_tail - libm::log(self.steps as f64));
        for (n, is_one_more) in self.counts() {
            let other = if is_one_more { one.clone() } else { sum.clone() };
            let (of_sum, grid) = lay_grid(&sum.atoms, &other.atoms, n as f64, tail);
            sum = Sum { atoms: of_sum, n: n as f64, ..sum };
            knots.push(grid);
        }
        Sketch { log_tail, knots }
    }

    /// The loss between the knots at one standard deviation on either side, halved, and its whole
    /// range.
    fn spread(&self, log_tail: f64) -> (f64, [f64; 2]) {
        let sketch = self.sketch(log_tail);
        let last = sketch.knots.last().map_or(&[][..], Vec::as_slice);
        let log_t = libm::log(self.steps as f64);
        let (Some(first), Some(end)) = (last.first(), last.last()) else { return (self.mu(), [0.0, 0.0]) };
        // The knots' spacing is smallest where most of the probability lies.
        let least = last.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        (least / KNOTS, [first - log_t, end - log_t])
    }

    /// Cells for each standard deviation that do not blur more than loss cells of this width do.
    fn resolution(&self, log_tail: f64, interval: f64) -> f64 {
        // Every sum on the way blurs once.
        let sums = libm::log2(self.steps as f64) + 1.0;
        (1.2 * sums.sqrt() * self.spread(log_tail).0 / interval).clamp(16.0, 1024.0)
    }

    /// Cells that [`cut`](Self::cut) would make.
    pub(super) fn n_cells(&self, log_tail: f64, interval: f64) -> f64 {
        let (_, [low, high]) = self.spread(log_tail);
        (high - low) / interval + 2.0
    }

    /// An interval, no smaller, for which the sums do not take more points than that.
    pub(super) fn affordable(&self, log_tail: f64, mut interval: f64, points: f64) -> f64 {
        // At some width the resolution no longer falls.
        for _ in 0..64 {
            if self.work(log_tail, interval) <= points {
                break;
            }
            interval *= 1.3;
        }
        interval
    }

    /// Points of a transform that take as long as the sums of [`cut`](Self::cut).
    pub(super) fn work(&self, log_tail: f64, interval: f64) -> f64 {
        let resolution = self.resolution(log_tail, interval);
        let sketch = self.sketch(log_tail);
        let products = |(knots, (_, is_one_more)): (&Vec<f64>, (u64, bool))| {
            let atoms = knots.len() as f64 * KNOTS * resolution;
            // Squares are symmetric; a single term is coarser.
            if is_one_more { 0.2 * atoms * atoms } else { 0.5 * atoms * atoms }
        };
        2.0 * sketch.knots.iter().zip(self.counts()).map(products).sum::<f64>() / PRODUCTS_PER_POINT
    }

    /// Cells of both directions, from above and from below.
    pub(super) fn cut(&self, log_tail: f64, interval: f64) -> Cut {
        let resolution = self.resolution(log_tail, interval);
        let sketch = self.sketch(log_tail);
        let mut outside = 2.0 * libm::exp(log_tail);
        let mut along = |side| {
            let (sum, left_out) = self.sum(&sketch, resolution, log_tail, side);
            outside = f64::max(outside, 2.0 * libm::exp(log_tail) + left_out);
            let t = self.steps as f64;
            let point = |(&value, &absent): (&f64, &f64)| Point {
                loss: libm::log(value / t),
                present: absent * (value / t),
                absent,
            };
            let points = sum.atoms.values.iter().zip(&sum.atoms.masses).map(point).collect();
            let mut cut = pair_cells::cut_off(&Pair::of_points(points), log_tail, interval, sum.scale + 8.0 * HALF_ULP);
            cut.directions.iter_mut().chain(cut.lower.iter_mut().flatten()).for_each(|cells| {
                cells.relative += sum.relative;
            });
            cut
        };
        let (upper, lower) = (along(Side::Upper), along(Side::Lower));
        Cut { directions: upper.directions, lower: lower.lower, outside }
    }

    /// The sum of all steps, and what was left out: probability with the record or without it,
    /// whichever is larger.
    fn sum(&self, sketch: &Sketch, resolution: f64, log_tail: f64, side: Side) -> (Sum, f64) {
        let reach = self.reach(log_tail);
        let mut sum = one_step(self.mu(), resolution, reach, side);
        let t = self.steps as f64;
        // Products of atoms that underflow, at the largest likelihood ratio.
        let mut outside = libm::exp(self.mu() * (0.5 * self.mu() + reach) - 660.0);
        for ((n, is_one_more), knots) in self.counts().into_iter().zip(&sketch.knots) {
            let n = n as f64;
            let grid = refined(knots, (KNOTS * resolution).round().max(1.0));
            // One term of many may be coarser: it adds as little to the error of the sum as to the
            // sum.
            let one = is_one_more.then(|| one_step(self.mu(), (resolution / n.sqrt()).max(8.0), reach, side));
            let (next, left_out) = add(&sum, one.as_ref(), &grid, side);
            // There are t/n such sums; beside what was left out itself, the other terms have mean
            // 1.
            outside += left_out.moment / n + t * left_out.mass / n;
            sum = Sum { n, ..next };
        }
        (sum, outside * (1.0 + 1e-3))
    }
}

/// One step's W between `-reach` and `μ + reach` standard deviations.
fn one_step(mu: f64, resolution: f64, reach: f64, side: Side) -> Sum {
    let (start, end) = (-reach, mu + reach);
    let cells = ((end - start) * resolution).ceil();
    let width = (end - start) / cells;
    let value = |u: f64| libm::exp(mu * u - 0.5 * mu * mu);
    let growth = libm::expm1(mu * width);
    let mut atoms = Atoms::default();
    let mut carried = 0.0;
    // More than one panel where the density changes by orders of magnitude within a cell.
    let panels = (width * (end.max(reach) + mu)).ceil().max(1.0);
    for k in 0..cells as u64 {
        let a = start + k as f64 * width;
        let (mut up, mut down) = (0.0, 0.0);
        for panel in 0..panels as u64 {
            for (node, share) in RULE_8 {
                let off = width * (panel as f64 + 0.5 * (1.0 + node)) / panels;
                let u = a + off;
                let mass = libm::exp(-0.5 * u * u - LOG_SQRT_TAU) * 0.5 * share * width / panels;
                // Shares of the way from one end's value to the other's.
                up += mass * libm::expm1(mu * off) / growth;
                down += mass * (growth - libm::expm1(mu * off)) / growth;
            }
        }
        match side {
            Side::Upper => {
                atoms.push(value(a), carried + down);
                carried = up;
            }
            Side::Lower => atoms.push(value(a) * (1.0 + growth * (up / (up + down))), up + down),
        }
    }
    if side == Side::Upper {
        atoms.push(value(end), carried);
    }
    // Errors of the density's exponent, of the values' exponents and of μ, which is right to 6 ulp.
    let relative = f64::EPSILON * (64.0 + 2.0 * end * end + 4.0 * mu * end);
    let scale = f64::EPSILON * (8.0 + 8.0 * mu * (end + mu));
    Sum { atoms, n: 1.0, relative, scale }
}

impl Atoms {
    fn push(&mut self, value: f64, mass: f64) {
        if mass > 0.0 {
            self.values.push(value);
            self.masses.push(mass);
        }
    }
}

/// Values that do not lie on a grid.
#[derive(Debug, Clone, Copy, Default)]
struct LeftOut {
    mass: f64,
    /// Mass times value.
    moment: f64,
}

impl LeftOut {
    fn add(&mut self, mass: f64, value: f64) {
        self.mass += mass;
        self.moment += mass * value;
    }
}

/// The sum of two independent sums, or of one and a copy of itself, on a grid.
fn add(a: &Sum, b: Option<&Sum>, grid: &[f64], side: Side) -> (Sum, LeftOut) {
    let other = b.unwrap_or(a);
    let cells = grid.len() - 1;
    let (mut up, mut down) = (vec![0.0; cells], vec![0.0; cells]);
    let mut left_out = LeftOut::default();
    let (low, high) = (grid[0], grid[cells]);
    for (i, (&value, &mass)) in a.atoms.values.iter().zip(&a.atoms.masses).enumerate() {
        // In a square, each pair of different atoms counts twice.
        let (start, factor) = if b.is_none() { (i + 1, 2.0 * mass) } else { (0, mass) };
        if b.is_none() {
            let at = 2.0 * value;
            if at < low || at >= high {
                left_out.add(mass * mass, at);
            } else {
                let k = grid.partition_point(|edge| *edge <= at) - 1;
                up[k] += mass * mass * (at - grid[k]);
                down[k] += mass * mass * (grid[k + 1] - at);
            }
        }
        let (values, masses) = (&other.atoms.values[start..], &other.atoms.masses[start..]);
        let begin = values.partition_point(|v| value + v < low);
        let end = values.partition_point(|v| value + v < high);
        for j in (0..begin).chain(end..values.len()) {
            left_out.add(factor * masses[j], value + values[j]);
        }
        let (values, masses) = (&values[begin..end], &masses[begin..end]);
        let Some(first) = values.first() else { continue };
        let mut k = grid.partition_point(|edge| *edge <= value + first) - 1;
        let (mut from, mut to) = (grid[k], grid[k + 1]);
        let (mut rise, mut fall) = (0.0, 0.0);
        for (v, m) in values.iter().zip(masses) {
            let at = value + v;
            while at >= to {
                up[k] += rise;
                down[k] += fall;
                (rise, fall) = (0.0, 0.0);
                k += 1;
                (from, to) = (to, grid[k + 1]);
            }
            let product = factor * m;
            rise += product * (at - from);
            fall += product * (to - at);
        }
        up[k] += rise;
        down[k] += fall;
    }
    let mut atoms = Atoms::default();
    let mut carried = 0.0;
    let mut widest = 0.0_f64;
    for k in 0..cells {
        let width = grid[k + 1] - grid[k];
        widest = widest.max(width / grid[k]);
        let (up, down) = (up[k] / width, down[k] / width);
        match side {
            Side::Upper => {
                atoms.push(grid[k], carried + down);
                carried = up;
            }
            Side::Lower => atoms.push(grid[k] + width * (up / (up + down)), up + down),
        }
    }
    if side == Side::Upper {
        atoms.push(high, carried);
    }
    // Sums of positive terms, no more than there are atoms on either side; a mean moves by no more
    // than that share of its cell.
    let roundings = HALF_ULP * ((a.atoms.values.len() + other.atoms.values.len()) as f64 + 16.0);
    let sum = Sum {
        atoms,
        n: a.n + other.n,
        relative: a.relative + other.relative + roundings,
        scale: a.scale.max(other.scale)
            + 4.0 * HALF_ULP
            + if side == Side::Lower { 2.0 * roundings * widest } else { 0.0 },
    };
    (sum, left_out)
}

/// Lays a grid for the sum of two coarse distributions: its knots, and the atoms that lie there.
fn lay_grid(a: &Atoms, b: &Atoms, n: f64, tail: f64) -> (Atoms, Vec<f64>) {
    let mut sums: Vec<(f64, f64)> = Vec::with_capacity(a.values.len() * b.values.len());
    for (x, p) in a.values.iter().zip(&a.masses) {
        sums.extend(b.values.iter().zip(&b.masses).map(|(y, q)| (x + y, p * q)));
    }
    sums.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    // Cumulative from both ends; above also with the record, whose probability is value over n
    // times as large.
    let below: Vec<f64> = running(sums.iter().map(|(_, mass)| *mass));
    let mut above: Vec<f64> = running(sums.iter().rev().map(|(_, mass)| *mass));
    let mut present: Vec<f64> = running(sums.iter().rev().map(|(value, mass)| mass * (1.0 + value / n)));
    above.reverse();
    present.reverse();
    let first = below.partition_point(|mass| *mass < tail);
    let last = present.partition_point(|mass| *mass >= tail).max(first + 2).min(sums.len()) - 1;
    let mut knots = vec![libm::log(sums[first].0)];
    let median = below.partition_point(|mass| *mass < 0.5 * below[below.len() - 1]);
    let score_of = |log_mass: f64| {
        // The z with ln(1 - Φ(z)) there.
        let (mut low, mut high) = (0.0, 40.0);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if log_survival(middle) > log_mass { low = middle } else { high = middle }
        }
        low
    };
    let (bottom, top) = (-score_of(libm::log(below[first])), score_of(libm::log(above[last])));
    let n_knots = ((top - bottom) / KNOTS).ceil().max(2.0);
    for i in 1..n_knots as u64 {
        let z = bottom + i as f64 * (top - bottom) / n_knots;
        let log_mass = log_survival(z.abs());
        let index = if z < 0.0 {
            let k = below.partition_point(|mass| libm::log(*mass) < log_mass);
            between(&sums, &below, k.clamp(first + 1, median.max(first + 1)), log_mass)
        } else {
            let k = above.partition_point(|mass| libm::log(*mass) >= log_mass);
            between(&sums, &above, k.clamp(1, last), log_mass)
        };
        if index > knots[knots.len() - 1] + 1e-12 {
            knots.push(index);
        }
    }
    let end = libm::log(sums[last].0);
    if end > knots[knots.len() - 1] + 1e-12 {
        knots.push(end);
    } else {
        knots.push(knots[knots.len() - 1] + 1e-9);
    }
    // Atoms at the means of the cells between the knots.
    let mut atoms = Atoms::default();
    let (mut mass, mut moment, mut k) = (0.0, 0.0, 1);
    for (value, share) in &sums {
        while k + 1 < knots.len() && libm::log(*value) > knots[k] {
            atoms.push(moment / mass, mass);
            (mass, moment, k) = (0.0, 0.0, k + 1);
        }
        mass += share;
        moment += share * value;
    }
    atoms.push(moment / mass, mass);
    (atoms, knots)
}

/// The logarithm of the value where the cumulative mass, between two sums, has a logarithm.
fn between(sums: &[(f64, f64)], cumulative: &[f64], k: usize, log_mass: f64) -> f64 {
    let (left, right) = (libm::log(cumulative[k - 1]), libm::log(cumulative[k]));
    let (from, to) = (libm::log(sums[k - 1].0), libm::log(sums[k].0));
    let part = ((log_mass - left) / (right - left)).clamp(0.0, 1.0);
    if part.is_finite() { from + part * (to - from) } else { to }
}

fn running(masses: impl Iterator<Item = f64>) -> Vec<f64> {
    masses
        .scan(0.0, |sum, mass| {
            *sum += mass;
            Some(*sum)
        })
        .collect()
}

/// Values with `parts` cells, equal in their logarithm, between any two knots.
fn refined(knots: &[f64], parts: f64) -> Vec<f64> {
    let mut grid = vec![libm::exp(knots[0])];
    for pair in knots.windows(2) {
        for part in 1..=parts as u64 {
            let next = libm::exp(pair[0] + (pair[1] - pair[0]) * part as f64 / parts);
            if next > grid[grid.len() - 1] {
                grid.push(next);
            }
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_their_mass_and_their_mean() {
        let allocation = Allocation::new(0.8, 11).unwrap();
        let log_tail = -45.0;
        let sketch = allocation.sketch(log_tail);
        for side in [Side::Upper, Side::Lower] {
            let (sum, outside) = allocation.sum(&sketch, 20.0, log_tail, side);
            let mass: f64 = sum.atoms.masses.iter().sum();
            let mean: f64 = sum.atoms.values.iter().zip(&sum.atoms.masses).map(|(value, mass)| value * mass).sum();
            assert!((mass - 1.0).abs() < 1e-12 && (mean / 11.0 - 1.0).abs() < 1e-12, "{side:?}: {mass} {mean}");
            assert!(sum.n == 11.0 && outside < 1e-12, "{outside}");
            assert!(sum.atoms.values.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn variances_of_both_sides_enclose_the_true_one() {
        // Var W = e^(μ²) - 1, of a sum t times that.
        let allocation = Allocation::new(1.0, 37).unwrap();
        let sketch = allocation.sketch(-60.0);
        let variance = |side| {
            let (sum, _) = allocation.sum(&sketch, 32.0, -60.0, side);
            let square = |(value, mass): (&f64, &f64)| mass * (value - 37.0) * (value - 37.0);
            sum.atoms.values.iter().zip(&sum.atoms.masses).map(square).sum::<f64>()
        };
        let exact = 37.0 * 1.0_f64.exp_m1();
        let (upper, lower) = (variance(Side::Upper), variance(Side::Lower));
        assert!(
            lower < exact && exact < upper && upper < exact * 1.01 && lower > exact * 0.99,
            "{lower} {exact} {upper}"
        );
    }

    #[test]
    fn too_little_noise_is_left_to_others() {
        assert!(Allocation::new(0.05, 10).is_none() && Allocation::new(1.0, 1).is_none());
    }
}
