//! What a row's text holds of an image.

use scattering::ImageSize;

use crate::image_text::{BYTES, PIXELS};

/// What a text holds.
#[derive(Debug, PartialEq)]
pub(super) enum ImageText<'a> {
    Path(&'a str),
    Bytes(Vec<u8>),
    Pixels { size: ImageSize, bytes: Vec<u8> },
}

impl<'a> ImageText<'a> {
    /// # Errors
    /// For digits or a size that cannot be read.
    pub(super) fn of(text: &'a str) -> Result<Self, String> {
        let digits = |text: &str| hex::decode(text).map_err(|error| format!("is no image in digits: {error}"));
        if let Some(text) = text.strip_prefix(BYTES) {
            return Ok(Self::Bytes(digits(text)?));
        }
        let Some(text) = text.strip_prefix(PIXELS) else { return Ok(Self::Path(text)) };
        let (size, bytes) = text.split_once(':').unwrap_or((text, ""));
        let sides: Option<Vec<usize>> = size.split('x').map(|side| side.parse().ok()).collect();
        let bytes = digits(bytes)?;
        match sides.as_deref() {
            Some(&[height, width, channels])
                if height.checked_mul(width).and_then(|n| n.checked_mul(channels)) == Some(bytes.len()) =>
            {
                Ok(Self::Pixels { size: ImageSize { height, width, channels }, bytes })
            }
            _ => Err("is no image in digits: its size is not that of its pixels".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_by_hand() {
        assert_eq!(ImageText::of("3/a.png"), Ok(ImageText::Path("3/a.png")));
        assert_eq!(ImageText::of("bytes:ff00"), Ok(ImageText::Bytes(vec![255, 0])));
        let size = ImageSize { height: 1, width: 2, channels: 1 };
        assert_eq!(ImageText::of("pixels:1x2x1:ff00"), Ok(ImageText::Pixels { size, bytes: vec![255, 0] }));
        for text in ["bytes:f", "pixels:1x2x1:ff", "pixels:ff", "pixels:1x2:ff00", "pixels:99999999999x99999999999x9:"]
        {
            assert!(ImageText::of(text).is_err(), "{text}");
        }
    }
}
