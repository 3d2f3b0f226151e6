//! CelebA's published format, on a few images that the test makes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use dp_data::celeba::{Celeba, CelebaOptions, Subset};
use dp_data::{DataError, DataLocator, PublishedSet};
use image::{ImageFormat, Rgb, RgbImage};
use tempfile::TempDir;

/// Six images of 178×218, each of one colour.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let images = dir.path().join("celeba/img_align_celeba");
    fs::create_dir_all(&images).expect("writable");
    let mut attributes = "6\nEyeglasses Male \n".to_owned();
    let mut partition = String::new();
    for index in 0..6_u8 {
        let name = format!("{:06}.jpg", index + 1);
        RgbImage::from_pixel(178, 218, Rgb([index * 40, 100, 200]))
            .save_with_format(images.join(&name), ImageFormat::Jpeg)
            .expect("writable");
        let sign = |bit: bool| if bit { " 1" } else { "-1" };
        let _ = writeln!(attributes, "{name} {} {}", sign(index % 3 == 0), sign(index % 2 == 0));
        let _ = writeln!(partition, "{name} {}", [0, 0, 0, 0, 1, 2][usize::from(index)]);
    }
    fs::write(dir.path().join("celeba/list_attr_celeba.txt"), attributes).expect("writable");
    fs::write(dir.path().join("celeba/list_eval_partition.txt"), partition).expect("writable");
    dir
}

fn locator(dir: &Path) -> DataLocator {
    DataLocator { data_dir: Some(dir.into()), offline: true, ..DataLocator::new(dir.join("cache")) }
}

#[test]
fn images_are_decoded_and_cached() {
    let dir = folder();
    let table = Celeba.load(&locator(dir.path())).unwrap();
    assert!(!table.provenance.synthetic);
    assert_eq!(table.records.male, [true, false, true, false, true, false]);
    assert_eq!(table.records.eyeglasses, [true, false, false, true, false, false]);
    assert_eq!(table.records.parts[3..], [Subset::Train, Subset::Validation, Subset::Test]);
    let split = Celeba.split(&table.records, &CelebaOptions::default(), 0).unwrap();
    assert_eq!((split.train.len(), split.validation.unwrap().len(), split.test.len()), (4, 1, 1));
    // JPEG is lossy: one colour stays within a few steps. Channels are innermost.
    for (index, expected) in [200.0, 100.0, 200.0].into_iter().enumerate() {
        assert!((split.test.features[[0, index]] * 255.0 - expected).abs() < 6.0, "{index}");
    }

    // The cache serves when the images have become unreadable but kept their sizes.
    let path = dir.path().join("celeba/img_align_celeba/000001.jpg");
    let size = fs::metadata(&path).unwrap().len() as usize;
    fs::write(&path, vec![0; size]).unwrap();
    let again = Celeba.load(&locator(dir.path())).unwrap();
    assert_eq!(again.records.pixels, table.records.pixels);
    assert_eq!(again.provenance.digest, table.provenance.digest);

    // A damaged cache does not: the images are decoded again, and one of them cannot be.
    let cache = dir.path().join("cache/celeba/celeba-64x64.bin");
    let mut bytes = fs::read(&cache).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&cache, bytes).unwrap();
    let error = Celeba.load(&locator(dir.path())).unwrap_err();
    assert!(matches!(&error, DataError::BrokenImage { path, .. } if path.ends_with("000001.jpg")), "{error}");
}

#[test]
fn what_is_missing_is_named() {
    let dir = folder();
    fs::remove_file(dir.path().join("celeba/img_align_celeba/000002.jpg")).unwrap();
    let error = Celeba.load(&locator(dir.path())).unwrap_err().to_string();
    insta::assert_snapshot!(
        error.replace(&dir.path().display().to_string(), "DIR"),
        @"cannot read `DIR/celeba/img_align_celeba/000002.jpg`: No such file or directory (os error 2)"
    );
    fs::remove_file(dir.path().join("celeba/list_eval_partition.txt")).unwrap();
    let error = Celeba.load(&locator(dir.path())).unwrap_err().to_string();
    insta::assert_snapshot!(
        error.replace(&dir.path().display().to_string(), "DIR"),
        @"`DIR/celeba/list_eval_partition.txt` is missing, although other files of `celeba` are there"
    );
    let empty = tempfile::tempdir().unwrap();
    assert!(Celeba.load(&locator(empty.path())).unwrap().provenance.synthetic);
    let strict = DataLocator { require_real: true, ..locator(empty.path()) };
    insta::assert_snapshot!(Celeba.load(&strict).unwrap_err(), @r"
    no real data for `celeba`:
      - --data-dir: no file of this data set
      - cache: no file of this data set
      - download: it cannot be downloaded freely
    ");
}
