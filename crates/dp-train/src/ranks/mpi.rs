//! Ranks that MPI started.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use dp_engine::{EngineError, Result};
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::datatype::{Partition, PartitionMut};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Equivalence};

use super::{Collective, Exchange, Exchanged};

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

/// Words to send, and words received. The answer returns both vectors' memory.
type Buffers = [Vec<u64>; 2];

/// A request to the thread of MPI.
enum Request {
    Sum(Vec<i64>, Sender<Vec<i64>>),
    Exchange(Exchanged, Sender<Result<Exchanged>>),
    GatherWords(Buffers, Sender<Result<(Buffers, Vec<usize>)>>),
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
            .map_err(|error| EngineError::Ranks(format!("no thread for MPI: {error}")))?;
        let (rank, size) = found.recv().map_err(|_| EngineError::Ranks("MPI was started before".to_owned()))?;
        let (rank, size) = (unsigned(rank)?, unsigned(size)?);
        Ok(Self { rank, size, requests: Some(requests), thread: Some(thread) })
    }

    /// Sends a request; its answer will be received.
    fn begin<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<Receiver<T>> {
        let (answer, answered) = channel();
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(request(answer)).map_err(|_| gone())?;
        Ok(answered)
    }

    /// Sends a request, and waits for its answer.
    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T> {
        self.begin(request)?.recv().map_err(|_| gone())
    }
}

fn gone() -> EngineError {
    EngineError::Ranks("MPI has ended".to_owned())
}

fn unsigned(number: i32) -> Result<usize> {
    usize::try_from(number).map_err(|_| EngineError::Ranks(format!("MPI says {number}")))
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

    fn exchange(&self, own: Exchanged) -> Result<Exchange> {
        let answered = self.begin(|answer| Request::Exchange(own, answer))?;
        Ok(Box::new(move || answered.recv().map_err(|_| gone())?))
    }

    fn gather_words(&self, words: &mut Vec<u64>, all: &mut Vec<u64>) -> Result<Vec<usize>> {
        let buffers = [std::mem::take(words), std::mem::take(all)];
        let (buffers, lengths) = self.ask(|answer| Request::GatherWords(buffers, answer))??;
        [*words, *all] = buffers;
        Ok(lengths)
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
            Request::Exchange(own, answer) => {
                let _ = answer.send(exchange(world, own));
            }
            Request::GatherWords([words, mut all], answer) => {
                let lengths = gather_into(world, &words, &mut all);
                let _ = answer.send(lengths.map(|lengths| ([words, all], lengths)));
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

/// Lengths as MPI counts them, and where each begins behind those before.
fn counts_and_starts(lengths: &[usize]) -> Result<(Vec<i32>, Vec<i32>)> {
    let number = |elements: usize| {
        let too_many = |_| EngineError::Ranks(format!("{elements} elements of a message: at most {}", i32::MAX));
        i32::try_from(elements).map_err(too_many)
    };
    let (mut counts, mut starts, mut end) = (Vec::new(), Vec::new(), 0);
    for &length in lengths {
        starts.push(number(end)?);
        counts.push(number(length)?);
        end += length;
    }
    Ok((counts, starts))
}

fn exchange(world: &SimpleCommunicator, own: Exchanged) -> Result<Exchanged> {
    let Exchanged { words, mut received, lengths } = own;
    let mut from_each = vec![0_usize; lengths.len()];
    world.all_to_all_into(&lengths[..], &mut from_each[..]);
    let (sent, starts) = counts_and_starts(&lengths)?;
    let (counts, places) = counts_and_starts(&from_each)?;
    // Old words stay until they are overwritten: clearing them first would take as long as a copy.
    received.resize(from_each.iter().sum(), 0);
    world.all_to_all_varcount_into(
        &Partition::new(&words[..], &sent[..], &starts[..]),
        &mut PartitionMut::new(&mut received[..], &counts[..], &places[..]),
    );
    Ok(Exchanged { words, received, lengths: from_each })
}

/// Overwrites `all` with every rank's `part`, in the order of the ranks, and returns their lengths.
fn gather_into<T: Equivalence + Default + Clone>(
    world: &SimpleCommunicator,
    part: &[T],
    all: &mut Vec<T>,
) -> Result<Vec<usize>> {
    let mut lengths = vec![0_usize; unsigned(world.size())?];
    world.all_gather_into(&part.len(), &mut lengths[..]);
    let (counts, starts) = counts_and_starts(&lengths)?;
    all.resize(lengths.iter().sum(), T::default());
    if all.is_empty() {
        return Ok(lengths);
    }
    // An empty vector of bytes has the address 1, by which Open MPI means "in place".
    let nothing = [T::default()];
    let part = if part.is_empty() { &nothing[..0] } else { part };
    world.all_gather_varcount_into(part, &mut PartitionMut::new(&mut all[..], &counts[..], &starts[..]));
    Ok(lengths)
}

fn gather(world: &SimpleCommunicator, part: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    let lengths = gather_into(world, part, &mut all)?;
    let mut rest = &all[..];
    Ok(lengths
        .iter()
        .map(|&length| {
            let (part, after) = rest.split_at(length);
            rest = after;
            part.to_vec()
        })
        .collect())
}
