//! How near the clipping kernels come to the speed of memory.
//!
//! Everything is measured in one run, in turns, so that whatever else the machine does falls on all
//! alike. The yardstick is a kernel that reads the same memory once and only adds up.

use std::{num::NonZeroUsize, time::Instant};

use anyhow::{Context, ensure};
use candle_core::{D, Device, Tensor};
use dp_clipping::{
    AdvanceScale, ScaleRule,
    kernels::{Gradients, InstructionSet, KernelExecution, clip_and_sum, norms, scale_and_sum, stream_read},
};
use serde::Serialize;

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Records in the batch.
    pub batch: usize,
    /// Parameters of the model.
    pub params: usize,
    /// Threads of the kernels and of the yardstick; all cores if `None`. ndarray and candle decide
    /// for themselves.
    pub threads: Option<NonZeroUsize>,
    /// Turns; the median is reported.
    pub rounds: u16,
}

/// What was measured; the JSON output is this.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// GB/s of the yardstick.
    pub stream_read_gbs: f64,
    /// Our kernels, then the peers.
    pub kernels: Vec<KernelRate>,
    /// How many times as fast the fused kernel is as the two that it replaces.
    pub fused_over_two_passes: f64,
    threads: usize,
    instruction_set: &'static str,
    batch: usize,
    params: usize,
}

/// One kernel: bytes of the gradient matrix over the median time.
#[derive(Debug, Serialize)]
pub struct KernelRate {
    /// For tables.
    pub name: &'static str,
    /// Of gradients read.
    pub gbs: f64,
    /// Over the yardstick's.
    pub share_of_stream: f64,
}

/// Measures, and checks every result.
///
/// # Errors
/// If a kernel's sum is not the plain one, or candle fails.
pub fn measure(settings: &Settings) -> anyhow::Result<Measured> {
    let Settings { batch, params, threads, rounds } = *settings;
    let threads = threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
    let execution = KernelExecution::with_threads(threads);

    let data = gradients(batch, params);
    let matrix = ndarray::ArrayView2::from_shape((batch, params), &data).context("shaping the gradients")?;
    let view = Gradients::from_slice(&data, params)?;
    let tensor = Tensor::from_slice(&data, (batch, params), &Device::Cpu)?;
    // About half of the records lie above the middle record's norm.
    let threshold = norms(&view, &execution)[batch / 2];
    let hard = AdvanceScale { rule: ScaleRule::Hard, threshold };
    let scale = |_: usize, norm: f64| hard.scale(norm);
    let mut sum = vec![0.0_f32; params];
    let (_, scales) = clip_and_sum(&view, scale, threshold, &mut sum, &execution)?;
    check(&sum, ndarray_naive(&matrix, threshold as f32).as_slice().unwrap_or_default(), "ndarray")?;
    check(&sum, &candle(&tensor, threshold)?.to_vec1()?, "candle")?;
    scale_and_sum(&view, &scales, &mut sum, &execution)?;
    check(&sum, ndarray_naive(&matrix, threshold as f32).as_slice().unwrap_or_default(), "ndarray")?;

    let names = ["norms", "scale_and_sum", "fused", "ndarray_naive", "candle"];
    let mut seconds: [Vec<f64>; 6] = Default::default();
    for round in 0..rounds {
        seconds[0].push(time(|| stream_read(&data, &execution)));
        seconds[1].push(time(|| norms(&view, &execution)));
        seconds[2].push(time(|| scale_and_sum(&view, &scales, &mut sum, &execution)));
        seconds[3].push(time(|| clip_and_sum(&view, scale, threshold, &mut sum, &execution)));
        // The peers are twenty times slower: they take every fourth turn.
        if round % 4 == 0 {
            seconds[4].push(time(|| ndarray_naive(&matrix, threshold as f32)));
            seconds[5].push(time(|| candle(&tensor, threshold)));
        }
    }
    let [stream_time, times @ ..] = seconds.map(median);
    let n_bytes = size_of_val(data.as_slice()) as f64;
    let kernels = names.into_iter().zip(times).map(|(name, time)| KernelRate {
        name,
        gbs: n_bytes / time * 1e-9,
        share_of_stream: stream_time / time,
    });
    Ok(Measured {
        stream_read_gbs: n_bytes / stream_time * 1e-9,
        kernels: kernels.collect(),
        fused_over_two_passes: (times[0] + times[1]) / times[2],
        threads: threads.get(),
        instruction_set: InstructionSet::best().name(),
        batch,
        params,
    })
}

