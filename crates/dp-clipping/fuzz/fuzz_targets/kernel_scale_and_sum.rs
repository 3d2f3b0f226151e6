//! Weighted sums: the same bits on every instruction set and number of threads as one column at a
//! time.
#![no_main]

use dp_clipping::kernels::{GradientFloat, Gradients, scale_and_sum};
use dp_clipping_fuzz::{execution, stretch};
use libfuzzer_sys::fuzz_target;

fn check<T: GradientFloat>(values: &[T], n_params: usize, scales: &[f64], threads: u8, choices: u8) {
    let gradients = Gradients::from_slice(values, n_params).expect("whole rows");
    let mut sum = vec![T::from_f64(1.0); n_params];
    scale_and_sum(&gradients, scales, &mut sum, &execution(threads, choices)).expect("lengths fit");
    for (j, &actual) in sum.iter().enumerate() {
        let mut expected = 0.0_f64;
        for (row, &scale) in values.chunks(n_params).zip(scales) {
            if scale != 0.0 {
                expected += row[j].into() * T::round_scale(scale);
            }
        }
        let (actual, expected): (f64, f64) = (actual.into(), T::from_f64(expected).into());
        assert!(actual == expected || (actual.is_nan() && expected.is_nan()), "{actual} is not {expected}");
    }
}

fuzz_target!(|input: (Vec<f64>, Vec<f32>, Vec<f64>, u16, u8, u8, u8)| {
    let (wide, narrow, scales, n_params, n_records, threads, choices) = input;
    let (n_params, n_records) = (usize::from(n_params % 600) + 1, usize::from(n_records % 20));
    let scales = if scales.is_empty() { vec![0.5; n_records] } else { stretch(&scales, n_records) };
    for (n, run) in [(wide.len(), 0), (narrow.len(), 1)] {
        if n == 0 {
            continue;
        }
        if run == 0 {
            check(&stretch(&wide, n_params * n_records), n_params, &scales, threads, choices);
        } else {
            check(&stretch(&narrow, n_params * n_records), n_params, &scales, threads, choices);
        }
    }
});
