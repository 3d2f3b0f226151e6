//! Images brought to another size and to other channels.

use scattering::ImageSize;

use super::decode::Pixels;

/// Shares of red, green and blue in brightness (Rec. 601).
const BRIGHTNESS: [f64; 3] = [0.299, 0.587, 0.114];

/// Pixels from 0 to 1 of this size. Without a change of size they are bytes divided by 255. Each
/// axis is filtered by a triangle as wide as two pixels of the coarser grid, so that nothing is left
/// out where an image shrinks. Grey becomes three equal channels, colours become their brightness,
/// and transparency is left out.
pub(super) fn resized(found: &Pixels, to: ImageSize) -> Vec<f32> {
    if found.size == to {
        return found.bytes.iter().map(|&byte| f32::from(byte) / 255.0).collect();
    }
    let ImageSize { height, width, .. } = found.size;
    let image = channels(found, to.channels);
    let across = Weights::new(width, to.width);
    let down = Weights::new(height, to.height);
    let n = to.channels;
    let mut narrow = vec![0.0; height * to.width * n];
    for (line, out) in image.chunks_exact(width * n).zip(narrow.chunks_exact_mut(to.width * n)) {
        for (place, pixel) in out.chunks_exact_mut(n).enumerate() {
            for (source, weight) in across.of(place) {
                for (sum, value) in pixel.iter_mut().zip(&line[source * n..]) {
                    *sum += weight * value;
                }
            }
        }
    }
    let mut small = vec![0.0; to.len()];
    for (place, line) in small.chunks_exact_mut(to.width * n).enumerate() {
        for (source, weight) in down.of(place) {
            for (sum, value) in line.iter_mut().zip(&narrow[source * to.width * n..]) {
                *sum += weight * value;
            }
        }
    }
    small.into_iter().map(|value| (value / 255.0) as f32).collect()
}

/// The same image with 1 or 3 channels.
fn channels(found: &Pixels, n: usize) -> Vec<f64> {
    let pixels = found.bytes.chunks_exact(found.size.channels);
    let mut image = Vec::with_capacity(found.size.height * found.size.width * n);
    for pixel in pixels {
        let colours = &pixel[..if pixel.len() < 3 { 1 } else { 3 }];
        match (colours, n) {
            ([grey], _) => image.extend(std::iter::repeat_n(f64::from(*grey), n)),
            (colours, 1) => {
                image.push(colours.iter().zip(BRIGHTNESS).map(|(&colour, share)| f64::from(colour) * share).sum());
            }
            (colours, _) => image.extend(colours.iter().map(|&colour| f64::from(colour))),
        }
    }
    image
}

/// What each pixel of an axis takes of the pixels of another one.
struct Weights {
    first: Vec<usize>,
    weights: Vec<Vec<f64>>,
}

impl Weights {
    fn new(from: usize, to: usize) -> Self {
        let step = from as f64 / to as f64;
        let radius = step.max(1.0);
        let (mut first, mut weights) = (Vec::with_capacity(to), Vec::with_capacity(to));
        for place in 0..to {
            let centre = (place as f64 + 0.5) * step;
            let low = (centre - radius).floor().max(0.0) as usize;
            let high = ((centre + radius).ceil() as usize).min(from);
            let weight = |source: usize| (1.0 - (source as f64 + 0.5 - centre).abs() / radius).max(0.0);
            let total: f64 = (low..high).map(weight).sum();
            first.push(low);
            weights.push((low..high).map(|source| weight(source) / total).collect());
        }
        Self { first, weights }
    }

    fn of(&self, place: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        (self.first[place]..).zip(self.weights[place].iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(height: usize, width: usize, channels: usize) -> ImageSize {
        ImageSize { height, width, channels }
    }

    #[test]
    fn what_has_the_size_stays() {
        let found = Pixels { size: size(1, 3, 1), bytes: vec![0, 51, 255] };
        assert_eq!(resized(&found, found.size), [0.0, 0.2, 1.0]);
    }

    #[test]
    fn an_even_image_stays_even() {
        for (from, to) in
            [(size(9, 4, 3), size(3, 7, 3)), (size(5, 5, 1), size(8, 8, 3)), (size(6, 6, 4), size(2, 3, 1))]
        {
            let found = Pixels { size: from, bytes: vec![51; from.len()] };
            assert!(resized(&found, to).iter().all(|&value| (value - 0.2).abs() < 1e-6), "{from:?}");
        }
    }

    /// Half as wide: a triangle over four pixels, (1, 3, 3, 1) / 8, and at the edge (3, 3, 1) / 7.
    #[test]
    fn shrinking_by_hand() {
        let found = Pixels { size: size(1, 6, 1), bytes: vec![0, 0, 0, 255, 0, 0] };
        let small = resized(&found, size(1, 3, 1));
        for (found, expected) in small.iter().zip([0.0, 3.0 / 8.0, 1.0 / 7.0]) {
            assert!((found - expected as f32).abs() < 1e-6, "{small:?}");
        }
    }

    #[test]
    fn colours_become_their_brightness() {
        let found = Pixels { size: size(1, 1, 4), bytes: vec![255, 0, 0, 7] };
        assert!((resized(&found, size(1, 1, 1))[0] - 0.299).abs() < 1e-6);
        assert_eq!(resized(&found, size(1, 1, 3)), [1.0, 0.0, 0.0]);
    }
}
