//! Transposed copies of matrices.

use super::element::Element;

/// Side of a tile: a line of it is a cache line in single precision.
const TILE: usize = 16;

/// Writes a matrix of `rows` rows, which begin `stride` values apart, by columns: `[columns, rows]`.
///
/// In square tiles, so that a cache line of either side is used up while it is there.
pub(super) fn transpose<T: Element>(matrix: &[T], stride: usize, rows: usize, columns: usize, out: &mut [T]) {
    for row in (0..rows).step_by(TILE) {
        for column in (0..columns).step_by(TILE) {
            if row + TILE <= rows && column + TILE <= columns {
                whole_tile(&matrix[row * stride + column..], stride, &mut out[column * rows + row..], rows);
                continue;
            }
            for i in row..rows.min(row + TILE) {
                for j in column..columns.min(column + TILE) {
                    out[j * rows + i] = matrix[i * stride + j];
                }
            }
        }
    }
}

/// A whole tile; its lines lie `stride` values apart.
fn whole_tile<T: Element>(matrix: &[T], stride: usize, out: &mut [T], out_stride: usize) {
    let mut tile = [[T::ZERO; TILE]; TILE];
    for (i, line) in tile.iter_mut().enumerate() {
        if let Some(values) = matrix[i * stride..].first_chunk() {
            *line = *values;
        }
    }
    for j in 0..TILE {
        if let Some(line) = out[j * out_stride..].first_chunk_mut() {
            *line = std::array::from_fn::<T, TILE, _>(|i| tile[i][j]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns_whatever_the_stride() {
        for (rows, columns, stride) in [(1, 1, 1), (16, 16, 16), (33, 16, 20), (5, 40, 41), (48, 35, 35)] {
            let matrix: Vec<f32> = (0..rows * stride).map(|i| i as f32).collect();
            let mut out = vec![0.0; rows * columns];
            transpose(&matrix, stride, rows, columns, &mut out);
            for (at, value) in out.into_iter().enumerate() {
                assert_eq!(value, matrix[(at % rows) * stride + at / rows]);
            }
        }
    }
}
