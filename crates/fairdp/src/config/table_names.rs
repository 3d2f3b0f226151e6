//! The names of a configuration beside those of its table.

use dp_table::TableFiles;
use dp_table::declaration::located;

use super::ConfigText;
use crate::error::{FairdpError, Result};

impl ConfigText<'_> {
    /// Compares the configuration's names with the header of a table.
    pub(crate) fn check_names(&self, files: &TableFiles) -> Result<()> {
        let reader = files.open()?;
        let errors = self.config.declaration().name_mistakes(reader.columns(), &files.paths()[0]);
        if errors.is_empty() {
            return Ok(());
        }
        Err(FairdpError::Config { path: self.path.into(), mistakes: located(self.text, &errors) })
    }
}
