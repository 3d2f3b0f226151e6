//! One run on many processes, its *ranks*: what they exchange, and which records each of them
//! holds.
//!
//! **Guarantee.** The model does not depend on the number of ranks, in no bit. A rank sums whole
//! blocks of records in integers, which associate; who is drawn, all noise and all masks are
//! functions of keys that every rank has, and of public numbers; and every rank takes every step,
//! whether a record of its own was drawn or not. Ranks agree on plan, streams and arithmetic when a
//! trainer is made, and on what they are about to do and its outcome whenever a call begins and
//! returns: a difference ends the run.
//!
//! Ranks trust each other and the network between them: losses, norms and sums without noise, the
//! key and the checkpoint pass over it.

mod agreement;
mod in_process;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "nccl")]
mod nccl;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use candle_core::Device;
#[cfg(feature = "cuda")]
use candle_core::cuda::cudarc::driver::CudaSlice;
use dp_accounting::SamplingRate;

pub(crate) use self::agreement::agree_on;
pub use self::in_process::{in_process, on_threads};
use crate::blocks::Blocks;
use crate::error::{Result, TrainError};

/// Parameters from which on ranks divide a step's sum and its noise between them. Below, one message
/// that leaves the whole sum on each is faster.
pub const DIVIDED_FROM: usize = 1 << 18;

/// What ranks give each other in [`Collective::exchange`].
#[derive(Debug, Default)]
pub struct Exchanged {
    /// What this rank gives: the words for each rank, one behind the other.
    pub words: Vec<u64>,
    /// Afterwards what each rank gave for this one, one behind the other; before, memory for it.
    pub received: Vec<u64>,
    /// How many words are for each rank; afterwards how many each gave.
    pub lengths: Vec<usize>,
}

/// Waits for the end of an exchange.
pub type Exchange = Box<dyn FnOnce() -> Result<Exchanged> + Send>;

