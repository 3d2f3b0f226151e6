//! How a kernel runs: on how many threads, in which order it sums, with which instructions.

use std::{num::NonZeroUsize, ops::Range};

use super::InstructionSet;

/// Options that change a kernel's speed, and nothing else beyond rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelExecution {
    /// Threads to use. Small inputs stay on the calling thread.
    pub threads: NonZeroUsize,
    /// Order of summation where it could depend on the number of threads.
    pub sum_order: SumOrder,
    /// Instruction set.
    pub instruction_set: InstructionSet,
}

/// Order in which partial sums are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SumOrder {
    /// The fastest: the same bits whenever the number of threads is the same.
    #[default]
    PerThreadCount,
    /// The same bits for any number of threads, at the price of more partial sums.
    Fixed,
}

impl Default for KernelExecution {
    /// One thread, the best instruction set.
    fn default() -> Self {
        Self::with_threads(NonZeroUsize::MIN)
    }
}

impl KernelExecution {
    /// This many threads, the best instruction set.
    pub fn with_threads(threads: NonZeroUsize) -> Self {
        Self { threads, sum_order: SumOrder::default(), instruction_set: InstructionSet::best() }
    }

    /// Threads worth starting for this many bytes: starting one costs as much as reading about 256
    /// KiB.
    pub(super) fn threads_for(&self, n_bytes: usize) -> usize {
        const BYTES_PER_THREAD: usize = 256 * 1024;
        self.threads.get().min(n_bytes / BYTES_PER_THREAD).max(1)
    }
}

/// `0..n` in at most `n_parts` ranges of nearly equal length, each but the last a multiple of
/// `multiple`.
pub(super) fn split(n: usize, n_parts: usize, multiple: usize) -> Vec<Range<usize>> {
    let length = n.div_ceil(n_parts.max(1)).next_multiple_of(multiple).max(1);
    (0..n).step_by(length).map(|start| start..(start + length).min(n)).collect()
}

/// Runs every job, the first on the calling thread and each other one on a new thread.
pub(super) fn run_all<J: Send>(jobs: Vec<J>, work: impl Fn(J) + Sync) {
    let mut jobs = jobs.into_iter();
    let Some(first) = jobs.next() else { return };
    if jobs.len() == 0 {
        return work(first);
    }
    std::thread::scope(|scope| {
        for job in jobs {
            let work = &work;
            scope.spawn(move || work(job));
        }
        work(first);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_everything_once() {
        assert_eq!(split(10, 3, 1), vec![0..4, 4..8, 8..10]);
        assert_eq!(split(100, 3, 16), vec![0..48, 48..96, 96..100]);
        assert_eq!(split(2, 8, 1), vec![0..1, 1..2]);
        assert!(split(0, 4, 1).is_empty());
    }
}
