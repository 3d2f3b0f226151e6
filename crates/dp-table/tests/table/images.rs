//! Columns of images: the same pixels from every kind of file, and what is refused.

use dp_table::{Column, Schema};

use super::{Placed, schema};

fn of(column: Column) -> Schema {
    Schema { columns: vec![("image".into(), column)], ..schema() }
}

fn image(channels: usize, resize: bool) -> Column {
    Column::Image { height: SIDE, width: SIDE, channels, resize, missing: false, pixels: false }
}

const SIDE: usize = 8;

/// A table of images, with the label of [`schema`].
const CSV: &str = "image,ill\na.png,no\nb.png,yes\n";

#[cfg(not(feature = "images"))]
#[test]
fn without_the_feature_it_is_named() {
    let error = Placed::new("t.csv", CSV).encode(&of(image(1, false))).unwrap_err().to_string();
    insta::assert_snapshot!(error, @"column `image`: is of images, which this program was built without: build it with the feature `images`");
}

#[cfg(feature = "images")]
mod read {
    use std::fs;
    use std::path::Path;

    use dp_table::{BadRows, EncodedFile, EncodedTable, Guess, GuessedKind, TableFiles};

    use super::*;

    fn pixels(seed: usize) -> Vec<u8> {
        (0..SIDE * SIDE).map(|place| ((place * 7 + seed * 31) % 256) as u8).collect()
    }

    fn png(path: &Path, side: usize, colour: png::ColorType, pixels: &[u8]) {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, side as u32, side as u32);
        encoder.set_color(colour);
        encoder.write_header().unwrap().write_image_data(pixels).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn grey(path: &Path, seed: usize) {
        png(path, SIDE, png::ColorType::Grayscale, &pixels(seed));
    }

    fn idx(path: &Path, sides: &[usize], content: &[u8]) {
        let mut bytes = vec![0, 0, 8, sides.len() as u8];
        bytes.extend(sides.iter().flat_map(|&side| (side as u32).to_be_bytes()));
        bytes.extend(content);
        fs::write(path, bytes).unwrap();
    }

    fn placed() -> Placed {
        let placed = Placed::new("t.csv", CSV);
        let folder = placed.path.parent().unwrap();
        grey(&folder.join("a.png"), 1);
        grey(&folder.join("b.png"), 2);
        placed
    }

    fn encode(files: &TableFiles, schema: &Schema) -> Result<EncodedTable, String> {
        let folder = tempfile::tempdir().unwrap();
        let table = EncodedTable::create(files, schema, EncodedFile::Temporary(folder.path()));
        table.map(|(table, _)| table).map_err(|error| error.to_string())
    }

    fn refusal(placed: &Placed, schema: &Schema) -> String {
        let error = placed.encode(schema).unwrap_err().to_string();
        error.replace(&*placed.path.parent().unwrap().to_string_lossy(), "")
    }

    /// Paths in a table, a folder for each label, and IDX files have one digest; another pixel another one.
    #[test]
    fn all_files_give_the_same_rows() {
        let placed = placed();
        let schema = of(image(1, false));
        let (paths, counts) = placed.encode(&schema).unwrap();
        assert_eq!((paths.rows(), counts.dropped), (2, 0));
        let mut rows = vec![0.0; 2 * paths.width()];
        paths.gather(&[0, 1], &mut rows);
        let norm: f64 = rows[..paths.width()].iter().map(|&v| f64::from(v).powi(2)).sum();
        assert!(norm <= 1.0 && norm > 0.99, "{norm}");

        let folder = placed.path.parent().unwrap();
        grey(&folder.join("images/no/1.png"), 1);
        grey(&folder.join("images/yes/1.png"), 2);
        let named = |column: &str| {
            let mut schema = schema.clone();
            schema.label.column = column.into();
            schema
        };
        let by_folder = TableFiles::new(&[folder.join("images").to_string_lossy()]).unwrap();
        let by_folder = encode(&by_folder, &named("folder")).unwrap();

        let classes = |mut schema: Schema| {
            schema.label.classes = ["0", "1"].map(str::to_owned).into();
            schema
        };
        idx(&folder.join("l.idx"), &[2], &[0, 1]);
        idx(&folder.join("i.idx"), &[2, SIDE, SIDE], &[pixels(1), pixels(2)].concat());
        let by_idx = TableFiles::new(&[folder.join("l.idx").to_string_lossy()]).unwrap();
        let by_idx = by_idx.with_vectors("image", &[folder.join("i.idx").to_string_lossy()]).unwrap();
        let by_idx = encode(&by_idx, &classes(named("label"))).unwrap();
        for other in [&by_folder, &by_idx] {
            let mut found = vec![0.0; rows.len()];
            other.gather(&[0, 1], &mut found);
            assert!(found == rows && (other.label(0), other.label(1)) == (0, 1));
        }
        let again = placed.encode(&schema).unwrap().0;
        assert_eq!(again.digest(), paths.digest());
        let mut changed = pixels(2);
        changed[5] ^= 1;
        png(&folder.join("b.png"), SIDE, png::ColorType::Grayscale, &changed);
        assert_ne!(placed.encode(&schema).unwrap().0.digest(), paths.digest());
    }

