//! Privacy loss of one query on the whole batch, before sampling: the log-likelihood ratio `y` of
//! "record present" to "record absent".

use std::f64::consts::LN_2;

use crate::normal::LOG_SQRT_TAU;

/// Distribution of `y` when the record is absent; when it is present its density is `e^y` times as
/// large.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BaseLoss {
    /// `y ~ N(-μ²/2, μ²)` with `μ = 1/σ`.
    Gaussian { mu: f64 },
    /// Half of the mass at `-t`, `e^-t/2` at `t`, the density `e^(-(y+t)/2)/4` between them, with
    /// `t = 1/scale`.
    Laplace { rate: f64 },
    /// `y = ε` with probability `1/(e^ε + n - 1)`, `-ε` with `e^ε` times that, else 0.
    RandomisedResponse { epsilon: f64, n_outcomes: u32 },
}

/// A point mass: `y`, probability when absent, probability when present.
pub(super) type Atom = (f64, f64, f64);

impl BaseLoss {
    /// The interval outside of which neither distribution has more than `exp(log_tail)` on either
    /// side.
    pub(super) fn range(self, log_tail: f64) -> (f64, f64) {
        match self {
            // P(N(0,1) > u) < exp(-u²/2).
            Self::Gaussian { mu } => {
                let reach = mu * (-2.0 * log_tail).sqrt() + 0.5 * mu * mu;
                (-reach, reach)
            }
            Self::Laplace { rate } => (-rate, rate),
            Self::RandomisedResponse { epsilon, .. } => (-epsilon, epsilon),
        }
    }

    /// Bound on the relative rounding error of a cell's probability: an exponential's is its
    /// argument's absolute one.
    ///
    /// Errors of the Gaussian's argument, `u²/2` with `u = y/μ + μ/2`, and `y` in the other
    /// density, `y` itself being a rounded node. μ is right to 6 ulp, to which the density is as
    /// sensitive as `|u|·(|y|/μ + μ/2) + 1`, at most `u²` and 1 at the far end.
    pub(super) fn relative_error(self, log_tail: f64) -> f64 {
        let size = match self {
            Self::Gaussian { mu } => {
                let reach = self.range(log_tail).1;
                let u = reach / mu + 0.5 * mu;
                12.0 * u * u + 4.0 * reach
            }
            Self::Laplace { rate } => 4.0 * rate,
            Self::RandomisedResponse { .. } => 0.0,
        };
        f64::EPSILON * (128.0 + size)
    }

    /// Whether any mass lies outside [`range`](Self::range).
    pub(super) const fn is_unbounded(self) -> bool {
        matches!(self, Self::Gaussian { .. })
    }

    pub(super) fn atoms(self) -> Vec<Atom> {
        match self {
            Self::Gaussian { .. } => Vec::new(),
            Self::Laplace { rate } => {
                let rare = 0.5 * libm::exp(-rate);
                vec![(-rate, 0.5, rare), (rate, rare, 0.5)]
            }
            Self::RandomisedResponse { epsilon, n_outcomes } => {
                let likely = 1.0 / (1.0 + f64::from(n_outcomes - 1) * libm::exp(-epsilon));
                let rare = likely * libm::exp(-epsilon);
                let mut atoms = vec![(-epsilon, likely, rare), (epsilon, rare, likely)];
                if n_outcomes > 2 {
                    let rest = f64::from(n_outcomes - 2) * rare;
                    atoms.insert(1, (0.0, rest, rest));
                }
                atoms
            }
        }
    }

    pub(super) const fn is_continuous(self) -> bool {
        !matches!(self, Self::RandomisedResponse { .. })
    }

    /// Logarithm of the density of `y` when the record is absent, as a function: it is evaluated
    /// millions of times.
    pub(super) fn log_density(self) -> impl Fn(f64) -> f64 {
        let log_scale = if let Self::Gaussian { mu } = self { libm::log(mu) } else { 0.0 };
        move |y| match self {
            Self::Gaussian { mu } => {
                let u = y / mu + 0.5 * mu;
                -0.5 * u * u - LOG_SQRT_TAU - log_scale
            }
            Self::Laplace { rate } => -0.5 * (y + rate) - 2.0 * LN_2,
            Self::RandomisedResponse { .. } => f64::NEG_INFINITY,
        }
    }

    /// Panels that cutting it takes, however few the cells: the integral of
    /// [`roughness`](Self::roughness).
    pub(super) fn n_panels(self, log_tail: f64) -> f64 {
        match self {
            Self::Gaussian { mu } => {
                let reach = self.range(log_tail).1 / mu;
                reach * (reach + mu + 2.0)
            }
            Self::Laplace { rate } => 2.0 * rate,
            Self::RandomisedResponse { .. } => 0.0,
        }
    }

    /// How fast the logarithm of either density can change at `y`, as a rate: panels are chosen
    /// against it.
    pub(super) fn roughness(self, y: f64) -> f64 {
        match self {
            Self::Gaussian { mu } => ((y / mu).abs() + 0.5 * mu + 1.0) / mu,
            Self::Laplace { .. } | Self::RandomisedResponse { .. } => 1.0,
        }
    }
}
