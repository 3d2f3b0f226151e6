//! Adult as a plain table with a header.

use std::io::{self, Write};

use super::AdultRecord;
use super::schema::{Attribute, COLUMNS, Column, INCOME, Number};

/// See [`Adult`](super::Adult)'s `write_csv`.
pub(super) fn write_csv(records: &[AdultRecord], out: &mut dyn Write) -> io::Result<usize> {
    let columns: Vec<Column> = COLUMNS
        .into_iter()
        .filter(|column| {
            !matches!(column, Column::Number(Number::FinalWeight) | Column::Category(Attribute::Education))
        })
        .collect();
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns.iter().map(|column| column.name()))?;
    let mut n = 0;
    for record in records.iter().filter(|record| record.is_complete()) {
        for column in &columns {
            match *column {
                Column::Number(number) => writer.write_field(record.number(number).to_string())?,
                Column::Category(attribute) => {
                    // Complete records have every category.
                    let index = record.category(attribute).unwrap_or_default();
                    writer.write_field(attribute.categories()[index])?;
                }
                Column::Income => writer.write_field(INCOME[usize::from(record.over_50k)])?,
            }
        }
        writer.write_record(None::<&[u8]>)?;
        n += 1;
    }
    writer.flush()?;
    Ok(n)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::parse;
    use super::*;

    #[test]
    fn complete_records_without_weight_and_education() {
        let row = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, \
                   United-States, >50K";
        let text = format!("{row}\n{}\n", row.replace("State-gov", "?"));
        let records = parse::parse(text.as_bytes(), Path::new("adult.data")).unwrap();
        let mut out = Vec::new();
        assert_eq!(write_csv(&records, &mut out).unwrap(), 1);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "age,workclass,education-num,marital-status,occupation,relationship,race,sex,capital-gain,capital-loss,\
             hours-per-week,native-country,income\n\
             39,State-gov,13,Never-married,Adm-clerical,Not-in-family,White,Male,2174,0,40,United-States,>50K\n"
        );
    }
}
