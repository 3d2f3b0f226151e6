//! The guarantee of a step: one record more changes the clipped sum by at most the bound that the
//! noise is scaled to.

use dp_clipping::{ClipBatch, ClipConfig, MethodEntry, MethodState, PresetParams, PublicContext, registry};
use dp_train::{Activation, DType, Device, Engine, Loss, ModelConfig, Records};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::support::{Data, Run, batches, config, difference, mlp, norm, privacy_with};

fn certified() -> Vec<&'static MethodEntry> {
    registry::methods().iter().filter(|entry| entry.default_config().certified()).collect()
}

/// Norms of the given rows, and the positions that are not finite.
fn norms(engine: &mut Engine, records: &Records, rows: &[usize]) -> (Vec<f64>, Vec<usize>) {
    let (_, norms, bad) = losses_and_norms(engine, records, rows);
    (norms, bad)
}

/// The same after the losses.
fn losses_and_norms(engine: &mut Engine, records: &Records, rows: &[usize]) -> (Vec<f64>, Vec<f64>, Vec<usize>) {
    engine.differentiate(records, rows, &[]).unwrap();
    let norms = engine.gradient_norms().unwrap();
    let bad = norms.iter().enumerate().filter(|(_, norm)| !norm.is_finite()).map(|(i, _)| i).collect();
    (engine.losses().unwrap(), norms, bad)
}

fn clipped_sum(engine: &mut Engine, records: &Records, rows: &[usize], bad: &[usize], scales: &[f64]) -> Vec<f64> {
    engine.differentiate(records, rows, bad).unwrap();
    let sum = engine.zero_gradient().unwrap();
    engine.weighted_sum(scales, &sum, false).unwrap();
    sum.to_vec().unwrap()
}

/// State of a method after two steps on these norms.
fn warmed_up(
    config: &ClipConfig,
    context: &PublicContext,
    batch: &ClipBatch<'_>,
    rng: &mut ChaCha20Rng,
) -> MethodState {
    let mut method = config.build(context).unwrap();
    for _ in 0..2 {
        method.clip(batch, rng).unwrap();
    }
    MethodState::from_value(&method.state()).unwrap()
}

/// A factor on a record's features: ordinary, tiny, huge, or none at all.
fn stretch() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => (-2.0..2.0_f32).prop_map(|e| 10_f32.powf(e)),
        2 => (-40.0..38.5_f32).prop_map(|e| 10_f32.powf(e)),
        1 => prop::sample::select(vec![0.0, 1e38, f32::MAX, f32::INFINITY, f32::NAN]),
    ]
}

