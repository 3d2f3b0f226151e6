//! From scattering coefficients to rows of norm 1.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use crate::simd::vectorise;
use crate::size::ImageSize;
use serde::{Deserialize, Serialize};

use crate::error::{Result, ScatteringError};
use crate::transform::{Scattering, ScatteringConfig};

/// Added to a variance before its root is taken, as in PyTorch's `GroupNorm`.
const EPSILON: f64 = 1e-5;

/// How coefficients, none of them negative for an image that is not, are brought closer together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// `sign(v) √|v|`.
    Root,
}

/// How images become rows of features.
///
/// The default is for images of about 28 × 28: 81 maps of 7 × 7, of which 4 × 4 frequencies are
/// kept, 1,296 features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFeaturesConfig {
    /// The transform.
    pub scattering: ScatteringConfig,
    /// Compression of its coefficients, before normalisation.
    #[serde(default)]
    pub compression: Compression,
    /// Groups of adjacent maps, over each of which an image's coefficients get mean 0 and variance
    /// 1; `None` leaves them as they are.
    pub groups: Option<usize>,
    /// Rows and columns of the cosine transform of each map that are kept, from the lowest
    /// frequency on; `None` keeps the maps.
    pub frequencies: Option<usize>,
}

impl ImageFeaturesConfig {
    /// A public rule for images of this size: scales so that a map has about 8 rows, `J = 2` below 48
    /// pixels and 3 from there on; 4 × 4 frequencies of each map; and normalisation over groups of 3
    /// or 7 adjacent maps of a channel. For 28 × 28 it is the default.
    ///
    /// # Errors
    /// [`ScatteringError::InvalidParameter`] for a side that is not from 8 to 128 pixels, and for
    /// other than 1 to 4 channels.
    ///
    /// ```
    /// use scattering::{ImageFeaturesConfig, ImageSize};
    /// let size = ImageSize { height: 28, width: 28, channels: 1 };
    /// assert_eq!(ImageFeaturesConfig::for_size(size)?, ImageFeaturesConfig::default());
    /// # Ok::<(), scattering::ScatteringError>(())
    /// ```
    pub fn for_size(size: ImageSize) -> Result<Self> {
        let ImageSize { height, width, channels } = size;
        for (parameter, side) in [("height", height), ("width", width)] {
            if !SIDES.contains(&side) {
                let expected = format!("{} to {} pixels", SIDES.start(), SIDES.end());
                return Err(ScatteringError::invalid(parameter, side, expected));
            }
        }
        if !(1..=4).contains(&channels) {
            return Err(ScatteringError::invalid("channels", channels, "1 to 4"));
        }
        let side = height.min(width);
        let log2_scale = if side < 48 { 2 } else { 3 };
        let scattering = ScatteringConfig { log2_scale, ..ScatteringConfig::default() };
        let adjacent = if log2_scale == 2 { 3 } else { 7 };
        Ok(Self {
            scattering,
            compression: Compression::None,
            groups: Some(channels * scattering.paths() / adjacent),
            frequencies: Some(4.min(side >> log2_scale)),
        })
    }
}

/// Sides for which the rule of [`ImageFeaturesConfig::for_size`] is made.
const SIDES: RangeInclusive<usize> = 8..=128;

impl Default for ImageFeaturesConfig {
    fn default() -> Self {
        Self {
            scattering: ScatteringConfig::default(),
            compression: Compression::None,
            groups: Some(27),
            frequencies: Some(4),
        }
    }
}

/// Rows of norm 1 out of images: scattering, normalisation by image, low frequencies.
///
/// **Shapes.** Images `[n, height, width, channels]`; features `[n, n_features]`, map by map.
///
/// **Guarantee.** A row depends on its image alone and has norm at most 1, in exact arithmetic on
/// the values as they are stored. There are no parameters, so nothing is learnt or released.
///
/// **Edge cases.** An image whose features are all 0, or are not finite, becomes a row of zeros: it
/// contributes nothing to any sum.
///
/// **Source.** Scattering with GroupNorm before a private linear model: Tramèr and Boneh 2021. The
/// normalisation here has no scale and shift.
///
/// **Example**
/// ```
/// use std::num::NonZeroUsize;
/// use scattering::ImageSize;
/// use scattering::{ImageFeatures, ImageFeaturesConfig};
/// let image = ImageSize { height: 28, width: 28, channels: 1 };
/// let features = ImageFeatures::new(ImageFeaturesConfig::default(), image)?;
/// let pixels: Vec<f32> = (0..28 * 28).map(|i| (i % 28) as f32 / 27.0).collect();
/// let row = features.of(&pixels, NonZeroUsize::MIN)?;
/// let norm: f64 = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
/// assert_eq!((row.len(), features.n_features()), (1_296, 1_296));
/// assert!(norm <= 1.0 && norm > 1.0 - 1e-6);
/// # Ok::<(), scattering::ScatteringError>(())
/// ```
pub struct ImageFeatures {
    config: ImageFeaturesConfig,
    scattering: Scattering,
    /// Cosines, `[frequencies, height]` and `[frequencies, width]`.
    cosines: Option<[Vec<f32>; 2]>,
}

