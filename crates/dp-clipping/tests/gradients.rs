//! Every registered method on gradients in memory: one pass or two, the sum is `Σ s_i g_i`.

use dp_clipping::{
    ClipBatch, MethodEntry, PresetParams, PublicContext, clip_gradients,
    kernels::{GradientFloat, Gradients, KernelExecution, norms},
    registry,
};
use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

const N_RECORDS: usize = 30;
const N_PARAMS: usize = 77;

fn batch(seed: u64) -> (Array2<f64>, Vec<usize>) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut gradients =
        Array2::from_shape_fn((N_RECORDS, N_PARAMS), |(i, _)| rng.random_range(-1.0..1.0) * (1.0 + i as f64 / 5.0));
    gradients[[3, 5]] = f64::NAN;
    let groups = (0..N_RECORDS).map(|_| rng.random_range(0..3)).collect();
    (gradients, groups)
}

/// The methods that gradients alone are enough for.
fn without_losses() -> impl Iterator<Item = &'static MethodEntry> {
    registry::methods().iter().filter(|entry| !entry.default_config().needs_losses())
}

#[test]
fn a_method_that_needs_losses_is_refused_by_name() {
    let context = PublicContext { n_groups: 3, expected_batch_size: 28.0, noise_multiplier: 1.0 };
    let mut method = registry::find("group-dro").unwrap().default_config().build(&context).unwrap();
    let (array, groups) = batch(1);
    let gradients = Gradients::from_view(&array).unwrap();
    let (mut sum, mut rng) = (vec![0.0; N_PARAMS], ChaCha20Rng::seed_from_u64(2));
    let error = clip_gradients(&mut *method, &gradients, &groups, &mut rng, &mut sum, &KernelExecution::default());
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("losses = none: expected the loss of each record"), "{error}");
}

#[test]
fn the_sum_is_the_scaled_sum_of_every_method() {
    let context = PublicContext { n_groups: 3, expected_batch_size: 28.0, noise_multiplier: 1.0 };
    let params = PresetParams { clip_norm: 4.0, upper_bound: Some(6.0), ..PresetParams::default() };
    for entry in without_losses() {
        let (mut direct, mut reference) =
            ((entry.preset)(&params).build(&context).unwrap(), (entry.preset)(&params).build(&context).unwrap());
        let (mut rng, mut reference_rng) = (ChaCha20Rng::seed_from_u64(2), ChaCha20Rng::seed_from_u64(2));
        for step in 0..5 {
            let (array, groups) = batch(step);
            let gradients = Gradients::from_view(&array).unwrap();
            let mut sum = vec![f64::NAN; N_PARAMS];
            let clipped =
                clip_gradients(&mut *direct, &gradients, &groups, &mut rng, &mut sum, &KernelExecution::default())
                    .unwrap();

            let norms = norms(&gradients, &KernelExecution::default());
            let expected = reference.clip(&ClipBatch::new(&norms, &groups), &mut reference_rng).unwrap();
            assert_eq!(clipped, expected, "{}", entry.name);
            assert_eq!(clipped.n_non_finite, 1);
            for (j, &actual) in sum.iter().enumerate() {
                let terms = (0..N_RECORDS).filter(|&i| expected.scales[i] > 0.0);
                let expected: f64 = terms.map(|i| expected.scales[i] * array[[i, j]]).sum();
                assert!((actual - expected).abs() <= 1e-13 * clipped.bound * N_RECORDS as f64, "{}", entry.name);
            }
        }
        assert_eq!(direct.state(), reference.state());
    }
}

/// What a blanked record changes in the sum of `n` records of 1,000 parameters, over the bound.
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
fn moved_by_a_record<T: GradientFloat>(value: T, n: usize) -> f64 {
    let context = PublicContext { n_groups: 1, expected_batch_size: 1.0, noise_multiplier: 1.0 };
    let config = registry::find("dpsgd").unwrap().default_config();
    // Alike, so that every rounding errs to one side.
    let mut array = Array2::from_elem((n, 1_000), value);
    let [whole, blanked] = [false, true].map(|is_blank| {
        if is_blank {
            array.row_mut(n - 1).fill(T::default());
        }
        let mut sum = vec![T::default(); 1_000];
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let gradients = Gradients::from_view(&array).unwrap();
        let mut method = config.build(&context).unwrap();
        let groups = vec![0; n];
        clip_gradients(&mut *method, &gradients, &groups, &mut rng, &mut sum, &KernelExecution::default()).unwrap();
        sum
    });
    whole.into_iter().zip(blanked).map(|(a, b)| (a.into() - b.into()).powi(2)).sum::<f64>().sqrt()
}

