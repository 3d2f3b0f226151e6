//! A report that its readers see whole: the old one, or the new one.

use std::io::Write as _;

use whole_file::{Readers, WholeFile};

pub(crate) fn main() -> std::io::Result<()> {
    let path = std::env::temp_dir().join(format!("report-{}.txt", std::process::id()));
    std::fs::write(&path, "yesterday")?;

    let mut text = Vec::new();
    for line in 0..3 {
        writeln!(text, "line {line}")?;
    }
    let file = WholeFile::create(&path, Readers::Default)?;
    // Whoever reads now sees yesterday's report.
    assert_eq!(std::fs::read_to_string(&path)?, "yesterday");
    file.write_bytes(&text)?;
    assert_eq!(std::fs::read(&path)?, text);
    println!("{} bytes", text.len());
    std::fs::remove_file(&path)
}
