//! Norms of arbitrary values, shapes, threads and instruction sets against the plain formula.
#![no_main]

use dp_clipping::kernels::{Gradients, norms};
use dp_clipping_fuzz::{execution, stretch};
use libfuzzer_sys::fuzz_target;

fn check(norm: f64, row: impl Iterator<Item = f64> + Clone) {
    if row.clone().any(f64::is_nan) {
        assert!(norm.is_nan());
        return;
    }
    let largest = row.clone().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    if largest == 0.0 || largest.is_infinite() {
        assert_eq!(norm, largest);
        return;
    }
    let expected = largest * row.map(|x| (x / largest).powi(2)).sum::<f64>().sqrt();
    // A subnormal norm has few bits.
    assert!(norm == expected || (norm - expected).abs() <= 1e-12 * expected + 1e-322, "{norm} is not {expected}");
}

fuzz_target!(|input: (Vec<f64>, Vec<f32>, u16, u8, u8, u8)| {
    let (wide, narrow, n_params, n_records, threads, choices) = input;
    let execution = execution(threads, choices);
    let (n_params, n_records) = (usize::from(n_params % 600) + 1, usize::from(n_records % 20));
    let wide = stretch(&wide, n_params * n_records);
    let gradients = Gradients::from_slice(&wide, n_params).expect("whole rows");
    for (norm, row) in norms(&gradients, &execution).into_iter().zip(wide.chunks(n_params)) {
        check(norm, row.iter().copied());
    }
    let narrow = stretch(&narrow, n_params * n_records);
    let gradients = Gradients::from_slice(&narrow, n_params).expect("whole rows");
    for (norm, row) in norms(&gradients, &execution).into_iter().zip(narrow.chunks(n_params)) {
        check(norm, row.iter().copied().map(f64::from));
    }
});
