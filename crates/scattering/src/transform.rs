//! The scattering transform of images.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use crate::simd::vectorise;
use crate::size::ImageSize;
use rayon::ThreadPoolBuilder;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex32;
use serde::{Deserialize, Serialize};

use crate::error::{Result, ScatteringError};
use crate::filters::Transfer;
use crate::low_pass::LowPass;
use crate::spectrum::Spectrum;

/// Options of a scattering transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScatteringConfig {
    /// `J`: averages are over `2^J` pixels and results are `2^J` times as coarse as the image.
    pub log2_scale: usize,
    /// `L`: directions of the wavelets.
    pub angles: usize,
    /// 1, or 2 for the moduli of moduli as well.
    pub order: usize,
}

impl Default for ScatteringConfig {
    /// `J = 2`, 8 angles, order 2: for images of about 28 × 28.
    fn default() -> Self {
        Self { log2_scale: 2, angles: 8, order: 2 }
    }
}

impl ScatteringConfig {
    /// Paths: channels of the result per channel of the image, `1 + JL + L²J(J−1)/2`.
    pub fn paths(self) -> usize {
        let Self { log2_scale: j, angles: l, order } = self;
        let second = if order >= 2 { l * l * j * j.saturating_sub(1) / 2 } else { 0 };
        1 + j * l + second
    }

    fn validate(self, image: ImageSize) -> Result<()> {
        let side = image.height.min(image.width);
        // The largest J with 2^J ≤ side.
        let largest = side.checked_ilog2().unwrap_or(0) as usize;
        if self.log2_scale == 0 || self.log2_scale > largest {
            let expected = format!("1 to {largest}, so that 2^J is at most the image's side of {side}");
            return Err(ScatteringError::invalid("scattering.log2_scale", self.log2_scale, expected));
        }
        if !(1..=64).contains(&self.angles) {
            return Err(ScatteringError::invalid("scattering.angles", self.angles, "1 to 64"));
        }
        if !(1..=2).contains(&self.order) {
            return Err(ScatteringError::invalid("scattering.order", self.order, "1 or 2"));
        }
        if image.channels == 0 {
            return Err(ScatteringError::invalid("image.channels", 0, "at least 1"));
        }
        Ok(())
    }
}

/// The wavelet scattering transform: averages of the image, of the moduli of its wavelet
/// coefficients, and of the moduli of theirs.
///
/// **Shapes.** Images `[n, height, width, channels]`, as everywhere in this crate; results `[n,
/// ⌊height/2^J⌋, ⌊width/2^J⌋, channels · paths]`, so that a convolutional network can be trained on
/// them. The paths of a channel are side by side, in the order of Kymatio: the image; first order
/// by scale, then angle; second order by the first wavelet, then the second.
///
/// **Guarantee.** The filters are constants: the transform costs no privacy. A result depends on
/// its image alone, bit for bit, whatever else is transformed with it and on however many threads.
///
/// **Edge cases.** A pixel that is not finite makes results of its image that are not finite.
///
/// **Source.** Bruna and Mallat 2013; filters, reflected margins and order of results as Kymatio
/// 0.3 (Andreux et al. 2020), with which it agrees to single precision.
///
/// **Example**
/// ```
/// use std::num::NonZeroUsize;
/// use scattering::{Scattering, ScatteringConfig};
/// use scattering::ImageSize;
/// let image = ImageSize { channels: 1, height: 28, width: 28 };
/// let scattering = Scattering::new(ScatteringConfig::default(), image)?;
/// assert_eq!(scattering.output(), ImageSize { channels: 81, height: 7, width: 7 });
/// // A constant image has no wavelet coefficients; channels are last.
/// let features = scattering.transform(&[0.5; 28 * 28], NonZeroUsize::MIN)?;
/// for channels in features.chunks_exact(81) {
///     assert!((channels[0] - 0.5).abs() < 1e-4 && channels[1..].iter().all(|v| v.abs() < 1e-6));
/// }
/// # Ok::<(), scattering::ScatteringError>(())
/// ```
pub struct Scattering {
    config: ScatteringConfig,
    image: ImageSize,
    /// Height and width with margins.
    padded: (usize, usize),
    wavelets: Vec<Wavelet>,
    /// Memory of threads that finished, for those that come.
    spare: Mutex<Vec<Workspace>>,
}

/// One wavelet on all grids on which it is used.
struct Wavelet {
    scale: usize,
    /// By the number of halvings: transposed, as spectra are, and with the factor `1/size` of the
    /// inverse transform on the grid that the result has.
    levels: Vec<Vec<f32>>,
}