/// Without the cosines, which follow from the rest.
impl std::fmt::Debug for ImageFeatures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { config, scattering, .. } = self;
        f.debug_struct("ImageFeatures").field("config", config).field("scattering", scattering).finish_non_exhaustive()
    }
}

impl ImageFeatures {
    /// For images of this shape.
    ///
    /// # Errors
    /// [`ScatteringError::InvalidParameter`] if the groups do not divide the maps, there are fewer
    /// frequencies than asked for, or as [`Scattering::new`].
    pub fn new(config: ImageFeaturesConfig, image: ImageSize) -> Result<Self> {
        let scattering = Scattering::new(config.scattering, image)?;
        let ImageSize { height, width, channels } = scattering.output();
        if let Some(groups) = config.groups
            && (groups == 0 || !channels.is_multiple_of(groups))
        {
            return Err(ScatteringError::invalid(
                "features.groups",
                groups,
                format!("a divisor of the {channels} maps"),
            ));
        }
        let side = height.min(width);
        let cosines = match config.frequencies {
            Some(kept) if !(1..=side).contains(&kept) => {
                let expected = format!("1 to {side}, the shorter side of a map");
                return Err(ScatteringError::invalid("features.frequencies", kept, expected));
            }
            Some(kept) => Some([cosines(kept, height), cosines(kept, width)]),
            None => None,
        };
        Ok(Self { config, scattering, cosines })
    }

    /// The options.
    pub fn config(&self) -> ImageFeaturesConfig {
        self.config
    }

    /// Shape of an image.
    pub fn input(&self) -> ImageSize {
        self.scattering.input()
    }

    /// Length of a row.
    pub fn n_features(&self) -> usize {
        let output = self.scattering.output();
        self.config.frequencies.map_or(output.len(), |kept| output.channels * kept * kept)
    }

    /// Rows of all images.
    ///
    /// # Errors
    /// As [`Scattering::transform`].
    pub fn of(&self, images: &[f32], threads: NonZeroUsize) -> Result<Vec<f32>> {
        let mut rows = vec![0.0; self.scattering.check(images)? * self.n_features()];
        let ImageSize { height, width, channels } = self.scattering.output();
        self.scattering.for_each(images, &mut rows, self.n_features(), threads, |maps, row| {
            if self.config.compression == Compression::Root {
                for value in maps.iter_mut() {
                    *value = value.abs().sqrt().copysign(*value);
                }
            }
            if let Some(groups) = self.config.groups {
                for group in maps.chunks_exact_mut(channels / groups * height * width) {
                    normalise(group);
                }
            }
            match &self.cosines {
                Some(cosines) => vectorise(
                    #[inline(always)]
                    || keep_low_frequencies(maps, (height, width), cosines, row),
                ),
                None => row.copy_from_slice(maps),
            }
            scale_to_unit(row);
        })?;
        Ok(rows)
    }
}

/// Scales a row to a norm just below 1, or to zeros where that cannot be done.
///
/// Values are rounded to single precision after scaling, by at most 2⁻²⁴ of each and 2⁻¹⁵⁰ for the
/// smallest, so a factor of `1 − 2⁻²³` keeps the norm of what is stored at most 1.
fn scale_to_unit(row: &mut [f32]) {
    let norm = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
    if !(norm.is_finite() && norm > 1e-30) {
        row.fill(0.0);
        return;
    }
    let factor = (1.0 - 2f64.powi(-23)) / norm;
    for value in row {
        *value = (f64::from(*value) * factor) as f32;
    }
}

/// Mean 0 and variance 1.
fn normalise(values: &mut [f32]) {
    let n = values.len() as f64;
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
    let factor = (variance + EPSILON).sqrt().recip();
    for value in values {
        *value = ((f64::from(*value) - mean) * factor) as f32;
    }
}