/// The bound is kept in double precision. In single precision it is kept but for the rounding of
/// the sum: at 316, where each parameter's sum is, numbers are 2⁻¹⁵ apart, a thousandth of what a
/// record of length 1 adds to it, 0.0316.
#[test]
fn a_sum_in_single_precision_keeps_the_bound_but_for_its_rounding() {
    const N: usize = 9_999;
    let allowed = N as f64 / 8_388_608.0;
    let (single, double) = (moved_by_a_record(1.0_f32, N), moved_by_a_record(1.0_f64, N));
    assert!(single > 1.0 + 7e-4 && single < 1.0 + allowed, "{single}");
    assert!(double > 1.0 - 1e-5 && double <= 1.0, "{double}");
}

#[test]
fn an_empty_batch_is_a_noise_only_step() {
    let context = PublicContext { n_groups: 2, expected_batch_size: 5.0, noise_multiplier: 1.0 };
    for entry in without_losses() {
        let config = entry.default_config();
        let mut method = config.build(&context).unwrap();
        let gradients = Gradients::<f32>::from_rows([], 4).unwrap();
        let (mut sum, mut rng) = ([f32::NAN; 4], ChaCha20Rng::seed_from_u64(3));
        let clipped =
            clip_gradients(&mut *method, &gradients, &[], &mut rng, &mut sum, &KernelExecution::default()).unwrap();
        assert_eq!(sum, [0.0; 4], "{}", entry.name);
        assert!(clipped.bound > 0.0 && clipped.scales.is_empty());
        // The counts are released all the same, as noise.
        let planned = config.queries(&context);
        assert_eq!(clipped.queries.len(), planned.len());
        for (query, planned) in clipped.queries.iter().zip(&planned) {
            assert_eq!((&query.name, query.l2_sensitivity), (&planned.name, planned.l2_sensitivity));
            assert!(query.released.iter().all(|count| *count != 0.0));
        }
    }
}

#[test]
fn a_batch_that_does_not_fit_is_refused_before_the_step_is_taken() {
    let context = PublicContext { n_groups: 2, expected_batch_size: 5.0, noise_multiplier: 1.0 };
    let mut method = registry::find("adaptive").unwrap().default_config().build(&context).unwrap();
    let before = method.state();
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let gradients = Gradients::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 2).unwrap();
    let mut run = |groups: &[usize], sum: &mut [f32]| {
        clip_gradients(&mut *method, &gradients, groups, &mut rng, sum, &KernelExecution::default()).unwrap_err()
    };
    insta::assert_snapshot!(run(&[0], &mut [0.0; 2]), @"length of gradients = 2: expected 1, the length of groups");
    insta::assert_snapshot!(run(&[0, 1], &mut [0.0; 3]), @"length of sum = 3: expected 2, the length of parameters");
    insta::assert_snapshot!(run(&[0, 2], &mut [0.0; 2]), @"groups[1] = 2: expected a group index below 2");
    assert_eq!(method.state(), before);
}

#[test]
fn bad_configurations_are_refused() {
    let context = PublicContext { n_groups: 2, expected_batch_size: 5.0, noise_multiplier: 1.0 };
    let build = |name: &str, params: PresetParams, context: &PublicContext| {
        registry::find(name).unwrap().config(&params).and_then(|config| config.build(context)).err().unwrap()
    };
    let default = PresetParams::default();
    insta::assert_snapshot!(
        build("dpsgd", PresetParams { clip_norm: 0.0, ..default }, &context),
        @"clip_norm = 0: expected a number in [2^-60, 2^60]"
    );
    insta::assert_snapshot!(
        build("adaptive", PresetParams { target: Some(1.5), ..default }, &context),
        @"target = 1.5: expected a number in [0, 1]"
    );
    insta::assert_snapshot!(
        build("bounded-adaptive", PresetParams { lower_bound: Some(-1.0), ..default }, &context),
        @"lower_bound = -1: expected 0, or a number in [2^-60, 2^60]"
    );
    insta::assert_snapshot!(
        build("naive", default, &PublicContext { noise_multiplier: f64::NAN, ..context }),
        @"noise_multiplier = NaN: expected a number in [0, 2^60]"
    );
    insta::assert_snapshot!(
        build("dpsgd-f", default, &PublicContext { n_groups: 0, ..context }),
        @"n_groups = 0: expected at least 1"
    );
    insta::assert_snapshot!(
        build("dpsgd", default, &PublicContext { expected_batch_size: -1.0, ..context }),
        @"expected_batch_size = -1: expected a number in [2^-60, 2^60]"
    );
    let json =
        r#"{"rule":{"kind":"hard"},"controller":{"kind":"constant","threshold":-1.0},"weights":{"kind":"uniform"}}"#;
    insta::assert_snapshot!(
        serde_json::from_str::<dp_clipping::ClipConfig>(json).unwrap_err(),
        @"threshold = -1: expected a number in [2^-60, 2^60]"
    );
    let other = registry::find("adaptive").unwrap().config(&default).unwrap().build(&context).unwrap().state();
    let mut method = registry::find("dpsgd").unwrap().config(&default).unwrap().build(&context).unwrap();
    insta::assert_snapshot!(
        method.restore(&other).unwrap_err(),
        @"state: its configuration differs from the method's"
    );
}