/// Seeded, non-zero values; record `i`'s norm grows with `i`.
fn gradients(batch: usize, params: usize) -> Vec<f32> {
    let mut state = 1_u64;
    (0..batch * params)
        .map(|index| {
            // A linear congruential generator (Knuth's MMIX) is enough for timing.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = (state >> 40) as f32 / (1_u32 << 24) as f32 - 0.5;
            uniform * (0.5 + (index / params) as f32 / batch as f32)
        })
        .collect()
}

/// Norms and clipped sum as one would write them with ndarray.
fn ndarray_naive(matrix: &ndarray::ArrayView2<'_, f32>, threshold: f32) -> ndarray::Array1<f32> {
    let scales = matrix.map_axis(ndarray::Axis(1), |row| (threshold / row.dot(&row).sqrt()).min(1.0));
    (matrix * &scales.insert_axis(ndarray::Axis(1))).sum_axis(ndarray::Axis(0))
}

/// The same with candle's operations.
fn candle(gradients: &Tensor, threshold: f64) -> candle_core::Result<Tensor> {
    let norms = gradients.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?;
    let scales = (norms.recip()? * threshold)?.minimum(1.0)?;
    gradients.broadcast_mul(&scales)?.sum(0)
}

/// An error if a sum is not the peer's, up to the rounding of its f32 sums.
fn check(sum: &[f32], peer: &[f32], name: &str) -> anyhow::Result<()> {
    let largest = peer.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    let agree = sum.len() == peer.len() && sum.iter().zip(peer).all(|(a, b)| (a - b).abs() <= 1e-3 * largest);
    ensure!(agree, "the kernels' sum differs from that of {name}");
    Ok(())
}

fn time<R>(work: impl FnOnce() -> R) -> f64 {
    let started = Instant::now();
    std::hint::black_box(work());
    started.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Measured {
    /// As a table for a terminal.
    pub fn table(&self) -> String {
        let mut lines = vec![
            format!(
                "Clipping kernels on [{} × {}] f32, {} threads, {}; GB/s of gradients read, median of interleaved turns.",
                self.batch, self.params, self.threads, self.instruction_set
            ),
            String::new(),
            format!("{:<16}{:>8}{:>18}", "kernel", "GB/s", "share of stream"),
            format!("{:<16}{:>8.1}{:>17} %", "stream read", self.stream_read_gbs, 100),
        ];
        for kernel in &self.kernels {
            lines.push(format!("{:<16}{:>8.1}{:>17.0} %", kernel.name, kernel.gbs, 100.0 * kernel.share_of_stream));
        }
        lines.push(String::new());
        lines.push(format!(
            "fused is {:.2} times as fast as norms and scale_and_sum together",
            self.fused_over_two_passes
        ));
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_kernel() {
        let measured = Measured {
            stream_read_gbs: 25.0,
            kernels: vec![
                KernelRate { name: "norms", gbs: 24.0, share_of_stream: 0.96 },
                KernelRate { name: "candle", gbs: 1.6, share_of_stream: 0.064 },
            ],
            fused_over_two_passes: 1.75,
            threads: 2,
            instruction_set: "AVX-512",
            batch: 256,
            params: 100_000,
        };
        insta::assert_snapshot!(measured.table(), @r"
        Clipping kernels on [256 × 100000] f32, 2 threads, AVX-512; GB/s of gradients read, median of interleaved turns.

        kernel              GB/s   share of stream
        stream read         25.0              100 %
        norms               24.0               96 %
        candle               1.6                6 %

        fused is 1.75 times as fast as norms and scale_and_sum together
        ");
        let json = serde_json::to_value(&measured).unwrap();
        assert_eq!(json["stream_read_gbs"], 25.0);
        assert_eq!(json["kernels"][0], serde_json::json!({"name": "norms", "gbs": 24.0, "share_of_stream": 0.96}));
    }

    #[test]
    fn a_small_run_measures_and_checks() {
        let settings = Settings { batch: 8, params: 1000, threads: None, rounds: 3 };
        let measured = measure(&settings).unwrap();
        assert_eq!(measured.kernels.len(), 5);
        assert!(measured.stream_read_gbs > 0.0 && measured.kernels.iter().all(|kernel| kernel.gbs > 0.0));
    }
}
