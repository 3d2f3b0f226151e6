//! Columns of images: from a file to features of fixed filters.

mod decode;
mod pixels;
mod resize;
mod text;

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::sync::Arc;

use scattering::{ImageFeatures, ImageFeaturesConfig, ImageSize};
use sha2::{Digest, Sha256};

pub use self::pixels::PixelColumn;
use self::pixels::{Frame, beside};
use self::text::ImageText;
use crate::codes::Layout;
use crate::counts::ReadOutcome;
use crate::error::TableError;
use crate::reader::TableRow;

/// How an image is read.
#[derive(Debug, Clone)]
pub(crate) struct ImageInput {
    frame: Frame,
    pub(crate) missing: bool,
    /// `None` where the pixels are the features.
    features: Option<Arc<ImageFeatures>>,
}

/// Pixels of a side.
const SIDES: RangeInclusive<usize> = 8..=128;

impl ImageInput {
    /// # Errors
    /// [`TableError::Schema`] for a size out of range.
    pub(crate) fn new(
        column: &str,
        size: ImageSize,
        resize: bool,
        missing: bool,
        pixels: bool,
    ) -> Result<Self, TableError> {
        let refuse = |reason: String| TableError::Schema { column: column.into(), reason };
        let frame = Frame::new(size, resize).map_err(refuse)?;
        if pixels {
            for (side, n) in [("height", size.height), ("width", size.width)] {
                if !SIDES.contains(&n) {
                    return Err(refuse(format!("{side} = {n}: expected {} to {}", SIDES.start(), SIDES.end())));
                }
            }
            return Ok(Self { frame, missing, features: None });
        }
        let features = ImageFeaturesConfig::for_size(size).and_then(|config| ImageFeatures::new(config, size));
        let features = Arc::new(features.map_err(|error| refuse(error.to_string()))?);
        Ok(Self { frame, missing, features: Some(features) })
    }

    pub(crate) fn n_features(&self) -> usize {
        self.features.as_ref().map_or(self.frame.size.len(), |features| features.n_features())
    }

    /// The filters, in words; `None` where the pixels are the features.
    pub(crate) fn filters(&self) -> Option<String> {
        let config = self.features.as_ref()?.config();
        let mut text = format!(
            "wavelet scattering, J = {}, {} angles, order {}",
            config.scattering.log2_scale, config.scattering.angles, config.scattering.order
        );
        if let Some(kept) = config.frequencies {
            // Writing to a text does not fail.
            let _ = write!(text, ", {kept} × {kept} frequencies of each map");
        }
        Some(text)
    }

    /// Writes the features of an image, and a digest of its pixels.
    pub(crate) fn store(
        &self,
        row: &TableRow,
        (name, column): (&str, usize),
        is_missing: bool,
        (layout, input, out): (&Layout, usize, &mut [u8]),
    ) -> Result<ReadOutcome, TableError> {
        let at = row.position();
        if is_missing {
            if !self.missing {
                return Err(at.missing_value(name));
            }
            layout.set_vector(out, input, None);
            return Ok(ReadOutcome::Missing);
        }
        let text = row.field(column);
        let refuse = |reason: String| at.not_an_image(name, text, reason);
        let pixels = self.frame.pixels(row, text).map_err(refuse)?;
        let digest = pixels.iter().fold(Sha256::new(), |digest, pixel| digest.chain_update(pixel.to_le_bytes()));
        let features = match &self.features {
            None => pixels,
            Some(features) => features.of(&pixels, NonZeroUsize::MIN).map_err(|error| refuse(error.to_string()))?,
        };
        let features: Vec<f64> = features.into_iter().map(f64::from).collect();
        layout.set_vector(out, input, Some(&features));
        layout.set_digest(out, input, digest.finalize().into());
        Ok(ReadOutcome::Declared)
    }
}

/// The size of the image that a field holds or names, by its header; `None` where it has none.
pub(crate) fn size_of(row: &TableRow, text: &str) -> Option<ImageSize> {
    match ImageText::of(text).ok()? {
        ImageText::Pixels { size, .. } => Some(size),
        ImageText::Bytes(bytes) => decode::size(&bytes).ok(),
        ImageText::Path(path) => decode::size(&decode::read(&beside(row, path)).ok()?).ok(),
    }
}
