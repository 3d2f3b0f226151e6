//! Settings to be audited: random ones, and ones chosen where bounds are weakest.

use super::check::AuditCase;
use super::truth::Truth;
use crate::{AccountingError, DpEvent, NeighbouringRelation, NoiseMultiplier, SamplingRate};

/// Equal Poisson-sampled Gaussians; on the whole data with a rate of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Steps {
    pub(super) q: f64,
    pub(super) sigma: f64,
    pub(super) count: u64,
}

/// A composition and a δ.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RandomComposition {
    pub(super) kind: Kind,
    pub(super) steps: Vec<Steps>,
    pub(super) delta: f64,
}

/// Why a setting was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// As in papers.
    Ordinary,
    /// `q → 1` with little noise.
    NearlyAll,
    /// `q → 0`.
    NearlyNone,
    /// δ next to the total variation: `ε → 0`.
    NearTotalVariation,
    /// δ down to 1e-300.
    TinyDelta,
    /// σ from 1e-3 to 1e4.
    AnyNoise,
    /// T to 1e8.
    ManySteps,
    /// Different mechanisms in one composition.
    Mixture,
    /// Gaussians on the whole data.
    WholeData,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Ordinary,
        Self::NearlyAll,
        Self::NearlyNone,
        Self::NearTotalVariation,
        Self::TinyDelta,
        Self::AnyNoise,
        Self::ManySteps,
        Self::Mixture,
        Self::WholeData,
    ];
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ordinary => "as in papers",
            Self::NearlyAll => "q near 1",
            Self::NearlyNone => "q near 0",
            Self::NearTotalVariation => "δ near the total variation",
            Self::TinyDelta => "δ down to 1e-300",
            Self::AnyNoise => "σ from 1e-3 to 1e4",
            Self::ManySteps => "T up to 1e8",
            Self::Mixture => "mixtures",
            Self::WholeData => "no sampling",
        })
    }
}

impl std::fmt::Display for RandomComposition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, Steps { q, sigma, count }) in self.steps.iter().enumerate() {
            write!(f, "{}{count} × (q {q:?}, σ {sigma:?})", if i == 0 { "" } else { " + " })?;
        }
        write!(f, ", δ {:?}", self.delta)
    }
}

/// SplitMix64 (Steele, Lea & Flood 2014).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// Numbers of the `index`-th setting of a seed.
    pub(super) fn of(seed: u64, index: u64) -> Self {
        let mut random = Self(seed);
        random.0 ^= random.next().wrapping_add(index.wrapping_mul(0xd134_2543_de82_ef95));
        random
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2.0_f64.powi(-53)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Uniform in the logarithm.
    pub(super) fn scale(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

impl Steps {
    pub(super) fn event(&self) -> Result<DpEvent, AccountingError> {
        let event = DpEvent::gaussian(NoiseMultiplier::new(self.sigma)?);
        Ok(event.poisson_sampled(SamplingRate::new(self.q)?))
    }
}

impl RandomComposition {
    /// The case to judge, under add-remove or one direction of it.
    pub(super) fn case(&self, relation: NeighbouringRelation) -> Result<AuditCase, AccountingError> {
        let parts = self.steps.iter().map(|steps| Ok((steps.event()?, steps.count)));
        let parts = parts.collect::<Result<_, AccountingError>>()?;
        let (kind, setting, truth) = (self.kind.to_string(), self.to_string(), Truth::of(&self.steps));
        Ok(AuditCase { kind, setting, parts, relation, delta: self.delta, truth })
    }

    /// The `index`-th setting of a seed.
    pub(super) fn random(seed: u64, index: u64) -> Self {
        let random = &mut Random::of(seed, index);
        let kind = Kind::ALL[(random.next() % Kind::ALL.len() as u64) as usize];
        let few = |random: &mut Random| if random.one_in(2) { 1 } else { random.scale(2.0, 60.0) as u64 };
        let one = |q, sigma, count| vec![Steps { q, sigma, count }];
        let mut delta = random.scale(1e-12, 1e-2);
        let steps = match kind {
            Kind::Ordinary => {
                one(random.scale(1e-4, 0.3), random.scale(0.5, 10.0), random.scale(50.0, 20_000.0) as u64)
            }
            Kind::NearlyAll => {
                let count = few(random);
                one(1.0 - random.scale(1e-15, 1e-2), random.scale(0.01, 3.0), count)
            }
            Kind::NearlyNone => {
                let q = random.scale(1e-15, 1e-5);
                let count = if random.one_in(2) { 1 } else { random.scale(2.0, 1.0 / q.max(1e-7)) as u64 };
                delta = random.scale(1e-4 * q, q);
                one(q, random.scale(0.1, 10.0), count)
            }
            Kind::NearTotalVariation => {
                let (q, sigma) =
                    (if random.one_in(2) { 1.0 } else { random.scale(1e-3, 1.0) }, random.scale(0.1, 100.0));
                let count = if q == 1.0 { random.scale(1.0, 1e4) as u64 } else { 1 };
                // q·erf(√T/(σ√8)) is the total variation of these.
                let total = q * libm::erf((count as f64 / 8.0).sqrt() / sigma);
                let nearness = random.scale(1e-16, 1e-1);
                delta = (total * (1.0 - nearness)).clamp(1e-300, 1.0 - f64::EPSILON);
                one(q, sigma, count)
            }
            Kind::TinyDelta => {
                delta = random.scale(1e-300, 1e-12);
                let (q, sigma) = (random.scale(1e-4, 1.0), random.scale(0.3, 10.0));
                let count = if random.one_in(2) { 1 } else { random.scale(10.0, 3_000.0) as u64 };
                one(q, sigma, count)
            }
            Kind::AnyNoise => {
                let count = few(random);
                one(random.scale(1e-6, 1.0), random.scale(1e-3, 1e4), count)
            }
            Kind::ManySteps => {
                let count = random.scale(1e4, 1e8);
                // So that ε is of the order of 1: μ ≈ q·√T/σ.
                let sigma = random.scale(0.7, 30.0);
                let q = (random.scale(0.05, 3.0) * sigma / count.sqrt()).min(0.9);
                one(q, sigma, count as u64)
            }
            Kind::Mixture => {
                let n = 2 + (random.next() % 3) as usize;
                (0..n)
                    .map(|_| Steps {
                        q: if random.one_in(3) { 1.0 } else { random.scale(1e-3, 0.9) },
                        sigma: random.scale(0.6, 20.0),
                        count: random.scale(1.0, 2_000.0) as u64,
                    })
                    .collect()
            }
            Kind::WholeData => {
                delta = if random.one_in(2) { random.scale(1e-300, 1.0) } else { 1.0 - random.scale(1e-15, 0.5) };
                one(1.0, random.scale(1e-3, 1e4), random.scale(1.0, 1e8) as u64)
            }
        };
        Self { kind, steps, delta: delta.clamp(1e-300, 1.0 - f64::EPSILON) }
    }
}
