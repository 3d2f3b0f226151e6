//! A sum of weight gradients in the weight's own order.

use candle_core::{CpuStorage, InplaceOp2, Layout, Result};

use super::{ConvShape, WeightOrder};
use crate::ops::element::{Element, destination, dtype, for_float, same, source};
use crate::ops::on_cuda::on_cuda;

/// Copies a sum of weight gradients (source) into the weight's gradient (destination), or adds it.
pub(crate) struct UnpackWeight<'a> {
    /// The convolution's geometry.
    pub(crate) shape: &'a ConvShape,
    /// The order of the source's values.
    pub(crate) order: WeightOrder,
    /// Add to the destination instead of overwriting it.
    pub(crate) accumulate: bool,
}

impl UnpackWeight<'_> {
    /// An error unless both have the values of a weight.
    pub(in crate::ops) fn check(&self, weight: usize, sum: usize) -> Result<()> {
        same("values of a convolution's weight", self.shape.weights(), weight)?;
        same("values of a sum of weight gradients", self.shape.weights(), sum)
    }

    fn put<'a, T: Element>(&self, weight: &mut [T], sum: impl Iterator<Item = &'a T>) {
        for (weight, &value) in weight.iter_mut().zip(sum) {
            *weight = if self.accumulate { *weight + value } else { value };
        }
    }
}

impl InplaceOp2 for UnpackWeight<'_> {
    fn name(&self) -> &'static str {
        "unpack-weight"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, sum: &CpuStorage, sum_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "unpack-weight", T => {
            let weight = destination::<T>(dst, dst_l)?;
            let sum = source::<T>((sum, sum_l))?;
            self.check(weight.len(), sum.len())?;
            let (patch, filters) = (self.shape.patch(), self.shape.group_filters());
            for (filter, weight) in weight.chunks_exact_mut(patch).enumerate() {
                match self.order {
                    WeightOrder::FiltersFirst => self.put(weight, sum[filter * patch..].iter()),
                    WeightOrder::PatchFirst => {
                        let first = filter / filters * patch * filters + filter % filters;
                        self.put(weight, sum[first..].iter().step_by(filters));
                    }
                }
            }
            Ok(())
        })
    }

    on_cuda!(|self, dst, sum| cuda::unpack_weight(self, dst, sum));
}
