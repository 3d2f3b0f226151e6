//! The pixels of a column of images.

use std::path::{Path, PathBuf};

use scattering::ImageSize;

use super::decode::{self, Pixels};
use super::resize::resized;
use super::text::ImageText;
use crate::error::TableError;
use crate::reader::{TableReader, TableRow};

/// The size that images must have, or are brought to.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) size: ImageSize,
    resize: bool,
}

impl Frame {
    /// # Errors
    /// For another number of channels than 1 and 3.
    pub(super) fn new(size: ImageSize, resize: bool) -> Result<Self, String> {
        if ![1, 3].contains(&size.channels) {
            return Err(format!("channels = {}: expected 1, or 3 for colours", size.channels));
        }
        Ok(Self { size, resize })
    }

    /// Pixels from 0 to 1, of the declared size.
    pub(super) fn pixels(&self, row: &TableRow, text: &str) -> Result<Vec<f32>, String> {
        let found = match ImageText::of(text)? {
            ImageText::Pixels { size, bytes } => {
                self.accept(size)?;
                Pixels { size, bytes }
            }
            ImageText::Bytes(bytes) => decode::decode(&bytes, |size| self.accept(size))?,
            ImageText::Path(path) => decode::decode(&decode::read(&beside(row, path))?, |size| self.accept(size))?,
        };
        Ok(resized(&found, self.size))
    }

    /// Refuses an image of another size before anything of it is decoded.
    fn accept(&self, found: ImageSize) -> Result<(), String> {
        if found == self.size || self.resize {
            return Ok(());
        }
        let expected = "or resize = true, which brings images to it";
        Err(format!("has {}, expected {}, {expected}", in_words(found), in_words(self.size)))
    }
}

/// A path, relative to the folder of the row's table.
pub(super) fn beside(row: &TableRow, path: &str) -> PathBuf {
    row.file().parent().unwrap_or(Path::new("")).join(path)
}

fn in_words(size: ImageSize) -> String {
    let ImageSize { height, width, channels } = size;
    format!("{height} × {width} pixels and {channels} channel{}", if channels == 1 { "" } else { "s" })
}

/// A column of images whose pixels are read, for models that see these and not the features of fixed
/// filters that [`Column::Image`](crate::Column::Image) has.
#[derive(Debug, Clone)]
pub struct PixelColumn {
    name: String,
    place: usize,
    frame: Frame,
}

impl PixelColumn {
    /// The column with this name of a table that is read. With `resize`, images of another size or with
    /// other channels are brought to this one.
    ///
    /// # Errors
    /// [`TableError::Schema`] for a size without pixels, for other channels than 1 and 3, and for a
    /// column that the table does not have.
    pub fn new(
        reader: &TableReader,
        name: &str,
        [height, width, channels]: [usize; 3],
        resize: bool,
    ) -> Result<Self, TableError> {
        let refuse = |reason: String| TableError::Schema { column: name.into(), reason };
        let place = reader.columns().iter().position(|column| column == name);
        let place = place.ok_or_else(|| refuse("is no column of the table".into()))?;
        if height == 0 || width == 0 {
            return Err(refuse(format!("has {height} × {width} pixels, expected at least one")));
        }
        let frame = Frame::new(ImageSize { height, width, channels }, resize).map_err(refuse)?;
        Ok(Self { name: name.to_owned(), place, frame })
    }

    /// The pixels of a row's image.
    ///
    /// **Shapes.** `[height, width, channels]`, row by row, from 0 to 1.
    ///
    /// # Errors
    /// [`TableError::InvalidImage`] for what is no image, and for one of another size.
    pub fn pixels(&self, row: &TableRow) -> Result<Vec<f32>, TableError> {
        let text = row.field(self.place);
        self.frame.pixels(row, text).map_err(|reason| row.position().not_an_image(&self.name, text, reason))
    }
}
