//! Convolutions without the taps of the kernel that meet nothing but padding.

use candle_core::{CpuStorage, InplaceOp2, Layout, Result};

use super::{ConvShape, WeightOrder};
use crate::ops::element::{Element, destination, dtype, for_float, same, source};
use crate::ops::on_cuda::on_cuda;

/// Which rows and columns of a square kernel are used: `used` of `kernel`, from `first` on.
///
/// On small images a padded kernel has taps that are over the padding at every position: all but the middle one of 3 × 3 on 1 × 1, as in
/// ResNet-18's last blocks on MNIST. They add nothing to the output and their gradient is 0, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taps {
    kernel: usize,
    first: usize,
    used: usize,
}

impl ConvShape {
    /// The same convolution without unused taps, and which ones it uses.
    pub(crate) fn cropped(&self) -> (Self, Taps) {
        let all = Taps { kernel: self.kernel, first: 0, used: self.kernel };
        let meets = |tap: usize, positions: usize, size: usize| {
            (0..positions).any(|position| self.inside(position, tap, size).is_some())
        };
        let used =
            |&tap: &usize| meets(tap, self.out_height(), self.height) || meets(tap, self.out_width(), self.width);
        let (Some(first), Some(last)) = ((0..self.kernel).find(used), (0..self.kernel).rfind(used)) else {
            return (*self, all);
        };
        let taps = Taps { kernel: self.kernel, first, used: last + 1 - first };
        let Some(padding) = self.padding.checked_sub(first) else { return (*self, all) };
        let cropped = Self { kernel: taps.used, padding, ..*self };
        // The padding of a shape is the same on all sides.
        let same_positions =
            cropped.fits() && cropped.out_height() == self.out_height() && cropped.out_width() == self.out_width();
        if same_positions { (cropped, taps) } else { (*self, all) }
    }

    fn fits(&self) -> bool {
        self.kernel <= self.height.min(self.width) + 2 * self.padding
    }
}

impl Taps {
    /// Whether there are no others.
    pub(crate) fn are_all(self) -> bool {
        self.used == self.kernel
    }

    /// The kernel with its unused taps.
    pub(crate) fn kernel(self) -> usize {
        self.kernel
    }

    /// The first that is used, and how many are.
    #[cfg(feature = "cuda")]
    pub(in crate::ops) fn used(self) -> (usize, usize) {
        (self.first, self.used)
    }

    /// Values of a whole filter of `depth` channels.
    fn patch(self, depth: usize) -> usize {
        self.kernel * self.kernel * depth
    }

    /// An error unless so many values are the used part of a weight, and the weight.
    pub(in crate::ops) fn check(self, shape: &ConvShape, used: usize, weight: usize) -> Result<()> {
        same("values of the used part of a convolution's weight", shape.weights(), used)?;
        same("values of a convolution's weight", shape.filters * self.patch(shape.depth()), weight)
    }

    /// Where the used rows of one filter of `depth` channels begin: in the whole filter, and in the used part.
    fn rows(self, depth: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..self.used)
            .map(move |row| (((self.first + row) * self.kernel + self.first) * depth, row * self.used * depth))
    }
}

/// Copies the used part (destination) of a convolution's weight (source).
pub(crate) struct CropWeight<'a> {
    /// The geometry without unused taps.
    pub(crate) shape: &'a ConvShape,
    /// The used taps.
    pub(crate) taps: Taps,
}

impl InplaceOp2 for CropWeight<'_> {
    fn name(&self) -> &'static str {
        "crop-weight"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, weight: &CpuStorage, weight_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "crop-weight", T => {
            let used = destination::<T>(dst, dst_l)?;
            let weight = source::<T>((weight, weight_l))?;
            self.taps.check(self.shape, used.len(), weight.len())?;
            let depth = self.shape.depth();
            let filters = used.chunks_exact_mut(self.shape.patch()).zip(weight.chunks_exact(self.taps.patch(depth)));
            for (used, weight) in filters {
                for (from, to) in self.taps.rows(depth) {
                    let len = self.taps.used * depth;
                    used[to..to + len].copy_from_slice(&weight[from..from + len]);
                }
            }
            Ok(())
        })
    }

    on_cuda!(|self, dst, weight| cuda::crop_weight(self, dst, weight));
}

