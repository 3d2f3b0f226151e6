//! Messages between the processes of one run, its *ranks*.

mod in_process;

use std::fmt::Debug;
use std::ops::Range;

#[cfg(feature = "cuda")]
use candle_core::cuda::cudarc::driver::CudaSlice;
use sha2::{Digest, Sha256};

pub use self::in_process::{in_process, on_threads};
use crate::error::{EngineError, Result};

/// Parameters from which on ranks divide a step's sum and its noise between them. Below, one message
/// that leaves the whole sum on each is faster.
pub const DIVIDED_FROM: usize = 1 << 18;

/// The messages of one rank in [`Collective::exchange`].
#[derive(Debug, Default)]
pub struct Exchanged {
    /// The words that this rank sends: those for rank 0 first, then for rank 1, and so on.
    pub words: Vec<u64>,
    /// Afterwards the words that each rank sent to this one, in the order of the ranks; before,
    /// memory for them.
    pub received: Vec<u64>,
    /// How many words are for each rank; afterwards how many each gave.
    pub lengths: Vec<usize>,
}

/// Waits for the end of an exchange.
pub type Exchange = Box<dyn FnOnce() -> Result<Exchanged> + Send>;

/// Communication between the processes that share a run.
///
/// Every rank calls the same operations in the same order; each returns when all ranks have called
/// it.
pub trait Collective: Debug + Send + Sync {
    /// This process's number, from 0.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn size(&self) -> usize;

    /// Adds up vectors of one length, element by element, and leaves the sum on every rank.
    ///
    /// # Errors
    /// [`EngineError::Ranks`] if a rank is gone.
    fn sum(&self, values: &mut Vec<i64>) -> Result<()>;

    /// Whether there is a way from device to device: `sum_on_devices`, in builds with CUDA.
    fn sums_on_devices(&self) -> bool {
        false
    }

    /// Adds up vectors in the memory of each rank's CUDA device, and leaves the sum on all of them;
    /// of flags the largest is left. On the devices' streams: it may not be done yet.
    ///
    /// # Errors
    /// [`EngineError::Ranks`] if there is no way from device to device, or a rank is gone.
    #[cfg(feature = "cuda")]
    fn sum_on_devices(&self, _values: &mut CudaSlice<i64>, _flags: &mut CudaSlice<u32>) -> Result<()> {
        Err(EngineError::Ranks("no way from device to device".to_owned()))
    }

    /// Begins to send each rank its words, and to receive the words for this rank. The ranks may
    /// compute until they ask for the end. For large messages: memory is handed back.
    ///
    /// # Errors
    /// [`EngineError::Ranks`] if a rank is gone.
    fn exchange(&self, mut own: Exchanged) -> Result<Exchange> {
        let lengths: Vec<u64> = own.lengths.iter().map(|&length| length as u64).collect();
        let lengths = self.gather(bytemuck::cast_slice(&lengths).to_vec())?;
        let messages = self.gather(bytemuck::cast_slice(&own.words).to_vec())?;
        own.received.clear();
        let for_this = |(message, lengths): (Vec<u8>, Vec<u8>)| {
            let (message, lengths): (Vec<u64>, Vec<u64>) =
                (bytemuck::pod_collect_to_vec(&message), bytemuck::pod_collect_to_vec(&lengths));
            let start = lengths[..self.rank()].iter().sum::<u64>() as usize;
            let length = lengths[self.rank()] as usize;
            own.received.extend(&message[start..start + length]);
            length
        };
        own.lengths = messages.into_iter().zip(lengths).map(for_this).collect();
        Ok(Box::new(|| Ok(own)))
    }

    /// Overwrites `all` with the words of every rank, in the order of the ranks, and returns the
    /// number of words of each. For large messages: both vectors keep their memory.
    ///
    /// # Errors
    /// [`EngineError::Ranks`] if a rank is gone.
    fn gather_words(&self, words: &mut Vec<u64>, all: &mut Vec<u64>) -> Result<Vec<usize>> {
        let parts = self.gather(bytemuck::cast_slice(words).to_vec())?;
        *all = bytemuck::pod_collect_to_vec(&parts.concat());
        Ok(parts.iter().map(|part| part.len() / size_of::<u64>()).collect())
    }

