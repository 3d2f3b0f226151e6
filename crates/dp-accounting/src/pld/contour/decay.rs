//! How fast a characteristic function falls, proved from the density.
//!
//! The tilted loss has a density `g`. If `g` is at least a step function that rises to one cell and
//! falls after it, then `g` is a sum of layers `m·1_I` over nested intervals and something
//! non-negative, so `|E[e^(itx)]| ≤ 1 - Σ m·(|I| - |∫_I e^(itx) dx|) = 1 - Σ
//! m·|I|·(1 - |sinc(t|I|/2)|)`, and the same can be done with what is left.
//!
//! The step function: on a cell between two nodes `ln g` lies above the smaller of its values
//! there, less `(P⁺ + 1)·μ²h²/32`. For `ln g = -u²/2 + P·ln w - ln r + const`, where `-u²/2` is
//! concave, and `ln w` and `-ln r` are convex with a second derivative of at most `μ²/4`.

use super::moment::Tilted;

/// Layers of a minorant of the density.
#[derive(Debug, Clone)]
pub(super) struct Decay {
    /// Probability in the layer, and half its width.
    layers: Vec<(f64, f64)>,
}

impl Decay {
    pub(super) fn new(tilted: &Tilted, mu: f64, step: f64) -> Self {
        let (nodes, weights) = (&tilted.nodes, &tilted.weights);
        let dip = (tilted.power.max(0.0) + 1.0) * mu * mu * step * step / 32.0;
        // Errors of a density: the moment that it is divided by, its rounding, and the rounding of
        // the share, whose exponent is y.
        let density = |i: usize| {
            let share_error = 8.0 * f64::EPSILON * (2.0 + mu * (nodes[i].u.abs() + mu));
            let error = tilted.log_error + 1.01 * (tilted.weight_errors[i] + share_error);
            let per_loss = weights[i] / (step * mu * nodes[i].share) * libm::exp(-error - dip);
            if per_loss.is_finite() { per_loss } else { 0.0 }
        };
        let mut cells: Vec<f64> = (1..nodes.len()).map(|i| density(i - 1).min(density(i))).collect();
        let mut layers = Vec::new();
        // The second hump, of rare large losses, is what the first minorant leaves.
        for _ in 0..2 {
            peel(&mut cells, |i| nodes[i].log_ratio, &mut layers);
        }
        Self { layers }
    }

    /// Upper bound on `ln |E[e^(iτx)]|` for every `τ ≥ t`.
    pub(super) fn log_bound(&self, t: f64) -> f64 {
        let missing: f64 = self.layers.iter().map(|(mass, half)| mass * least_gap(t * half)).sum();
        // The terms are positive: a relative error of n ulp.
        let missing = missing * (1.0 - f64::EPSILON * (self.layers.len() as f64 + 16.0));
        libm::log1p(-missing.clamp(0.0, 1.0))
    }
}

/// Takes the largest step function that rises to the highest cell and falls after it away from the
/// cells, as layers.
fn peel(cells: &mut [f64], loss: impl Fn(usize) -> f64, layers: &mut Vec<(f64, f64)>) {
    let Some(mode) = (0..cells.len()).max_by(|&i, &j| cells[i].total_cmp(&cells[j])) else { return };
    let (mut left, mut right, mut level) = (mode, mode, cells[mode]);
    cells[mode] = 0.0;
    while level > 0.0 {
        let width = loss(right + 1) - loss(left);
        let below = left.checked_sub(1).map_or(0.0, |i| cells[i]);
        let above = cells.get(right + 1).copied().unwrap_or(0.0);
        let next = below.max(above).min(level);
        if next < level {
            layers.push(((level - next) * width, 0.5 * width));
        }
        level = next;
        if level > 0.0 {
            let taken = if below >= above { left - 1 } else { right + 1 };
            (left, right) = (left.min(taken), right.max(taken));
            cells[taken] -= level;
        }
    }
}

/// At most `1 - |sin(z)/z|` for every `z ≥ y`.
fn least_gap(y: f64) -> f64 {
    // 1 less the highest of the side lobes, |cos z| at tan z = z.
    const SIDE_LOBE: f64 = 0.217_233_628_211_222;
    if y < 1.0 {
        // The series alternates: y²/6 - y⁴/120 is below its sum.
        y * y / 6.0 * (1.0 - y * y / 20.0)
    } else if y < std::f64::consts::PI {
        1.0 - (libm::sin(y) / y).max(SIDE_LOBE) - 4.0 * f64::EPSILON
    } else {
        1.0 - y.recip().min(SIDE_LOBE) - 4.0 * f64::EPSILON
    }
}

#[cfg(test)]
mod tests {
    use super::super::nodes::Nodes;
    use super::*;

    #[test]
    fn bounds_the_characteristic_function_at_every_frequency() {
        for (q, mu, power) in
            [(0.001, 1.0, 21.0), (0.2, 0.5, 9.0), (0.01, 2.0, -3.0), (0.9, 0.3, 2.0), (1e-6, 3.0, 5.0)]
        {
            let step = 0.002;
            let tilted = Nodes::new(q, mu, step, 100_000).tilted(power, 40.0).unwrap();
            let decay = Decay::new(&tilted, mu, step);
            let mut strongest = 0.0_f64;
            for i in 0..60 {
                // As far as the trapezoidal sum can be trusted.
                let t = 0.1 / tilted.deviation * 1.15_f64.powi(i);
                if t * mu * step > 1.0 {
                    break;
                }
                let (mut re, mut im) = (0.0, 0.0);
                for (node, weight) in tilted.nodes.iter().zip(&tilted.weights) {
                    re += weight * (t * node.log_ratio).cos();
                    im += weight * (t * node.log_ratio).sin();
                }
                let (bound, truth) = (decay.log_bound(t), 0.5 * (re * re + im * im).ln());
                assert!(truth <= bound + 1e-12, "q {q} μ {mu} P {power} t {t}: {truth} > {bound}");
                strongest = strongest.min(bound);
            }
            assert!(strongest < -0.2, "q {q} μ {mu} P {power}: {strongest}");
        }
    }
}
