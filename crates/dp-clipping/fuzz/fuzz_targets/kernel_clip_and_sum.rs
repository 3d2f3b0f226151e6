//! The fused kernel under arbitrary values: agrees with the two passes, and one record stays within
//! the bound.
#![no_main]

use dp_clipping::{
    AdvanceScale, ScaleRule,
    kernels::{GradientFloat, Gradients, clip_and_sum, norms, scale_and_sum},
};
use dp_clipping_fuzz::{execution, stretch};
use libfuzzer_sys::fuzz_target;

fn check<T: GradientFloat>(values: &[T], n_params: usize, bound: f64, epsilon: f64, threads: u8, choices: u8) {
    let execution = execution(threads, choices);
    let gradients = Gradients::from_slice(values, n_params).expect("whole rows");
    let hard = AdvanceScale { rule: ScaleRule::Hard, threshold: bound };
    let scale = |_: usize, norm: f64| hard.scale(norm);
    let mut fused = vec![T::from_f64(1.0); n_params];
    let (fused_norms, scales) = clip_and_sum(&gradients, scale, bound, &mut fused, &execution).expect("lengths fit");
    let plain_norms = norms(&gradients, &execution);
    assert!(fused_norms.iter().zip(&plain_norms).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())));
    let mut two_passes = vec![T::from_f64(1.0); n_params];
    scale_and_sum(&gradients, &scales, &mut two_passes, &execution).expect("lengths fit");
    // Every contribution is at most `bound`, so rounding is relative to that.
    let tolerance = epsilon * bound * (scales.len() as f64 + 1.0) * 4.0;
    for (&a, &b) in fused.iter().zip(&two_passes) {
        let (a, b): (f64, f64) = (a.into(), b.into());
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }
    if scales.len() == 1 {
        let length = fused.iter().map(|&x| Into::<f64>::into(x).powi(2)).sum::<f64>().sqrt();
        assert!(length <= bound, "{length} > {bound}");
    }
}

fuzz_target!(|input: (Vec<f64>, Vec<f32>, i8, u16, u8, u8, u8)| {
    let (wide, narrow, exponent, n_params, n_records, threads, choices) = input;
    let (n_params, n_records) = (usize::from(n_params % 600) + 1, usize::from(n_records % 40));
    let bound = 2.0_f64.powi(i32::from(exponent % 60));
    check(&stretch(&wide, n_params * n_records), n_params, bound, f64::EPSILON, threads, choices);
    check(&stretch(&narrow, n_params * n_records), n_params, bound, f64::from(f32::EPSILON), threads, choices);
});
