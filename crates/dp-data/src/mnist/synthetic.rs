//! Drawn stand-ins for the published images: thick strokes, randomly placed, sheared and scaled.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::{Collection, Images, N_CLASSES, SIDE};

/// Images per class in the published training and test parts of MNIST; Fashion-MNIST has 6,000 and
/// 1,000 of each.
const DIGITS: [[usize; N_CLASSES]; 2] = [
    [5_923, 6_742, 5_958, 6_131, 5_842, 5_421, 5_918, 6_265, 5_851, 5_949],
    [980, 1_135, 1_032, 1_010, 982, 892, 958, 1_028, 974, 1_009],
];
const CLOTHES: [[usize; N_CLASSES]; 2] = [[6_000; N_CLASSES], [1_000; N_CLASSES]];

/// A line from one point to another with half its width, in pixels.
type Stroke = ([f32; 2], [f32; 2], f32);

/// Training and test part.
pub(super) fn images(collection: Collection, seed: u64) -> (Images, Images) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let [train, test] = match collection {
        Collection::Mnist => DIGITS,
        Collection::FashionMnist => CLOTHES,
    };
    (part(collection, train, &mut rng), part(collection, test, &mut rng))
}

fn part(collection: Collection, sizes: [usize; N_CLASSES], rng: &mut ChaCha20Rng) -> Images {
    let mut labels: Vec<u8> = (0_u8..).zip(sizes).flat_map(|(class, n)| std::iter::repeat_n(class, n)).collect();
    labels.shuffle(rng);
    let mut pixels = vec![0; labels.len() * SIDE * SIDE];
    for (image, &label) in pixels.chunks_exact_mut(SIDE * SIDE).zip(&labels) {
        draw(strokes(collection, label), rng, image);
    }
    Images { pixels, labels }
}

/// A random value between −1 and 1 in hundredths: an exact quotient, the same on every machine.
fn jitter(rng: &mut ChaCha20Rng) -> f32 {
    f32::from(rng.random_range(-100_i16..=100)) / 100.0
}

fn draw(strokes: &[Stroke], rng: &mut ChaCha20Rng, image: &mut [u8]) {
    let scale = 1.0 + 0.15 * jitter(rng);
    let shear = 0.25 * jitter(rng);
    let shift = [2.5 * jitter(rng), 2.5 * jitter(rng)];
    let widen = 1.0 + 0.25 * jitter(rng);
    let brightness = 205.0 + 50.0 * jitter(rng);
    let centre = SIDE as f32 / 2.0;
    let place = |[x, y]: [f32; 2]| {
        let (x, y) = (x - centre, y - centre);
        [(x + shear * y) * scale + centre + shift[0], y * scale + centre + shift[1]]
    };
    for &(from, to, half_width) in strokes {
        let (from, to, half_width) = (place(from), place(to), half_width * widen);
        let range = |axis: usize| {
            let margin = half_width + 1.0;
            let low = (from[axis].min(to[axis]) - margin).clamp(0.0, SIDE as f32) as usize;
            let high = (from[axis].max(to[axis]) + margin).clamp(0.0, SIDE as f32) as usize;
            low..high
        };
        for y in range(1) {
            for x in range(0) {
                // Full inside, fading over one pixel at the edge.
                let cover = (half_width + 0.5 - distance([x as f32, y as f32], from, to)).clamp(0.0, 1.0);
                let pixel = &mut image[y * SIDE + x];
                *pixel = (*pixel).max((cover * brightness) as u8);
            }
        }
    }
    for pixel in image {
        *pixel = pixel.saturating_add(rng.random_range(0..24_u8).saturating_sub(8));
    }
}

/// Distance of a point from a line between two points. Only operations that IEEE 754 rounds the
/// same everywhere.
fn distance(point: [f32; 2], from: [f32; 2], to: [f32; 2]) -> f32 {
    let along = [to[0] - from[0], to[1] - from[1]];
    let offset = [point[0] - from[0], point[1] - from[1]];
    let length = along[0] * along[0] + along[1] * along[1];
    let share =
        if length > 0.0 { ((offset[0] * along[0] + offset[1] * along[1]) / length).clamp(0.0, 1.0) } else { 0.0 };
    let gap = [offset[0] - share * along[0], offset[1] - share * along[1]];
    (gap[0] * gap[0] + gap[1] * gap[1]).sqrt()
}

/// Corners and middles of the digits' frame.
const A: [f32; 2] = [9.0, 5.0];
const B: [f32; 2] = [19.0, 5.0];
const C: [f32; 2] = [9.0, 14.0];
const D: [f32; 2] = [19.0, 14.0];
const E: [f32; 2] = [9.0, 23.0];
const F: [f32; 2] = [19.0, 23.0];
const W: f32 = 1.3;

const fn line(from: [f32; 2], to: [f32; 2]) -> Stroke {
    (from, to, W)
}

fn strokes(collection: Collection, class: u8) -> &'static [Stroke] {
    match collection {
        Collection::Mnist => digit(class),
        Collection::FashionMnist => clothes(class),
    }
}

