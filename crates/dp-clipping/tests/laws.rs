//! Laws that hold for every registered method and every combination.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use dp_clipping::{ClipBatch, ClipConfig, Clipped, Controller, MethodState, PublicContext, noise::GRID, registry};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

const DIMENSIONS: usize = 3;

fn context() -> impl Strategy<Value = PublicContext> {
    (1_usize..5, 0.5..300.0, 0.0..5.0).prop_map(|(n_groups, expected_batch_size, noise_multiplier)| PublicContext {
        n_groups,
        expected_batch_size,
        noise_multiplier,
    })
}

/// A record: group (reduced modulo K later), norm, a direction and a loss.
fn record() -> impl Strategy<Value = Record> {
    (0_usize..5, support::norm(), prop::array::uniform3(-1.0..1.0), support::norm())
}

type Record = (usize, f64, [f64; DIMENSIONS], f64);

/// The records as a method sees them.
struct Columns {
    norms: Vec<f64>,
    groups: Vec<usize>,
    losses: Vec<f64>,
}

impl Columns {
    fn of(records: &[Record], n_groups: usize) -> Self {
        Self {
            norms: records.iter().map(|record| record.1).collect(),
            groups: records.iter().map(|record| record.0 % n_groups).collect(),
            losses: records.iter().map(|record| record.3).collect(),
        }
    }

    fn batch(&self) -> ClipBatch<'_> {
        ClipBatch::new(&self.norms, &self.groups).with_losses(&self.losses[..])
    }
}

/// One step of a fresh method with a seeded generator, after `warm_up` steps on the same batch.
fn run(
    config: &ClipConfig,
    context: &PublicContext,
    records: &[Record],
    seed: u64,
    warm_up: u64,
) -> (MethodState, Clipped) {
    let mut method = config.build(context).unwrap();
    let columns = Columns::of(records, context.n_groups);
    let batch = columns.batch();
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    for _ in 0..warm_up {
        method.clip(&batch, &mut rng).unwrap();
    }
    let state = MethodState::from_value(&method.state()).unwrap();
    (state, method.clip(&batch, &mut rng).unwrap())
}

