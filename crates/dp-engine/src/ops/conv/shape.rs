//! The geometry of a convolution.

/// Sizes of a convolution over images with channels last.
///
/// The weight is `[filters, kernel height, kernel width, channels / groups]`; a *patch* is what one
/// filter sees at one position, in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConvShape {
    /// Rows of an input image.
    pub(crate) height: usize,
    /// Pixels in a row of an input image.
    pub(crate) width: usize,
    /// Channels of an input image, a multiple of `groups`.
    pub(crate) channels: usize,
    /// Channels of an output image, a multiple of `groups`.
    pub(crate) filters: usize,
    /// Height and width of a filter, at most the padded image's.
    pub(crate) kernel: usize,
    /// Pixels from one position to the next, in both directions; at least 1.
    pub(crate) stride: usize,
    /// Pixels of zeros on every side.
    pub(crate) padding: usize,
    /// Parts that channels and filters are split into; a filter sees the channels of its part.
    pub(crate) groups: usize,
}

impl ConvShape {
    /// Rows of an output image.
    pub(crate) fn out_height(&self) -> usize {
        (self.height + 2 * self.padding - self.kernel) / self.stride + 1
    }

    /// Pixels in a row of an output image.
    pub(crate) fn out_width(&self) -> usize {
        (self.width + 2 * self.padding - self.kernel) / self.stride + 1
    }

    /// Positions of a filter: pixels of an output image.
    pub(crate) fn positions(&self) -> usize {
        self.out_height() * self.out_width()
    }

    /// Values of an input image.
    pub(crate) fn inputs(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Values of an output image.
    pub(crate) fn outputs(&self) -> usize {
        self.positions() * self.filters
    }

    /// Values of a patch.
    pub(crate) fn patch(&self) -> usize {
        self.kernel * self.kernel * self.depth()
    }

    /// Channels that one filter sees.
    pub(in crate::ops) fn depth(&self) -> usize {
        self.channels / self.groups
    }

    /// Filters of one group.
    pub(in crate::ops) fn group_filters(&self) -> usize {
        self.filters / self.groups
    }

    /// Values of the weight.
    pub(crate) fn weights(&self) -> usize {
        self.filters * self.patch()
    }

    /// How many images are worked on at once, at least 1: patches and outputs of 1 MiB in single
    /// precision, where it takes more than one image to make a product large.
    pub(crate) fn images_at_once(&self) -> usize {
        const VALUES_AT_ONCE: usize = 1 << 18;
        (VALUES_AT_ONCE / (self.positions() * self.patch() + self.outputs()).max(1)).max(1)
    }

    /// The padded image of a position's first row or pixel may start outside: index `start +
    /// offset` within `0..size`, if it is inside.
    pub(super) fn inside(&self, position: usize, offset: usize, size: usize) -> Option<usize> {
        (position * self.stride + offset).checked_sub(self.padding).filter(|&index| index < size)
    }
}
