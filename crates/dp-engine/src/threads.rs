//! The threads that share a step.

use std::num::NonZeroUsize;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{EngineError, Result};

/// A fixed number of threads, the caller's among them.
///
/// **Example**
/// ```
/// use std::num::NonZeroUsize;
/// use dp_engine::Threads;
/// let two = Threads::new(NonZeroUsize::MIN.saturating_add(1))?;
/// assert_eq!(two.each(0..4, |i| i * i), [0, 1, 4, 9]);
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
#[derive(Debug)]
pub struct Threads {
    count: NonZeroUsize,
    /// All but the caller's; `None` if that is the only one.
    pool: Option<ThreadPool>,
}

impl Threads {
    /// # Errors
    /// [`EngineError::InvalidParameter`] if the system has no more threads to give.
    pub fn new(count: NonZeroUsize) -> Result<Self> {
        let pool = match count.get() - 1 {
            0 => None,
            others => {
                let pool = ThreadPoolBuilder::new().num_threads(others).build();
                Some(pool.map_err(|error| EngineError::invalid("threads", count, format!("fewer: {error}")))?)
            }
        };
        Ok(Self { count, pool })
    }

    /// How many threads there are, the caller's among them.
    pub fn count(&self) -> usize {
        self.count.get()
    }

    /// Does all jobs, the first on this thread; results in their order.
    pub fn each<J: Send, R: Send>(
        &self,
        jobs: impl ExactSizeIterator<Item = J>,
        work: impl Fn(J) -> R + Sync,
    ) -> Vec<R> {
        let Some(pool) = self.pool.as_ref().filter(|_| jobs.len() > 1) else {
            return jobs.map(work).collect();
        };
        let mut results: Vec<Option<R>> = (0..jobs.len()).map(|_| None).collect();
        pool.in_place_scope(|scope| {
            let mut jobs = jobs.zip(&mut results);
            let first = jobs.next();
            for (job, result) in jobs {
                let work = &work;
                scope.spawn(move |_| *result = Some(work(job)));
            }
            if let Some((job, result)) = first {
                *result = Some(work(job));
            }
        });
        // The scope waits for all jobs.
        results.into_iter().flatten().collect()
    }

    /// Length of the parts, one per thread, in which a vector of `len` values is worked on: a
    /// multiple of `unit`, and the whole of a vector of fewer than `least` values, for which waking
    /// a thread would cost more than it saves.
    pub fn part_len(&self, len: usize, unit: usize, least: usize) -> usize {
        let parts = if len < least { 1 } else { self.count() };
        len.div_ceil(parts).next_multiple_of(unit).max(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(count: usize) -> Threads {
        Threads::new(NonZeroUsize::new(count).unwrap()).unwrap()
    }

    #[test]
    fn results_are_in_the_order_of_the_jobs() {
        for count in [1, 2, 5] {
            for n in [0, 1, 2, 5, 9] {
                let squares: Vec<usize> = threads(count).each(0..n, |i| i * i);
                assert_eq!(squares, (0..n).map(|i| i * i).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn parts_by_hand() {
        assert_eq!(threads(3).part_len(100, 16, 0), 48);
        assert_eq!(threads(3).part_len(100, 16, 101), 112);
        assert_eq!(threads(2).part_len(0, 16, 0), 16);
        assert_eq!(threads(1).part_len(100, 1, 0), 100);
    }
}
