//! One run of private training, as far as privacy is concerned.

use clap::ValueEnum;
use dp_accounting::{AccountingError, DpEvent, NeighbouringRelation, NoiseMultiplier, SamplingRate};
use serde::Serialize;

/// How batches are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Sampler {
    /// Every record independently.
    Poisson,
    /// A random subset of fixed size.
    FixedSize,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Setting {
    pub(super) sampler: Sampler,
    pub(super) sampling_rate: f64,
    /// Records and batch size, where they were given.
    pub(super) population: Option<(u64, u64)>,
    pub(super) noise_multiplier: f64,
    pub(super) count_noise_multipliers: Vec<f64>,
    pub(super) steps: u64,
    pub(super) delta: f64,
}

impl Setting {
    /// Fixed-size batches need neighbours of equal size.
    pub(super) const fn relation(&self) -> NeighbouringRelation {
        match self.sampler {
            Sampler::Poisson => super::RELATION,
            Sampler::FixedSize => NeighbouringRelation::ReplaceOne,
        }
    }

    /// One step.
    pub(super) fn event(&self) -> anyhow::Result<DpEvent> {
        let queries: Result<Vec<_>, AccountingError> = std::iter::once(self.noise_multiplier)
            .chain(self.count_noise_multipliers.iter().copied())
            .map(NoiseMultiplier::new)
            .collect();
        let queries = queries?;
        let step = if queries.len() == 1 { DpEvent::gaussian(queries[0]) } else { DpEvent::joint_gaussian(queries) };
        Ok(match (self.sampler, self.population) {
            (Sampler::Poisson, _) => step.poisson_sampled(SamplingRate::new(self.sampling_rate)?),
            (Sampler::FixedSize, Some((records, size))) => step.fixed_size_sampled(records, size)?,
            (Sampler::FixedSize, None) => anyhow::bail!("fixed-size batches need --records and --batch-size"),
        })
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sampler = match self.sampler {
            Sampler::Poisson => "Poisson batches",
            Sampler::FixedSize => "batches of fixed size",
        };
        write!(
            f,
            "{sampler} at rate {}, {} steps, noise multiplier {}",
            self.sampling_rate, self.steps, self.noise_multiplier
        )?;
        for count in &self.count_noise_multipliers {
            write!(f, ", count noise multiplier {count}")?;
        }
        write!(f, ", delta {:e}, {} neighbours", self.delta, self.relation())
    }
}
