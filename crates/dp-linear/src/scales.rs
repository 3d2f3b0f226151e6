//! How often each feature occurs, released once, and the scales that follow.

use dp_accounting::NoiseMultiplier;
use dp_engine::Grid;

use crate::error::Result;
use crate::exact::sum_rows;
use crate::exact_sum::ExactSum;
use crate::rows::RowSource;
use crate::settings::Streams;

/// A feature is taken to be at least this many standard deviations of the noise: what is rarer
/// cannot be told from nothing.
const LEAST: f64 = 2.0;

/// Factors by which features are multiplied, and the bound on a scaled row.
#[derive(Debug, Clone, PartialEq)]
pub struct Scales {
    /// One factor per feature: one over the root of its mean square.
    pub factors: Vec<f64>,
    /// Rows are shortened to this length: the root of the mean square length.
    pub row_bound: f64,
    /// Released mean squares of the features.
    pub mean_squares: Vec<f64>,
    /// What is not above this cannot be told from nothing.
    pub least: f64,
}

/// Public facts about the features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureFacts {
    /// The constant's position and value.
    pub constant: (usize, f64),
    /// Bound on the norm of the squares of a row's other features, `√Σ x⁴`.
    pub squares: f64,
    /// Largest eigenvalue that second moments of scaled rows can have: one for every set of
    /// features that exclude each other.
    pub largest_eigenvalue: f64,
}

impl Scales {
    /// Releases `Σ w x²` over rows of weight `w`, feature by feature; `total` is the weight of all
    /// rows.
    ///
    /// **Guarantee.** A record adds the squares of its features, a vector of norm at most
    /// `facts.squares`; a longer one counts as blank. With `records_per_unit` records the noise
    /// grows by that factor.
    ///
    /// # Errors
    /// [`LinearError::Train`](crate::LinearError::Train) if a rank is gone.
    pub fn fit(
        rows: &impl RowSource,
        total: f64,
        facts: FeatureFacts,
        noise_multiplier: NoiseMultiplier,
        records_per_unit: f64,
        streams: &impl Streams,
    ) -> Result<Self> {
        let (constant, value) = facts.constant;
        let grid = Grid::for_values(facts.squares, rows.len());
        let sum = sum_rows(
            rows,
            rows.width(),
            || (),
            |(), _, row, sum| {
                let squares = || row.features().filter(|&(column, _)| column != constant).map(|(c, v)| (c, v * v));
                let norm = squares().map(|(_, square)| square * square).sum::<f64>().sqrt();
                if norm <= facts.squares {
                    for (column, square) in squares() {
                        sum[column] += grid.place(f64::from(row.weight) * square);
                    }
                }
            },
        )?;
        let std = noise_multiplier.get() * facts.squares * records_per_unit;
        let released = streams.release("feature squares", 0, ExactSum::new(grid, sum, std));
        let least = LEAST * std / total;
        let mut mean_squares: Vec<f64> = released.iter().map(|sum| sum / total).collect();
        mean_squares[constant] = value * value;
        let mut expected = 0.0;
        let factors = mean_squares
            .iter()
            .map(|mean| {
                let at_least = mean.max(least).max(f64::MIN_POSITIVE);
                expected += mean.max(0.0) / at_least;
                at_least.sqrt().recip()
            })
            .collect();
        Ok(Self { factors, row_bound: expected.max(1.0).sqrt(), mean_squares, least })
    }
}
