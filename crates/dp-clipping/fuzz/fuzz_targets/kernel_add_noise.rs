//! The noise kernel: the same noise for any number of threads, finite, and none where none is asked
//! for.
#![no_main]

use dp_clipping::kernels::{KernelExecution, add_noise};
use dp_clipping_fuzz::execution;
use libfuzzer_sys::fuzz_target;
use rand::SeedableRng;

fuzz_target!(|input: (u16, f64, f32, u64, u8, u8)| {
    let (n_values, noise_std, start, seed, threads, choices) = input;
    let run = |execution: &KernelExecution| {
        let mut values = vec![start; usize::from(n_values)];
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        add_noise(&mut values, noise_std, &mut rng, execution).map(|()| values)
    };
    let Ok(values) = run(&execution(threads, choices)) else {
        assert!(!(noise_std >= 0.0 && noise_std.is_finite()));
        return;
    };
    let again = run(&KernelExecution::default()).expect("accepted before");
    assert!(values.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()));
    if noise_std == 0.0 {
        assert!(values.iter().all(|value| value.to_bits() == start.to_bits()));
    } else if start.is_finite() && noise_std < 1e30 && start.abs() < 1e30 {
        assert!(values.iter().all(|value| (f64::from(*value) - f64::from(start)).abs()
            <= 12.0 * noise_std + 1e-6 * f64::from(start.abs()) + 1e-38));
    }
});
