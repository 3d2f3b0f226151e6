//! Convolutions in double precision, on devices that have it at half the speed of single: norms from
//! Gram matrices, and sums of what they are the norms of.

use candle_core::cuda::WrapErr;
use candle_core::cuda::cudarc::driver::{CudaSlice, CudaView, CudaViewMut};
use candle_core::{CudaDevice, Result};

use super::conv::{Pair, WORK_BYTES, chunks, gather_patches, part_of_batch};
use super::divisor::{Divisor, size};
use super::fixed;
use super::launch::launch;
use super::product::{Matrices, Products, Purpose, products};
use super::rows::Parts;
use super::view::{Destination, Real, Source, destination, dtype, scratch, source};
use crate::ops::cancellation_limit;
use crate::ops::conv::{ConvShape, WeightOrder, check_images};
use crate::ops::element::{Element, for_float, same};

/// Records whose Gram matrices are formed at once, at most.
const RECORDS: usize = 1_024;

/// Whether products in `f64` run at half the speed of `f32`: GPUs for data centres, by their
/// compute capability.
pub(crate) fn has_fast_double(device: &CudaDevice) -> bool {
    let capability = device.cuda_stream().context().compute_capability();
    matches!(capability, Ok((6..=10, 0)))
}

/// The factors of the gradients of some records in `f64`, followed by zeros: patches and output
/// gradients of one group.
struct Wide<T> {
    device: CudaDevice,
    shape: ConvShape,
    n_records: usize,
    rows: CudaSlice<T>,
    patches: CudaSlice<f64>,
    gradients: CudaSlice<f64>,
}

impl<T: Real> Wide<T> {
    fn new(device: &CudaDevice, shape: &ConvShape, n_records: usize) -> Result<Self> {
        let n_rows = n_records * shape.positions();
        Ok(Self {
            device: device.clone(),
            shape: *shape,
            n_records,
            rows: scratch(device, n_rows * shape.patch())?,
            patches: scratch(device, n_rows * shape.patch())?,
            gradients: scratch(device, n_rows * shape.group_filters())?,
        })
    }

    fn fill(&mut self, part: &Pair<'_, T>, group: usize) -> Result<()> {
        let (shape, device) = (&self.shape, &self.device);
        gather_patches(device, shape, group, part.images.slice(..), &mut self.rows, shape.patch())?;
        widen(device, self.rows.as_view(), (shape.patch(), shape.patch()), self.patches.as_view_mut())?;
        let filters = shape.group_filters();
        let n = part.outputs.len() / shape.filters * filters;
        if n < self.gradients.len() {
            device.cuda_stream().memset_zeros(&mut self.gradients.slice_mut(n..)).w()?;
        }
        let gradients = part.outputs.slice(group * filters..);
        widen(device, gradients, (filters, shape.filters), self.gradients.slice_mut(..n))
    }

    /// `[records, positions, columns]`.
    fn matrices<'a>(&self, values: &'a CudaSlice<f64>, columns: usize) -> Matrices<'a, f64> {
        let positions = self.shape.positions();
        Matrices::one(values.as_view(), positions, columns).per_record(positions * columns)
    }
}

/// `columns` values of each row, which begins `row_stride` values after the one before, in `f64`.
fn widen<T: Real>(
    device: &CudaDevice,
    src: CudaView<'_, T>,
    (columns, row_stride): (usize, usize),
    dst: CudaViewMut<'_, f64>,
) -> Result<()> {
    size(dst.len())?;
    launch!(T, device, "widen", dst.len(); Divisor::new(columns)?, row_stride, src, dst)
}

