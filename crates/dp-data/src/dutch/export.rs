//! The Dutch census as a plain table with a header.

use std::io::{self, Write};

use super::DutchTable;
use super::schema::COLUMNS;

impl DutchTable {
    /// Writes every record as CSV with the published names and codes. The last column, `occupation`, is the label: `2_1` is a high-level
    /// occupation. Returns the number of records.
    ///
    /// # Errors
    /// If `out` refuses.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<usize> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(COLUMNS.iter().map(|column| column.name))?;
        for record in &self.records {
            writer.write_record((0..COLUMNS.len()).map(|column| record.code(column)))?;
        }
        writer.flush()?;
        Ok(self.records.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_in_order() {
        let mut table = DutchTable::synthetic(1).unwrap();
        table.records.truncate(2);
        let mut out = Vec::new();
        assert_eq!(table.write_csv(&mut out).unwrap(), 2);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("sex,age,") && lines[0].ends_with(",occupation"), "{text}");
        assert_eq!(lines.len(), 3);
        assert!(lines[1].ends_with(",2_1") || lines[1].ends_with(",5_4_9"), "{text}");
    }
}
