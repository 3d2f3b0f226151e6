//! Every kernel, on every instruction set and number of threads, against the plain formula.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::num::NonZeroUsize;

use dp_clipping::{
    AdvanceScale, ScaleRule,
    kernels::{
        GradientFloat, Gradients, InstructionSet, KernelExecution, SumOrder, add_noise, clip_and_sum, norms,
        scale_and_sum, stream_read,
    },
};
use ndarray::{Array2, ArrayView2, Axis};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

/// Hard clipping at this threshold.
fn hard(threshold: f64) -> AdvanceScale {
    AdvanceScale { rule: ScaleRule::Hard, threshold }
}

/// All ways to run a kernel on this machine.
fn executions() -> Vec<KernelExecution> {
    let mut all = Vec::new();
    for &instruction_set in InstructionSet::available() {
        for threads in [1, 2, 3, 5] {
            for sum_order in [SumOrder::PerThreadCount, SumOrder::Fixed] {
                all.push(KernelExecution { threads: NonZeroUsize::new(threads).unwrap(), sum_order, instruction_set });
            }
        }
    }
    all
}

/// Normal values whose magnitude varies between rows, with some exact zeros.
fn gradients<T: GradientFloat>(n_records: usize, n_params: usize, seed: u64) -> Array2<T> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    Array2::from_shape_fn((n_records, n_params), |(i, j)| {
        let z: f64 = StandardNormal.sample(&mut rng);
        T::from_f64(if j % 7 == 3 { 0.0 } else { z * 10_f64.powf((i % 5) as f64 - 2.0) })
    })
}

/// Σ in f64, one value at a time.
fn reference_norms<T: GradientFloat>(gradients: &Array2<T>) -> Vec<f64> {
    gradients.rows().into_iter().map(|row| row.iter().map(|&x| x.into() * x.into()).sum::<f64>().sqrt()).collect()
}

fn reference_sum<T: GradientFloat>(gradients: &Array2<T>, scales: &[f64]) -> Vec<f64> {
    gradients
        .columns()
        .into_iter()
        .map(|column| {
            let terms = column.iter().zip(scales).filter(|&(_, &scale)| scale != 0.0);
            terms.map(|(&x, &scale)| x.into() * scale).sum()
        })
        .collect()
}

/// Relative to the sum of magnitudes: what rounding can move.
fn check_sum<T: GradientFloat>(actual: &[T], gradients: &Array2<T>, scales: &[f64], tolerance: f64) {
    let expected = reference_sum(gradients, scales);
    for (j, (&actual, expected)) in actual.iter().zip(expected).enumerate() {
        let actual: f64 = actual.into();
        let magnitude: f64 =
            gradients.column(j).iter().zip(scales).map(|(&x, scale)| (x.into() * scale).abs()).sum::<f64>();
        assert!((actual - expected).abs() <= tolerance * magnitude, "column {j}: {actual} is not {expected}");
    }
}

fn check_shape<T: GradientFloat>(n_records: usize, n_params: usize, tolerance: f64) {
    let array = gradients::<T>(n_records, n_params, (n_records * 1000 + n_params) as u64);
    let view = Gradients::from_view(&array).unwrap();
    let expected_norms = reference_norms(&array);
    let scales: Vec<f64> = expected_norms.iter().map(|&norm| hard(3.0).scale(norm)).collect();
    let mut first: Option<(Vec<u64>, Vec<u64>)> = None;
    for execution in executions() {
        let actual = norms(&view, &execution);
        for (actual, expected) in actual.iter().zip(&expected_norms) {
            assert!((actual - expected).abs() <= 1e-13 * expected, "{execution:?}: {actual} is not {expected}");
        }
        let mut sum = vec![T::from_f64(f64::NAN); n_params];
        scale_and_sum(&view, &scales, &mut sum, &execution).unwrap();
        check_sum(&sum, &array, &scales, tolerance);

        // The same bits whatever the instruction set and the number of threads.
        let bits: Vec<u64> = sum.iter().map(|&x| x.into().to_bits()).collect();
        let norm_bits: Vec<u64> = actual.iter().map(|x| x.to_bits()).collect();
        let first = first.get_or_insert((bits.clone(), norm_bits.clone()));
        assert_eq!((bits, norm_bits), *first, "{execution:?}");

        let mut fused = vec![T::from_f64(f64::NAN); n_params];
        let scale = |_: usize, norm: f64| hard(3.0).scale(norm);
        let (fused_norms, fused_scales) = clip_and_sum(&view, scale, 3.0, &mut fused, &execution).unwrap();
        assert_eq!(fused_norms, actual);
        check_sum(&fused, &array, &fused_scales, tolerance * 8.0);
    }
}

#[test]
fn f32_kernels_match_the_formula_in_every_shape() {
    for n_records in [0, 1, 2, 7, 8, 9, 33] {
        for n_params in [1, 2, 7, 8, 9, 63, 64, 65, 127, 130, 1000, 8200] {
            check_shape::<f32>(n_records, n_params, 3e-7);
        }
    }
    check_shape::<f32>(70, 20_011, 3e-7);
}

