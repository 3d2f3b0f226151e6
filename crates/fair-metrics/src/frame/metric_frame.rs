//! One metric over all records, by group, and by group within strata.

use serde::{Deserialize, Serialize};

use super::attribute::Attribute;
use crate::error::check_len;
use crate::{Measured, MetricError};

/// A metric for every combination of protected attributes, within every combination of control
/// features.
///
/// With several attributes the groups are their intersections. Control features are not compared:
/// each of their combinations is a stratum with its own overall value and its own groups.
///
/// # Edge cases
/// A combination without a record is kept; its metric is undefined and its count is 0.
///
/// # Source
/// The shape is that of Fairlearn's `MetricFrame`.
///
/// # Example
/// ```
/// use fair_metrics::{Attribute, Confusion, Distance, Measured, MetricFrame};
///
/// let (labels, predictions) = ([1, 0, 1, 1], [1, 0, 0, 1]);
/// let sex = Attribute::from_labels("sex", &["m", "m", "f", "f"]);
/// let frame = MetricFrame::new(&[sex], &[], |rows| {
///     let mut counts = Confusion::default();
///     for &row in rows {
///         counts.add(labels[row] == 1, predictions[row] == 1);
///     }
///     Ok(counts.true_positive_rate())
/// })?;
/// let stratum = &frame.strata()[0];
/// assert_eq!(stratum.by_group[0].levels, ["f"]);
/// assert_eq!(stratum.by_group[0].measured, Measured::new(2, Some(0.5)));
/// assert_eq!(stratum.difference(Distance::BetweenGroups), Some(0.5));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricFrame {
    attributes: Vec<String>,
    controls: Vec<String>,
    strata: Vec<Stratum>,
}

/// One combination of control levels; the only one if there is no control feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stratum {
    /// Levels of the control features, in their order.
    pub levels: Vec<String>,
    /// The metric over the whole stratum.
    pub overall: Measured,
    /// The metric of each group, the last attribute varying fastest.
    pub by_group: Vec<GroupValue>,
}

/// The metric of one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GroupValue {
    /// Levels of the protected attributes, in their order.
    pub levels: Vec<String>,
    /// Records in the group, whatever the metric's denominator is.
    pub n_records: usize,
    /// The metric.
    pub measured: Measured,
}

/// The reference with which groups are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// With each other.
    BetweenGroups,
    /// With the stratum as a whole.
    ToOverall,
}

impl MetricFrame {
    /// Evaluates `metric` on the rows of every group; rows are indices of records, in increasing
    /// order.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if columns differ in length, [`MetricError::TooFew`] without
    /// an attribute, and whatever `metric` returns.
    pub fn new(
        attributes: &[Attribute],
        controls: &[Attribute],
        metric: impl Fn(&[usize]) -> Result<Measured, MetricError>,
    ) -> Result<Self, MetricError> {
        let n = attributes.first().map_or(0, |attribute| attribute.values().len());
        let rows: Vec<usize> = (0..n).collect();
        Self::on_rows(&rows, attributes, controls, metric)
    }

    /// The same on some of the records, with repetition: what a bootstrap resample needs.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`MetricError::RowOutOfRange`] names the first row that is no record.
    pub fn on_rows(
        rows: &[usize],
        attributes: &[Attribute],
        controls: &[Attribute],
        metric: impl Fn(&[usize]) -> Result<Measured, MetricError>,
    ) -> Result<Self, MetricError> {
        let n_records = check_columns(attributes, controls)?;
        if let Some(index) = rows.iter().position(|row| *row >= n_records) {
            return Err(MetricError::RowOutOfRange { index, value: rows[index], n_records });
        }
        let strata = split(rows, controls)
            .into_iter()
            .map(|(levels, stratum_rows)| {
                let by_group = split(&stratum_rows, attributes)
                    .into_iter()
                    .map(|(levels, rows)| Ok(GroupValue { levels, n_records: rows.len(), measured: metric(&rows)? }))
                    .collect::<Result<Vec<GroupValue>, MetricError>>()?;
                Ok(Stratum { levels, overall: metric(&stratum_rows)?, by_group })
            })
            .collect::<Result<Vec<Stratum>, MetricError>>()?;
        let names = |columns: &[Attribute]| columns.iter().map(|column| column.name().to_owned()).collect();
        Ok(Self { attributes: names(attributes), controls: names(controls), strata })
    }

    /// Names of the protected attributes.
    pub fn attributes(&self) -> &[String] {
        &self.attributes
    }

    /// Names of the control features.
    pub fn controls(&self) -> &[String] {
        &self.controls
    }

    /// One per combination of control levels.
    pub fn strata(&self) -> &[Stratum] {
        &self.strata
    }
}

