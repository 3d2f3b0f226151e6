//! `cargo bench -p dp-clipping`: kernels against the stream-read bandwidth and ndarray's plain
//! form, then every method.

use std::{hint::black_box, num::NonZeroUsize};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dp_clipping::{
    AdvanceScale, PresetParams, PublicContext, ScaleRule, clip_gradients,
    kernels::{Gradients, KernelExecution, add_noise, clip_and_sum, norms, scale_and_sum, stream_read},
    registry,
};
use ndarray::{Array1, Array2, Axis};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

const N_RECORDS: usize = 256;

/// Seeded gradients; about half of the records have a norm above the returned threshold.
fn gradients(n_params: usize) -> (Array2<f32>, f64) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let array = Array2::from_shape_fn((N_RECORDS, n_params), |(i, _)| {
        rng.random_range(-1.0..1.0) * (0.5 + i as f32 / N_RECORDS as f32)
    });
    // Entries are uniform in ±(0.5 to 1.5): the middle record's norm is √(params/3).
    (array, (n_params as f64 / 3.0).sqrt())
}

/// Norms and clipped sum as one would write them with ndarray.
fn ndarray_naive(array: &Array2<f32>, threshold: f32) -> Array1<f32> {
    let scales = array.map_axis(Axis(1), |row| (threshold / row.dot(&row).sqrt()).min(1.0));
    (array * &scales.insert_axis(Axis(1))).sum_axis(Axis(0))
}

fn kernels(c: &mut Criterion) {
    let n_params = 100_000;
    let (array, threshold) = gradients(n_params);
    let view = Gradients::from_view(&array).expect("row-major");
    let execution = KernelExecution::with_threads(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    let hard = AdvanceScale { rule: ScaleRule::Hard, threshold };
    let scale = |_: usize, norm: f64| hard.scale(norm);
    let mut sum = vec![0.0_f32; n_params];

    let (_, scales) = clip_and_sum(&view, scale, threshold, &mut sum, &execution).expect("lengths fit");
    let expected = ndarray_naive(&array, threshold as f32);
    assert!(sum.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3), "the kernels disagree with ndarray");
    assert!((100..156).contains(&scales.iter().filter(|&&scale| scale < 1.0).count()), "about half is clipped");

    let stream = array.as_slice().expect("row-major");
    let mut group = c.benchmark_group("kernels");
    group.throughput(Throughput::Bytes((array.len() * 4) as u64)).sample_size(20);
    let shape = format!("{N_RECORDS}x{n_params}");
    group.bench_function(BenchmarkId::new("stream_read", &shape), |b| b.iter(|| stream_read(stream, &execution)));
    group.bench_function(BenchmarkId::new("norms", &shape), |b| b.iter(|| norms(&view, &execution)));
    group.bench_function(BenchmarkId::new("scale_and_sum", &shape), |b| {
        b.iter(|| scale_and_sum(&view, black_box(&scales), &mut sum, &execution));
    });
    group.bench_function(BenchmarkId::new("fused", &shape), |b| {
        b.iter(|| clip_and_sum(&view, scale, threshold, &mut sum, &execution));
    });
    group.bench_function(BenchmarkId::new("ndarray_naive", &shape), |b| {
        b.iter(|| ndarray_naive(&array, threshold as f32));
    });
    group.finish();

    let mut group = c.benchmark_group("noise");
    group.throughput(Throughput::Elements(n_params as u64)).sample_size(20);
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    group.bench_function(BenchmarkId::new("add_noise", n_params), |b| {
        b.iter(|| add_noise(&mut sum, 1.0, &mut rng, &execution));
    });
    group.finish();
}

fn methods(c: &mut Criterion) {
    let n_params = 10_000;
    let (array, threshold) = gradients(n_params);
    let view = Gradients::from_view(&array).expect("row-major");
    let groups: Vec<usize> = (0..N_RECORDS).map(|i| usize::from(i % 3 == 0)).collect();
    let context = PublicContext { n_groups: 2, expected_batch_size: N_RECORDS as f64, noise_multiplier: 1.0 };
    let params = PresetParams { clip_norm: threshold, upper_bound: Some(threshold), ..PresetParams::default() };
    let execution = KernelExecution::default();
    let mut sum = vec![0.0_f32; n_params];
    let mut rng = ChaCha20Rng::seed_from_u64(2);

    let mut group = c.benchmark_group("clip");
    group.throughput(Throughput::Bytes((array.len() * 4) as u64)).sample_size(10);
    for entry in registry::methods().iter().filter(|entry| !entry.default_config().needs_losses()) {
        let mut method = (entry.preset)(&params).build(&context).expect("a valid preset");
        group.bench_function(BenchmarkId::new(entry.name, format!("{N_RECORDS}x{n_params}")), |b| {
            b.iter(|| clip_gradients(&mut *method, &view, &groups, &mut rng, &mut sum, &execution));
        });
    }
    group.finish();
}

criterion_group!(benches, kernels, methods);
criterion_main!(benches);