/// Copies a sum of weight gradients (source) into the weight's gradient (destination), or adds it. The gradient of unused taps is 0.
pub(crate) struct UnpackWeight<'a> {
    /// The geometry without unused taps.
    pub(crate) shape: &'a ConvShape,
    /// The used taps.
    pub(crate) taps: Taps,
    /// The order of the source's values.
    pub(crate) order: WeightOrder,
    /// Add to the destination instead of overwriting it.
    pub(crate) accumulate: bool,
}

impl InplaceOp2 for UnpackWeight<'_> {
    fn name(&self) -> &'static str {
        "unpack-weight"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, sum: &CpuStorage, sum_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "unpack-weight", T => {
            let weight = destination::<T>(dst, dst_l)?;
            let sum = source::<T>((sum, sum_l))?;
            self.taps.check(self.shape, sum.len(), weight.len())?;
            if !self.accumulate {
                weight.fill(T::ZERO);
            }
            let (depth, filters) = (self.shape.depth(), self.shape.group_filters());
            for (filter, weight) in weight.chunks_exact_mut(self.taps.patch(depth)).enumerate() {
                let (group, column) = (filter / filters, filter % filters);
                for (to, from) in self.taps.rows(depth) {
                    let weight = &mut weight[to..to + self.taps.used * depth];
                    match self.order {
                        WeightOrder::FiltersFirst => add(weight, sum[filter * self.shape.patch() + from..].iter()),
                        WeightOrder::PatchFirst => {
                            let first = (group * self.shape.patch() + from) * filters + column;
                            add(weight, sum[first..].iter().step_by(filters));
                        }
                    }
                }
            }
            Ok(())
        })
    }

    on_cuda!(|self, dst, sum| cuda::unpack_weight(self, dst, sum));
}

fn add<'a, T: Element>(values: &mut [T], others: impl Iterator<Item = &'a T>) {
    for (value, &other) in values.iter_mut().zip(others) {
        *value += other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(size: usize, kernel: usize, stride: usize, padding: usize) -> ConvShape {
        ConvShape { height: size, width: size, channels: 2, filters: 3, kernel, stride, padding, groups: 1 }
    }

    /// Kernel, padding and first tap of what is left.
    fn left(shape: ConvShape) -> (usize, usize, usize) {
        let (cropped, taps) = shape.cropped();
        assert_eq!((cropped.out_height(), cropped.out_width()), (shape.out_height(), shape.out_width()));
        assert_eq!((cropped.kernel, shape.kernel), (taps.used, taps.kernel()));
        (cropped.kernel, cropped.padding, taps.first)
    }

    #[test]
    fn taps_over_padding_are_left_out() {
        // ResNet-18's last stage on MNIST: one position, stride 1 and stride 2 on 2 × 2.
        assert_eq!(left(square(1, 3, 1, 1)), (1, 0, 1));
        assert_eq!(left(square(2, 3, 2, 1)), (2, 0, 1));
        assert_eq!(left(square(2, 5, 1, 2)), (3, 1, 1));
        // Every tap meets a pixel somewhere.
        assert_eq!(left(square(2, 3, 1, 1)), (3, 1, 0));
        assert_eq!(left(square(7, 3, 2, 1)), (3, 1, 0));
        assert_eq!(left(square(4, 1, 2, 0)), (1, 0, 0));
        // A tap is used if it is along either axis.
        assert_eq!(left(ConvShape { width: 5, ..square(1, 3, 1, 1) }), (3, 1, 0));
    }
}