    /// Features over the scale are bytes over 255, and no row has a norm above 1.
    #[test]
    fn pixels_are_features_where_declared() {
        let placed = placed();
        let of_pixels =
            |height| of(Column::Image { height, width: SIDE, channels: 1, resize: true, missing: false, pixels: true });
        let (table, _) = placed.encode(&of_pixels(SIDE)).unwrap();
        assert_eq!(table.width(), SIDE * SIDE + 1);
        let mut rows = vec![0.0; 2 * table.width()];
        table.gather(&[0, 1], &mut rows);
        let scale = table.encoding().scale();
        for (seed, row) in [1, 2].into_iter().zip(rows.chunks(table.width())) {
            for (byte, feature) in pixels(seed).into_iter().zip(row) {
                assert!((f32::from(byte) / 255.0 - feature / scale).abs() < 1e-6);
            }
        }
        let largest = f64::from(scale).powi(2) * table.width() as f64;
        assert!(largest <= 1.0 && largest > 0.99, "{largest}");
        insta::assert_snapshot!(refusal(&placed, &of_pixels(7)), @"column `image`: height = 7: expected 8 to 128");
    }

    #[test]
    fn what_does_not_fit_is_refused_by_file_and_row() {
        let placed = placed();
        let folder = placed.path.parent().unwrap();
        let schema = of(image(1, false));
        insta::assert_snapshot!(refusal(&placed, &of(image(3, false))), @"/t.csv:2: column `image`: `a.png` has 8 × 8 pixels and 1 channel, expected 8 × 8 pixels and 3 channels, or resize = true, which brings images to it");
        assert!(placed.encode(&of(image(3, true))).is_ok());
        insta::assert_snapshot!(refusal(&placed, &of(image(2, false))), @"column `image`: channels = 2: expected 1, or 3 for colours");
        let bytes = fs::read(folder.join("b.png")).unwrap();
        fs::write(folder.join("b.png"), &bytes[..bytes.len() / 2]).unwrap();
        insta::assert_snapshot!(refusal(&placed, &schema), @"/t.csv:3: column `image`: `b.png` is a damaged PNG: unexpected end of file");
        let dropped = Schema { bad_rows: BadRows::Drop, ..schema.clone() };
        let (table, counts) = placed.encode(&dropped).unwrap();
        assert_eq!((table.is_blank(0), table.is_blank(1), counts.dropped), (false, true, 1));
        fs::remove_file(folder.join("b.png")).unwrap();
        insta::assert_snapshot!(refusal(&placed, &schema), @"/t.csv:3: column `image`: `b.png` cannot be read: No such file or directory (os error 2)");
        fs::create_dir(folder.join("b.png")).unwrap();
        insta::assert_snapshot!(refusal(&placed, &schema), @"/t.csv:3: column `image`: `b.png` is no file");
    }

    #[test]
    fn idx_files_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let message = |labels: &str, images: &str| {
            let files = TableFiles::new(&[at(labels)]).unwrap().with_vectors("image", &[at(images)]).unwrap();
            let mut schema = of(image(1, false));
            schema.label.column = "label".into();
            schema.label.classes = ["0", "1"].map(str::to_owned).into();
            encode(&files, &schema).unwrap_err().replace(&*folder.path().to_string_lossy(), "")
        };
        idx(Path::new(&at("l.idx")), &[2], &[0, 1]);
        idx(Path::new(&at("one.idx")), &[1, SIDE, SIDE], &pixels(1));
        idx(Path::new(&at("short.idx")), &[2, SIDE, SIDE], &pixels(1));
        idx(Path::new(&at("huge.idx")), &[2, 1 << 20, 1 << 20], &pixels(1));
        insta::assert_snapshot!(message("l.idx", "one.idx"), @"`/one.idx` has 1 images, and `/l.idx` has more rows: expected one for each");
        insta::assert_snapshot!(message("l.idx", "short.idx"), @"`/short.idx` cannot be read from record 2 of 2 on: failed to fill whole buffer");
        insta::assert_snapshot!(message("l.idx", "huge.idx"), @"`/huge.idx` has records of [1048576, 1048576] values, expected 1 to 33554432 in all");
        insta::assert_snapshot!(message("l.idx", "l.idx"), @"`/l.idx` has records of one dimension, expected images of two, or three with channels");
    }

    #[test]
    fn images_are_guessed_by_their_endings() {
        let placed = placed();
        let files = TableFiles::new(&[placed.path.to_string_lossy()]).unwrap();
        let guess = Guess::of(&mut files.open().unwrap()).unwrap();
        assert_eq!(guess.columns[0].kind, GuessedKind::Image);
        assert_eq!(guess.columns[0].column(), image(1, false));
    }
}
