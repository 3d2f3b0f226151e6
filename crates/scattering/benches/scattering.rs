//! Images a second of the scattering transform:
//! `scattering/<channels>x<side>x<side>-J<J>/<threads>`.
//!
//! `docs/benchmarks/scattering.py` measures Kymatio on the same images in the same way.

#![expect(clippy::unwrap_used, reason = "a bench has nobody to report an error to")]

use std::hint::black_box;
use std::num::NonZeroUsize;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

use scattering::{ImageFeatures, ImageFeaturesConfig, ImageSize, Scattering, ScatteringConfig};

const IMAGES: usize = 500;

fn pixels(image: ImageSize) -> Vec<f32> {
    (0..IMAGES * image.len()).map(|i| ((i * 7919) % 256) as f32 / 255.0).collect()
}

fn scattering(criterion: &mut Criterion) {
    for (channels, side, log2_scale) in [(1, 28, 2), (3, 32, 2), (3, 64, 3)] {
        let image = ImageSize { height: side, width: side, channels };
        let config = ScatteringConfig { log2_scale, ..ScatteringConfig::default() };
        let transform = Scattering::new(config, image).unwrap();
        let pixels = pixels(image);
        let mut group = criterion.benchmark_group(format!("scattering/{channels}x{side}x{side}-J{log2_scale}"));
        group.throughput(Throughput::Elements(IMAGES as u64)).sample_size(10);
        for threads in [1, 2].map(|n| NonZeroUsize::new(n).unwrap()) {
            let id = BenchmarkId::from_parameter(format!("threads-{threads}"));
            group.bench_function(id, |b| b.iter(|| black_box(transform.transform(&pixels, threads).unwrap())));
        }
        group.finish();
    }
    let image = ImageSize { height: 28, width: 28, channels: 1 };
    let features = ImageFeatures::new(ImageFeaturesConfig::default(), image).unwrap();
    let pixels = pixels(image);
    let mut group = criterion.benchmark_group("scattering/features-1x28x28");
    group.throughput(Throughput::Elements(IMAGES as u64)).sample_size(10);
    for threads in [1, 2].map(|n| NonZeroUsize::new(n).unwrap()) {
        let id = BenchmarkId::from_parameter(format!("threads-{threads}"));
        group.bench_function(id, |b| b.iter(|| black_box(features.of(&pixels, threads).unwrap())));
    }
    group.finish();
}

criterion_group!(benches, scattering);
criterion_main!(benches);
