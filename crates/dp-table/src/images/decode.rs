//! PNG and JPEG, decoded within limits.

use std::io::{Cursor, Read};
use std::path::Path;

use png::{ColorType, Limits, Transformations};
use scattering::ImageSize;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Bytes of a file; what is longer is no image that a model needs.
const MOST_BYTES: u64 = 32 << 20;
/// Pixels of an image, and of one of its sides, by its header.
const MOST_PIXELS: usize = 1 << 25;
const LONGEST_SIDE: usize = 1 << 14;
/// Bytes that the decoder of PNG may take beside the pixels.
const MOST_MEMORY: usize = 64 << 20;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

/// An image as it was decoded, `[height, width, channels]`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pixels {
    pub(super) size: ImageSize,
    pub(super) bytes: Vec<u8>,
}

/// The bytes of a file.
///
/// # Errors
/// For what cannot be read, is no file, or is too long.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    // A pipe would never end.
    let data = std::fs::metadata(path).map_err(unreadable)?;
    if !data.is_file() {
        return Err("is no file".into());
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::with_capacity(data.len().min(MOST_BYTES) as usize);
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("has more than {} MiB", MOST_BYTES >> 20));
    }
    Ok(bytes)
}

/// Decodes an image whose size is accepted.
///
/// # Errors
/// For what is no whole PNG or JPEG, for one that claims too many pixels, and those of `accept`.
pub(super) fn decode(bytes: &[u8], accept: impl Fn(ImageSize) -> Result<(), String>) -> Result<Pixels, String> {
    let accept = |size: ImageSize| {
        let is_small = size.height.max(size.width) <= LONGEST_SIDE && size.height * size.width <= MOST_PIXELS;
        if size.is_empty() || !is_small {
            let (height, width) = (size.height, size.width);
            return Err(format!("claims {height} × {width} pixels, expected at most {MOST_PIXELS} in all"));
        }
        accept(size)
    };
    match Kind::of(bytes)? {
        Kind::Png => png(bytes, accept),
        Kind::Jpeg => jpeg(bytes, accept),
    }
}

/// The size by an image's header.
pub(super) fn size(bytes: &[u8]) -> Result<ImageSize, String> {
    match Kind::of(bytes)? {
        Kind::Png => png_reader(bytes).map(|(_, size)| size),
        Kind::Jpeg => {
            let mut decoder = jpeg_decoder(bytes, DecoderOptions::default());
            jpeg_size(&mut decoder)
        }
    }
}

enum Kind {
    Png,
    Jpeg,
}

impl Kind {
    fn of(bytes: &[u8]) -> Result<Self, String> {
        match bytes {
            [] => Err("is empty".into()),
            bytes if bytes.starts_with(PNG) => Ok(Self::Png),
            bytes if bytes.starts_with(JPEG) => Ok(Self::Jpeg),
            _ => Err("is neither PNG nor JPEG by its first bytes".into()),
        }
    }
}

type PngReader<'a> = png::Reader<Cursor<&'a [u8]>>;

fn png_reader(bytes: &[u8]) -> Result<(PngReader<'_>, ImageSize), String> {
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: MOST_MEMORY });
    decoder.set_transformations(Transformations::normalize_to_color8());
    let reader = decoder.read_info().map_err(|error| broken("PNG", error))?;
    let (width, height) = reader.info().size();
    let channels = match reader.output_color_type().0 {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb | ColorType::Indexed => 3,
        ColorType::Rgba => 4,
    };
    Ok((reader, ImageSize { height: height as usize, width: width as usize, channels }))
}

fn png(bytes: &[u8], accept: impl Fn(ImageSize) -> Result<(), String>) -> Result<Pixels, String> {
    let (mut reader, size) = png_reader(bytes)?;
    accept(size)?;
    let mut pixels = vec![0; size.len()];
    let frame = reader.next_frame(&mut pixels).map_err(|error| broken("PNG", error))?;
    if frame.buffer_size() != pixels.len() {
        return Err("is a PNG whose first picture does not fill it".into());
    }
    reader.finish().map_err(|error| broken("PNG", error))?;
    Ok(Pixels { size, bytes: pixels })
}