/// What a run needs of the processes that it is made on.
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
    /// [`TrainError::Ranks`] if a rank is gone.
    fn sum(&self, values: &mut Vec<i64>) -> Result<()>;

    /// Whether there is a way from device to device: `sum_on_devices`, in builds with CUDA.
    fn sums_on_devices(&self) -> bool {
        false
    }

    /// Adds up vectors in the memory of each rank's CUDA device, and leaves the sum on all of them;
    /// of flags the largest is left. On the devices' streams: it may not be done yet.
    ///
    /// # Errors
    /// [`TrainError::Ranks`] if there is no way from device to device, or a rank is gone.
    #[cfg(feature = "cuda")]
    fn sum_on_devices(&self, _values: &mut CudaSlice<i64>, _flags: &mut CudaSlice<u32>) -> Result<()> {
        Err(TrainError::Ranks("no way from device to device".to_owned()))
    }

    /// Begins to give each rank words of its own, and to receive what the others give for this one:
    /// the ranks may compute until they ask for the end. For large messages: memory is handed back.
    ///
    /// # Errors
    /// [`TrainError::Ranks`] if a rank is gone.
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

    /// What every rank gives, one behind the other, in the place of what is in `all`; returns how
    /// many words each gave. For large messages: both vectors keep their memory.
    ///
    /// # Errors
    /// [`TrainError::Ranks`] if a rank is gone.
    fn gather_words(&self, words: &mut Vec<u64>, all: &mut Vec<u64>) -> Result<Vec<usize>> {
        let parts = self.gather(bytemuck::cast_slice(words).to_vec())?;
        *all = bytemuck::pod_collect_to_vec(&parts.concat());
        Ok(parts.iter().map(|part| part.len() / size_of::<u64>()).collect())
    }

    /// What every rank gave, in the order of the ranks.
    ///
    /// # Errors
    /// [`TrainError::Ranks`] if a rank is gone.
    fn gather(&self, part: Vec<u8>) -> Result<Vec<Vec<u8>>>;

    /// Ends all ranks, with this exit code.
    fn abort(&self, code: i32) -> !;

    /// What rank 0 gave, on every rank.
    ///
    /// # Errors
    /// [`TrainError::Ranks`] if a rank is gone.
    fn broadcast(&self, value: Vec<u8>) -> Result<Vec<u8>> {
        let part = if self.rank() == 0 { value } else { Vec::new() };
        Ok(self.gather(part)?.swap_remove(0))
    }

    /// An error unless all ranks gave the same. Digests pass between the ranks, and no rank's
    /// message ever shows what another one sent: it may be a loss, or a key.
    ///
    /// # Errors
    /// [`TrainError::Ranks`] naming the first rank that differs from rank 0, or that is about to do
    /// something else than this one.
    fn agree(&self, what: &str, value: &[u8]) -> Result<()> {
        agreement::agree(self, what, value)
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

/// Variables by which launchers tell a process how many there are: Open MPI, MPICH and its kin,
/// Slurm's `srun`.
const LAUNCHERS: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"];

/// The ranks that a launcher (`mpirun`, `srun --mpi`) started, this process among them; [`Alone`]
/// without a launcher.
///
/// To be called once, first thing in `main`.
///
/// # Errors
/// [`TrainError::Ranks`] if a launcher started several processes and the program was built without
/// the feature `mpi`: they would all do the same. Ranks whose processors have other instruction
/// sets, which round otherwise, or that run another build of the program.
pub fn from_environment() -> Result<Arc<dyn Collective>> {
    let size = LAUNCHERS.iter().find_map(|name| std::env::var(name).ok()?.parse::<usize>().ok());
    let Some(size) = size else { return Ok(Arc::new(Alone)) };
    started(size)
}

#[cfg(feature = "mpi")]
fn started(_size: usize) -> Result<Arc<dyn Collective>> {
    let ranks: Arc<dyn Collective> = Arc::new(mpi::Mpi::start()?);
    agree_on(&*ranks, "program and processor", &fingerprint()?)?;
    Ok(ranks)
}

#[cfg(not(feature = "mpi"))]
fn started(size: usize) -> Result<Arc<dyn Collective>> {
    if size <= 1 {
        return Ok(Arc::new(Alone));
    }
    Err(TrainError::Ranks(format!(
        "a launcher started {size} processes, but this program was built without the feature `mpi`: all of them would do the same"
    )))
}

/// Variables by which launchers number the processes of one machine.
const LOCAL: [&str; 4] = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"];

/// This process's number among those of its machine, from 0: which of the machine's GPUs is its.
pub fn local_rank() -> usize {
    LOCAL.iter().find_map(|name| std::env::var(name).ok()?.parse().ok()).unwrap_or(0)
}

/// The ranks of a run whose arithmetic is on this device: with the feature `nccl` their sums go
/// from GPU to GPU.
///
/// # Errors
/// [`TrainError::Ranks`] if NCCL refuses, as it does where two ranks share a GPU.
#[cfg_attr(not(feature = "nccl"), expect(clippy::unnecessary_wraps, reason = "only NCCL can refuse"))]
pub(crate) fn with_device(ranks: Arc<dyn Collective>, device: &Device) -> Result<Arc<dyn Collective>> {
    match device {
        #[cfg(feature = "nccl")]
        Device::Cuda(device) if ranks.size() > 1 && !ranks.sums_on_devices() => {
            Ok(Arc::new(nccl::Nccl::join(ranks, device)?))
        }
        _ => Ok(ranks),
    }
}

/// What must be the same on all ranks for the same bits. A version says nothing of how a program was
/// built: the file itself does.
#[cfg(feature = "mpi")]
fn fingerprint() -> Result<serde_json::Value> {
    use sha2::{Digest as _, Sha256};
    let unread = |error| TrainError::Ranks(format!("the file of this program: {error}"));
    let program = std::env::current_exe().and_then(std::fs::read).map_err(unread)?;
    Ok(serde_json::json!({
        "sha256": hex::encode(Sha256::digest(program)),
        "numerics": crate::NUMERICS,
        "processor": crate::numerics::platform(),
    }))
}

/// The records of one of `size` ranks, among `n_records` that are sampled at this rate: whole
/// blocks of [`TrainConfig::block_records`](crate::TrainConfig), as even as they go. The same as
/// [`Plan::held_by`](crate::Plan::held_by), for whoever must know before there is a plan.
pub fn held_by(
    rank: usize,
    size: usize,
    n_records: usize,
    sampling_rate: SamplingRate,
    block_records: Option<usize>,
) -> Range<usize> {
    let block = Blocks::new(n_records, sampling_rate.get(), block_records).block();
    let n_blocks = n_records.div_ceil(block);
    let boundary = |rank: usize| (n_blocks * rank / size * block).min(n_records);
    boundary(rank)..boundary(rank + 1)
}

/// Adjacent ranges of so many values, one for each rank, that begin at multiples of `unit`.
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
        let received = on_threads(3, |ranks| {
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
    fn ranks_hold_whole_blocks_and_leave_nothing_out() {
        let rate = SamplingRate::new(0.5).unwrap();
        for (n, block, size) in [(100, 7, 3), (100, 100, 4), (5, 2, 1), (1, 1, 2), (0, 1, 2)] {
            let held: Vec<Range<usize>> = (0..size).map(|rank| held_by(rank, size, n, rate, Some(block))).collect();
            assert_eq!((held[0].start, held[size - 1].end), (0, n), "{held:?}");
            assert!(
                held.windows(2)
                    .all(|pair| pair[0].end == pair[1].start && pair[0].end % block == 0 || pair[0].end == n)
            );
        }
        assert_eq!(held_by(1, 2, 10, rate, Some(5)), 5..10);
    }

    #[test]
    fn ranks_that_differ_are_named() {
        let errors = on_threads(3, |ranks| {
            let colour: &[u8] = if ranks.rank() == 2 { b"red" } else { b"blue" };
            Ok(ranks.agree("colour", colour).unwrap_err().to_string())
        });
        let errors = errors.unwrap();
        assert_eq!(errors, ["ranks: colour: rank 2 differs from rank 0"; 3]);
    }
}
