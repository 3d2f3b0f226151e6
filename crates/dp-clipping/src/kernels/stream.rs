//! The speed of memory: the yardstick of the other kernels.

use super::{
    GradientFloat, KernelExecution, dispatch,
    execution::{run_all, split},
    lanes::Lanes,
    norm::{N_STREAMS, Streams, streams, sum_lanes},
};

/// Values read as eight streams: 400 kB of f32, so that no two streams are a multiple of a page
/// apart and compete for the same cache lines.
const CHUNK: usize = 100_000;

/// Reads every value once and adds it up, nothing else: bytes over seconds is the machine's
/// stream-read bandwidth.
///
/// It reads eight streams side by side, as the other kernels do, which is faster than one.
///
/// ```
/// use dp_clipping::kernels::{KernelExecution, stream_read};
/// assert_eq!(stream_read(&[1.0_f32; 100], &KernelExecution::default()), 100.0);
/// ```
pub fn stream_read<T: GradientFloat>(values: &[T], execution: &KernelExecution) -> f64 {
    let ranges = split(values.len(), execution.threads_for(size_of_val(values)), 16);
    let mut sums = vec![0.0; ranges.len()];
    let jobs = ranges.into_iter().zip(&mut sums).collect();
    run_all(jobs, |(range, sum): (_, &mut f64)| {
        *sum = values[range].chunks(CHUNK).map(|chunk| dispatch::add_up(execution.instruction_set, chunk)).sum();
    });
    sums.iter().sum()
}

#[inline(always)]
pub(super) fn add_up_lanes<V: Lanes, T: GradientFloat>(values: &[T]) -> f64 {
    let Streams { segments, rest, tail } = streams(values);
    let mut totals = [V::splat(0.0); N_STREAMS];
    for j in 0..segments[0].len() {
        for (total, segment) in totals.iter_mut().zip(&segments) {
            *total = total.add(T::load(&segment[j]));
        }
    }
    for (total, chunk) in totals.iter_mut().zip(rest) {
        *total = total.add(T::load(chunk));
    }
    sum_lanes(totals) + tail.iter().map(|&value| value.into()).sum::<f64>()
}