/// Without the wavelets, which follow from the rest.
impl std::fmt::Debug for Scattering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scattering").field("config", &self.config).field("image", &self.image).finish_non_exhaustive()
    }
}

impl Scattering {
    /// Makes the filters for images of this shape.
    ///
    /// # Errors
    /// [`ScatteringError::InvalidParameter`] unless `1 ≤ J` with `2^J` at most the shorter side, 1 to 64
    /// angles, order 1 or 2 and at least one channel.
    pub fn new(config: ScatteringConfig, image: ImageSize) -> Result<Self> {
        config.validate(image)?;
        let block = 1 << config.log2_scale;
        let padded_len = |len: usize| ((len + block) / block + 1) * block;
        let padded = (padded_len(image.height), padded_len(image.width));
        let wavelets = (0..config.log2_scale * config.angles)
            .map(|i| Wavelet::new(padded, i / config.angles, i % config.angles, config.angles))
            .collect();
        Ok(Self { config, image, padded, wavelets, spare: Mutex::default() })
    }

    /// The options.
    pub fn config(&self) -> ScatteringConfig {
        self.config
    }

    /// Shape of an image.
    pub fn input(&self) -> ImageSize {
        self.image
    }

    /// Shape of a result.
    pub fn output(&self) -> ImageSize {
        let ImageSize { channels, height, width } = self.image;
        let j = self.config.log2_scale;
        ImageSize { channels: channels * self.config.paths(), height: height >> j, width: width >> j }
    }

    /// Results of all images.
    ///
    /// # Errors
    /// [`ScatteringError::Pixels`] unless there is a whole number of images;
    /// [`ScatteringError::InvalidParameter`] if the system has no more threads to give.
    pub fn transform(&self, images: &[f32], threads: NonZeroUsize) -> Result<Vec<f32>> {
        let output = self.output();
        let (plane, channels) = (output.height * output.width, output.channels);
        let mut out = vec![0.0; self.check(images)? * output.len()];
        self.for_each(images, &mut out, output.len(), threads, |maps, out| {
            for (channel, map) in maps.chunks_exact(plane).enumerate() {
                for (value, pixel) in map.iter().zip(out.chunks_exact_mut(channels)) {
                    pixel[channel] = *value;
                }
            }
        })?;
        Ok(out)
    }

    /// Number of images in these values.
    pub(crate) fn check(&self, images: &[f32]) -> Result<usize> {
        let size = self.image.len();
        if !images.len().is_multiple_of(size) {
            return Err(ScatteringError::Pixels { size, got: images.len() });
        }
        Ok(images.len() / size)
    }

    /// Transforms every image and has `then` put what becomes of it, `[channels · paths, height,
    /// width]`, into its `len` values of `out`.
    pub(crate) fn for_each(
        &self,
        images: &[f32],
        out: &mut [f32],
        len: usize,
        threads: NonZeroUsize,
        then: impl Fn(&mut [f32], &mut [f32]) + Sync,
    ) -> Result<()> {
        let (image, output) = (self.image, self.output());
        let n = self.check(images)?;
        let share = n.div_ceil(threads.get()).max(1);
        let work = |(images, out): (&[f32], &mut [f32])| {
            let mut workspace = self.workspace();
            let mut maps = vec![0.0; output.len()];
            let mut plane = vec![0.0; image.height * image.width];
            for (pixels, out) in images.chunks_exact(image.len()).zip(out.chunks_exact_mut(len)) {
                let results = maps.chunks_exact_mut(output.len() / image.channels);
                for (channel, result) in results.enumerate() {
                    for (value, pixel) in plane.iter_mut().zip(pixels.chunks_exact(image.channels)) {
                        *value = pixel[channel];
                    }
                    workspace.scatter(self, &plane, result);
                }
                then(&mut maps, out);
            }
            self.give_back(workspace);
        };
        let mut jobs: Vec<_> = images.chunks(share * image.len()).zip(out.chunks_mut(share * len)).collect();
        if jobs.len() < 2 {
            jobs.into_iter().for_each(work);
            return Ok(());
        }
        let pool = ThreadPoolBuilder::new().num_threads(jobs.len() - 1).build();
        let pool =
            pool.map_err(|error| ScatteringError::invalid("threads", threads.get(), format!("fewer: {error}")))?;
        let first = jobs.swap_remove(0);
        pool.in_place_scope(|scope| {
            for job in jobs {
                let work = &work;
                scope.spawn(move |_| work(job));
            }
            work(first);
        });
        Ok(())
    }

