//! How long one answer takes, for the settings of the papers; every answer is checked before it is
//! timed.
//!
//! The peers' times for the same settings (dp_accounting 0.6.0 PLD at its default interval; Opacus
//! 1.6.0 RDP), on two quiet cores: `adult_xu` 433 ms and 19 ms, `mnist_xu` 1270 ms and 49 ms,
//! `zhao_mnist` 142 ms, `small_rate` 822 ms; calibration of the noise by PLD 30 s.
//! `docs/benchmarks/cpu-two-cores.md` has both side by side.

#![expect(clippy::unwrap_used, reason = "a failing bench may panic")]

use criterion::{Criterion, criterion_group, criterion_main};
use dp_accounting::{
    Accountant, Calibration, Delta, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, PldAccountant,
    RdpAccountant, SamplingRate,
};

/// Name, q, σ, T, δ and the ε by dp_accounting 0.6.0 PLD at interval 1e-5, which is too large by up
/// to 4e-6.
const SETTINGS: [(&str, f64, f64, u64, f64, f64); 4] = [
    ("adult_xu", 0.007_076_201_848_657_733, 1.0, 2_826, 1e-6, 2.413_30),
    ("mnist_xu", 0.004_684_440_703_398_05, 0.8, 12_808, 1e-5, 4.808_71),
    ("zhao_mnist", 0.219_583_157_971_783_57, 13.503_665_924_072_266, 227, 1e-5, 0.913_71),
    ("small_rate", 0.001, 1.0, 20_000, 1e-5, 0.686_30),
];

fn step(q: f64, sigma: NoiseMultiplier) -> DpEvent {
    DpEvent::gaussian(sigma).poisson_sampled(SamplingRate::new(q).unwrap())
}

fn accounting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("account");
    group.sample_size(10);
    for (name, q, sigma, steps, delta, truth) in SETTINGS {
        let delta = Delta::new(delta).unwrap();
        let event = step(q, NoiseMultiplier::new(sigma).unwrap());
        let mut rdp = RdpAccountant::new(NeighbouringRelation::AddRemove);
        let mut pld = PldAccountant::new(NeighbouringRelation::AddRemove);
        rdp.compose(&event, steps).unwrap();
        pld.compose(&event, steps).unwrap();
        let bracket = pld.epsilon(delta).unwrap();
        assert!(
            bracket.lower.unwrap().get() <= truth * 1.000_1 && truth <= bracket.epsilon.get() * 1.000_1,
            "{name}: {bracket:?}"
        );
        assert!(rdp.epsilon(delta).unwrap().epsilon.get() > truth);
        group.bench_function(format!("rdp/{name}"), |bencher| bencher.iter(|| rdp.epsilon(delta)));
        group.bench_function(format!("pld/{name}"), |bencher| bencher.iter(|| pld.epsilon(delta)));
    }
    let (_, q, _, steps, delta, _) = SETTINGS[0];
    let (target, delta) = (Epsilon::new(3.0).unwrap(), Delta::new(delta).unwrap());
    let accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
    let calibration =
        Calibration::of_remaining_budget(accountant, target, delta).unwrap().with_relative_tolerance(1e-4).unwrap();
    group.bench_function("calibrate_pld/adult_xu", |bencher| {
        bencher.iter(|| calibration.noise_multiplier(|sigma| step(q, sigma).repeated(steps)));
    });
    group.finish();
}

criterion_group!(benches, accounting);
criterion_main!(benches);