fn digit(class: u8) -> &'static [Stroke] {
    const STROKES: [&[Stroke]; N_CLASSES] = [
        &[line(A, B), line(B, F), line(F, E), line(E, A)],
        &[line([14.0, 5.0], [14.0, 23.0]), line([11.0, 8.0], [14.0, 5.0])],
        &[line(A, B), line(B, D), line(D, E), line(E, F)],
        &[line(A, B), line(B, D), line(C, D), line(D, F), line(F, E)],
        &[line(A, C), line(C, D), line(B, F)],
        &[line(B, A), line(A, C), line(C, D), line(D, F), line(F, E)],
        &[line(B, C), line(C, E), line(E, F), line(F, D), line(D, C)],
        &[line(A, B), line(B, [12.0, 23.0])],
        &[line(A, B), line(B, F), line(F, E), line(E, A), line(C, D)],
        &[line(D, C), line(C, A), line(A, B), line(B, F)],
    ];
    STROKES[usize::from(class) % N_CLASSES]
}

fn clothes(class: u8) -> &'static [Stroke] {
    const TORSO: Stroke = ([14.0, 9.0], [14.0, 21.0], 4.5);
    const STROKES: [&[Stroke]; N_CLASSES] = [
        &[TORSO, ([10.0, 7.0], [5.0, 11.0], 1.8), ([18.0, 7.0], [23.0, 11.0], 1.8)],
        &[([11.0, 5.0], [11.0, 24.0], 2.2), ([17.0, 5.0], [17.0, 24.0], 2.2), ([11.0, 5.0], [17.0, 5.0], 2.0)],
        &[TORSO, ([10.0, 7.0], [6.0, 21.0], 1.8), ([18.0, 7.0], [22.0, 21.0], 1.8)],
        &[([14.0, 5.0], [14.0, 13.0], 2.8), ([14.0, 13.0], [14.0, 23.0], 4.2)],
        &[
            ([11.0, 8.0], [11.0, 23.0], 2.4),
            ([17.0, 8.0], [17.0, 23.0], 2.4),
            ([9.0, 7.0], [5.5, 21.0], 1.8),
            ([19.0, 7.0], [22.5, 21.0], 1.8),
        ],
        &[([5.0, 20.0], [23.0, 20.0], 1.3), ([9.0, 20.0], [15.0, 14.0], 0.9), ([15.0, 14.0], [20.0, 20.0], 0.9)],
        &[TORSO, ([10.0, 7.0], [6.0, 16.0], 1.8), ([18.0, 7.0], [22.0, 16.0], 1.8)],
        &[([5.0, 19.0], [23.0, 19.0], 2.2), ([17.0, 16.0], [22.0, 16.0], 2.0)],
        &[([8.0, 18.0], [20.0, 18.0], 5.0), ([9.0, 12.0], [14.0, 6.0], 0.9), ([14.0, 6.0], [19.0, 12.0], 0.9)],
        &[([7.0, 21.0], [21.0, 21.0], 2.4), ([19.0, 8.0], [19.0, 20.0], 3.2)],
    ];
    STROKES[usize::from(class) % N_CLASSES]
}

#[cfg(test)]
mod tests {
    use super::super::SYNTHETIC_SEED;
    use super::*;
    use crate::published_set::PublishedSet;

    #[test]
    fn distances_by_hand() {
        assert_eq!(distance([3.0, 4.0], [0.0, 0.0], [0.0, 0.0]), 5.0);
        assert_eq!(distance([2.0, 3.0], [0.0, 0.0], [9.0, 0.0]), 3.0);
        assert_eq!(distance([12.0, 4.0], [0.0, 0.0], [9.0, 0.0]), 5.0);
    }

    #[test]
    fn are_the_same_everywhere() {
        let [digits, clothes] = Collection::ALL.map(|collection| collection.stand_in(SYNTHETIC_SEED).unwrap());
        for parts in [&digits.records, &clothes.records] {
            assert_eq!((parts.train.labels.len(), parts.test.labels.len()), (60_000, 10_000));
        }
        insta::assert_snapshot!(digits.provenance.digest, @"b82e1604c7e124519256429f8b200cec1f773b61ba0255288d4a09d5c84f6612");
        insta::assert_snapshot!(clothes.provenance.digest, @"7b13f2bfee84c2528afb26013930aba44f7ddda705559054bbdd89956236e237");
    }

    /// The nearest class mean is right for most images: the classes can be told apart, and not
    /// trivially.
    #[test]
    fn classes_can_be_learned() {
        for collection in Collection::ALL {
            let mut rng = ChaCha20Rng::seed_from_u64(5);
            let [train, test] = [1_000, 100].map(|n| part(collection, [n; N_CLASSES], &mut rng));
            let size = SIDE * SIDE;
            let mut means = vec![vec![0.0_f32; size]; N_CLASSES];
            for (image, &label) in train.pixels.chunks_exact(size).zip(&train.labels) {
                for (mean, &pixel) in means[usize::from(label)].iter_mut().zip(image) {
                    *mean += f32::from(pixel) / 1000.0;
                }
            }
            let gap = |mean: &[f32], image: &[u8]| -> f32 {
                mean.iter().zip(image).map(|(mean, &pixel)| (mean - f32::from(pixel)).powi(2)).sum()
            };
            let right = test
                .pixels
                .chunks_exact(size)
                .zip(&test.labels)
                .filter(|(image, label)| {
                    let nearest =
                        (0..N_CLASSES).min_by(|&a, &b| gap(&means[a], image).total_cmp(&gap(&means[b], image)));
                    nearest == Some(usize::from(**label))
                })
                .count();
            eprintln!("{collection}: {right} of 1000");
            assert!((550..990).contains(&right), "{collection}: {right}");
        }
    }
}
