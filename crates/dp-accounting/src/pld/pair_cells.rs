//! The privacy loss of a dominating pair, cut at the points of a grid.

use super::cells::{Cells, shares};
use super::mechanism::Cut;
use crate::gauss_legendre::{RULE_3, RULE_8};
use crate::pair::{Normals, Pair, SimplePair};

/// Losses `offset + k·interval` for `k` from `first` to `last`.
#[derive(Debug, Clone, Copy)]
struct PairGrid {
    interval: f64,
    offset: f64,
    first: i64,
    last: i64,
}

/// Probabilities and integrals of one cell from `a` to `b`.
#[derive(Debug, Clone, Copy, Default)]
struct Content {
    present: f64,
    absent: f64,
    /// `∫ P·(1 - e^-(L-a))` and `∫ P·(e^(b-L) - 1)`.
    from_below: f64,
    from_above: f64,
    /// Relative error of the way to either end, for rounding of the loss.
    rounding: f64,
}

impl PairGrid {
    fn new(pair: &Pair, log_tail: f64, interval: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (_, part) in pair.parts() {
            let (from, to) = match part {
                SimplePair::Points(points) => points
                    .iter()
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), point| (a.min(point.loss), b.max(point.loss))),
                SimplePair::Normals(normals) => {
                    let (from, to) = range(normals, log_tail);
                    (normals.loss(from).0, normals.loss(to).0)
                }
                SimplePair::Mirrored(normals) => {
                    let largest = normals.loss(range(normals, log_tail).1).0;
                    (-largest, largest)
                }
            };
            (low, high) = (low.min(from), high.max(to));
        }
        // At the infimum of a loss, near which most of the probability may lie: then the grid need
        // not resolve it.
        let offset = match pair.parts() {
            [(_, SimplePair::Normals(normals))] if normals.infimum().is_finite() => normals.infimum(),
            _ => 0.0,
        };
        let first = ((low - offset) / interval).floor() as i64;
        let last = (((high - offset) / interval).ceil() as i64).max(first + 1);
        Self { interval, offset, first, last }
    }
}

/// Cells that [`cut`] would make.
pub(super) fn n_cells(pair: &Pair, log_tail: f64, interval: f64) -> f64 {
    let grid = PairGrid::new(pair, log_tail, interval);
    (grid.last - grid.first) as f64
}

/// Where neither `P` nor `Q` has more than `exp(log_tail)` on either side.
fn range(normals: &Normals, log_tail: f64) -> (f64, f64) {
    let (low, high) = normals.means();
    let reach = (-2.0 * log_tail).sqrt();
    (low - reach, high + reach)
}

/// Bound on the relative rounding error of a cell's probability: exponents of up to 690, which the
/// tails end at, and of normals the point `x` and the means `m`, to which `(x - m)²/2` is as
/// sensitive as `|x - m|`.
fn relative_error(pair: &Pair, log_tail: f64) -> f64 {
    let widest = |(_, part): &(f64, SimplePair)| match part {
        SimplePair::Points(_) => 0.0,
        SimplePair::Normals(normals) | SimplePair::Mirrored(normals) => {
            let (low, high) = range(normals, log_tail);
            (high - low) * low.abs().max(high.abs())
        }
    };
    f64::EPSILON * (4096.0 + 16.0 * pair.parts().iter().map(widest).fold(0.0, f64::max))
}

/// Cells of both directions, with rounding resolved upwards and downwards.
pub(super) fn cut(pair: &Pair, log_tail: f64, interval: f64) -> Cut {
    cut_off(pair, log_tail, interval, 0.0)
}

