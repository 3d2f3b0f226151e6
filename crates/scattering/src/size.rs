//! The size of images.

use serde::{Deserialize, Serialize};

/// Height, width and channels; the channels of a pixel are side by side.
///
/// ```
/// let size = scattering::ImageSize { height: 28, width: 28, channels: 1 };
/// assert_eq!(size.len(), 784);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSize {
    /// Rows of pixels.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
    /// Values of a pixel.
    pub channels: usize,
}

impl ImageSize {
    /// Values of an image.
    pub fn len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
