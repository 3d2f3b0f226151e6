//! Typed views of the storage that candle hands to a custom operation on a CUDA device.

use candle_core::cuda::CudaDType;
use candle_core::cuda::cudarc::cublas::sys::{cublasComputeType_t, cudaDataType};
use candle_core::cuda::cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DeviceRepr, ValidAsZeroBits};
use candle_core::{CudaDevice, CudaStorage, DType, Error, Layout, Result, Storage};

use super::launch::Argument;
use super::upload::Plain;
use crate::noise::{GRID, at_most};
use crate::ops::element::Element;

/// A tensor that an operation reads.
pub(in crate::ops) type Source<'a> = (&'a CudaStorage, &'a Layout);
/// The tensor that an operation writes.
pub(in crate::ops) type Destination<'a> = (&'a mut CudaStorage, &'a Layout);

/// A float type that kernels are compiled for.
pub(super) trait Real: Element + CudaDType + DeviceRepr + ValidAsZeroBits + Argument + Plain {
    /// Name the kernels are loaded under.
    const MODULE: &'static str;
    /// The kernels.
    const PTX: &'static str;
    /// cuBLAS's name of the type.
    const DATA: cudaDataType;
    /// cuBLAS's name of its arithmetic.
    const COMPUTE: cublasComputeType_t;
    /// The same where factors may lose digits.
    const COMPUTE_FAST: cublasComputeType_t;
    /// Grid steps in one unit, for noise of this standard deviation: as on the CPU.
    fn grid_factor(std: f64) -> f64;
    /// A number of such steps as a value: as on the CPU.
    fn of_steps(steps: f64, factor: f64) -> Self;
}

impl Real for f32 {
    const MODULE: &'static str = "dp-train-single";
    const PTX: &'static str = include_str!(concat!(env!("OUT_DIR"), "/single.ptx"));
    const DATA: cudaDataType = cudaDataType::CUDA_R_32F;
    const COMPUTE: cublasComputeType_t = cublasComputeType_t::CUBLAS_COMPUTE_32F_PEDANTIC;
    const COMPUTE_FAST: cublasComputeType_t = cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32;
    fn grid_factor(std: f64) -> f64 {
        f64::from(at_most(GRID / std))
    }
    fn of_steps(steps: f64, factor: f64) -> Self {
        steps as f32 * (1.0 / factor as f32)
    }
}

impl Real for f64 {
    const MODULE: &'static str = "dp-train-double";
    const PTX: &'static str = include_str!(concat!(env!("OUT_DIR"), "/double.ptx"));
    const DATA: cudaDataType = cudaDataType::CUDA_R_64F;
    const COMPUTE: cublasComputeType_t = cublasComputeType_t::CUBLAS_COMPUTE_64F_PEDANTIC;
    const COMPUTE_FAST: cublasComputeType_t = Self::COMPUTE;
    fn grid_factor(std: f64) -> f64 {
        (GRID / std).next_down()
    }
    fn of_steps(steps: f64, factor: f64) -> Self {
        steps / factor
    }
}

/// The type a storage holds.
pub(super) fn dtype(storage: &CudaStorage) -> DType {
    candle_core::backend::BackendStorage::dtype(storage)
}

/// The values of a contiguous source.
pub(super) fn source<T: CudaDType>((storage, layout): Source<'_>) -> Result<CudaView<'_, T>> {
    let (start, end) = layout.contiguous_offsets().ok_or(Error::RequiresContiguous { op: "source" })?;
    let slice = storage.as_cuda_slice::<T>()?;
    slice.try_slice(start..end).ok_or_else(|| out_of_range("source", end, slice.len()))
}

/// The values of a contiguous destination.
pub(super) fn destination<T: CudaDType>((storage, layout): Destination<'_>) -> Result<CudaViewMut<'_, T>> {
    let (start, end) = layout.contiguous_offsets().ok_or(Error::RequiresContiguous { op: "destination" })?;
    let slice = storage.as_cuda_slice_mut::<T>()?;
    let len = slice.len();
    slice.try_slice_mut(start..end).ok_or_else(|| out_of_range("destination", end, len))
}

/// The CUDA storage of a tensor that an operation holds besides its operands.
pub(super) fn on_device(storage: &Storage) -> Result<&CudaStorage> {
    match storage {
        Storage::Cuda(storage) => Ok(storage),
        _ => Err(Error::Msg("expected a tensor on the CUDA device, where the operation's others are".into())),
    }
}

/// Working memory of one operation. The contents are undefined.
pub(super) fn scratch<T: DeviceRepr>(device: &CudaDevice, len: usize) -> Result<CudaSlice<T>> {
    #[expect(unsafe_code, reason = "memory that is not cleared first")]
    // SAFETY: every kernel writes the scratch memory that is read after it; callers see to the
    // order of their launches.
    unsafe {
        device.alloc(len)
    }
}

fn out_of_range(what: &str, end: usize, len: usize) -> Error {
    Error::Msg(format!("end of a {what}: expected at most {len}, got {end}"))
}
