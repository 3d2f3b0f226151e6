//! The Dutch census as a plain table with a header.

use std::io::{self, Write};

use super::DutchRecord;
use super::schema::COLUMNS;

/// See [`Dutch`](super::Dutch)'s `write_csv`.
pub(super) fn write_csv(records: &[DutchRecord], out: &mut dyn Write) -> io::Result<usize> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(COLUMNS.iter().map(|column| column.name))?;
    for record in records {
        writer.write_record((0..COLUMNS.len()).map(|column| record.code(column)))?;
    }
    writer.flush()?;
    Ok(records.len())
}

#[cfg(test)]
mod tests {
    use super::super::Dutch;
    use super::*;
    use crate::published_set::PublishedSet;

    #[test]
    fn every_record_in_order() {
        let mut table = Dutch.stand_in(1).unwrap();
        table.records.truncate(2);
        let mut out = Vec::new();
        assert_eq!(write_csv(&table.records, &mut out).unwrap(), 2);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("sex,age,") && lines[0].ends_with(",occupation"), "{text}");
        assert_eq!(lines.len(), 3);
        assert!(lines[1].ends_with(",2_1") || lines[1].ends_with(",5_4_9"), "{text}");
    }
}