fn model() -> impl Strategy<Value = ModelConfig> {
    let activation = prop::sample::select(vec![Activation::Tanh, Activation::Relu, Activation::Sigmoid]);
    prop_oneof![
        Just(ModelConfig::LogisticRegression),
        (1_usize..6, activation).prop_map(|(width, activation)| mlp(&[width], activation)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    /// Given equal released counts, for real gradients of real models, in both precisions.
    #[test]
    fn neighbours_differ_by_at_most_the_bound(
        method in prop::sample::select(certified()),
        (clip_norm, gain) in (-9.0..5.0_f64, -1.0..3.0_f64),
        model in model(),
        loss in prop::sample::select(vec![Loss::SoftmaxCrossEntropy, Loss::BceWithLogits]),
        double in any::<bool>(),
        stretches in prop::collection::vec(stretch(), 1..12),
        position in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        // The neighbour has every record, the base all but one.
        let n = stretches.len();
        let mut data = Data::random(n, 3, 2, 3, seed);
        for (i, stretch) in stretches.iter().enumerate() {
            data.features_of(i).iter_mut().for_each(|x| *x *= stretch);
        }
        let all: Vec<usize> = (0..n).collect();
        let mut base = all.clone();
        base.remove(position.index(n));

        let records = data.records(if double { DType::F64 } else { DType::F32 });
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut engine = Engine::new(&model, loss, &records, &Device::Cpu).unwrap();
        engine.model().initialise(&mut rng).unwrap();
        // Large parameters saturate the loss: output gradients down to 0.
        let parameters = engine.model().parameters().to_vec().unwrap();
        let parameters: Vec<f64> = parameters.iter().map(|p| p * 10_f64.powf(gain)).collect();
        engine.model().parameters().set(&parameters).unwrap();

        let clip = method.config(&PresetParams { clip_norm: 10_f64.powf(clip_norm), ..PresetParams::default() }).unwrap();
        let context = PublicContext { n_groups: 3, expected_batch_size: 5.0, noise_multiplier: 1.0 };
        let groups_of = |rows: &[usize]| rows.iter().map(|&row| data.groups[row]).collect::<Vec<_>>();
        let (all_losses, all_norms, all_bad) = losses_and_norms(&mut engine, &records, &all);
        let (base_losses, base_norms, base_bad) = losses_and_norms(&mut engine, &records, &base);
        let (all_groups, base_groups) = (groups_of(&all), groups_of(&base));
        let all_batch = ClipBatch::new(&all_norms, &all_groups).with_losses(&all_losses[..]);
        let base_batch = ClipBatch::new(&base_norms, &base_groups).with_losses(&base_losses[..]);

        // The steps before and the counts of this one released the same.
        let state = warmed_up(&clip, &context, &base_batch, &mut rng);
        let mut base_method = clip.build(&context).unwrap();
        base_method.restore(&state.to_value()).unwrap();
        let base_clipped = base_method.clip(&base_batch, &mut rng).unwrap();
        let released: Vec<Vec<f64>> = base_clipped.queries.iter().map(|query| query.released.clone()).collect();
        let all_clipped = clip.replay(&context, &state, &all_batch, &released).unwrap();
        prop_assert_eq!(base_clipped.bound, all_clipped.bound);

        let base_sum = clipped_sum(&mut engine, &records, &base, &base_bad, &base_clipped.scales);
        let all_sum = clipped_sum(&mut engine, &records, &all, &all_bad, &all_clipped.scales);
        let change = norm(&difference(&all_sum, &base_sum));
        // A sum of n rounded terms of size at most S: the error of each of its n additions is half
        // an ulp of at most n S.
        let half_ulp = if double { f64::EPSILON } else { f64::from(f32::EPSILON) } / 2.0;
        let rounding = (n * n) as f64 * half_ulp * base_clipped.bound;
        prop_assert!(
            change <= base_clipped.bound + 2.0 * rounding,
            "{}: {change} > {}", method.name, base_clipped.bound
        );
        prop_assert!(all_sum.iter().all(|v| v.is_finite()));

        // One record on its own rounds no sum: no tolerance at all.
        let (own_norms, own_bad) = norms(&mut engine, &records, &all[..1]);
        let own_batch = ClipBatch::new(&own_norms, &all_groups[..1]).with_losses(&all_losses[..1]);
        let own = clip.replay(&context, &state, &own_batch, &released).unwrap();
        let contribution = norm(&clipped_sum(&mut engine, &records, &all[..1], &own_bad, &own.scales));
        prop_assert!(
            contribution <= own.group_bounds[all_groups[0]],
            "{}: {contribution} > {}", method.name, own.group_bounds[all_groups[0]]
        );
    }
}

/// An input of 1e12 beside biases that decide alone: the gradient is as large, its scale as small
/// as either can be. Beyond 2⁴⁰ a record contributes nothing: there a scaled output gradient could
/// be subnormal, and its rounding exceed the bound.
#[test]
fn a_huge_input_with_a_tiny_output_gradient_stays_bounded() {
    let engine_on = |input: f32| {
        let data = Data { features: vec![input], labels: vec![0], ..Data::random(1, 1, 2, 1, 1) };
        let records = data.records(DType::F32);
        let model = ModelConfig::LogisticRegression;
        let engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
        // The weights ignore the input; the biases alone decide.
        engine.model().parameters().set(&[0.0, 0.0, 20.0, 0.0]).unwrap();
        (engine, records)
    };
    let context = PublicContext { n_groups: 1, expected_batch_size: 1.0, noise_multiplier: 1.0 };
    let (mut engine, records) = engine_on(1e12);
    let (found, bad) = norms(&mut engine, &records, &[0]);
    assert!((2e3..4e3).contains(&found[0]), "{}", found[0]);
    for exponent in 0..60 {
        let params = PresetParams { clip_norm: 1e-18 * 2.0_f64.powi(exponent), ..PresetParams::default() };
        let mut method = registry::find("dpsgd").unwrap().config(&params).unwrap().build(&context).unwrap();
        let batch = ClipBatch::new(&found, &[0]);
        let clipped = method.clip(&batch, &mut ChaCha20Rng::seed_from_u64(1)).unwrap();
        assert!(clipped.scales[0] > 0.0);
        let contribution = norm(&clipped_sum(&mut engine, &records, &[0], &bad, &clipped.scales));
        assert!(contribution <= clipped.bound, "{contribution} > {}", clipped.bound);
    }
    let (mut engine, records) = engine_on(1.5e38);
    assert_eq!(norms(&mut engine, &records, &[0]).0, [f64::INFINITY]);
}

/// With parameters beyond all reason a record of zeros is not finite either: what stands in the
/// place of a blanked record has to be a record that is.
#[test]
fn a_blanked_record_adds_nothing_where_zeros_are_not_finite() {
    let data = Data { features: vec![2.0, f32::NAN, 3.0], labels: vec![0; 3], ..Data::random(3, 1, 2, 1, 1) };
    let records = data.records(DType::F32);
    let model = mlp(&[2], Activation::Relu);
    let mut engine = Engine::new(&model, Loss::BceWithLogits, &records, &Device::Cpu).unwrap();
    // Hidden units 1e30 (1 − x): off at 2 and 3, 1e30 at 0, where the logit overflows.
    engine.model().parameters().set(&[-1e30, -1e30, 1e30, 1e30, 1e30, 1e30, 0.0]).unwrap();
    let (found, bad) = norms(&mut engine, &records, &[0, 1, 2]);
    assert_eq!(bad, [1]);
    assert!(found[0] > 0.0 && found[2] > 0.0);
    let with = clipped_sum(&mut engine, &records, &[0, 1, 2], &bad, &[1.0, 0.0, 1.0]);
    let without = clipped_sum(&mut engine, &records, &[0, 2], &[], &[1.0, 1.0]);
    assert!(with.iter().all(|value| value.is_finite()));
    assert_eq!(with, without);
}

/// The same through the trainer, noise included: two data sets that differ in one record, the same
/// randomness, and thresholds that follow no counts. The noise is equal and cancels, but for its
/// rounding.
#[test]
fn parameters_of_neighbours_differ_by_at_most_the_bound() {
    const STEP_SIZE: f64 = 0.1;
    const BATCH: f64 = 12.0;
    let without_counts: Vec<_> = certified()
        .into_iter()
        .filter(|entry| {
            let context = PublicContext { n_groups: 2, expected_batch_size: BATCH, noise_multiplier: 1.0 };
            entry.default_config().count_noise_multipliers(&context).is_empty()
        })
        .collect();
    assert!(without_counts.len() >= 4);
    for entry in without_counts {
        for stretch in [1e-3, 1.0, 1e3, 1e30, f32::INFINITY] {
            let mut data = Data::random(BATCH as usize, 5, 2, 2, 3);
            data.features_of(4).iter_mut().for_each(|x| *x *= stretch);
            let mut neighbour = data.clone();
            // A record that is not finite contributes nothing: it is as good as absent.
            neighbour.features_of(4).fill(f32::NAN);
            let privacy = privacy_with(entry.name, 1.0, &PresetParams { clip_norm: 0.01, ..PresetParams::default() });
            let run = Run::new(config(mlp(&[7], Activation::Tanh), batches(1.0, 1), Some(privacy)), DType::F64);
            let (a, b) = (run.on(&data), run.on(&neighbour));
            assert_eq!(b.counts.non_finite, 1);
            let change = norm(&difference(&a.parameters, &b.parameters));
            let most = STEP_SIZE * a.bounds[0] / BATCH;
            // Rounding to the grid comes after the noise, so it may add a step of σS/256 in each
            // parameter and costs no privacy.
            let grid = most / 256.0 * (a.parameters.len() as f64).sqrt();
            // Parameters of size 1 with rounding 1e-16, some 60 of them.
            assert!(change <= most + grid + 1e-14, "{} at {stretch}: {change} > {most}", entry.name);
            assert!(stretch != 1.0 || change > 0.0, "{} at {stretch}", entry.name);
        }
    }
}
