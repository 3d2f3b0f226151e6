//! What the targets share. For a controller: run any rule and weights with it on arbitrary norms.

use std::num::NonZeroUsize;

use arbitrary::Arbitrary;
use dp_clipping::{
    ClipBatch, ClipConfig, Clipped, Controller, CountNoise, PublicContext, ScaleRule, Weights,
    kernels::{InstructionSet, KernelExecution, SumOrder},
};
use rand::SeedableRng;

/// Arbitrary surroundings of a controller.
#[derive(Arbitrary, Debug)]
pub struct Surroundings {
    rule: u8,
    rule_parameter: f64,
    weights: Option<f64>,
    /// Rate and loss bound, where weights follow losses.
    losses: Option<[f64; 2]>,
    n_groups: u8,
    expected_batch_size: f64,
    noise_multiplier: f64,
    steps: u8,
    records: Vec<(f64, u8)>,
    seed: u64,
}

/// Builds the combination and takes some steps. Parameters that are refused are fine;
/// everything accepted must keep its promises.
pub fn check(controller: Controller, s: &Surroundings) {
    let rule = match s.rule % 7 {
        0 => ScaleRule::Hard,
        1 => ScaleRule::Normalised,
        2 => ScaleRule::Tanh,
        3 => ScaleRule::GlobalDrop { clip_norm: s.rule_parameter },
        4 => ScaleRule::GlobalClip { clip_norm: s.rule_parameter },
        5 => ScaleRule::GlobalTanh { clip_norm: s.rule_parameter },
        _ => ScaleRule::Automatic { stability: s.rule_parameter },
    };
    let weights = match s.weights.map(CountNoise::Multiplier) {
        None => Weights::Uniform,
        Some(count_noise) => match s.losses {
            None => Weights::Naive { count_noise },
            Some([rate, loss_bound]) if s.rule % 2 == 0 => Weights::Multiplicative { rate, loss_bound, count_noise },
            Some([rate, loss_bound]) => Weights::RatesByLoss { rate, loss_bound, count_noise },
        },
    };
    let n_groups = usize::from(s.n_groups % 8);
    let context =
        PublicContext { n_groups, expected_batch_size: s.expected_batch_size, noise_multiplier: s.noise_multiplier };
    let Ok(mut method) = ClipConfig::new(rule, controller, weights).build(&context) else { return };

    let norms: Vec<f64> = s.records.iter().map(|record| record.0).collect();
    let groups: Vec<usize> = s.records.iter().map(|record| usize::from(record.1) % n_groups).collect();
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(s.seed);
    for _ in 0..=s.steps % 8 {
        // Norms as losses: any number at all.
        let batch = ClipBatch::new(&norms, &groups).with_losses(&norms[..]);
        let clipped = method.clip(&batch, &mut rng).expect("the batch is well formed");
        assert!(clipped.bound.is_finite() && clipped.bound > 0.0);
        assert!(clipped.thresholds.iter().all(|threshold| Controller::THRESHOLD_RANGE.contains(threshold)));
        for ((&scale, &norm), &group) in clipped.scales.iter().zip(&norms).zip(&groups) {
            assert!(scale == 0.0 || (Clipped::MIN_SCALE..=Clipped::MAX_SCALE).contains(&scale));
            if norm.is_finite() && norm >= 0.0 {
                assert!(f64::from(scale as f32) * norm <= clipped.group_bounds[group]);
                assert!(clipped.group_bounds[group] <= clipped.bound);
            } else {
                assert_eq!(scale, 0.0);
            }
        }
        let mut restored = ClipConfig::new(rule, controller, weights).build(&context).expect("it was built before");
        restored.restore(&method.state()).expect("its own state fits");
    }
}

/// How to run a kernel, from two bytes.
pub fn execution(threads: u8, choices: u8) -> KernelExecution {
    let sets = InstructionSet::available();
    KernelExecution {
        threads: NonZeroUsize::new(usize::from(threads % 4) + 1).expect("at least 1"),
        sum_order: if choices & 1 == 0 { SumOrder::PerThreadCount } else { SumOrder::Fixed },
        instruction_set: sets[usize::from(choices >> 1) % sets.len()],
    }
}

/// Any bits as f64 gradients: the data repeated up to `n_values`, so that small inputs reach large
/// shapes.
pub fn stretch<T: Copy>(values: &[T], n_values: usize) -> Vec<T> {
    values.iter().copied().cycle().take(if values.is_empty() { 0 } else { n_values }).collect()
}
