//! Decoding of JPEG files to 64×64 pixels, in parallel, with one file as a cache.

use std::fs::{self, File};
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use image::imageops::{self, FilterType};
use image::{ImageFormat, Rgb, RgbImage};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::lists::ListedImage;
use super::{IMAGE_BYTES, SIDE};
use crate::error::DataError;
use crate::file;

/// First bytes of the cache file; the number rises with its format.
const MAGIC: &[u8; 16] = b"dp-data celeba 1";

/// Pixels of every listed image, `[images, 64, 64, 3]`, from the cache file if it belongs to these
/// images.
pub(super) fn pixels(listed: &[ListedImage], images: &Path, cache: &Path) -> Result<Vec<u8>, DataError> {
    let key = key(listed, images)?;
    if let Some(pixels) = read_cache(cache, &key, listed.len() * IMAGE_BYTES) {
        return Ok(pixels);
    }
    let mut pixels = vec![0; listed.len() * IMAGE_BYTES];
    pixels
        .par_chunks_exact_mut(IMAGE_BYTES)
        .zip(listed)
        .try_for_each(|(target, listed)| decode(&images.join(&listed.file), target))?;
    write_cache(cache, &key, &pixels)?;
    Ok(pixels)
}

/// Decodes, resizes to 64×64 (the whole image, bilinear with the support of the reduction) and
/// writes red, green, blue by pixel.
fn decode(path: &Path, target: &mut [u8]) -> Result<(), DataError> {
    let mut bytes = Vec::new();
    file::open(path)?.read_to_end(&mut bytes).map_err(DataError::io("read", path))?;
    let image = image::load_from_memory_with_format(&bytes, ImageFormat::Jpeg)
        .map_err(|error| DataError::BrokenImage { path: path.into(), reason: error.to_string() })?
        .into_rgb8();
    let small = imageops::resize(&image, SIDE as u32, SIDE as u32, FilterType::Triangle);
    target.copy_from_slice(small.as_raw());
    Ok(())
}

/// Writes pixels as a JPEG image of the published size, 178×218.
pub(super) fn encode(pixels: &[u8], path: &Path) -> Result<(), DataError> {
    let side = SIDE as u32;
    let image = RgbImage::from_fn(side, side, |x, y| {
        let at = (y * side + x) as usize * 3;
        Rgb([pixels[at], pixels[at + 1], pixels[at + 2]])
    });
    let mut bytes = Cursor::new(Vec::new());
    imageops::resize(&image, 178, 218, FilterType::Triangle)
        .write_to(&mut bytes, ImageFormat::Jpeg)
        .map_err(|error| DataError::BrokenImage { path: path.into(), reason: error.to_string() })?;
    file::write(path, bytes.get_ref())
}

/// Changes when an image is added, removed, renamed or has another size.
fn key(listed: &[ListedImage], images: &Path) -> Result<[u8; 32], DataError> {
    let sizes: Vec<u64> = listed
        .par_iter()
        .map(|listed| {
            let path = images.join(&listed.file);
            fs::metadata(&path).map(|metadata| metadata.len()).map_err(DataError::io("read", path))
        })
        .collect::<Result<_, _>>()?;
    let mut hasher = Sha256::new();
    for (listed, size) in listed.iter().zip(sizes) {
        hasher.update(listed.file.as_bytes());
        hasher.update([0]);
        hasher.update(size.to_le_bytes());
    }
    Ok(hasher.finalize().into())
}

/// `None` if there is no cache, it belongs to other images, or it is damaged.
fn read_cache(path: &Path, key: &[u8; 32], n_bytes: usize) -> Option<Vec<u8>> {
    let mut file = BufReader::new(File::open(path).ok()?);
    let mut head = [0; 16 + 32 + 32];
    file.read_exact(&mut head).ok()?;
    if head[..16] != *MAGIC || head[16..48] != *key {
        return None;
    }
    let mut pixels = Vec::new();
    file.take(n_bytes as u64 + 1).read_to_end(&mut pixels).ok()?;
    (pixels.len() == n_bytes && Sha256::digest(&pixels)[..] == head[48..]).then_some(pixels)
}

fn write_cache(path: &Path, key: &[u8; 32], pixels: &[u8]) -> Result<(), DataError> {
    file::write(path, &[MAGIC.as_slice(), key, &Sha256::digest(pixels), pixels].concat())
}