pub(in crate::ops) fn conv_gram_sq_norms(
    dst: Destination<'_>,
    images: Source<'_>,
    gradients: Source<'_>,
    shape: &ConvShape,
    bias: bool,
    expected: Option<usize>,
) -> Result<()> {
    for_float!(dtype(images.0), "conv-gram-sq-norms", T => {
        let device = dst.0.device.clone();
        let mut norms = destination::<f64>(dst)?;
        let all = Pair { images: source::<T>(images)?, outputs: source::<T>(gradients)? };
        check_images(shape, all.images.len(), all.outputs.len())?;
        let n_images = all.images.len() / shape.inputs();
        same("norms of a batch", n_images, norms.len())?;
        let (n, patch, filters) = (shape.positions(), shape.patch(), shape.group_filters());
        let per_record = n * (patch + filters) + 2 * n * n;
        let records = expected.map_or(RECORDS, |expected| part_of_batch(expected).min(RECORDS));
        let at_once = fixed::at_once(WORK_BYTES / size_of::<f64>(), per_record).min(records);
        let mut wide = Wide::<T>::new(&device, shape, at_once)?;
        let mut of_rows = scratch::<f64>(&device, at_once * n * n)?;
        let mut of_gradients = scratch::<f64>(&device, at_once * n * n)?;
        // Errors of the products, of the sum over pairs of positions and of its terms, in any order.
        let rounding = (n * n + patch + filters + 8) as f64 * f64::EPSILON;
        let (limit, bias) = (cancellation_limit(n), f64::from(u8::from(bias)));
        for range in chunks(n_images, at_once) {
            let part = all.range(shape, &range);
            for group in 0..shape.groups {
                wide.fill(&part, group)?;
                gram(&device, &wide.matrices(&wide.patches, patch), at_once, of_rows.as_view_mut())?;
                gram(&device, &wide.matrices(&wide.gradients, filters), at_once, of_gradients.as_view_mut())?;
                let n_records = range.len();
                let mut parts = Parts::new(&device, 3 * n, n_records)?;
                launch!(
                    T, &device, "gram_parts", n_records * n;
                    n_records, n, bias, of_rows.as_view(), of_gradients.as_view(), parts.values.as_view_mut()
                )?;
                let unit = T::UNIT;
                launch!(
                    T, &device, "add_gram_sq_norms", n_records;
                    n, rounding, limit, unit, parts.values.as_view(), norms.slice_mut(range.clone())
                )?;
            }
        }
        Ok(())
    })
}

/// Products of all pairs of rows, record by record.
fn gram(device: &CudaDevice, rows: &Matrices<'_, f64>, n_records: usize, dst: CudaViewMut<'_, f64>) -> Result<()> {
    let positions = rows.shape().0;
    let to = Products { values: dst, row_stride: positions, record_stride: positions * positions };
    let columns = rows.from(0).transposed();
    products(device, Purpose::Gradient, n_records, to, rows, &columns, false)
}

