//! Arithmetic on vectors of parameters in `f64`.

use dp_engine::vector_math::vectorise;

/// `⟨a, b⟩`, over the shorter length.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Eight sums, so that the loop vectorises: a single one would fix the order of the additions.
    let mut sums = [0.0; 8];
    vectorise(
        #[inline(always)]
        || {
            for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
                for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                    *sum += a * b;
                }
            }
        },
    );
    let done = a.len().min(b.len()) / 8 * 8;
    sums.iter().sum::<f64>() + a[done..].iter().zip(&b[done..]).map(|(a, b)| a * b).sum::<f64>()
}

/// `‖a‖`.
pub(super) fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// The mean, 0 of nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// `a *= factor`.
pub(super) fn scale(a: &mut [f64], factor: f64) {
    vectorise(
        #[inline(always)]
        || {
            for a in a.iter_mut() {
                *a *= factor;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::add_scaled;

    /// 1 + 4 + … + 19² = 19·20·39/6 = 2,470: two full blocks of eight and a rest of three.
    #[test]
    fn by_hand() {
        let mut a: Vec<f64> = (1..20).map(f64::from).collect();
        let b = a.clone();
        assert_eq!((dot(&a, &b), norm(&a)), (2_470.0, 2_470.0_f64.sqrt()));
        add_scaled(&mut a, 2.0, &b);
        scale(&mut a, 0.5);
        assert!(a.iter().zip(&b).all(|(a, b)| *a == 1.5 * b));
        assert_eq!(dot(&[], &[]), 0.0);
    }
}
