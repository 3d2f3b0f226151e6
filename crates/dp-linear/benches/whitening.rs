//! Wide rows: covariance and whitening against one large matrix product, on one thread.
//!
//! `cargo bench -p dp-linear --bench whitening`

use std::num::NonZeroUsize;

use criterion::{Bencher, Criterion, Throughput, criterion_group, criterion_main};
use dp_accounting::{Ledger, NeighbouringRelation, NoiseMultiplier};
use dp_engine::ops::{Element, Matrix, product};
use dp_linear::conditioning::{Conditioning, ConditioningConfig};
use dp_train::{Purpose, Randomness};

const N_RECORDS: usize = 8_192;
const N_FEATURES: usize = 768;

/// The rows times a square matrix.
#[expect(clippy::unwrap_used, reason = "a bench may panic")]
fn large_product<T: Element>(rows: Vec<T>) -> impl FnMut(&mut Bencher) {
    let square = vec![T::ONE; N_FEATURES * N_FEATURES];
    let mut out = vec![T::ZERO; N_RECORDS * N_FEATURES];
    move |b| {
        b.iter(|| {
            let lhs = Matrix::strided(&rows, N_RECORDS, N_FEATURES, N_FEATURES).unwrap();
            let rhs = Matrix::strided(&square, N_FEATURES, N_FEATURES, N_FEATURES).unwrap();
            product(&mut out, N_FEATURES, lhs, rhs, false).unwrap();
        });
    }
}

#[expect(clippy::unwrap_used, reason = "a bench may panic")]
fn whitening(c: &mut Criterion) {
    let rows: Vec<f32> = (0..N_RECORDS * N_FEATURES).map(|i| ((i * 7_919) % 509) as f32 / 254.0 - 1.0).collect();
    let sigma = Some(NoiseMultiplier::new(1.0).unwrap());
    let config = ConditioningConfig { mean: sigma, covariance: sigma, ..ConditioningConfig::default() };
    let fit = || {
        let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
        let mut rng = Randomness::from_seed(5).stream(Purpose::Conditioning, 0, 0).unwrap();
        Conditioning::fit(&config, &rows, N_FEATURES, NonZeroUsize::MIN, &mut rng, &mut ledger).unwrap()
    };
    let fitted = fit();
    let mut group = c.benchmark_group("whitening");
    group.sample_size(10);
    group.throughput(Throughput::Elements((2 * N_RECORDS * N_FEATURES * N_FEATURES) as u64));
    group.bench_function("product in single precision", large_product(rows.clone()));
    group.bench_function("product in double precision", large_product(rows.iter().map(|&v| f64::from(v)).collect()));
    // Multiplications and additions of a triangle.
    group.throughput(Throughput::Elements((N_RECORDS * N_FEATURES * (N_FEATURES + 1)) as u64));
    group.bench_function("apply", |b| b.iter(|| fitted.apply(&rows, NonZeroUsize::MIN).unwrap()));
    group.bench_function("fit", |b| b.iter(fit));
    group.finish();
}

criterion_group!(benches, whitening);
criterion_main!(benches);
