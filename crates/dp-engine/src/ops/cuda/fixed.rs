//! Products of records at sizes that do not depend on the batch.
//!
//! cuBLAS chooses a kernel by the sizes of a product, and with it the order of its additions. A
//! fixed number of records is therefore multiplied at a time, the last of them together with rows
//! of zeros: what comes of a record must not depend on how many others were drawn.

use candle_core::cuda::cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DevicePtr};
use candle_core::{CudaDevice, Result};

use super::product::{Matrices, Products, Purpose, products, span};
use super::view::Real;

/// Rows of one product: enough that a wide layer occupies the device, and few beside the batches
/// that are worth one.
const ROWS: usize = 1_024;
/// Alignment of fresh memory, in bytes.
const ALIGNMENT: u64 = 256;

/// The largest power of two of things of `size` values each within `values`, at least 1.
pub(super) fn at_once(values: usize, size: usize) -> usize {
    1 << (values / size.max(1)).max(1).ilog2()
}

/// `dst = lhs · rhs`, or `dst += lhs · rhs` to `accumulate`, for one matrix `lhs` as it is stored:
/// a pass of records.
///
/// **Guarantee.** The number of rows decides neither the sizes nor the alignment of a product.
pub(super) fn row_products<T: Real>(
    device: &CudaDevice,
    mut dst: Products<'_, T>,
    lhs: &Matrices<'_, T>,
    rhs: &Matrices<'_, T>,
    accumulate: bool,
) -> Result<()> {
    for first in (0..lhs.rows).step_by(ROWS) {
        let values = dst.values.slice_mut(first * dst.row_stride..);
        let to = Products { values, row_stride: dst.row_stride, record_stride: 0 };
        let lhs = Matrices { rows: ROWS, ..lhs.from(first * lhs.row_stride) };
        padded_products(device, Purpose::Pass, 1, to, &lhs, rhs, accumulate)?;
    }
    Ok(())
}

/// `dst = lhs · rhs` for each of `n_records` records, `at_once` of them at a time: their gradients.
///
/// **Guarantee.** As for [`row_products`], of the number of records.
pub(super) fn record_products<T: Real>(
    device: &CudaDevice,
    (n_records, at_once): (usize, usize),
    mut dst: Products<'_, T>,
    lhs: &Matrices<'_, T>,
    rhs: &Matrices<'_, T>,
) -> Result<()> {
    for first in (0..n_records).step_by(at_once) {
        let values = dst.values.slice_mut(first * dst.record_stride..);
        let to = Products { values, row_stride: dst.row_stride, record_stride: dst.record_stride };
        let (lhs, rhs) = (lhs.from(first * lhs.record_stride), rhs.from(first * rhs.record_stride));
        padded_products(device, Purpose::Gradient, at_once, to, &lhs, &rhs, false)?;
    }
    Ok(())
}

/// [`products`] of exactly these sizes. A factor may hold fewer values, and is then followed by
/// zeros; results for which there is no room are dropped.
pub(super) fn padded_products<T: Real>(
    device: &CudaDevice,
    purpose: Purpose,
    n_records: usize,
    mut dst: Products<'_, T>,
    lhs: &Matrices<'_, T>,
    rhs: &Matrices<'_, T>,
    accumulate: bool,
) -> Result<()> {
    let lhs_values = Padded::unless_whole(device, &lhs.values, lhs.span(n_records))?;
    let rhs_values = Padded::unless_whole(device, &rhs.values, rhs.span(n_records))?;
    let lhs = lhs.with(lhs_values.as_ref().map(Padded::view));
    let rhs = rhs.with(rhs_values.as_ref().map(Padded::view));
    let results = span(n_records, (lhs.shape().0, rhs.shape().1), dst.row_stride, dst.record_stride);
    let Some(mut whole) = Padded::unless_whole(device, &dst.values.as_view(), results)? else {
        return products(device, purpose, n_records, dst, &lhs, &rhs, accumulate);
    };
    let to = Products { values: whole.view_mut(), row_stride: dst.row_stride, record_stride: dst.record_stride };
    products(device, purpose, n_records, to, &lhs, &rhs, accumulate)?;
    device.memcpy_dtod(&whole.view().slice(..dst.values.len()), &mut dst.values)
}