/// `Σ s_i g_i` where `g_i` has the given norm and direction; NaN and ∞ gradients are dropped as a
/// trainer does.
fn weighted_sum(scales: &[f64], records: &[Record]) -> [f64; DIMENSIONS] {
    let mut sum = [0.0; DIMENSIONS];
    for (&scale, &(_, norm, direction, _)) in scales.iter().zip(records) {
        let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        if scale > 0.0 && length > 0.0 {
            for (total, x) in sum.iter_mut().zip(direction) {
                *total += scale * norm * (x / length);
            }
        }
    }
    sum
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// The guarantee: one record more changes every count by at most its sensitivity and, given
    /// what was released, the sum by at most the bound.
    #[test]
    fn neighbours_differ_by_at_most_the_bound(
        config in support::config(),
        context in context(),
        records in prop::collection::vec(record(), 0..40),
        extra in record(),
        position in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let mut more = records.clone();
        more.insert(position.index(records.len() + 1), extra);
        // Both steps start from the same state: what the steps before released is the same.
        let (state, base) = run(&config, &context, &records, seed, 2);
        let mut method = config.build(&context).unwrap();
        method.restore(&state.to_value()).unwrap();
        let columns = Columns::of(&more, context.n_groups);
        let batch = columns.batch();

        // The counts, with the same noise.
        let same_noise = |records: &[Record]| {
            let mut method = config.build(&context).unwrap();
            method.restore(&state.to_value()).unwrap();
            let columns = Columns::of(records, context.n_groups);
            method.clip(&columns.batch(), &mut ChaCha20Rng::seed_from_u64(seed)).unwrap()
        };
        let (without, with) = (same_noise(&records), same_noise(&more));
        for (a, b) in without.queries.iter().zip(&with.queries) {
            // Either may be rounded to the grid by half a step in each count.
            let step = a.l2_sensitivity * a.noise_multiplier / GRID;
            let most = a.l2_sensitivity + step * (a.released.len() as f64).sqrt();
            prop_assert!(distance(&a.released, &b.released) <= most * (1.0 + 1e-9), "{a:?} {b:?}");
        }

        // The sum, with the same released counts.
        let released: Vec<Vec<f64>> = base.queries.iter().map(|query| query.released.clone()).collect();
        let neighbour = config.replay(&context, &state, &batch, &released).unwrap();
        prop_assert_eq!(neighbour.bound, base.bound);
        let change = distance(&weighted_sum(&base.scales, &records), &weighted_sum(&neighbour.scales, &more));
        let rounding = 1e-13 * (more.len() as f64) * base.bound;
        prop_assert!(change <= base.bound + rounding, "{change} > {}", base.bound);
    }

    /// Scales, bounds and thresholds are in range for any norms, over many steps.
    #[test]
    fn scales_are_in_range(
        config in support::config(),
        context in context(),
        records in prop::collection::vec(record(), 0..40),
        seed in any::<u64>(),
    ) {
        let mut method = config.build(&context).unwrap();
        let columns = Columns::of(&records, context.n_groups);
        let batch = columns.batch();
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for _ in 0..10 {
            let clipped = method.clip(&batch, &mut rng).unwrap();
            prop_assert!(clipped.bound.is_finite() && clipped.bound > 0.0);
            prop_assert!(clipped.thresholds.iter().all(|threshold| Controller::THRESHOLD_RANGE.contains(threshold)));
            prop_assert_eq!(clipped.group_bounds.len(), context.n_groups);
            let mut n_non_finite = 0;
            for ((&scale, &norm), &group) in clipped.scales.iter().zip(batch.norms).zip(batch.groups) {
                prop_assert!(scale == 0.0 || (Clipped::MIN_SCALE..=Clipped::MAX_SCALE).contains(&scale));
                if norm.is_finite() && norm >= 0.0 {
                    // In f64, and after the cast to f32 with a norm that was 1e-6 too small.
                    prop_assert!(scale * norm <= clipped.group_bounds[group]);
                    prop_assert!(f64::from(scale as f32) * norm * (1.0 + 1e-6) <= clipped.group_bounds[group]);
                    prop_assert!(clipped.group_bounds[group] <= clipped.bound);
                } else {
                    n_non_finite += 1;
                    prop_assert_eq!(scale, 0.0);
                }
            }
            prop_assert_eq!(clipped.n_non_finite, n_non_finite);
            // A rule of this crate needs no cap that is to be counted.
            prop_assert!(clipped.n_capped == 0 || !config.own_parts().is_empty());
            // A sum is formed of the scales as they are: they keep their bounds.
            let mut enforced = clipped.clone();
            enforced.enforce(&batch).unwrap();
            prop_assert_eq!(enforced, clipped);
        }
    }

    /// Order does not matter: a permuted batch gets the permuted scales and the same counts.
    #[test]
    fn order_does_not_matter(
        config in support::config(),
        context in context(),
        records in prop::collection::vec(record(), 0..40),
        shift in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let mut rotated = records.clone();
        let by = if records.is_empty() { 0 } else { shift.index(records.len()) };
        rotated.rotate_left(by);
        let (_, mut a) = run(&config, &context, &records, seed, 1);
        let (_, b) = run(&config, &context, &rotated, seed, 1);
        a.scales.rotate_left(by);
        prop_assert_eq!(a, b);
    }

    /// A record without a valid norm is as good as absent.
    #[test]
    fn a_non_finite_record_is_absent(
        config in support::config(),
        context in context(),
        records in prop::collection::vec(record(), 0..20),
        bad in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0]),
        seed in any::<u64>(),
    ) {
        let mut more = records.clone();
        more.push((0, bad, [1.0; DIMENSIONS], 1.0));
        let (_, a) = run(&config, &context, &records, seed, 1);
        let (_, mut b) = run(&config, &context, &more, seed, 1);
        prop_assert_eq!(b.scales.pop(), Some(0.0));
        b.n_non_finite -= 1;
        prop_assert_eq!(a, b);
    }

    /// A restored method continues as if it had not been interrupted, through JSON.
    #[test]
    fn state_survives_a_checkpoint(
        config in support::config(),
        context in context(),
        records in prop::collection::vec(record(), 0..20),
        seed in any::<u64>(),
    ) {
        let (state, expected) = run(&config, &context, &records, seed, 3);
        let json = state.to_value().to_string();
        prop_assert_eq!(serde_json::from_str::<MethodState>(&json).unwrap(), state);
        let mut method = config.build(&context).unwrap();
        method.restore(&serde_json::from_str(&json).unwrap()).unwrap();
        // Bring a generator to the same point.
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let columns = Columns::of(&records, context.n_groups);
        let batch = columns.batch();
        let mut warm = config.build(&context).unwrap();
        for _ in 0..3 {
            warm.clip(&batch, &mut rng).unwrap();
        }
        prop_assert_eq!(method.clip(&batch, &mut rng).unwrap(), expected);
    }

    /// The plan knows the noise of every count before the first step.
    #[test]
    fn count_noise_is_known_in_advance(config in support::config(), context in context(), seed in any::<u64>()) {
        let (_, clipped) = run(&config, &context, &[], seed, 0);
        let used: Vec<f64> = clipped.queries.iter().map(|query| query.noise_multiplier).collect();
        prop_assert_eq!(used, config.count_noise_multipliers(&context));
    }
}

/// 10⁶ norms per method, log-uniform over the whole range of f64 with special values between: no
/// scale breaks its bound.
#[test]
fn a_million_norms_per_method() {
    use rand::Rng;
    let context = PublicContext { n_groups: 2, expected_batch_size: 1000.0, noise_multiplier: 1.0 };
    let special = [0.0, 5e-324, f64::MIN_POSITIVE, 1.0, 50.0, f64::MAX, f64::INFINITY, f64::NAN];
    for entry in registry::methods() {
        let mut method = entry.default_config().build(&context).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(11);
        for _ in 0..1000 {
            let norms: Vec<f64> = (0..1000)
                .map(|i| if i < special.len() { special[i] } else { rng.random_range(-745.0..709.0_f64).exp() })
                .collect();
            let groups: Vec<usize> = (0..1000).map(|_| rng.random_range(0..2)).collect();
            // Norms as losses: as wild as they come.
            let batch = ClipBatch::new(&norms, &groups).with_losses(&norms[..]);
            let clipped = method.clip(&batch, &mut rng).unwrap();
            for ((&scale, &norm), &group) in clipped.scales.iter().zip(&norms).zip(&groups) {
                assert!(
                    scale == 0.0 || (Clipped::MIN_SCALE..=Clipped::MAX_SCALE).contains(&scale),
                    "{}: {scale}",
                    entry.name
                );
                assert!(scale == 0.0 || scale * norm <= clipped.group_bounds[group], "{}: {norm}", entry.name);
            }
        }
    }
}
