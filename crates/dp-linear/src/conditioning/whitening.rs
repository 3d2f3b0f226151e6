//! Products of many rows with the inverse of a Cholesky factor.

use std::ops::Range;

use dp_engine::ops::{self, Matrix};

use super::triangular::Lower;
use crate::error::Result;

/// Features of a tile.
pub(super) const TILE: usize = 192;

/// `L⁻¹` in single precision, as tiles `(i, j)` with `j ≤ i`, row after row of tiles.
#[derive(Debug, Clone)]
pub(super) struct Whitening {
    pub(super) inverse: Lower,
    tiles: Vec<Tile>,
}

/// Row-major `[height, width]`.
#[derive(Debug, Clone)]
struct Tile {
    values: Vec<f32>,
    shape: [usize; 2],
}

impl PartialEq for Whitening {
    fn eq(&self, other: &Self) -> bool {
        self.inverse == other.inverse
    }
}

impl Whitening {
    pub(super) fn new(inverse: Lower) -> Self {
        let size = inverse.size;
        let n_tiles = size.div_ceil(TILE);
        let mut tiles = Vec::with_capacity(n_tiles * (n_tiles + 1) / 2);
        for i in 0..n_tiles {
            for j in 0..=i {
                let (rows, columns) = (tile(i, size), tile(j, size));
                let shape = [rows.len(), columns.len()];
                let values = rows
                    .flat_map(|row| &inverse.values[row * size..][columns.clone()])
                    .map(|&value| value as f32)
                    .collect();
                tiles.push(Tile { values, shape });
            }
        }
        Self { inverse, tiles }
    }

    /// `L⁻¹` times every row, in place.
    pub(super) fn apply(&self, rows: &mut [f32]) -> Result<()> {
        let size = self.inverse.size;
        let n_rows = rows.len() / size;
        let n_tiles = size.div_ceil(TILE);
        let mut whitened = vec![0.0; n_rows * TILE.min(size)];
        // A tile of the result depends on those before it alone, so the last one goes first.
        for i in (0..n_tiles).rev() {
            let columns = tile(i, size);
            for j in 0..=i {
                let Tile { values, shape: [height, width] } = &self.tiles[i * (i + 1) / 2 + j];
                let strip = Matrix::strided(&rows[j * TILE..], n_rows, *width, size)?;
                let tile = Matrix::strided(values, *height, *width, *width)?;
                ops::product(&mut whitened, columns.len(), strip, tile.transposed(), j > 0)?;
            }
            for (row, values) in rows.chunks_exact_mut(size).zip(whitened.chunks_exact(columns.len())) {
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
