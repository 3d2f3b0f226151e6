//! One run on many processes, its *ranks*: what they exchange, and which records each of them
//! holds.
//!
//! **Guarantee.** The model does not depend on the number of ranks, in no bit. A rank sums whole
//! blocks of records in integers, which associate; who is drawn, all noise and all masks are
//! functions of keys that every rank has, and of public numbers; and every rank takes every step,
//! whether one of its records was drawn or not. Ranks agree on plan, streams and arithmetic when a
//! trainer is made, and on what they are about to do and its outcome whenever a call begins and
//! returns: a difference ends the run.
//!
//! Ranks trust each other and the network between them: losses, norms and sums without noise, the
//! key and the checkpoint pass over it.

mod agreement;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "nccl")]
mod nccl;

use std::ops::Range;
use std::sync::Arc;

use candle_core::Device;
use dp_accounting::SamplingRate;
use dp_engine::Blocks;

pub(crate) use self::agreement::agree_on;
use crate::error::{Result, TrainError};
pub use dp_engine::collective::{Alone, Collective, DIVIDED_FROM, Exchange, Exchanged, in_process};

/// [`on_threads`](dp_engine::collective::on_threads) for work on trainers.
///
/// # Errors
/// The error of the first rank that has one; [`TrainError::Ranks`] if a rank panicked.
pub fn on_threads<T: Send>(size: usize, each: impl Fn(Arc<dyn Collective>) -> Result<T> + Sync) -> Result<Vec<T>> {
    dp_engine::collective::on_threads(size, each)
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

/// The number of this process among the processes of its machine, from 0: the number of its GPU.
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

/// Properties that must be the same on all ranks for the same bits. The program's file is one: a
/// version does not tell how a program was built.
#[cfg(feature = "mpi")]
fn fingerprint() -> Result<serde_json::Value> {
    use sha2::{Digest as _, Sha256};
    let unread = |error| TrainError::Ranks(format!("the file of this program: {error}"));
    let program = std::env::current_exe().and_then(std::fs::read).map_err(unread)?;
    Ok(serde_json::json!({
        "sha256": hex::encode(Sha256::digest(program)),
        "numerics": dp_engine::NUMERICS,
        "processor": dp_engine::platform(),
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
