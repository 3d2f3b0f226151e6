//! The shape of an image record.

use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};

/// Height, width and channels of an image.
///
/// A record of `height · width · channels` inputs holds it row by row, the channels of a pixel side
/// by side.
///
/// **Example**
/// ```
/// use dp_engine::ImageShape;
/// let digit = ImageShape { height: 28, width: 28, channels: 1 };
/// assert_eq!(digit.len(), 784);
/// assert!(digit.check(784).is_ok());
/// let error = digit.check(100).unwrap_err().to_string();
/// assert_eq!(error, "model.image = 28 × 28 × 1: expected height × width × channels to be the 100 inputs of a record");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageShape {
    /// Rows of pixels.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
    /// Values of a pixel.
    pub channels: usize,
}

impl ImageShape {
    /// Values of an image.
    pub fn len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An error unless a record of `n_inputs` values is such an image.
    ///
    /// # Errors
    /// [`EngineError::InvalidParameter`] with the shape and the number of inputs.
    pub fn check(&self, n_inputs: usize) -> Result<()> {
        // Products as u128, so that no shape overflows into one that fits.
        let n_values = [self.height, self.width, self.channels].iter().map(|&n| n as u128).product::<u128>();
        if n_values == n_inputs as u128 && n_inputs > 0 {
            return Ok(());
        }
        let Self { height, width, channels } = self;
        let expected = format!("height × width × channels to be the {n_inputs} inputs of a record");
        Err(EngineError::invalid("model.image", format!("{height} × {width} × {channels}"), expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_fits_its_records() {
        let image = ImageShape { height: 28, width: 28, channels: 1 };
        image.check(784).unwrap();
        let refused = |image: ImageShape, n_inputs| image.check(n_inputs).unwrap_err();
        insta::assert_snapshot!(refused(image, 98), @"model.image = 28 × 28 × 1: expected height × width × channels to be the 98 inputs of a record");
        let overflowing = ImageShape { height: usize::MAX, width: usize::MAX, channels: 1 };
        insta::assert_snapshot!(refused(overflowing, 1), @"model.image = 18446744073709551615 × 18446744073709551615 × 1: expected height × width × channels to be the 1 inputs of a record");
        assert!(ImageShape { channels: 0, ..image }.check(0).is_err());
    }
}