fn jpeg_decoder(bytes: &[u8], options: DecoderOptions) -> JpegDecoder<ZCursor<&[u8]>> {
    let options = options.set_strict_mode(true).set_max_width(LONGEST_SIDE).set_max_height(LONGEST_SIDE);
    JpegDecoder::new_with_options(ZCursor::new(bytes), options)
}

fn jpeg_size(decoder: &mut JpegDecoder<ZCursor<&[u8]>>) -> Result<ImageSize, String> {
    decoder.decode_headers().map_err(|error| broken("JPEG", error))?;
    let info = decoder.info().ok_or("is a JPEG without a header")?;
    let channels = usize::from(info.components);
    Ok(ImageSize { height: usize::from(info.height), width: usize::from(info.width), channels })
}

fn jpeg(bytes: &[u8], accept: impl Fn(ImageSize) -> Result<(), String>) -> Result<Pixels, String> {
    let mut decoder = jpeg_decoder(bytes, DecoderOptions::default());
    let size = jpeg_size(&mut decoder)?;
    let colours = match size.channels {
        1 => ColorSpace::Luma,
        3 => ColorSpace::RGB,
        n => return Err(format!("is a JPEG with {n} channels, expected 1 or 3")),
    };
    accept(size)?;
    // The space of the output is set before the headers are read.
    let mut decoder = jpeg_decoder(bytes, DecoderOptions::default().jpeg_set_out_colorspace(colours));
    let pixels = decoder.decode().map_err(|error| broken("JPEG", error))?;
    if pixels.len() != size.len() {
        return Err(format!("is a JPEG of {} values, expected {}", pixels.len(), size.len()));
    }
    Ok(Pixels { size, bytes: pixels })
}

/// Errors of decoders may have several lines.
fn broken(format: &str, error: impl std::fmt::Debug + std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("damaged").to_owned();
    format!("is a damaged {format}: {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png_of(size: ImageSize, pixels: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, size.width as u32, size.height as u32);
        encoder.set_color(if size.channels == 1 { ColorType::Grayscale } else { ColorType::Rgb });
        encoder.write_header().unwrap().write_image_data(pixels).unwrap();
        bytes
    }

    const SIZE: ImageSize = ImageSize { height: 5, width: 7, channels: 3 };

    #[test]
    fn a_png_is_read_as_it_was_written() {
        let pixels: Vec<u8> = (0..105).map(|i| (i * 37 % 251) as u8).collect();
        let bytes = png_of(SIZE, &pixels);
        assert_eq!(size(&bytes), Ok(SIZE));
        assert_eq!(decode(&bytes, |_| Ok(())), Ok(Pixels { size: SIZE, bytes: pixels }));
    }

    /// Every cut of a file, and a byte changed at every place of the pixels, is an error.
    #[test]
    fn damaged_files_are_errors() {
        let bytes = png_of(SIZE, &[9; 105]);
        for cut in 0..bytes.len() - 12 {
            assert!(decode(&bytes[..cut], |_| Ok(())).is_err(), "{cut}");
        }
        for place in 41..bytes.len() - 16 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x55;
            assert!(decode(&damaged, |_| Ok(())).is_err(), "{place}");
        }
    }

    /// The header alone decides: no such image is there.
    #[test]
    fn huge_claims_allocate_nothing() {
        let mut bytes = png_of(SIZE, &[9; 105]);
        bytes[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
        let mut crc = flate2::Crc::new();
        crc.update(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&crc.sum().to_be_bytes());
        let error = decode(&bytes, |_| Ok(())).unwrap_err();
        assert!(error.starts_with("claims 65536 × 65536 pixels"), "{error}");
        let jpeg = b"\xff\xd8\xff\xc0\x00\x0b\x08\xff\xff\xff\xff\x01\x01\x11\x00";
        assert!(decode(jpeg, |_| Ok(())).is_err());
        assert_eq!(decode(b"", |_| Ok(())), Err("is empty".into()));
        assert_eq!(decode(b"GIF89a", |_| Ok(())), Err("is neither PNG nor JPEG by its first bytes".into()));
    }
}
