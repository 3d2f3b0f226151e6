//! Drawn faces: a coloured oval with eyes, hair that is long more often for women, and sometimes
//! eyeglasses.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::{CHANNELS, CelebaTable, Faces, IMAGE_BYTES, SIDE, Subset};
use crate::loaded::Loaded;
use crate::provenance::Provenance;

/// A fiftieth of CelebA: enough to train on, 50 MB of pixels.
const N_FACES: usize = 4_052;

/// Thousandths with long hair among women and men: the label is not certain from the picture.
const LONG_HAIR: [u32; 2] = [880, 90];

type Colour = [i32; 3];

pub(super) fn faces(seed: u64) -> CelebaTable {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut pixels = vec![0; N_FACES * IMAGE_BYTES];
    // 10,478 of 84,434 men wear eyeglasses, and 2,715 of 118,165 women.
    let share = |n: usize| (n * N_FACES + 101_299) / 202_599;
    let (men, men_glasses, women_glasses) = (share(84_434), share(10_478), share(2_715));
    let mut people: Vec<(bool, bool)> = (0..men)
        .map(|index| (true, index < men_glasses))
        .chain((0..N_FACES - men).map(|index| (false, index < women_glasses)))
        .collect();
    people.shuffle(&mut rng);
    for (image, &(male, eyeglasses)) in pixels.chunks_exact_mut(IMAGE_BYTES).zip(&people) {
        draw(male, eyeglasses, &mut rng, image);
    }
    // 162,770 training, 19,867 validation and 19,962 test images.
    let (train, validation) = (share(162_770), share(19_867));
    let parts: Vec<Subset> = (0..N_FACES)
        .map(|index| match index {
            _ if index < train => Subset::Train,
            _ if index < train + validation => Subset::Validation,
            _ => Subset::Test,
        })
        .collect();
    let labels: Vec<u8> = people.iter().map(|&(male, glasses)| u8::from(male) | u8::from(glasses) << 1).collect();
    let what = "faces with the shares of CelebA, a fiftieth of its size";
    let provenance = Provenance::generated("celeba", what, seed, &[&labels[..], &pixels].concat(), N_FACES);
    let records = Faces {
        pixels,
        male: people.iter().map(|person| person.0).collect(),
        eyeglasses: people.iter().map(|person| person.1).collect(),
        parts,
    };
    Loaded { records, provenance }
}

/// Integer geometry only, so that the picture is the same on every machine.
fn draw(male: bool, eyeglasses: bool, rng: &mut ChaCha20Rng, image: &mut [u8]) {
    let mut between = |low: i32, high: i32| rng.random_range(low..=high);
    let background: Colour = [between(40, 220), between(40, 220), between(40, 220)];
    let skin = between(110, 235);
    let skin: Colour = [skin, skin * 4 / 5, skin * 2 / 3];
    let hair: Colour = [between(15, 150), between(10, 100), between(5, 70)];
    let dark: Colour = [20, 20, 25];
    let (x, y) = (32 + between(-4, 4), 34 + between(-3, 3));
    let (width, height) = (between(13, 16) + i32::from(male), between(17, 20));
    let light = between(-30, 30);
    let long_hair = rng.random_range(0..1000_u32) < LONG_HAIR[usize::from(male)];
    let beard = male && rng.random_range(0..4_u32) == 0;
    for (row, pixels) in (0_i32..).zip(image.chunks_exact_mut(SIDE * CHANNELS)) {
        for (column, pixel) in (0_i32..).zip(pixels.chunks_exact_mut(CHANNELS)) {
            let (dx, dy) = (column - x, row - y);
            let inside = |width: i32, height: i32, dy: i32| {
                dx * dx * height * height + dy * dy * width * width <= width * width * height * height
            };
            let mut colour = background;
            if inside(width + 4, height + 4, dy) && (dy < -4 || long_hair)
                || long_hair && dx.abs() <= width + 4 && dx.abs() >= width - 4 && (0..=height + 6).contains(&dy)
            {
                colour = hair;
            }
            if inside(width, height, dy) && dy > -height * 3 / 5 {
                colour = if beard && dy > height / 2 { hair } else { skin };
                // Eyes and mouth.
                let eye = (dx.abs() - 6).pow(2) + (dy + 3).pow(2);
                if eye <= 3 || dx.abs() <= 4 && dy == height / 2 - 1 {
                    colour = dark;
                }
                if eyeglasses && ((9..=22).contains(&eye) || dy == -3 && (dx.abs() <= 2 || dx.abs() >= 10)) {
                    colour = dark;
                }
            }
            for (byte, value) in pixel.iter_mut().zip(colour) {
                *byte = (value + light + rng.random_range(-12..=12_i32)).clamp(0, 255) as u8;
            }
        }
    }
}
