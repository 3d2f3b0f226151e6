//! Files of a data set made from one input: parts are separated by a byte that no text has.

use std::fs;

use dp_data::DataLocator;

/// Between two files.
const SEPARATOR: u8 = 0xfe;

/// A folder with these files, filled from the input one after another, and a locator that looks
/// there alone. Marked as generated, so that the published numbers of records are not asked for.
///
/// # Panics
/// If the machine refuses a temporary folder.
pub fn placed(input: &[u8], names: &[&str]) -> (tempfile::TempDir, DataLocator) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut parts = input.split(|byte| *byte == SEPARATOR);
    for name in names {
        fs::write(folder.path().join(name), parts.next().unwrap_or_default()).expect("writable");
    }
    fs::write(folder.path().join("SYNTHETIC.txt"), "").expect("writable");
    let cache = folder.path().join("cache");
    let locator = DataLocator { data_dir: Some(folder.path().into()), offline: true, ..DataLocator::new(cache) };
    (folder, locator)
}