#[test]
fn f64_kernels_match_the_formula_in_every_shape() {
    for n_records in [0, 1, 8, 33] {
        for n_params in [1, 7, 8, 64, 65, 130, 8200] {
            check_shape::<f64>(n_records, n_params, 1e-15);
        }
    }
    check_shape::<f64>(70, 20_011, 1e-15);
}

#[test]
fn fixed_order_gives_the_same_bits_for_any_number_of_threads() {
    let array = gradients::<f32>(100, 20_000, 5);
    let view = Gradients::from_view(&array).unwrap();
    let run = |execution: &KernelExecution| {
        let mut sum = vec![0.0; 20_000];
        clip_and_sum(&view, |_, norm| hard(1.0).scale(norm), 1.0, &mut sum, execution).unwrap();
        sum.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    let fixed: Vec<_> = executions().iter().filter(|e| e.sum_order == SumOrder::Fixed).map(run).collect();
    assert!(fixed.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn views_of_columns_and_single_rows_work() {
    let array = gradients::<f64>(9, 40, 2);
    let part = array.slice(ndarray::s![2..7, 5..29]);
    let view = Gradients::from_view(part).unwrap();
    assert_eq!((view.n_records(), view.n_params()), (5, 24));
    let expected = reference_norms(&part.to_owned());
    for (actual, expected) in norms(&view, &KernelExecution::default()).iter().zip(&expected) {
        assert!((actual - expected).abs() <= 1e-14 * expected);
    }
    let whole = Gradients::from_view(&array).unwrap().columns(5..29).unwrap();
    assert_eq!(whole.row(2), view.row(0));

    let transposed: ArrayView2<f64> = array.t();
    insta::assert_snapshot!(
        Gradients::from_view(transposed).unwrap_err(),
        @"gradients: expected rows that are contiguous in memory"
    );
    let rows: Vec<&[f64]> = array.axis_iter(Axis(0)).map(|row| row.to_slice().unwrap()).collect();
    assert_eq!(Gradients::from_rows(rows, 40).unwrap().n_records(), 9);
}

#[test]
fn special_values_reach_nothing() {
    let rows = [
        vec![0.0_f64; 20],
        vec![f64::NAN; 20],
        [vec![1.0; 19], vec![f64::INFINITY]].concat(),
        vec![1e200; 20],
        vec![1e-200; 20],
        vec![5e-324; 20],
        vec![1.0; 20],
    ];
    let view = Gradients::from_rows(rows.iter().map(Vec::as_slice), 20).unwrap();
    for execution in executions() {
        let norms = norms(&view, &execution);
        assert_eq!(norms[0], 0.0);
        assert!(norms[1].is_nan());
        assert_eq!(norms[2], f64::INFINITY);
        // √20 times the value, although its square overflows or vanishes.
        for (norm, value) in [(norms[3], 1e200), (norms[4], 1e-200)] {
            assert!((norm / (20.0_f64.sqrt() * value) - 1.0).abs() < 1e-15);
        }
        assert!(norms[5] > 0.0);

        let mut sum = vec![0.0; 20];
        let scale = |_, norm| hard(1.0).scale(norm);
        let (_, scales) = clip_and_sum(&view, scale, 1.0, &mut sum, &execution).unwrap();
        assert_eq!((scales[1], scales[2]), (0.0, 0.0));
        // The scale of 1e200 would be below the smallest f32 and is 0; the last row reaches the
        // threshold: 1/√20 in each place.
        assert_eq!(scales[3], 0.0);
        assert!(sum.iter().all(|x| (x - 1.0 / 20.0_f64.sqrt()).abs() < 1e-5), "{sum:?}");
        let mut two_passes = vec![0.0; 20];
        scale_and_sum(&view, &scales, &mut two_passes, &execution).unwrap();
        assert!(sum.iter().zip(&two_passes).all(|(a, b)| (a - b).abs() < 1e-14));
    }
}

#[test]
fn f32_norms_neither_overflow_nor_vanish() {
    let rows = [vec![f32::MAX; 50], vec![f32::from_bits(1); 50]];
    let view = Gradients::from_rows(rows.iter().map(Vec::as_slice), 50).unwrap();
    let norms = norms(&view, &KernelExecution::default());
    assert!((norms[0] / (50.0_f64.sqrt() * f64::from(f32::MAX)) - 1.0).abs() < 1e-14);
    assert!((norms[1] / (50.0_f64.sqrt() * f64::from(f32::from_bits(1))) - 1.0).abs() < 1e-14);
}

#[test]
fn wrong_lengths_are_refused() {
    let view = Gradients::from_slice(&[1.0_f32; 6], 3).unwrap();
    let execution = KernelExecution::default();
    insta::assert_snapshot!(
        scale_and_sum(&view, &[1.0], &mut [0.0; 3], &execution).unwrap_err(),
        @"length of scales = 1: expected 2, the length of records"
    );
    insta::assert_snapshot!(
        scale_and_sum(&view, &[1.0; 2], &mut [0.0; 2], &execution).unwrap_err(),
        @"length of out = 2: expected 3, the length of parameters"
    );
    insta::assert_snapshot!(
        Gradients::from_slice(&[1.0_f32; 7], 3).unwrap_err(),
        @"length of gradients = 7: expected a multiple of n_params, 3"
    );
    insta::assert_snapshot!(
        Gradients::<f32>::from_slice(&[], 0).unwrap_err(),
        @"n_params = 0: expected at least 1"
    );
}

#[test]
fn stream_read_reads_everything_once() {
    let values: Vec<f64> = (0..123_457).map(f64::from).collect();
    for execution in executions() {
        assert_eq!(stream_read(&values, &execution), 123_456.0 * 123_457.0 / 2.0);
    }
}

#[test]
fn noise_is_standard_normal() {
    let n = 1 << 20;
    let mut values = vec![0.0_f64; n];
    add_noise(&mut values, 1.0, &mut ChaCha20Rng::seed_from_u64(17), &KernelExecution::default()).unwrap();
    let moment = |k: i32| values.iter().map(|x| x.powi(k)).sum::<f64>() / n as f64;
    let root_n = (n as f64).sqrt();
    // Moments with standard errors 1/√n, √2/√n, √15/√n, √96/√n; beyond 5 of them by chance: 6e-7
    // each.
    assert!(moment(1).abs() * root_n < 5.0);
    assert!((moment(2) - 1.0).abs() * root_n < 5.0 * 2_f64.sqrt());
    assert!(moment(3).abs() * root_n < 5.0 * 15_f64.sqrt());
    assert!((moment(4) - 3.0).abs() * root_n < 5.0 * 96_f64.sqrt());
    // Neighbours, the two values of a pair, and values at the same place of neighbouring blocks,
    // are uncorrelated; 5 standard errors.
    for lag in [1, 128, 256] {
        let correlation: f64 = values.iter().zip(&values[lag..]).map(|(x, y)| x * y).sum::<f64>() / root_n;
        assert!(correlation.abs() < 5.0, "lag {lag}: {correlation}");
    }
    // Beyond 4: n·6.334e-5 = 66.4 expected, standard error 8.15; 5 of them.
    let n_tail = values.iter().filter(|x| x.abs() > 4.0).count() as f64;
    assert!((n_tail - 66.4).abs() < 41.0, "{n_tail}");
}

#[test]
fn noise_depends_on_the_generator_alone() {
    let run = |execution: &KernelExecution, noise_std: f64| {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let mut values = vec![1.0_f32; 50_000];
        add_noise(&mut values, noise_std, &mut rng, execution).unwrap();
        (values, rng)
    };
    let (values, rng) = run(&KernelExecution::default(), 0.5);
    for execution in executions() {
        assert_eq!(run(&execution, 0.5), (values.clone(), rng.clone()));
    }
    // No noise: values as they were, the generator advanced alike.
    assert_eq!(run(&KernelExecution::default(), 0.0), (vec![1.0; 50_000], rng));
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    insta::assert_snapshot!(
        add_noise(&mut [0.0], f64::NAN, &mut rng, &KernelExecution::default()).unwrap_err(),
        @"noise_std = NaN: expected a finite number of at least 0"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Clipping to C keeps every record's contribution below C, in f32, whatever the values.
    #[test]
    fn a_clipped_record_is_within_the_bound(bits in prop::collection::vec(any::<f32>(), 1..200), bound in 1e-6..1e6) {
        let view = Gradients::from_slice(&bits, bits.len()).unwrap();
        let mut sum = vec![0.0_f32; bits.len()];
        clip_and_sum(&view, |_, norm| hard(bound).scale(norm), bound, &mut sum, &KernelExecution::default()).unwrap();
        let length = sum.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        prop_assert!(length <= bound, "{length} > {bound}");
    }

    /// Splitting a batch into micro-batches and adding their sums changes nothing but rounding.
    #[test]
    fn micro_batches_do_not_matter(n_records in 1_usize..40, split in any::<prop::sample::Index>(), seed in any::<u64>()) {
        let array = gradients::<f64>(n_records, 30, seed);
        let scales: Vec<f64> = (0..n_records).map(|i| 0.1 + i as f64).collect();
        let at = split.index(n_records + 1);
        let (head, tail) = array.view().split_at(Axis(0), at);
        let execution = KernelExecution::default();
        let (mut whole, mut a, mut b) = (vec![0.0; 30], vec![0.0; 30], vec![0.0; 30]);
        scale_and_sum(&Gradients::from_view(&array).unwrap(), &scales, &mut whole, &execution).unwrap();
        scale_and_sum(&Gradients::from_view(head).unwrap(), &scales[..at], &mut a, &execution).unwrap();
        scale_and_sum(&Gradients::from_view(tail).unwrap(), &scales[at..], &mut b, &execution).unwrap();
        let magnitude = whole.iter().fold(1.0_f64, |largest, x| largest.max(x.abs()));
        for ((whole, a), b) in whole.iter().zip(&a).zip(&b) {
            prop_assert!((whole - (a + b)).abs() <= 1e-12 * magnitude * n_records as f64);
        }
    }
}
