//! Loops over the values of a batch, compiled for the best instruction set of the machine.

use dp_engine::ops::{Element, double_dot};
use dp_engine::vector_math::vectorise;

/// `f(values[i], others[i])` in place.
pub(crate) fn update<T: Element>(values: &mut [T], others: &[T], f: impl Fn(T, T) -> T) {
    vectorise(
        #[inline(always)]
        || values.iter_mut().zip(others).for_each(|(value, &other)| *value = f(*value, other)),
    );
}

/// `sums[i] += values[i]`
pub(crate) fn add_to<T: Element>(sums: &mut [T], values: &[T]) {
    update(sums, values, |sum, value| sum + value);
}

/// `sums[i] += factor values[i]`
pub(crate) fn add_scaled<T: Element>(sums: &mut [T], factor: T, values: &[T]) {
    update(sums, values, |sum, value| sum + factor * value);
}

pub(crate) fn scale_rows<T: Element>(rows: &mut [T], width: usize, weights: &[f64]) {
    vectorise(
        #[inline(always)]
        || {
            for (row, &weight) in rows.chunks_exact_mut(width).zip(weights) {
                let weight = T::from_double(weight);
                for value in row {
                    *value *= weight;
                }
            }
        },
    );
}

/// `sums[i] += ⟨d_i, v_i⟩`
pub(crate) fn add_products<T: Element>(sums: &mut [f64], d: &[T], v: &[T], width: usize) {
    for (sum, (d, v)) in sums.iter_mut().zip(d.chunks_exact(width).zip(v.chunks_exact(width))) {
        *sum += dot(d, v);
    }
}

/// `Σ a[i] b[i]`
pub(crate) fn dot<T: Element>(a: &[T], b: &[T]) -> f64 {
    vectorise(
        #[inline(always)]
        || double_dot(a, b),
    )
}

/// `products[i] = a[i] b[i]`
pub(crate) fn multiply<T: Element>(products: &mut [f64], a: &[T], b: &[T]) {
    vectorise(
        #[inline(always)]
        || {
            for (product, (a, b)) in products.iter_mut().zip(a.iter().zip(b)) {
                *product = a.to_double() * b.to_double();
            }
        },
    );
}

/// `values[i] *= factors[i]`
pub(crate) fn scale<T: Element>(values: &mut [T], factors: &[f64]) {
    vectorise(
        #[inline(always)]
        || values.iter_mut().zip(factors).for_each(|(value, &factor)| *value *= T::from_double(factor)),
    );
}

/// `sums[i] = a x[i] + b y[i]`
pub(crate) fn combine(sums: &mut [f64], (a, x): (f64, &[f64]), (b, y): (f64, &[f64])) {
    vectorise(
        #[inline(always)]
        || {
            for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
                *sum = a * x + b * y;
            }
        },
    );
}