/// The same where every outcome's loss is known to an error only.
pub(super) fn cut_off(pair: &Pair, log_tail: f64, interval: f64, loss_error: f64) -> Cut {
    let grid = PairGrid::new(pair, log_tail, interval);
    let cells = (grid.last - grid.first) as usize;
    let mut contents = vec![Content::default(); cells];
    let mut outside = 0.0;
    for (weight, part) in pair.parts() {
        match part {
            SimplePair::Points(points) => {
                for point in points {
                    let above = point.loss - grid.offset;
                    let k = ((above / interval).floor() as i64).clamp(grid.first, grid.last - 1);
                    let (a, b) = (k as f64 * interval, (k + 1) as f64 * interval);
                    let content = &mut contents[(k - grid.first) as usize];
                    let present = weight * point.present;
                    content.present += present;
                    content.absent += weight * point.absent;
                    content.from_below += present * -libm::expm1(-(above - a).max(0.0));
                    content.from_above += present * libm::expm1((b - above).max(0.0));
                    let error = 32.0 * f64::EPSILON * (1.0 + above.abs()) + loss_error;
                    content.rounding = content.rounding.max(error / interval);
                }
                outside += weight * (1e-290 + pair.left_out());
            }
            SimplePair::Normals(normals) => {
                add_normals(normals, *weight, grid, grid.first, log_tail, &mut contents);
                outside += weight * 2.0 * libm::exp(log_tail);
            }
            SimplePair::Mirrored(normals) => {
                add_mirrored(normals, *weight, grid, log_tail, &mut contents);
                outside += weight * 2.0 * libm::exp(log_tail);
            }
        }
    }
    let growth = libm::exp(interval);
    let relative = relative_error(pair, log_tail);
    let empty = |first: i64, offset: f64| {
        let zeros = || vec![0.0; cells];
        Cells { offset, first, low: zeros(), high: zeros(), rounding: zeros(), relative, at_zero: 0.0 }
    };
    let new = || [empty(grid.first, grid.offset), empty(-grid.last, -grid.offset)];
    let (mut upper, mut lower) = (new(), new());
    for (i, content) in contents.iter().enumerate() {
        let (below, above) = (content.from_below, content.from_above);
        let ways = [(i, content.present, below * growth, above), (cells - 1 - i, content.absent, above, below)];
        for (d, (cell, total, up, down)) in ways.into_iter().enumerate() {
            let [low, high] = shares(down, up);
            let rounding = content.rounding.min(1.0);
            (upper[d].low[cell], upper[d].high[cell]) =
                (total * (low - rounding).max(0.0), total * (high + rounding).min(1.0));
            (lower[d].low[cell], lower[d].high[cell]) =
                (total * (low + rounding).min(1.0), total * (high - rounding).max(0.0));
        }
    }
    Cut { directions: upper, lower: Some(lower), outside }
}

/// Losses above 0, and as much of their mirror image; the rest of the probability at 0, a grid
/// point.
fn add_mirrored(normals: &Normals, weight: f64, grid: PairGrid, log_tail: f64, contents: &mut [Content]) {
    let mut above = vec![Content::default(); contents.len()];
    add_normals(normals, weight, grid, 0, log_tail, &mut above);
    let zero = (-grid.first) as usize;
    let mut elsewhere = 0.0;
    for (i, part) in above.iter().enumerate().skip(zero) {
        let (a, b) = ((i - zero) as f64 * grid.interval, (i - zero + 1) as f64 * grid.interval);
        let mirror = Content {
            present: part.absent,
            absent: part.present,
            from_below: libm::exp(-b) * part.from_above,
            from_above: libm::exp(-a) * part.from_below,
            rounding: part.rounding,
        };
        elsewhere += part.present + part.absent;
        contents[i].add(part);
        if let Some(opposite) = (2 * zero).checked_sub(i + 1) {
            contents[opposite].add(&mirror);
        }
    }
    let rest = (weight - elsewhere).max(0.0);
    contents[zero].add(&Content {
        present: rest,
        absent: rest,
        from_above: rest * libm::expm1(grid.interval),
        ..Content::default()
    });
}

impl Content {
    fn add(&mut self, other: &Self) {
        self.present += other.present;
        self.absent += other.absent;
        self.from_below += other.from_below;
        self.from_above += other.from_above;
        self.rounding = self.rounding.max(other.rounding);
    }
}

/// Panels of the quadrature: each is as wide as the inverse of one more than the distance to the
/// farther mean.
pub(super) fn n_panels(pair: &Pair, log_tail: f64) -> f64 {
    let of = |(_, part): &(f64, SimplePair)| match part {
        SimplePair::Points(_) => 0.0,
        SimplePair::Normals(normals) | SimplePair::Mirrored(normals) => {
            let (low, high) = range(normals, log_tail);
            (high - low) * (1.0 + high - low)
        }
    };
    pair.parts().iter().map(of).sum()
}

