//! Lists of numbers in a Parquet file: one text for each row.

use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::schema::types::ColumnDescriptor;

use crate::parquet_source::{BatchColumn, Texts};

/// A column of lists, of fixed size or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct List {
    /// The definition level of a number that is there.
    present: i16,
    /// Whether a number may be missing within a list.
    has_optional_numbers: bool,
}

impl List {
    /// `None` for a column that is no list of numbers in floating point.
    pub(crate) fn of(column: &ColumnDescriptor) -> Option<Self> {
        let is_real = matches!(column.physical_type(), Physical::FLOAT | Physical::DOUBLE);
        // A column of records, each with such a list, has more parts.
        let is_list = column.max_rep_level() == 1 && column.path().parts().len() <= 3;
        let has_optional_numbers = column.self_type().is_optional();
        (is_real && is_list).then(|| Self { present: column.max_def_level(), has_optional_numbers })
    }

    /// Reads `n` rows, or all that there are: lists between brackets; a missing or empty one is an
    /// empty text.
    pub(crate) fn read(self, reader: &mut ColumnReader, n: usize) -> Result<BatchColumn, String> {
        match reader {
            // The shortest decimal of the single.
            ColumnReader::FloatColumnReader(reader) => self.texts(reader, n, f32::to_string),
            ColumnReader::DoubleColumnReader(reader) => self.texts(reader, n, f64::to_string),
            _ => Err("no list of FLOAT or DOUBLE".into()),
        }
    }

    fn texts<T: DataType>(
        self,
        reader: &mut ColumnReaderImpl<T>,
        n: usize,
        written: impl Fn(&T::T) -> String,
    ) -> Result<BatchColumn, String> {
        let mut texts = Texts::default();
        let (mut numbers, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        let mut left = n;
        while left > 0 {
            numbers.clear();
            defined.clear();
            repeated.clear();
            let (n_rows, _, _) = reader
                .read_records(left, Some(&mut defined), Some(&mut repeated), &mut numbers)
                .map_err(|error| error.to_string())?;
            if n_rows == 0 {
                break;
            }
            let mut numbers = numbers.iter();
            let (mut is_first, mut has_numbers) = (true, false);
            for (defined, repeated) in defined.iter().zip(&repeated) {
                if *repeated == 0 {
                    if !is_first {
                        end(&mut texts, has_numbers);
                    }
                    (is_first, has_numbers) = (false, false);
                }
                let number = if *defined == self.present {
                    written(numbers.next().ok_or("fewer numbers than levels")?)
                } else if self.has_optional_numbers && *defined + 1 == self.present {
                    "null".to_owned()
                } else {
                    continue;
                };
                texts.text.push(if has_numbers { ',' } else { '[' });
                texts.text.push_str(&number);
                has_numbers = true;
            }
            if !is_first {
                end(&mut texts, has_numbers);
            }
            left = left.saturating_sub(n_rows);
        }
        Ok(BatchColumn::Written(texts))
    }
}

fn end(texts: &mut Texts, has_numbers: bool) {
    if has_numbers {
        texts.text.push(']');
    }
    texts.end();
}
