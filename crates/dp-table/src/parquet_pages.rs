//! Pages of a Parquet column, whose dictionaries are no larger than their bytes.

use parquet::basic::Type as Physical;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

/// The pages of one column. `parquet` makes room for as many dictionary entries as a page's header
/// claims, before it looks at the entries: a damaged file of a kilobyte would take all memory.
pub(crate) struct SoundPages {
    pages: Box<dyn PageReader>,
    /// Bytes of an entry at least.
    entry: usize,
}

impl SoundPages {
    pub(crate) fn of(column: &ColumnDescriptor, pages: Box<dyn PageReader>) -> Self {
        let entry = match column.physical_type() {
            // The length of a text.
            Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
            Physical::INT64 | Physical::DOUBLE => 8,
            Physical::INT96 => 12,
            Physical::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).unwrap_or_default().max(1),
            Physical::BOOLEAN => 1,
        };
        Self { pages, entry }
    }

    fn checked(&self, page: Option<Page>) -> Result<Option<Page>> {
        if let Some(Page::DictionaryPage { buf, num_values, .. }) = &page {
            let most = buf.len() / self.entry;
            if *num_values as usize > most {
                let (claimed, len) = (num_values, buf.len());
                return Err(ParquetError::General(format!("a dictionary of {claimed} entries in {len} bytes")));
            }
        }
        Ok(page)
    }
}

impl Iterator for SoundPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for SoundPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        self.checked(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        let page = self.pages.take_deferred_dictionary()?;
        self.checked(page)
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}
