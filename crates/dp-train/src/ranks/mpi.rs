//! Ranks that MPI started.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

use super::Collective;
use crate::error::{Result, TrainError};

/// All processes of the launcher.
///
/// MPI is called by one thread alone, which starts and ends it: any thread of the program may use
/// the ranks.
#[derive(Debug)]
pub(super) struct Mpi {
    rank: usize,
    size: usize,
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread of MPI is asked for.
enum Request {
    Sum(Vec<i64>, Sender<Vec<i64>>),
    Gather(Vec<u8>, Sender<Result<Vec<Vec<u8>>>>),
    Abort(i32),
}

impl Mpi {
    /// Starts MPI.
    pub(super) fn start() -> Result<Self> {
        let (requests, received) = channel();
        let (started, found) = channel();
        let thread = thread::Builder::new()
            .name("mpi".to_owned())
            .spawn(move || {
                let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else { return };
                let world = universe.world();
                if started.send((world.rank(), world.size())).is_ok() {
                    serve(&world, &received);
                }
            })
            .map_err(|error| TrainError::Ranks(format!("no thread for MPI: {error}")))?;
        let (rank, size) = found.recv().map_err(|_| TrainError::Ranks("MPI was started before".to_owned()))?;
        let (rank, size) = (unsigned(rank)?, unsigned(size)?);
        Ok(Self { rank, size, requests: Some(requests), thread: Some(thread) })
    }

    /// Sends a request, and waits for its answer.
    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T> {
        let gone = || TrainError::Ranks("MPI has ended".to_owned());
        let (answer, answered) = channel();
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(request(answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())
    }
}

fn unsigned(number: i32) -> Result<usize> {
    usize::try_from(number).map_err(|_| TrainError::Ranks(format!("MPI says {number}")))
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // MPI ends with its thread; if that panicked there is nothing left to end.
            let _ = thread.join();
        }
    }
}

impl Collective for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn sum(&self, values: &mut Vec<i64>) -> Result<()> {
        let part = std::mem::take(values);
        *values = self.ask(|answer| Request::Sum(part, answer))?;
        Ok(())
    }

    fn gather(&self, part: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.ask(|answer| Request::Gather(part, answer))?
    }

    fn abort(&self, code: i32) -> ! {
        if let Some(requests) = &self.requests {
            let _ = requests.send(Request::Abort(code));
            // It does not come back.
            thread::sleep(std::time::Duration::from_secs(10));
        }
        std::process::exit(code)
    }
}

/// Answers until nobody can ask any more.
fn serve(world: &SimpleCommunicator, requests: &Receiver<Request>) {
    for request in requests {
        match request {
            Request::Sum(part, answer) => {
                let mut sum = vec![0; part.len()];
                // In pieces: MPI counts in 32 bits.
                for (part, sum) in part.chunks(LONGEST).zip(sum.chunks_mut(LONGEST)) {
                    world.all_reduce_into(part, sum, SystemOperation::sum());
                }
                // Whoever asked may have been told to stop meanwhile.
                let _ = answer.send(sum);
            }
            Request::Gather(part, answer) => {
                let _ = answer.send(gather(world, &part));
            }
            Request::Abort(code) => world.abort(code),
        }
    }
}

/// Elements of one message.
const LONGEST: usize = 1 << 24;

fn gather(world: &SimpleCommunicator, part: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut lengths = vec![0_u64; unsigned(world.size())?];
    world.all_gather_into(&(part.len() as u64), &mut lengths[..]);
    let total: u64 = lengths.iter().sum();
    let too_long = || TrainError::Ranks(format!("{total} bytes to gather: at most {}", i32::MAX));
    if i32::try_from(total).is_err() {
        return Err(too_long());
    }
    let counts: Vec<i32> = lengths.iter().map(|&length| length as i32).collect();
    let starts: Vec<i32> = counts.iter().scan(0, |end, count| Some(std::mem::replace(end, *end + count))).collect();
    let mut all = vec![0_u8; total as usize];
    world.all_gather_varcount_into(part, &mut PartitionMut::new(&mut all[..], &counts[..], &starts[..]));
    let mut rest = &all[..];
    Ok(lengths
        .iter()
        .map(|&length| {
            let (part, after) = rest.split_at(length as usize);
            rest = after;
            part.to_vec()
        })
        .collect())
}