/// The number of records, which all columns must have.
pub(super) fn check_columns(attributes: &[Attribute], controls: &[Attribute]) -> Result<usize, MetricError> {
    let Some(first) = attributes.first() else {
        return Err(MetricError::TooFew { parameter: "attributes", length: 0, needed: 1 });
    };
    let n_records = first.values().len();
    for attribute in attributes {
        check_len("attributes", attribute.values().len(), "attributes[0]", n_records)?;
    }
    for control in controls {
        check_len("controls", control.values().len(), "attributes[0]", n_records)?;
    }
    Ok(n_records)
}

/// Every combination of levels with its rows, the last column varying fastest.
pub(super) fn split(rows: &[usize], columns: &[Attribute]) -> Vec<(Vec<String>, Vec<usize>)> {
    let mut parts: Vec<(Vec<String>, Vec<usize>)> = vec![(Vec::new(), rows.to_vec())];
    for column in columns {
        parts = parts
            .into_iter()
            .flat_map(|(levels, rows)| {
                let mut by_level: Vec<(Vec<String>, Vec<usize>)> = column
                    .levels()
                    .iter()
                    .map(|level| (levels.iter().chain(std::iter::once(level)).cloned().collect(), Vec::new()))
                    .collect();
                for row in rows {
                    by_level[column.values()[row]].1.push(row);
                }
                by_level
            })
            .collect();
    }
    parts
}

impl Stratum {
    fn defined(&self) -> impl Iterator<Item = f64> {
        self.by_group.iter().filter_map(|group| group.measured.value)
    }

    /// Groups whose metric is undefined.
    pub fn n_undefined(&self) -> usize {
        self.by_group.len() - self.defined().count()
    }

    /// Whether a group has records and no value, for example none of its records is positive: its
    /// distance to the others is unknown. A group without a record is at no distance.
    fn has_unknown_group(&self) -> bool {
        self.by_group.iter().any(|group| group.n_records > 0 && group.measured.value.is_none())
    }

    /// Least value over groups.
    pub fn group_min(&self) -> Option<f64> {
        self.defined().reduce(f64::min)
    }

    /// Greatest value over groups.
    pub fn group_max(&self) -> Option<f64> {
        self.defined().reduce(f64::max)
    }

    /// Greatest absolute difference, between two groups or of a group to the whole.
    ///
    /// # Edge cases
    /// Groups without a record are left out. Undefined if a group has records and no value, and
    /// without a defined group.
    pub fn difference(&self, distance: Distance) -> Option<f64> {
        if self.has_unknown_group() {
            return None;
        }
        match distance {
            Distance::BetweenGroups => Some(self.group_max()? - self.group_min()?),
            Distance::ToOverall => {
                let overall = self.overall.value?;
                self.defined().map(|value| (value - overall).abs()).reduce(f64::max)
            }
        }
    }

