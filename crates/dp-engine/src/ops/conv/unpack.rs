//! A sum of weight gradients in the weight's own order.

use candle_core::{Result, Tensor};

use super::{ConvShape, WeightOrder};
use crate::ops::element::{Element, destination, dtype, for_float, same, source};
use crate::ops::in_place::{Operands, binary};

/// Copies a sum of weight gradients (source), whose values are in the given order, into the
/// weight's gradient (destination), or adds it.
pub(crate) fn unpack_weight(
    dst: &Tensor,
    sum: &Tensor,
    shape: &ConvShape,
    order: WeightOrder,
    accumulate: bool,
) -> Result<()> {
    binary("unpack-weight", dst, sum, |operands| match operands {
        Operands::Cpu(dst, [sum]) => for_float!(dtype(dst.0), "unpack-weight", T => {
            let weight = destination::<T>(dst)?;
            let sum = source::<T>(sum)?;
            check(shape, weight.len(), sum.len())?;
            let (patch, filters) = (shape.patch(), shape.group_filters());
            for (filter, weight) in weight.chunks_exact_mut(patch).enumerate() {
                match order {
                    WeightOrder::FiltersFirst => put(weight, sum[filter * patch..].iter(), accumulate),
                    WeightOrder::PatchFirst => {
                        let first = filter / filters * patch * filters + filter % filters;
                        put(weight, sum[first..].iter().step_by(filters), accumulate);
                    }
                }
            }
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [sum]) => crate::ops::cuda::unpack_weight(dst, sum, shape, order, accumulate),
    })
}

/// An error unless both have the values of a weight.
pub(in crate::ops) fn check(shape: &ConvShape, weight: usize, sum: usize) -> Result<()> {
    same("values of a convolution's weight", shape.weights(), weight)?;
    same("values of a sum of weight gradients", shape.weights(), sum)
}

fn put<'a, T: Element>(weight: &mut [T], sum: impl Iterator<Item = &'a T>, accumulate: bool) {
    for (weight, &value) in weight.iter_mut().zip(sum) {
        *weight = if accumulate { *weight + value } else { value };
    }
}