    /// Sends `part` to every rank, and returns the part of each, in the order of the ranks.
    ///
    /// # Errors
    /// [`EngineError::Ranks`] if a rank is gone.
    fn gather(&self, part: Vec<u8>) -> Result<Vec<Vec<u8>>>;

    /// Ends all ranks, with this exit code.
    fn abort(&self, code: i32) -> !;

    /// Returns rank 0's `value` on every rank.
    ///
    /// # Errors
    /// [`EngineError::Ranks`] if a rank is gone.
    fn broadcast(&self, value: Vec<u8>) -> Result<Vec<u8>> {
        let part = if self.rank() == 0 { value } else { Vec::new() };
        Ok(self.gather(part)?.swap_remove(0))
    }

    /// An error unless all ranks gave the same. Digests pass between the ranks, and no rank's
    /// message ever shows what another one sent: it may be a loss, or a key.
    ///
    /// # Errors
    /// [`EngineError::Ranks`] naming the first rank that differs from rank 0, or that is about to do
    /// something else than this one.
    fn agree(&self, what: &str, value: &[u8]) -> Result<()> {
        if self.size() == 1 {
            return Ok(());
        }
        let place: [u8; 32] = Sha256::digest(what).into();
        let all = self.gather([place, Sha256::digest(value).into()].concat())?;
        for (rank, message) in all.iter().enumerate() {
            if message.len() != 2 * place.len() || !message.starts_with(&place) {
                return Err(EngineError::elsewhere(what, rank));
            }
        }
        match all.iter().position(|message| *message != all[0]) {
            None => Ok(()),
            Some(rank) => Err(EngineError::Ranks(format!("{what}: rank {rank} differs from rank 0"))),
        }
    }
}

/// One process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Collective for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn sum(&self, _values: &mut Vec<i64>) -> Result<()> {
        Ok(())
    }

    fn gather(&self, part: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        Ok(vec![part])
    }

    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}

/// Divides `n_values` values into adjacent ranges, one for each of `size` ranks, that begin at
/// multiples of `unit`.
pub(crate) fn shares(size: usize, n_values: usize, unit: usize) -> Vec<Range<usize>> {
    let n_units = n_values.div_ceil(unit);
    let boundary = |rank: usize| (n_units * rank / size * unit).min(n_values);
    (0..size).map(|rank| boundary(rank)..boundary(rank + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_begin_at_units_and_leave_nothing_out() {
        assert_eq!(shares(3, 1_000, 256), [0..256, 256..512, 512..1_000]);
        assert_eq!(shares(2, 100, 256), [0..0, 0..100]);
    }

    #[test]
    fn ranks_exchange_words() {
        let received: Result<Vec<_>> = on_threads(3, |ranks| {
            let rank = ranks.rank() as u64;
            // For rank `i`, `i` words that name the sender.
            let own = Exchanged { words: vec![rank; 3], received: vec![9; 50], lengths: vec![0, 1, 2] };
            let exchange = ranks.exchange(own)?;
            let mut all = Vec::new();
            let gathered = ranks.gather_words(&mut vec![7; ranks.rank()], &mut all)?;
            let Exchanged { received, lengths, .. } = exchange()?;
            Ok((lengths, received, gathered, all))
        });
        let all = (vec![0, 1, 2], vec![7; 3]);
        let expected = [(vec![0; 3], vec![]), (vec![1; 3], vec![0, 1, 2]), (vec![2; 3], vec![0, 0, 1, 1, 2, 2])];
        assert_eq!(
            received.unwrap(),
            expected.map(|(lengths, received)| (lengths, received, all.0.clone(), all.1.clone()))
        );
    }

    #[test]
    fn ranks_that_differ_are_named() {
        let errors: Result<Vec<_>> = on_threads(3, |ranks| {
            let colour: &[u8] = if ranks.rank() == 2 { b"red" } else { b"blue" };
            Ok(ranks.agree("colour", colour).unwrap_err().to_string())
        });
        let errors = errors.unwrap();
        assert_eq!(errors, ["ranks: colour: rank 2 differs from rank 0"; 3]);
    }
}