    /// Least ratio of the smaller to the greater value, between two groups or of a group and the
    /// whole.
    ///
    /// # Edge cases
    /// As [`difference`](Self::difference); a ratio of 0 to 0 is undefined.
    pub fn ratio(&self, distance: Distance) -> Option<f64> {
        if self.has_unknown_group() {
            return None;
        }
        let ratio = |a: f64, b: f64| (a.max(b) != 0.0).then(|| a.min(b) / a.max(b));
        match distance {
            Distance::BetweenGroups => ratio(self.group_min()?, self.group_max()?),
            Distance::ToOverall => {
                let overall = self.overall.value?;
                let ratios: Option<Vec<f64>> = self.defined().map(|value| ratio(value, overall)).collect();
                ratios?.into_iter().reduce(f64::min)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mean_of(values: &[f64]) -> impl Fn(&[usize]) -> Result<Measured, MetricError> + '_ {
        |rows| Ok(Measured::mean(rows.iter().map(|row| values[*row]).sum(), rows.len()))
    }

    #[test]
    fn intersections_keep_empty_groups() {
        let sex = Attribute::from_labels("sex", &["f", "m", "m"]);
        let race = Attribute::from_labels("race", &["a", "a", "b"]);
        let frame = MetricFrame::new(&[sex, race], &[], mean_of(&[1.0, 2.0, 4.0])).unwrap();
        let stratum = &frame.strata()[0];
        let values: Vec<(String, Option<f64>)> =
            stratum.by_group.iter().map(|group| (group.levels.join("+"), group.measured.value)).collect();
        let expected = [("f+a", Some(1.0)), ("f+b", None), ("m+a", Some(2.0)), ("m+b", Some(4.0))];
        assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(stratum.n_undefined(), 1);
        assert_eq!(stratum.overall.value, Some(7.0 / 3.0));
        assert_eq!(stratum.difference(Distance::BetweenGroups), Some(3.0));
        assert_eq!(stratum.ratio(Distance::BetweenGroups), Some(0.25));
        assert_eq!(stratum.difference(Distance::ToOverall), Some(4.0 - 7.0 / 3.0));
        assert_eq!(stratum.ratio(Distance::ToOverall), Some(1.0 / (7.0 / 3.0)));
    }

    #[test]
    fn controls_make_strata() {
        let sex = Attribute::from_labels("sex", &["f", "m", "f", "m"]);
        let age = Attribute::from_labels("age", &["old", "old", "young", "young"]);
        let frame = MetricFrame::new(&[sex], &[age], mean_of(&[1.0, 2.0, 3.0, 3.0])).unwrap();
        let differences: Vec<Option<f64>> =
            frame.strata().iter().map(|stratum| stratum.difference(Distance::BetweenGroups)).collect();
        assert_eq!(differences, [Some(1.0), Some(0.0)]);
        assert_eq!(frame.strata()[1].levels, ["young"]);
        assert_eq!((frame.attributes(), frame.controls()), (&["sex".to_owned()][..], &["age".to_owned()][..]));
    }

    #[test]
    fn zero_to_zero_has_no_ratio() {
        let sex = Attribute::from_labels("sex", &["f", "m"]);
        let frame = MetricFrame::new(&[sex], &[], mean_of(&[0.0, 0.0])).unwrap();
        assert_eq!(frame.strata()[0].ratio(Distance::BetweenGroups), None);
        assert_eq!(frame.strata()[0].ratio(Distance::ToOverall), None);
        assert_eq!(frame.strata()[0].difference(Distance::BetweenGroups), Some(0.0));
    }

    /// Group `a` has records and none that are counted; `c` has no record at all.
    #[test]
    fn a_gap_with_an_unknown_part_is_unknown() {
        let group = Attribute::new("group", &[0, 0, 1, 1], ["a", "b", "c"]).unwrap();
        let frame = |counted: &[usize]| {
            let counted = |rows: &[usize]| rows.iter().filter(|row| counted.contains(row)).count();
            MetricFrame::new(std::slice::from_ref(&group), &[], |rows| Ok(Measured::mean(1.0, counted(rows)))).unwrap()
        };
        for distance in [Distance::BetweenGroups, Distance::ToOverall] {
            let frame = frame(&[2, 3]);
            let unknown = &frame.strata()[0];
            assert_eq!((unknown.difference(distance), unknown.ratio(distance)), (None, None));
            assert_eq!(unknown.group_min(), Some(0.5));
        }
        assert_eq!(frame(&[0, 2, 3]).strata()[0].difference(Distance::BetweenGroups), Some(0.5));
    }

    #[test]
    fn errors_name_the_column_or_row() {
        let sex = Attribute::from_labels("sex", &["f", "m"]);
        let age = Attribute::from_labels("age", &["old"]);
        let metric = mean_of(&[0.0, 0.0]);
        assert!(matches!(
            MetricFrame::new(std::slice::from_ref(&sex), &[age], &metric),
            Err(MetricError::LengthMismatch { parameter: "controls", length: 1, expected: 2, .. })
        ));
        assert!(matches!(
            MetricFrame::new(&[], &[], &metric),
            Err(MetricError::TooFew { parameter: "attributes", .. })
        ));
        assert_eq!(
            MetricFrame::on_rows(&[0, 2], &[sex], &[], &metric),
            Err(MetricError::RowOutOfRange { index: 1, value: 2, n_records: 2 })
        );
    }

    proptest! {
        #[test]
        fn groups_make_up_their_stratum(records in prop::collection::vec((0_usize..3, 0_usize..2, 0.1..1.0_f64), 1..40)) {
            let column = |of: fn(&(usize, usize, f64)) -> usize| records.iter().map(of).collect::<Vec<usize>>();
            let group = Attribute::new("group", &column(|r| r.0), ["a", "b", "c"]).unwrap();
            let control = Attribute::new("control", &column(|r| r.1), ["x", "y"]).unwrap();
            let values: Vec<f64> = records.iter().map(|r| r.2).collect();
            let frame = MetricFrame::new(&[group], &[control], mean_of(&values)).unwrap();
            let mut n = 0;
            for stratum in frame.strata() {
                n += stratum.overall.n;
                prop_assert_eq!(stratum.by_group.iter().map(|g| g.n_records).sum::<usize>(), stratum.overall.n);
                let Some(overall) = stratum.overall.value else { continue };
                let (low, high) = (stratum.group_min().unwrap(), stratum.group_max().unwrap());
                prop_assert!(low <= overall + 1e-12 && overall <= high + 1e-12);
                let between = stratum.difference(Distance::BetweenGroups).unwrap();
                prop_assert!(stratum.difference(Distance::ToOverall).unwrap() <= between + 1e-12);
                let ratio = stratum.ratio(Distance::BetweenGroups).unwrap();
                prop_assert!((0.0..=1.0).contains(&ratio));
                prop_assert!(stratum.ratio(Distance::ToOverall).unwrap() >= ratio - 1e-12);
            }
            prop_assert_eq!(n, records.len());
        }
    }
}