    /// Memory that another thread left, or new.
    fn workspace(&self) -> Workspace {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| Workspace::new(self))
    }

    fn give_back(&self, workspace: Workspace) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
    }
}

impl Wavelet {
    fn new(padded: (usize, usize), scale: usize, angle: usize, angles: usize) -> Self {
        let finest = Transfer::wavelet(padded.0, padded.1, scale, angle, angles);
        // Used on the image itself (no halvings), and on moduli of every finer scale.
        let levels = (0..=scale.saturating_sub(1))
            .map(|halvings| {
                let filter = finest.coarser(halvings);
                // Folding to the result's grid averages over 4^k cells, and the inverse transform
                // there divides by its size: together, by the size of the filter's own grid.
                let factor = 1.0 / (filter.rows * filter.columns) as f64;
                let at = |j: usize, i: usize| (filter.values[i * filter.columns + j] * factor) as f32;
                (0..filter.columns).flat_map(|j| (0..filter.rows).map(move |i| (j, i))).map(|(j, i)| at(j, i)).collect()
            })
            .collect();
        Self { scale, levels }
    }
}

/// The memory of one thread.
struct Workspace {
    /// One for each number of halvings.
    spectra: Vec<Spectrum>,
    low_passes: Vec<LowPass>,
    padded: Vec<f32>,
    image: Vec<Complex32>,
    first: Vec<Complex32>,
    folded: Vec<Complex32>,
    map: Vec<f32>,
    second: Vec<f32>,
}

impl Workspace {
    fn new(scattering: &Scattering) -> Self {
        let Scattering { config, padded, .. } = *scattering;
        let mut planner = FftPlanner::new();
        let halvings = || 0..config.log2_scale;
        let size = padded.0 * padded.1;
        let complex = || vec![Complex32::default(); size];
        Self {
            spectra: halvings().map(|h| Spectrum::new(padded.0 >> h, padded.1 >> h, &mut planner)).collect(),
            low_passes: halvings().map(|h| LowPass::new(padded, config.log2_scale, h)).collect(),
            padded: vec![0.0; size],
            image: complex(),
            first: complex(),
            folded: complex(),
            map: vec![0.0; size],
            second: vec![0.0; size],
        }
    }

    /// All paths of one channel.
    fn scatter(&mut self, scattering: &Scattering, channel: &[f32], out: &mut [f32]) {
        let Scattering { config, image, padded, wavelets, .. } = scattering;
        let n_out = self.low_passes[0].out();
        let size = n_out.0 * n_out.1;
        reflect(channel, (image.height, image.width), &mut self.padded, *padded);
        let (zeroth, rest) = out.split_at_mut(size);
        let (first_order, second_order) = rest.split_at_mut(wavelets.len() * size);
        self.low_passes[0].apply(&self.padded, zeroth);
        self.spectra[0].of_map(&self.padded, &mut self.image);
        let mut second_order = second_order.chunks_exact_mut(size);
        for (wavelet, out) in wavelets.iter().zip(first_order.chunks_exact_mut(size)) {
            let scale = wavelet.scale;
            let len = self.spectra[scale].len();
            filter(&self.image, &wavelet.levels[0], *padded, scale, &mut self.folded);
            self.spectra[scale].modulus(&mut self.folded[..len], &mut self.map[..len]);
            self.low_passes[scale].apply(&self.map[..len], out);
            if config.order < 2 || scale + 1 == config.log2_scale {
                continue;
            }
            let grid = (padded.0 >> scale, padded.1 >> scale);
            self.spectra[scale].of_map(&self.map[..len], &mut self.first[..len]);
            for (wavelet, out) in wavelets.iter().filter(|second| second.scale > scale).zip(&mut second_order) {
                let halvings = wavelet.scale - scale;
                let (level, spectrum) = (&wavelet.levels[scale], &self.first[..len]);
                filter(spectrum, level, grid, halvings, &mut self.folded);
                let len = self.spectra[wavelet.scale].len();
                self.spectra[wavelet.scale].modulus(&mut self.folded[..len], &mut self.second[..len]);
                self.low_passes[wavelet.scale].apply(&self.second[..len], out);
            }
        }
    }
}

