//! Which way to the per-sample gradients of a convolution is cheapest.

use super::ConvShape;

/// How the norms of a convolution's per-sample gradients are found, and what is left for the weighted sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PerSampleForm {
    /// From the Gram matrices over positions of patches and output gradients ("ghost norm"); the sum is one product more.
    Gram,
    /// Every record's gradient is formed and kept; the sum is over those.
    Kept,
    /// Every record's gradient is formed for its norm and dropped; the sum is one product more.
    Dropped,
}

/// How the values of a sum of weight gradients lie in memory, group by group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WeightOrder {
    /// `[filters, patch]`, as in the weight.
    FiltersFirst,
    /// `[patch, filters]`.
    PatchFirst,
}

/// Largest memory for a batch's kept gradients: beyond it they are dropped.
const KEPT_BYTES: usize = 128 << 20;

/// What writing a value and reading it twice, from memory, costs in units of one multiplication and addition in a matrix
/// product: about 0.6 ns at 6 GiB/s against 75 of those a nanosecond (one core with AVX-512).
const VALUE_COST: f64 = 45.0;

/// `f64` products run at half the speed of `f32`.
const GRAM_COST: f64 = 2.0;

impl ConvShape {
    /// The cheapest form for `n_records` at once, of `value_bytes` each value.
    ///
    /// Counted in multiplications and additions per record, with `T` positions, patches of `p` values and `d` filters. Forming a gradient or summing
    /// them all is a product of `T·p·d`; the Gram matrices take `T²(p + d)` and come before the sum; kept gradients go through memory,
    /// `p·d` values. The rule `2T² ≤ p·d` of mixed ghost clipping (Bu 2022) weighs memory; this weighs time, and bounds memory.
    pub(crate) fn per_sample_form(&self, n_records: usize, value_bytes: usize) -> PerSampleForm {
        let [t, p, d] = [self.positions(), self.patch(), self.group_filters()].map(|n| n as f64);
        let product = t * p * d;
        let gram = GRAM_COST * t * t * (p + d) + product;
        let kept = product + VALUE_COST * p * d;
        if self.may_keep(n_records, value_bytes) && kept <= gram {
            PerSampleForm::Kept
        } else if gram <= 2.0 * product {
            PerSampleForm::Gram
        } else {
            PerSampleForm::Dropped
        }
    }

    /// The form on a CUDA device: gradients are formed, and kept where they fit. Gram matrices must be in `f64`, in which most devices are
    /// tens of times slower.
    pub(crate) fn per_sample_form_on_cuda(&self, n_records: usize, value_bytes: usize) -> PerSampleForm {
        if self.may_keep(n_records, value_bytes) { PerSampleForm::Kept } else { PerSampleForm::Dropped }
    }

    /// Whether so many records' gradients may be kept.
    fn may_keep(&self, n_records: usize, value_bytes: usize) -> bool {
        n_records * (self.weights() + self.filters) * value_bytes <= KEPT_BYTES
    }

    /// The order in which the products of the weight's gradient are fastest. The contiguous side of the result is best long;
    /// the weight's own order saves a transposition where the weight is large.
    pub(crate) fn weight_order(&self) -> WeightOrder {
        const LARGE_WEIGHT: usize = 1 << 16;
        const WIDE: usize = 32;
        let (patch, filters) = (self.patch(), self.group_filters());
        if patch < WIDE || (filters >= WIDE && self.weights() <= LARGE_WEIGHT) {
            WeightOrder::PatchFirst
        } else {
            WeightOrder::FiltersFirst
        }
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
        // Many positions and a small weight; few positions and a large one (ResNet-18's last blocks).
        assert_eq!(shape(26, 32, 16, 0).per_sample_form(256, 4), PerSampleForm::Kept);
        assert_eq!(shape(2, 256, 256, 1).per_sample_form(32, 4), PerSampleForm::Gram);
        // 38 MB for 256 records are kept, 9 GB for 65,536 are not.
        assert_eq!(shape(12, 64, 64, 0).per_sample_form(256, 4), PerSampleForm::Kept);
        assert_eq!(shape(12, 64, 64, 0).per_sample_form(65_536, 4), PerSampleForm::Dropped);
        assert_eq!(shape(7, 64, 64, 1).per_sample_form(65_536, 4), PerSampleForm::Dropped);
    }
}