/// The first rows of the orthonormal cosine transform of `len` values (DCT-II), `[kept, len]`.
fn cosines(kept: usize, len: usize) -> Vec<f32> {
    let n = len as f64;
    let value = |k: usize, i: usize| {
        let norm = if k == 0 { n.sqrt().recip() } else { (2.0 / n).sqrt() };
        norm * (std::f64::consts::PI * (i as f64 + 0.5) * k as f64 / n).cos()
    };
    (0..kept).flat_map(|k| (0..len).map(move |i| value(k, i) as f32)).collect()
}

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn keep_low_frequencies(maps: &[f32], (height, width): (usize, usize), cosines: &[Vec<f32>; 2], row: &mut [f32]) {
    let kept = cosines[0].len() / height;
    let mut line = vec![0.0; width];
    for (map, out) in maps.chunks_exact(height * width).zip(row.chunks_exact_mut(kept * kept)) {
        for (weights, out) in cosines[0].chunks_exact(height).zip(out.chunks_exact_mut(kept)) {
            line.fill(0.0);
            for (&weight, values) in weights.iter().zip(map.chunks_exact(width)) {
                for (sum, &value) in line.iter_mut().zip(values) {
                    *sum += weight * value;
                }
            }
            for (out, weights) in out.iter_mut().zip(cosines[1].chunks_exact(width)) {
                *out = line.iter().zip(weights).map(|(a, b)| a * b).sum();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: ImageSize = ImageSize { height: 16, width: 12, channels: 2 };

    fn features(groups: Option<usize>, frequencies: Option<usize>) -> Result<ImageFeatures> {
        ImageFeatures::new(ImageFeaturesConfig { groups, frequencies, ..ImageFeaturesConfig::default() }, IMAGE)
    }

    #[test]
    fn the_rule_fits_all_sizes() {
        for (height, width, channels) in
            [(8, 128, 1), (15, 16, 2), (28, 28, 1), (32, 32, 3), (47, 48, 4), (128, 128, 3)]
        {
            let size = ImageSize { height, width, channels };
            let features = ImageFeatures::new(ImageFeaturesConfig::for_size(size).unwrap(), size).unwrap();
            assert_eq!(features.of(&vec![0.5; size.len()], NonZeroUsize::MIN).unwrap().len(), features.n_features());
        }
        let size = ImageSize { height: 7, ..IMAGE };
        insta::assert_snapshot!(ImageFeaturesConfig::for_size(size).unwrap_err(), @"height = 7: expected 8 to 128 pixels");
        let size = ImageSize { channels: 5, ..IMAGE };
        insta::assert_snapshot!(ImageFeaturesConfig::for_size(size).unwrap_err(), @"channels = 5: expected 1 to 4");
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        insta::assert_snapshot!(features(Some(5), None).err().unwrap(), @"features.groups = 5: expected a divisor of the 162 maps");
        insta::assert_snapshot!(features(None, Some(4)).err().unwrap(), @"features.frequencies = 4: expected 1 to 3, the shorter side of a map");
    }

    /// All frequencies are a rotation: the row is the maps', at another angle.
    #[test]
    fn all_frequencies_keep_lengths_and_angles() {
        let image = ImageSize { height: 12, ..IMAGE };
        let of = |frequencies| {
            let config = ImageFeaturesConfig { frequencies, ..ImageFeaturesConfig::default() };
            let pixels: Vec<f32> = (0..2 * image.len()).map(|i| ((i * 7919) % 97) as f32 / 96.0).collect();
            let rows = ImageFeatures::new(config, image).unwrap().of(&pixels, NonZeroUsize::MIN).unwrap();
            let (a, b) = rows.split_at(rows.len() / 2);
            let product: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            product
        };
        let (maps, frequencies) = (of(None), of(Some(3)));
        assert!((maps - frequencies).abs() < 1e-5, "{maps} {frequencies}");
    }

    #[test]
    fn a_row_that_cannot_have_a_norm_is_zero() {
        let features = features(Some(27), Some(2)).unwrap();
        let mut pixels = vec![0.25; 2 * IMAGE.len()];
        pixels[7] = f32::NAN;
        pixels[IMAGE.len() + 3] = 1.0;
        let rows = features.of(&pixels, NonZeroUsize::MIN).unwrap();
        let (bad, good) = rows.split_at(rows.len() / 2);
        assert!(bad.iter().all(|&v| v == 0.0) && good.iter().any(|&v| v != 0.0));
    }

    #[test]
    fn a_unit_row_is_never_longer_than_one() {
        for seed in 1..200_u32 {
            let mut row: Vec<f32> =
                (1..400_u32).map(|i| f64::from(i.wrapping_mul(seed * 40_503)) as f32 - 2e9).collect();
            scale_to_unit(&mut row);
            let norm: f64 = row.iter().map(|&v| f64::from(v).powi(2)).sum();
            assert!(norm <= 1.0 && norm > 1.0 - 1e-6, "{norm}");
        }
    }
}
