//! Cholesky factors and their inverses.

use dp_engine::vector_math::vectorise;

/// Values that are multiplied and added side by side.
const LANES: usize = 8;

/// A lower triangular matrix with a positive diagonal, `[size, size]` row-major; zeros above.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lower {
    pub(super) size: usize,
    pub(super) values: Vec<f64>,
}

impl Lower {
    /// `L` with `L Lᵀ = A + ridge · I` for a symmetric `A`, given as its upper triangle row by row;
    /// `None` unless that is positive definite.
    pub(super) fn cholesky(upper: &[f64], size: usize, ridge: f64) -> Option<Self> {
        let mut values = vec![0.0; size * size];
        let mut rest = upper;
        for i in 0..size {
            let (row, below) = rest.split_at(size - i);
            rest = below;
            for (j, &value) in row.iter().enumerate() {
                values[(i + j) * size + i] = value;
            }
            values[i * size + i] += ridge;
        }
        for i in 0..size {
            let (above, row) = values.split_at_mut(i * size);
            for j in 0..i {
                let other = &above[j * size..=j * size + j];
                let product = dot(&row[..j], &other[..j]);
                row[j] = (row[j] - product) / other[j];
            }
            let pivot = row[i] - dot(&row[..i], &row[..i]);
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            row[i] = pivot.sqrt();
        }
        Some(Self { size, values })
    }

    /// `L⁻¹`.
    pub(super) fn inverse(&self) -> Self {
        let size = self.size;
        let mut values = vec![0.0; size * size];
        for (i, factors) in self.values.chunks_exact(size).enumerate() {
            let (above, row) = values.split_at_mut(i * size);
            for (k, &factor) in factors[..i].iter().enumerate() {
                subtract(&mut row[..=k], factor, &above[k * size..=k * size + k]);
            }
            row[i] = 1.0;
            for value in &mut row[..=i] {
                *value /= factors[i];
            }
        }
        Self { size, values }
    }

    /// `L x`.
    pub(super) fn times(&self, x: &[f64]) -> Vec<f64> {
        self.values.chunks_exact(self.size).enumerate().map(|(i, row)| dot(&row[..=i], &x[..=i])).collect()
    }

    /// `Lᵀ x`.
    pub(super) fn transposed_times(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.size];
        for (i, row) in self.values.chunks_exact(self.size).enumerate() {
            subtract(&mut out[..=i], -x[i], &row[..=i]);
        }
        out
    }
}

/// In lanes, so that the loop vectorises.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let mut rest = 0.0;
    vectorise(
        #[inline(always)]
        || {
            let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
            for (a, b) in a.iter().zip(b) {
                for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                    *lane += a * b;
                }
            }
            rest = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
        },
    );
    lanes.iter().sum::<f64>() + rest
}

/// `to −= factor · from`.
fn subtract(to: &mut [f64], factor: f64, from: &[f64]) {
    vectorise(
        #[inline(always)]
        || {
            for (to, &from) in to.iter_mut().zip(from) {
                *to -= factor * from;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [[4, 2], [2, 5]] = L Lᵀ with L = [[2, 0], [1, 2]], and L⁻¹ = [[1/2, 0], [−1/4, 1/2]].
    #[test]
    fn two_by_two_by_hand() {
        let lower = Lower::cholesky(&[3.0, 2.0, 4.0], 2, 1.0).unwrap();
        assert_eq!(lower.values, [2.0, 0.0, 1.0, 2.0]);
        assert_eq!(lower.inverse().values, [0.5, 0.0, -0.25, 0.5]);
        assert_eq!(lower.times(&[1.0, 3.0]), [2.0, 7.0]);
        assert_eq!(lower.transposed_times(&[1.0, 3.0]), [5.0, 6.0]);
        assert_eq!(Lower::cholesky(&[1.0, 2.0, 1.0], 2, 0.5), None);
        assert_eq!(Lower::cholesky(&[f64::NAN], 1, 0.5), None);
    }

    #[test]
    fn a_factor_times_its_inverse_is_the_identity() {
        let size = 67;
        let entry =
            |i: usize, j: usize| ((i * 31 + j * 17) % 23) as f64 / 23.0 + ((j * 31 + i * 17) % 23) as f64 / 23.0;
        let upper: Vec<f64> = (0..size).flat_map(|i| (i..size).map(move |j| entry(i, j))).collect();
        let lower = Lower::cholesky(&upper, size, 60.0).unwrap();
        let inverse = lower.inverse();
        for k in 0..size {
            let mut unit = vec![0.0; size];
            unit[k] = 1.0;
            let back = lower.times(&inverse.times(&unit));
            assert!(back.iter().zip(&unit).all(|(a, b)| (a - b).abs() < 1e-12));
            // L Lᵀ e_k is column k.
            let column = lower.times(&lower.transposed_times(&unit));
            for (i, value) in column.iter().enumerate() {
                let expected = entry(i.min(k), i.max(k)) + if i == k { 60.0 } else { 0.0 };
                assert!((value - expected).abs() < 1e-11, "{i} {k}");
            }
        }
    }
}
