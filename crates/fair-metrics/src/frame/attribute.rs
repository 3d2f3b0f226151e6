//! A column that splits records: a protected attribute or a control feature.

use std::collections::BTreeMap;

use crate::{Groups, MetricError};

/// A named column with one level per record.
///
/// # Example
/// ```
/// use fair_metrics::Attribute;
///
/// let sex = Attribute::from_labels("sex", &["m", "f", "m"]);
/// assert_eq!(sex.levels(), ["f", "m"]); // sorted
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    name: String,
    values: Vec<usize>,
    levels: Vec<String>,
}

impl Attribute {
    /// From indices into a list of levels; a level without a record is kept.
    ///
    /// # Errors
    /// [`MetricError::GroupOutOfRange`] names the first record whose index is out of range.
    pub fn new<L: Into<String>>(
        name: impl Into<String>,
        values: &[usize],
        levels: impl IntoIterator<Item = L>,
    ) -> Result<Self, MetricError> {
        let levels: Vec<String> = levels.into_iter().map(Into::into).collect();
        Groups::new(values, levels.len())?;
        Ok(Self { name: name.into(), values: values.to_vec(), levels })
    }

    /// From one label per record; the levels are the distinct labels, sorted.
    pub fn from_labels<L: AsRef<str>>(name: impl Into<String>, labels: &[L]) -> Self {
        let mut index: BTreeMap<&str, usize> = labels.iter().map(|label| (label.as_ref(), 0)).collect();
        for (position, value) in index.values_mut().enumerate() {
            *value = position;
        }
        Self {
            name: name.into(),
            values: labels.iter().map(|label| index[label.as_ref()]).collect(),
            levels: index.keys().map(|level| (*level).to_owned()).collect(),
        }
    }

    /// Name of the column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Index of each record's level.
    pub fn values(&self) -> &[usize] {
        &self.values
    }

    /// Names of the levels.
    pub fn levels(&self) -> &[String] {
        &self.levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_without_records_are_kept() {
        let attribute = Attribute::new("race", &[0, 0], ["a", "b"]).unwrap();
        assert_eq!(attribute.levels().len(), 2);
        assert!(Attribute::new("race", &[2], ["a", "b"]).is_err());
    }
}