/// Adds what lies in the cells from `first` on.
fn add_normals(normals: &Normals, weight: f64, grid: PairGrid, first: i64, log_tail: f64, contents: &mut [Content]) {
    let (lowest, end) = range(normals, log_tail);
    let off_grid = |x: f64, k: i64| (normals.loss(x).0 - grid.offset - k as f64 * grid.interval).abs();
    let start = if first > grid.first {
        inverse(normals, grid.offset + first as f64 * grid.interval, lowest, end)
    } else {
        lowest
    };
    let (low_mean, high_mean) = normals.means();
    let above_offset = |x: f64| normals.loss(x).0 - grid.offset;
    let (mut x, mut previous_off) = (start, if first > grid.first { off_grid(start, first) } else { 0.0 });
    for k in first..grid.last {
        if x >= end {
            break;
        }
        let (a, b) = (k as f64 * grid.interval, (k + 1) as f64 * grid.interval);
        let to = if k + 1 == grid.last { end } else { inverse(normals, grid.offset + b, x, end) };
        // How far the cell's upper end is from the grid point, unless that is where everything
        // ends.
        let off = if to < end { off_grid(to, k + 1) } else { 0.0 };
        let at_either_end = off.max(previous_off);
        previous_off = off;
        let content = &mut contents[(k - grid.first) as usize];
        let mut error = 0.0_f64;
        while x < to {
            let roughness = 1.0 + (x - low_mean).abs().max((x - high_mean).abs());
            let width = roughness.recip().min(to - x);
            // Errors below 1e-15 over panels as wide as the inverse of the density's roughness, and
            // as a fiftieth of it.
            let rule = if width * roughness < 0.02 { &RULE_3[..] } else { &RULE_8[..] };
            for &(node, share) in rule {
                let at = x + 0.5 * width * (1.0 + node);
                let (present, absent) = normals.log_densities(at);
                let scale = 0.5 * width * share * weight;
                let (present, absent) = (libm::exp(present) * scale, libm::exp(absent) * scale);
                let above = above_offset(at);
                content.present += present;
                content.absent += absent;
                content.from_below += present * -libm::expm1(-(above - a).max(0.0));
                content.from_above += present * libm::expm1((b - above).max(0.0));
                error = error.max(at.abs() * high_mean.abs().max(low_mean.abs()) + above.abs());
            }
            x = if to - x <= width { to } else { x + width };
        }
        let rounding = (32.0 * f64::EPSILON * (1.0 + error) + at_either_end) / grid.interval;
        content.rounding = content.rounding.max(rounding);
    }
}

/// The `x` in `[from, end]` at which the loss is `target`, or the nearer end.
fn inverse(normals: &Normals, target: f64, from: f64, end: f64) -> f64 {
    let (mut low, mut high) = (from, end);
    if normals.loss(high).0 <= target {
        return high;
    }
    let mut x = from;
    for _ in 0..200 {
        let (loss, slope) = normals.loss(x);
        if loss < target {
            low = low.max(x);
        } else {
            high = high.min(x);
        }
        let newton = x + (target - loss) / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if (next - x).abs() <= 1e-14 * (1.0 + x.abs()) || high - low <= 1e-14 * (1.0 + high.abs()) {
            return next;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::survival;

    /// `Σ mass·(1 - e^(ε - x))⁺`.
    fn profile(cells: &Cells, interval: f64, epsilon: f64) -> f64 {
        let mut sum = 0.0;
        for (i, (low, high)) in cells.low.iter().zip(&cells.high).enumerate() {
            for (mass, k) in [(low, i as i64), (high, i as i64 + 1)] {
                let x = cells.offset + (cells.first + k) as f64 * interval;
                sum += mass * (-libm::expm1((epsilon - x).min(0.0)));
            }
        }
        sum
    }

    /// `H_γ(P, Q)` of mixtures by the half-line at which the ratio is γ: differences of tails.
    fn exact(normals: &Normals, epsilon: f64, reversed: bool) -> f64 {
        let (low, high) = normals.means();
        let target = if reversed { -epsilon } else { epsilon };
        if target <= normals.infimum() {
            return if reversed { 0.0 } else { 1.0 - epsilon.exp() };
        }
        let x = inverse(normals, target, low - 60.0, high + 60.0);
        let tail = |components: &[crate::pair::Component], sign: f64| -> f64 {
            components.iter().map(|c| c.weight * survival(sign * (x - c.mean))).sum()
        };
        if reversed {
            tail(&normals.absent, -1.0) - epsilon.exp() * tail(&normals.present, -1.0)
        } else {
            tail(&normals.present, 1.0) - epsilon.exp() * tail(&normals.absent, 1.0)
        }
    }

    #[test]
    fn the_dots_lie_on_the_profile() {
        let pairs = [
            Pair::mixture_of_gaussians(1.0, &[0.0, 1.0, 2.0], &[0.81, 0.18, 0.01]),
            Pair::mixture_of_gaussians(0.6, &[0.0, 1.0], &[0.99, 0.01]),
            Pair::mixture_of_gaussians(2.0, &[1.0, 3.0], &[0.5, 0.5]),
            Pair::replaced_in_poisson_batch(0.1, 0.8),
        ];
        let interval = 0.01;
        for pair in &pairs {
            let cut = cut(pair, -60.0, interval);
            let [(_, SimplePair::Normals(normals))] = pair.parts() else { panic!("normals") };
            for (d, reversed) in [(0, false), (1, true)] {
                let cells = &cut.directions[d];
                let total: f64 = cells.low.iter().chain(&cells.high).sum();
                assert!((total - 1.0).abs() < 1e-13, "{total}");
                for k in [-40_i64, -3, 0, 2, 17, 60] {
                    let epsilon = cells.offset + k as f64 * interval;
                    let (dot, truth) = (profile(cells, interval, epsilon), exact(normals, epsilon, reversed));
                    // At grid points connect-the-dots is exact, but for rounding, which goes up.
                    assert!((dot - truth).abs() < 2e-12, "{reversed} {k}: {dot} {truth}");
                }
            }
        }
    }
}