/// `dst = Σ_i ∂(d_i · conv(image_i, weight)) / ∂weight`, or added to it: summed in `f64`, in which
/// products of `f32` are exact, and rounded once.
pub(in crate::ops) fn conv_weight_sum_in_double(
    dst: Destination<'_>,
    images: Source<'_>,
    gradients: Source<'_>,
    shape: &ConvShape,
    order: WeightOrder,
    accumulate: bool,
) -> Result<()> {
    for_float!(dtype(dst.0), "conv-weight-sum", T => {
        let device = dst.0.device.clone();
        let sum = destination::<T>(dst)?;
        let all = Pair { images: source::<T>(images)?, outputs: source::<T>(gradients)? };
        same("values of a convolution's weight", shape.weights(), sum.len())?;
        check_images(shape, all.images.len(), all.outputs.len())?;
        let n_images = all.images.len() / shape.inputs();
        let (n, patch, filters) = (shape.positions(), shape.patch(), shape.group_filters());
        let fits = fixed::at_once(WORK_BYTES / size_of::<f64>(), n * (patch + filters));
        // All records of a sum belong to it, and their number may decide its order.
        let at_once = fits.min(n_images.max(1));
        let mut wide = Wide::<T>::new(&device, shape, at_once)?;
        let mut wide_sum = device.alloc_zeros::<f64>(shape.weights())?;
        for range in chunks(n_images, at_once) {
            let part = all.range(shape, &range);
            for group in 0..shape.groups {
                wide.fill(&part, group)?;
                let n_rows = wide.n_records * n;
                let rows = Matrices::one(wide.patches.as_view(), n_rows, patch);
                let gradients = Matrices::one(wide.gradients.as_view(), n_rows, filters);
                let values = wide_sum.slice_mut(group * filters * patch..(group + 1) * filters * patch);
                let (lhs, rhs) = match order {
                    WeightOrder::FiltersFirst => (gradients.transposed(), rows),
                    WeightOrder::PatchFirst => (rows.transposed(), gradients),
                };
                let to = Products { values, row_stride: rhs.columns, record_stride: 0 };
                products(&device, Purpose::Gradient, 1, to, &lhs, &rhs, range.start > 0)?;
            }
        }
        launch!(T, &device, "narrow", sum.len(); wide_sum.as_view(), u32::from(accumulate), sum)
    })
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Tensor};

    use super::*;
    use crate::ops::cuda::testing::device;
    use crate::ops::{PerSampleForm, Workspace};

    fn values(rows: usize, columns: usize, seed: usize, dtype: DType, device: &Device) -> Tensor {
        let value = |i: usize| ((i * 7_919 + seed * 104_729) % 1_009) as f64 / 504.5 - 1.0;
        let values: Vec<f64> = (0..rows * columns).map(value).collect();
        Tensor::from_vec(values, (rows, columns), device).unwrap().to_dtype(dtype).unwrap()
    }

    fn norms(shape: &ConvShape, images: &Tensor, gradients: &Tensor, bias: bool) -> Vec<f64> {
        let norms = Tensor::zeros(images.dim(0).unwrap(), DType::F64, images.device()).unwrap();
        let (mut a, mut b) = (Workspace::default(), Workspace::default());
        crate::ops::conv_gram_sq_norms(&norms, images, gradients, shape, bias, (&mut a, &mut b)).unwrap();
        norms.to_vec1().unwrap()
    }

    const BASE: ConvShape =
        ConvShape { height: 5, width: 4, channels: 4, filters: 6, kernel: 3, stride: 1, padding: 1, groups: 1 };

    #[test]
    fn norms_are_those_of_the_cpu() {
        let Some(device) = device() else { return };
        let shapes = [
            BASE,
            ConvShape { groups: 2, stride: 2, ..BASE },
            ConvShape { height: 1, width: 1, kernel: 1, padding: 0, ..BASE },
        ];
        for shape in shapes {
            for (dtype, bias) in [(DType::F32, true), (DType::F32, false), (DType::F64, true)] {
                let of = |device: &Device| {
                    let images = values(5, shape.inputs(), 1, dtype, device);
                    norms(&shape, &images, &values(5, shape.outputs(), 2, dtype, device), bias)
                };
                for (a, b) in of(&device).iter().zip(of(&Device::Cpu)) {
                    assert!((a - b).abs() <= 1e-10 * b, "{a} {b} {shape:?} {dtype:?}");
                }
            }
        }
    }

    /// Two positions whose gradients cancel up to 2⁻²⁰: not below what a sum of rounded terms
    /// leaves. And what is not finite, or too large, is infinite.
    #[test]
    fn norms_are_guarded() {
        let Some(device) = device() else { return };
        let shape = ConvShape { height: 1, width: 2, channels: 1, filters: 1, kernel: 1, padding: 0, ..BASE };
        let tensor = |values: [f32; 2]| Tensor::from_slice(&values, (1, 2), &device).unwrap();
        let tiny = (-20.0_f32).exp2();
        let norm = norms(&shape, &tensor([1.0 + tiny, 1.0]), &tensor([1.0, -1.0]), false)[0].sqrt();
        let terms = 2.0 + f64::from(tiny);
        assert!((norm - terms / cancellation_limit(2)).abs() < 1e-12, "{norm}");
        for (x, d) in [(f32::NAN, 1.0), (1.0, f32::NAN), (f32::INFINITY, 1.0), (2e12, 1.0)] {
            assert_eq!(norms(&shape, &tensor([x, 1.0]), &tensor([d, 1.0]), true), [f64::INFINITY], "{x} {d}");
        }
    }

    #[test]
    fn sums_are_those_of_the_cpu_rounded_once() {
        let Some(device) = device() else { return };
        for shape in [BASE, ConvShape { groups: 2, ..BASE }] {
            for order in [WeightOrder::FiltersFirst, WeightOrder::PatchFirst] {
                let sum = |form, dtype, device: &Device| -> Vec<f64> {
                    // Values of single precision.
                    let wide = |seed, n| values(7, n, seed, DType::F32, device).to_dtype(dtype).unwrap();
                    let (images, gradients) = (wide(1, shape.inputs()), wide(2, shape.outputs()));
                    let sum = Tensor::zeros(shape.weights(), dtype, device).unwrap();
                    crate::ops::fill(&sum, 0.5).unwrap();
                    let (how, mut workspace) = ((order, form), Workspace::default());
                    crate::ops::conv_weight_sum(&sum, &images, &gradients, &shape, how, true, &mut workspace).unwrap();
                    sum.to_dtype(DType::F64).unwrap().to_vec1().unwrap()
                };
                let exact = sum(PerSampleForm::Materialised, DType::F64, &Device::Cpu);
                for (a, b) in sum(PerSampleForm::Gram, DType::F32, &device).iter().zip(exact) {
                    assert!((a - b).abs() <= b.abs() * 1e-7, "{a} {b} {shape:?}");
                }
            }
        }
    }
}
