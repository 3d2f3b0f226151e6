//! Values of the host on their way to the device.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use candle_core::backend::BackendDevice;
use candle_core::cuda::WrapErr;
use candle_core::cuda::cudarc::driver::{CudaEvent, CudaSlice, CudaViewMut, DeviceRepr, PinnedHostSlice};
use candle_core::{CudaDevice, Error, Result};

/// Plain numbers without padding, all of whose bytes may be read.
pub(super) trait Plain: DeviceRepr + Copy + 'static {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for i64 {}
impl Plain for usize {}
impl Plain for f32 {}
impl Plain for f64 {}

/// Page-locked memory that a copy may still be reading.
struct Staging {
    bytes: PinnedHostSlice<u8>,
    /// After the last copy from it.
    copied: CudaEvent,
}

/// Every buffer of the process, in the order in which they were last used. They are never given
/// back: a copy may be under way whenever the values' owner is done with them.
static STAGING: Mutex<Vec<Staging>> = Mutex::new(Vec::new());
/// Smallest buffer.
const LEAST_BYTES: usize = 4 << 10;
/// Buffers, at most: if all are in use, the host waits for the first that is large enough.
const MOST: usize = 256;

/// A copy on the device, in the order of its stream. The values may be dropped at once.
///
/// They go through page-locked memory, which outlives the copy: the driver may read pageable memory
/// after the call that starts a copy.
pub(super) fn upload<T: Plain>(device: &CudaDevice, values: &[T]) -> Result<CudaSlice<T>> {
    // CUDA has no memory of size 0.
    let mut to = super::view::scratch::<T>(device, values.len().max(1))?;
    upload_into(device, values, &mut to.slice_mut(..values.len()))?;
    Ok(to)
}

/// The same into memory of as many values.
pub(super) fn upload_into<T: Plain>(device: &CudaDevice, values: &[T], to: &mut CudaViewMut<'_, T>) -> Result<()> {
    let n_bytes = size_of_val(values);
    if n_bytes == 0 {
        return Ok(());
    }
    #[expect(unsafe_code, reason = "numbers as bytes")]
    // SAFETY: plain numbers, as many bytes as they have; the destination is checked to be as long.
    let (bytes, mut to) = unsafe {
        let bytes = std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), n_bytes);
        let most = to.len();
        let to = to
            .transmute_mut::<u8>(n_bytes)
            .ok_or_else(|| Error::Msg(format!("values to upload: expected at most {most}, got {}", values.len())))?;
        (bytes, to)
    };
    let stream = device.cuda_stream();
    let mut staging = STAGING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut buffer = free_buffer(&mut staging, device, n_bytes)?;
    let staged = buffer.bytes.as_mut_slice().w()?.get_mut(..n_bytes).ok_or_else(too_small)?;
    staged.copy_from_slice(bytes);
    let copied = stream.memcpy_htod(staged, &mut to).and_then(|()| buffer.copied.record(&stream)).w();
    staging.push(buffer);
    copied
}

/// Weights, and where they were copied to.
struct Uploaded {
    device: CudaDevice,
    values: Vec<f64>,
    copy: Rc<CudaSlice<f64>>,
}

thread_local! {
    /// The weights that this thread uploaded last.
    static LAST_WEIGHTS: RefCell<Option<Uploaded>> = const { RefCell::new(None) };
}

/// The weights of records on the device. All layers ask for the same one after the other, and one
/// copy serves them.
pub(super) fn weights_on_device(device: &CudaDevice, weights: &[f64]) -> Result<Rc<CudaSlice<f64>>> {
    LAST_WEIGHTS.with_borrow_mut(|last| {
        if let Some(last) = last
            && last.device.same_device(device)
            && last.values == weights
        {
            return Ok(last.copy.clone());
        }
        let copy = Rc::new(upload(device, weights)?);
        *last = Some(Uploaded { device: device.clone(), values: weights.to_vec(), copy: copy.clone() });
        Ok(copy)
    })
}

/// A buffer of the device's GPU that no copy reads, of at least `n_bytes` bytes.
fn free_buffer(staging: &mut Vec<Staging>, device: &CudaDevice, n_bytes: usize) -> Result<Staging> {
    let stream = device.cuda_stream();
    let context = stream.context();
    let fits = |buffer: &Staging| buffer.bytes.len() >= n_bytes && buffer.bytes.context() == context;
    if let Some(place) = staging.iter().position(|buffer| fits(buffer) && buffer.copied.is_complete()) {
        return Ok(staging.remove(place));
    }
    if staging.len() >= MOST
        && let Some(place) = staging.iter().position(fits)
    {
        let buffer = staging.remove(place);
        buffer.copied.synchronize().w()?;
        return Ok(buffer);
    }
    #[expect(unsafe_code, reason = "memory whose contents are undefined")]
    // SAFETY: what is copied from it is written first.
    let bytes = unsafe { context.alloc_pinned::<u8>(n_bytes.next_power_of_two().max(LEAST_BYTES)).w()? };
    Ok(Staging { bytes, copied: context.new_event(None).w()? })
}

fn too_small() -> Error {
    Error::Msg("values to upload: the buffer that was found is too small".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cuda::testing::device;

    #[test]
    fn the_same_weights_are_uploaded_once() {
        let Some(device) = device() else { return };
        let device = device.as_cuda_device().unwrap();
        let first = weights_on_device(device, &[1.0, 0.5]).unwrap();
        assert!(Rc::ptr_eq(&first, &weights_on_device(device, &[1.0, 0.5]).unwrap()));
        let other = weights_on_device(device, &[1.0, 0.25]).unwrap();
        assert!(!Rc::ptr_eq(&first, &other));
        assert_eq!(device.clone_dtoh(&*other).unwrap(), [1.0, 0.25]);
        assert_eq!(device.clone_dtoh(&*first).unwrap(), [1.0, 0.5]);
    }

    /// More uploads than there are buffers, of all sizes, each dropped before the device has read
    /// it.
    #[test]
    fn uploads_arrive_after_their_values_are_gone() {
        let Some(device) = device() else { return };
        let device = device.as_cuda_device().unwrap();
        let values = |i: usize| -> Vec<f64> { (0..i * 7 % 3_000).map(|k| (i * 10_000 + k) as f64).collect() };
        let uploaded: Vec<CudaSlice<f64>> = (0..3 * MOST).map(|i| upload(device, &values(i)).unwrap()).collect();
        for (i, slice) in uploaded.iter().enumerate() {
            let n = values(i).len();
            if n > 0 {
                assert_eq!(device.clone_dtoh(&slice.slice(..n)).unwrap(), values(i));
            }
        }
        let mut small = upload(device, &[1.0, 2.0]).unwrap();
        let error = upload_into(device, &[1.0; 3], &mut small.as_view_mut()).unwrap_err().to_string();
        assert!(error.starts_with("values to upload: expected at most 2, got 3"), "{error}");
    }
}
