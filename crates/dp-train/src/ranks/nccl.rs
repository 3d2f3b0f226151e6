//! Ranks with a CUDA device each, whose sums go from card to card.

use std::ffi::c_char;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::CudaDevice;
use candle_core::cuda::cudarc::driver::CudaSlice;
use candle_core::cuda::cudarc::nccl::result::NcclError;
use candle_core::cuda::cudarc::nccl::{Comm, Id, ReduceOp};
use dp_engine::{EngineError, Result};

use super::{Collective, Exchange, Exchanged};

/// Sums of integers over NCCL, all else over the ranks that it was made from.
#[derive(Debug)]
pub(super) struct Nccl {
    host: Arc<dyn Collective>,
    communicator: Mutex<Communicator>,
}

/// It is never closed, as the device is not: cudarc panics where NCCL refuses to, as it does after
/// a fault, and the panic would hide the fault.
#[derive(Debug)]
struct Communicator(ManuallyDrop<Comm>);

#[expect(unsafe_code, reason = "cudarc's communicator is a pointer")]
// SAFETY: NCCL lets any thread use a communicator, one at a time: it is behind a mutex.
unsafe impl Send for Communicator {}

/// Bytes of the name under which ranks find each other.
const NAME: usize = 128;

impl Nccl {
    /// All of these ranks, each with its device.
    pub(super) fn join(host: Arc<dyn Collective>, device: &CudaDevice) -> Result<Self> {
        let name = if host.rank() == 0 { Id::new().map_err(refused)?.internal().to_vec() } else { Vec::new() };
        let name = host.broadcast(bytemuck::cast_vec::<c_char, u8>(name))?;
        let name: [c_char; NAME] = *bytemuck::cast_slice::<u8, c_char>(&name)
            .first_chunk()
            .ok_or_else(|| EngineError::Ranks(format!("NCCL's name has {} bytes: expected {NAME}", name.len())))?;
        let stream = device.cuda_stream();
        let bound = stream.context().bind_to_thread();
        bound.map_err(|error| EngineError::Ranks(format!("a device for NCCL: {error}")))?;
        let comm = Comm::from_rank(stream, host.rank(), host.size(), Id::uninit(name)).map_err(refused)?;
        Ok(Self { host, communicator: Mutex::new(Communicator(ManuallyDrop::new(comm))) })
    }
}

fn refused(NcclError(code): NcclError) -> EngineError {
    EngineError::Ranks(format!("NCCL: {code:?}; each rank needs a card of its own, and NCCL_DEBUG=WARN says more"))
}

impl Collective for Nccl {
    fn rank(&self) -> usize {
        self.host.rank()
    }

    fn size(&self) -> usize {
        self.host.size()
    }

    fn sum(&self, values: &mut Vec<i64>) -> Result<()> {
        self.host.sum(values)
    }

    fn sums_on_devices(&self) -> bool {
        true
    }

    fn sum_on_devices(&self, values: &mut CudaSlice<i64>, flags: &mut CudaSlice<u32>) -> Result<()> {
        let communicator = self.communicator.lock().unwrap_or_else(PoisonError::into_inner);
        communicator.0.all_reduce_in_place(values, &ReduceOp::Sum).map_err(refused)?;
        communicator.0.all_reduce_in_place(flags, &ReduceOp::Max).map_err(refused)?;
        Ok(())
    }

    fn exchange(&self, own: Exchanged) -> Result<Exchange> {
        self.host.exchange(own)
    }

    fn gather_words(&self, words: &mut Vec<u64>, all: &mut Vec<u64>) -> Result<Vec<usize>> {
        self.host.gather_words(words, all)
    }

    fn gather(&self, part: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.host.gather(part)
    }

    fn abort(&self, code: i32) -> ! {
        self.host.abort(code)
    }
}