/// The spectrum times the filter, on a grid `2^halvings` times as coarse, into `folded`.
///
/// Taking every `2^k`-th value of a map adds up the frequencies that then look alike. Both grids
/// are transposed; `grid` is that of the spectrum, rows and columns of its map.
fn filter(spectrum: &[Complex32], transfer: &[f32], grid: (usize, usize), halvings: usize, folded: &mut [Complex32]) {
    let (height, width) = grid;
    let (coarse_height, coarse_width) = (height >> halvings, width >> halvings);
    let columns = folded[..coarse_height * coarse_width].chunks_exact_mut(coarse_height);
    let mut columns = columns.enumerate();
    vectorise(
        #[inline(always)]
        || {
            for (j, folded) in &mut columns {
                let mut first = true;
                for column in (j..width).step_by(coarse_width) {
                    for start in (column * height..(column + 1) * height).step_by(coarse_height) {
                        let range = start..start + coarse_height;
                        let products = spectrum[range.clone()].iter().zip(&transfer[range]);
                        if first {
                            for (sum, (value, &factor)) in folded.iter_mut().zip(products) {
                                *sum = Complex32::new(value.re * factor, value.im * factor);
                            }
                            first = false;
                        } else {
                            for (sum, (value, &factor)) in folded.iter_mut().zip(products) {
                                sum.re = value.re.mul_add(factor, sum.re);
                                sum.im = value.im.mul_add(factor, sum.im);
                            }
                        }
                    }
                }
            }
        },
    );
}

/// The image with margins in which it is mirrored at its outermost pixels, the larger one at the
/// end.
fn reflect(image: &[f32], (height, width): (usize, usize), padded: &mut [f32], (rows, columns): (usize, usize)) {
    let (top, left) = ((rows - height) / 2, (columns - width) / 2);
    for (i, row) in padded.chunks_exact_mut(columns).enumerate() {
        let source = &image[mirrored(i, top, height) * width..][..width];
        for (j, value) in row.iter_mut().enumerate() {
            *value = source[mirrored(j, left, width)];
        }
    }
}

/// The pixel that stands at place `i` behind a margin.
fn mirrored(i: usize, margin: usize, len: usize) -> usize {
    if len == 1 {
        return 0;
    }
    let period = 2 * (len - 1);
    // A margin may be longer than the image: go to and fro.
    let place = (i + period * margin.div_ceil(period) - margin) % period;
    place.min(period - place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_mirrored_without_repeating_the_edge() {
        let line: Vec<usize> = (0..9).map(|i| mirrored(i, 3, 4)).collect();
        assert_eq!(line, [3, 2, 1, 0, 1, 2, 3, 2, 1]);
        // NumPy's pad((0, 1), 5, mode="reflect").
        let line: Vec<usize> = (0..12).map(|i| mirrored(i, 5, 2)).collect();
        assert_eq!(line, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(mirrored(3, 2, 1), 0);
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let image = ImageSize { channels: 1, height: 28, width: 9 };
        let refused = |config| Scattering::new(config, image).err().map(|error| error.to_string()).unwrap();
        let config = ScatteringConfig::default();
        insta::assert_snapshot!(refused(ScatteringConfig { log2_scale: 4, ..config }), @"scattering.log2_scale = 4: expected 1 to 3, so that 2^J is at most the image's side of 9");
        insta::assert_snapshot!(refused(ScatteringConfig { angles: 0, ..config }), @"scattering.angles = 0: expected 1 to 64");
        insta::assert_snapshot!(refused(ScatteringConfig { order: 3, ..config }), @"scattering.order = 3: expected 1 or 2");
        let scattering = Scattering::new(config, image).unwrap();
        insta::assert_snapshot!(scattering.transform(&[0.0; 250], NonZeroUsize::MIN).unwrap_err(), @"pixels of all images: expected a multiple of 252, the size of an image, got 250");
        assert!(scattering.transform(&[], NonZeroUsize::MIN).unwrap().is_empty());
    }

    #[test]
    fn threads_and_neighbours_change_nothing() {
        let image = ImageSize { channels: 3, height: 17, width: 12 };
        let scattering = Scattering::new(ScatteringConfig::default(), image).unwrap();
        let pixels: Vec<f32> = (0..5 * 3 * 17 * 12).map(|i| ((i * 7919) % 256) as f32 / 255.0).collect();
        let one = scattering.transform(&pixels, NonZeroUsize::MIN).unwrap();
        let three = scattering.transform(&pixels, NonZeroUsize::new(3).unwrap()).unwrap();
        assert!(one == three);
        let size = one.len() / 5;
        let last = scattering.transform(&pixels[4 * 3 * 17 * 12..], NonZeroUsize::MIN).unwrap();
        assert!(last == one[4 * size..]);
    }
}
