//! Convolutions without the taps of the kernel that meet nothing but padding.

use super::ConvShape;

impl ConvShape {
    /// The same convolution without the outer rows and columns of the kernel that meet nothing but
    /// padding at every position, and how many of them came before its first row and column.
    ///
    /// All but the middle tap of 3 × 3 on 1 × 1, for example, as in ResNet-18's last blocks on
    /// MNIST. Such weights add nothing to any output, and their gradient is 0 for every record.
    pub(crate) fn cropped(&self) -> (Self, usize) {
        let meets = |tap: usize, positions: usize, size: usize| {
            (0..positions).any(|position| self.inside(position, tap, size).is_some())
        };
        let used =
            |&tap: &usize| meets(tap, self.out_height(), self.height) || meets(tap, self.out_width(), self.width);
        let (Some(first), Some(last)) = ((0..self.kernel).find(used), (0..self.kernel).rfind(used)) else {
            return (*self, 0);
        };
        let Some(padding) = self.padding.checked_sub(first) else { return (*self, 0) };
        let cropped = Self { kernel: last + 1 - first, padding, ..*self };
        // The padding of a shape is the same on all sides.
        let same_positions =
            cropped.fits() && cropped.out_height() == self.out_height() && cropped.out_width() == self.out_width();
        if same_positions { (cropped, first) } else { (*self, 0) }
    }

    fn fits(&self) -> bool {
        self.kernel <= self.height.min(self.width) + 2 * self.padding
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
        let (cropped, first) = shape.cropped();
        assert_eq!((cropped.out_height(), cropped.out_width()), (shape.out_height(), shape.out_width()));
        (cropped.kernel, cropped.padding, first)
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
