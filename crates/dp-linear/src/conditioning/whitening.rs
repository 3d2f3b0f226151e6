//! Products of many rows with the inverse of a Cholesky factor.

use std::ops::Range;

use candle_core::{Device, Tensor};
use dp_engine::TensorError;
use dp_engine::ops::{self, Operand};

use super::triangular::Lower;
use crate::error::Result;

/// Features of a tile.
pub(super) const TILE: usize = 192;

/// `L⁻¹` in single precision, as tiles `(i, j)` with `j ≤ i`, row after row of tiles.
#[derive(Debug, Clone)]
pub(super) struct Whitening {
    pub(super) inverse: Lower,
    tiles: Vec<Tensor>,
}

impl PartialEq for Whitening {
    fn eq(&self, other: &Self) -> bool {
        self.inverse == other.inverse
    }
}

impl Whitening {
    pub(super) fn new(inverse: Lower) -> Result<Self> {
        let size = inverse.size;
        let n_tiles = size.div_ceil(TILE);
        let mut tiles = Vec::with_capacity(n_tiles * (n_tiles + 1) / 2);
        for i in 0..n_tiles {
            for j in 0..=i {
                let (rows, columns) = (tile(i, size), tile(j, size));
                let shape = (rows.len(), columns.len());
                let values: Vec<f32> = rows
                    .flat_map(|row| &inverse.values[row * size..][columns.clone()])
                    .map(|&value| value as f32)
                    .collect();
                tiles.push(Tensor::from_vec(values, shape, &Device::Cpu).map_err(TensorError::from)?);
            }
        }
        Ok(Self { inverse, tiles })
    }

    /// `L⁻¹` times every row, in place.
    pub(super) fn apply(&self, rows: &mut [f32]) -> Result<()> {
        let size = self.inverse.size;
        let n_rows = rows.len() / size;
        let n_tiles = size.div_ceil(TILE);
        let strip = |at: usize| {
            let values: Vec<f32> = rows.chunks_exact(size).flat_map(|row| &row[tile(at, size)]).copied().collect();
            Tensor::from_vec(values, (n_rows, tile(at, size).len()), &Device::Cpu)
        };
        let strips =
            (0..n_tiles).map(strip).collect::<candle_core::Result<Vec<Tensor>>>().map_err(TensorError::from)?;
        for i in 0..n_tiles {
            let sum = strips[i].zeros_like().map_err(TensorError::from)?;
            for (j, strip) in strips[..=i].iter().enumerate() {
                let tile = &self.tiles[i * (i + 1) / 2 + j];
                ops::matmul(&sum, (strip, Operand::Plain), (tile, Operand::Transposed), j > 0)?;
            }
            let values = sum.flatten_all().and_then(|sum| sum.to_vec1::<f32>()).map_err(TensorError::from)?;
            let columns = tile(i, size);
            for (row, values) in rows.chunks_exact_mut(size).zip(values.chunks_exact(columns.len())) {
                row[columns.clone()].copy_from_slice(values);
            }
        }
        Ok(())
    }
}

/// Features of a tile.
fn tile(tile: usize, size: usize) -> Range<usize> {
    tile * TILE..((tile + 1) * TILE).min(size)
}
