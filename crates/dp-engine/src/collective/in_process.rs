//! Ranks that are threads of one process.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::Collective;
use crate::error::{EngineError, Result};

/// Makes `size` ranks in this process, each to be moved to its thread: for tests, and to try a run
/// on many processes.
pub fn in_process(size: usize) -> Vec<Arc<dyn Collective>> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..size * size).map(|_| channel()).unzip();
    let mut receivers: Vec<Option<Receiver<Vec<u8>>>> = receivers.into_iter().map(Some).collect();
    // Channel `from * size + to`.
    (0..size)
        .map(|rank| {
            let to = (0..size).map(|other| senders[rank * size + other].clone()).collect();
            let from = (0..size).filter_map(|other| receivers[other * size + rank].take()).collect();
            Arc::new(Thread { rank, to, from: Mutex::new(from) }) as Arc<dyn Collective>
        })
        .collect()
}

/// Calls `each` for each of `size` ranks, every one on a thread of this process, and returns the
/// results in the order of the ranks.
///
/// # Errors
/// The first rank's that has one; [`EngineError::Ranks`] if a rank panicked.
pub fn on_threads<T: Send, E: From<EngineError> + Send>(
    size: usize,
    each: impl Fn(Arc<dyn Collective>) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    thread::scope(|scope| {
        let each = &each;
        // All are started before the first is waited for.
        let ranks: Vec<_> = in_process(size).into_iter().map(|ranks| scope.spawn(move || each(ranks))).collect();
        let panicked = |_| EngineError::Ranks("a rank panicked".to_owned());
        ranks.into_iter().map(|rank| rank.join().map_err(panicked)?).collect()
    })
}

#[derive(Debug)]
struct Thread {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Mutex<Vec<Receiver<Vec<u8>>>>,
}

impl Collective for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn sum(&self, values: &mut Vec<i64>) -> Result<()> {
        let parts = self.gather(values.iter().flat_map(|value| value.to_le_bytes()).collect())?;
        values.fill(0);
        for (rank, part) in parts.iter().enumerate() {
            if part.len() != size_of_val(&values[..]) {
                return Err(EngineError::Ranks(format!("rank {rank} adds another number of values than this one")));
            }
            for (value, bytes) in values.iter_mut().zip(part.as_chunks::<8>().0) {
                *value += i64::from_le_bytes(*bytes);
            }
        }
        Ok(())
    }

    fn gather(&self, part: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let gone = |rank: usize| EngineError::Ranks(format!("rank {rank} has ended"));
        for (rank, to) in self.to.iter().enumerate() {
            to.send(part.clone()).map_err(|_| gone(rank))?;
        }
        let from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        from.iter().enumerate().map(|(rank, from)| from.recv().map_err(|_| gone(rank))).collect()
    }

    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}
