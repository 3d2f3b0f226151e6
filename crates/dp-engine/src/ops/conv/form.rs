//! Which way to the per-sample gradients of a convolution is cheapest.

use super::ConvShape;

/// How the norms of a convolution's per-sample gradients are found, and what is left for the
/// weighted sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PerSampleForm {
    /// From the Gram matrices over positions of patches and output gradients ("ghost norm"); the
    /// sum is one product more, of the factors.
    Gram,
    /// Every record's gradient is formed and kept; the sum is over the very values whose norm was
    /// taken.
    Materialised,
}

/// How the values of a sum of weight gradients lie in memory, group by group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WeightOrder {
    /// `[filters, patch]`, as in the weight.
    FiltersFirst,
    /// `[patch, filters]`.
    PatchFirst,
}

/// Cost of writing a value to memory and reading it twice, in units of one multiplication and
/// addition in a matrix product: about 0.6 ns at 6 GiB/s, against 75 such units a nanosecond (one
/// core with AVX-512).
const VALUE_COST: f64 = 45.0;

/// `f64` products run at half the speed of `f32`.
const GRAM_COST: f64 = 2.0;

impl ConvShape {
    /// The cheaper form. It follows from the shape alone, since two forms round differently: from
    /// the size of a batch, one more record would change what all others contribute.
    ///
    /// Counted in multiplications and additions per record, with `T` positions, patches of `p`
    /// values and `d` filters. Forming a gradient or summing them all is a product of `T·p·d`; the
    /// Gram matrices take `T²(p + d)` and come before the sum; kept gradients go through memory,
    /// `p·d` values. The rule `2T² ≤ p·d` of mixed ghost clipping (Bu 2022) weighs memory; this
    /// weighs time. Memory is bounded by the records that are differentiated at once
    /// ([`Layer::kept_values`](crate::layers::Layer::kept_values)).
    pub(crate) fn per_sample_form(&self) -> PerSampleForm {
        let [t, p, d] = [self.positions(), self.patch(), self.group_filters()].map(|n| n as f64);
        let product = t * p * d;
        let gram = GRAM_COST * t * t * (p + d) + product;
        let kept = product + VALUE_COST * p * d;
        if kept <= gram { PerSampleForm::Materialised } else { PerSampleForm::Gram }
    }

    /// The cheaper form on a GPU. Without fast `f64` gradients are always formed.
    ///
    /// Counted as above, for an H100: 12 bytes of memory for each value of a kept gradient take as
    /// long as about 100 multiplications and additions, and products of small Gram matrices reach a
    /// quarter of the speed of large ones. No GPU has measured this yet.
    #[cfg(feature = "cuda")]
    pub(crate) fn per_sample_form_on_gpu(&self, has_fast_double: bool) -> PerSampleForm {
        const VALUE_COST: f64 = 100.0;
        const GRAM_COST: f64 = 4.0;
        let [t, p, d] = [self.positions(), self.patch(), self.group_filters()].map(|n| n as f64);
        let is_cheaper = GRAM_COST * t * t * (p + d) < VALUE_COST * p * d;
        if has_fast_double && is_cheaper { PerSampleForm::Gram } else { PerSampleForm::Materialised }
    }

    /// The order in which the products of the weight's gradient are fastest. The weight's own order
    /// saves a transposition where the weight is large.
    pub(crate) fn weight_order(&self) -> WeightOrder {
        const LARGE_WEIGHT: usize = 1 << 16;
        if self.weights() <= LARGE_WEIGHT { WeightOrder::PatchFirst } else { WeightOrder::FiltersFirst }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(size: usize, channels: usize, filters: usize, padding: usize) -> ConvShape {
        ConvShape { height: size, width: size, channels, filters, kernel: 3, stride: 1, padding, groups: 1 }
    }

    #[test]
    fn the_form_follows_the_shape() {
        // Many positions and a small weight; few positions and a large one (ResNet-18's last
        // blocks).
        assert_eq!(shape(26, 32, 16, 0).per_sample_form(), PerSampleForm::Materialised);
        assert_eq!(shape(12, 64, 64, 0).per_sample_form(), PerSampleForm::Materialised);
        assert_eq!(shape(2, 256, 256, 1).per_sample_form(), PerSampleForm::Gram);
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn gram_matrices_on_a_gpu_take_fast_double_precision() {
        for has_fast_double in [false, true] {
            assert_eq!(shape(26, 32, 16, 0).per_sample_form_on_gpu(has_fast_double), PerSampleForm::Materialised);
        }
        assert_eq!(shape(2, 256, 256, 1).per_sample_form_on_gpu(true), PerSampleForm::Gram);
        assert_eq!(shape(2, 256, 256, 1).per_sample_form_on_gpu(false), PerSampleForm::Materialised);
    }
}
