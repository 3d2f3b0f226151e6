//! A sum over records before its noise.

use dp_engine::Grid;
use rand_chacha::rand_core::CryptoRng;

use crate::conditioning::add_symmetric_noise;

/// A sum over records with the noise that it is to have. **Not private.**
#[derive(Clone, PartialEq)]
pub struct ExactSum {
    /// In steps of the grid: integers.
    pub values: Vec<f64>,
    /// The standard deviation of the noise, in the sum's own unit.
    pub std: f64,
    grid: Grid,
    /// Rows of a symmetric matrix, of which the values are the upper triangle by rows.
    size: Option<usize>,
}

/// Without the values.
impl std::fmt::Debug for ExactSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExactSum").field("len", &self.values.len()).field("std", &self.std).finish_non_exhaustive()
    }
}

impl ExactSum {
    /// A vector in steps of a grid.
    pub fn new(grid: Grid, values: Vec<f64>, std: f64) -> Self {
        Self { values, std, grid, size: None }
    }

    /// The upper triangle, by rows, of a symmetric matrix with this number of rows.
    pub fn symmetric(grid: Grid, values: Vec<f64>, size: usize, std: f64) -> Self {
        Self { values, std, grid, size: Some(size) }
    }

    /// The grid.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// How often each value is in the sum: off the diagonal of a matrix twice, with noise that is smaller
    /// by `√2`.
    pub fn multiplicities(&self) -> Vec<f64> {
        let Some(size) = self.size else { return vec![1.0; self.values.len()] };
        (0..size).flat_map(|row| (row..size).map(move |column| if row == column { 1.0 } else { 2.0 })).collect()
    }

    /// The sum with its noise, in its own unit.
    ///
    /// **Guarantee.** That of [`Grid::release`].
    pub fn release(mut self, rng: &mut dyn CryptoRng) -> Vec<f64> {
        let Some(size) = self.size else { return self.grid.release(self.values, self.std, rng) };
        add_symmetric_noise(&mut self.values, size, self.std / self.grid.step(), rng);
        for value in &mut self.values {
            *value *= self.grid.step();
        }
        self.values
    }
}