/// A copy of some values, followed by zeros, that is aligned as they are.
struct Padded<T> {
    values: CudaSlice<T>,
    first: usize,
}

impl<T: Real> Padded<T> {
    /// The first `len` values, if there are not as many.
    fn unless_whole(device: &CudaDevice, of: &CudaView<'_, T>, len: usize) -> Result<Option<Self>> {
        if of.len() >= len {
            return Ok(None);
        }
        let stream = device.cuda_stream();
        let (address, _reads) = of.device_ptr(&stream);
        let first = (address % ALIGNMENT) as usize / size_of::<T>();
        let mut values = device.alloc_zeros::<T>(first + len)?;
        device.memcpy_dtod(of, &mut values.slice_mut(first..first + of.len()))?;
        Ok(Some(Self { values, first }))
    }

    fn view(&self) -> CudaView<'_, T> {
        self.values.slice(self.first..)
    }

    fn view_mut(&mut self) -> CudaViewMut<'_, T> {
        self.values.slice_mut(self.first..)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Tensor};

    use super::*;
    use crate::ops::Operand;
    use crate::ops::cuda::testing::device;

    fn values(rows: usize, columns: usize, seed: usize, device: &Device) -> Tensor {
        let value = |i: usize| ((i * 7_919 + seed * 104_729) % 1_009) as f64 / 504.5 - 1.0;
        let values: Vec<f64> = (0..rows * columns).map(value).collect();
        Tensor::from_vec(values, (rows, columns), device).unwrap()
    }

    fn bits(tensor: &Tensor) -> Vec<u64> {
        let values: Vec<f64> = tensor.flatten_all().unwrap().to_dtype(DType::F64).unwrap().to_vec1().unwrap();
        values.into_iter().map(f64::to_bits).collect()
    }

    /// Alone and in company, wherever it is, with and without what was there before.
    #[test]
    fn a_row_of_a_product_depends_on_itself_alone() {
        const M: usize = 2 * ROWS + 37;
        let Some(device) = device() else { return };
        for (k, n) in [(3, 10), (50, 7), (600, 64)] {
            for dtype in [DType::F32, DType::F64] {
                let lhs = values(M, k, 1, &device).to_dtype(dtype).unwrap();
                let rhs = values(n, k, 2, &device).to_dtype(dtype).unwrap();
                for accumulate in [false, true] {
                    let product = |first: usize, m: usize| {
                        let rows = lhs.narrow(0, first, m).unwrap().copy().unwrap();
                        let dst = values(m, n, 3, &device).to_dtype(dtype).unwrap();
                        crate::ops::fill(&dst, 0.3).unwrap();
                        let (lhs, rhs) = ((&rows, Operand::Plain), (&rhs, Operand::Transposed));
                        crate::ops::matmul(&dst, lhs, rhs, accumulate).unwrap();
                        bits(&dst)
                    };
                    let whole = product(0, M);
                    for m in [1, 2, 5, 129, ROWS, ROWS + 1] {
                        for first in [0, 1, 700, M - m] {
                            let expected = &whole[first * n..(first + m) * n];
                            assert!(product(first, m) == expected, "{m} rows from {first}, [{k}, {n}], {dtype:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_record_s_product_depends_on_itself_alone() {
        let Some(device) = device() else { return };
        let (records, positions, m, n) = (300, 5, 7, 9);
        let (lhs, rhs) = (values(records * positions, m, 1, &device), values(records * positions, n, 2, &device));
        let product = |first: usize, some: usize| {
            let rows = |of: &Tensor| of.narrow(0, first * positions, some * positions).unwrap().copy().unwrap();
            let dst = Tensor::zeros((some, m * n), DType::F64, &device).unwrap();
            crate::ops::record_products(&dst, &rows(&lhs), &rows(&rhs), positions).unwrap();
            bits(&dst)
        };
        let whole = product(0, records);
        for (first, some) in [(0, 1), (3, 2), (255, 45), (10, 257)] {
            assert!(product(first, some) == whole[first * m * n..(first + some) * m * n], "{some} from {first}");
        }
    }
}
