//! A new table beside a release: values that are not declared, and groups and scores that are distributed
//! otherwise than those of the release.
//!
//! Without an ε of the new records the answer is as private as the table. With one it is a release.

mod columns;
mod scores;
mod table;

use std::path::Path;

use dp_linear::Streams as _;
use dp_table::Group;
use fair_metrics::noisy::Change;
use serde::{Deserialize, Serialize};

use self::columns::Columns;
pub(crate) use self::table::NewTable;
use crate::error::{FairdpError, Result};
use crate::fairness::{CONFIDENCE, FairnessReport, Rate};
use crate::fit::SCORES;
use crate::new_records::{NewTableOptions, Paid, PaymentOptions, Subject, Words, refuse_taken};
use crate::release::{FAIRNESS, ReleaseFiles, json};
use crate::scores::{self as scores_file, ScoresFile};

/// Its name in a release.
const DRIFT: &str = "drift.json";
/// Purpose of a release.
pub(crate) const VALUES: &str = "values that are not declared, by column";

/// How a table is compared with a release.
#[derive(Debug, Clone)]
pub struct DriftOptions {
    /// How it is read.
    pub table: NewTableOptions,
    /// The largest share of the values of a column that may be unseen, beyond bounds or missing, in
    /// [0, 1].
    pub tolerance: f64,
    /// The ε of the table's people; without one the answer is as private as the table.
    pub payment: Option<PaymentOptions>,
}

impl Default for DriftOptions {
    fn default() -> Self {
        Self { table: NewTableOptions::default(), tolerance: 0.01, payment: None }
    }
}

/// What a table has that its release does not know. `drift.json` of a release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Drift {
    /// How private this answer is.
    pub privacy: String,
    /// Rows that are counted.
    pub rows: u64,
    /// The largest share of values that is no alarm.
    pub tolerance: f64,
    /// Confidence of the intervals, and that no alarm at all is false.
    pub confidence: f64,
    /// Shares of values that are not declared: of all rows by column, and of a group's where there are any.
    pub columns: Vec<ColumnDrift>,
    /// Groups and scores, in the release and in the table.
    pub scores: Vec<ScoreDrift>,
    /// What is more than noise, a line each.
    pub alarms: Vec<String>,
    /// What could not be compared, and why.
    pub notes: Vec<String>,
}

/// Values of a column that are not declared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ColumnDrift {
    /// The column.
    pub column: String,
    /// Whose rows.
    pub group: Group,
    /// Share of values that are none of those declared.
    pub unseen: Rate,
    /// Share of numbers beyond the declared bounds.
    pub beyond: Rate,
    /// Share of missing values.
    pub missing: Rate,
    /// Share of rows that have no answer for this column's value.
    pub unreadable: Rate,
    /// Whether missing values are declared; how many there were in training is not released.
    pub missing_is_declared: bool,
}

/// A share of records in the release and in a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ScoreDrift {
    /// Whose.
    pub group: Group,
    /// The probability of the positive class above which records are counted, of more than two classes that beside
    /// the strongest other one alone, as decisions weigh them; none for the share of the group in all records.
    pub above: Option<f64>,
    /// In the release.
    pub before: Rate,
    /// In the table.
    pub after: Rate,
    /// How far it moved.
    pub change: Change,
}

/// Compares a table with a release: its values with what the model declares, its groups and the
/// distribution of its scores with the released cumulative scores. Labels are not needed.
///
/// Missing values, values beyond bounds and unseen ones are alarms where the lower end of their share is
/// above the tolerance, and groups and scores where they moved by more than sampling and noise. All alarms
/// together are false with a probability of 5 % at most.
///
/// # Errors
/// Those of [`verify`](crate::verify); [`FairdpError::InvalidParameter`] for a tolerance beyond [0, 1];
/// [`FairdpError::Table`] for a column that is missing; with a payment those of
/// [`evaluate`](crate::evaluate()) on folder and ledger.
pub fn drift(folder: &Path, tables: &[String], options: &DriftOptions) -> Result<Drift> {
    if !(0.0..=1.0).contains(&options.tolerance) {
        return Err(FairdpError::invalid("--tolerance", options.tolerance, "a share, from 0 to 1"));
    }
    let subject = Subject::open(folder)?;
    let files = options.table.files(tables, &subject.model)?;
    let Some(payment) = &options.payment else {
        let table = NewTable::read(&subject, &files, None)?;
        let privacy = "as private as the new table: nothing was paid for".to_owned();
        return Ok(compared(&subject, &table, &table.columns, options.tolerance, privacy));
    };
    refuse_taken(&payment.out)?;
    let most = subject.records_per_unit()?;
    let mut table = NewTable::read(&subject, &files, Some(most))?;
    let n_records = table.rows as usize;
    let paid = Paid::enter(payment, &subject, n_records, &table.binding(&subject), shares(&subject))?;
    let columns = released(&mut table, &paid, most)?;
    let mut files = ReleaseFiles::default();
    if let (Some(known), Some(counts), true) = (&subject.scores, &table.counts, table.has_groups) {
        files.add(scores_file::SCORES, known.of_test(counts.clone()).to_json()?);
    }
    let privacy = "private for the people of the new table, by the statement beside it".to_owned();
    let drift = compared(&subject, &table, &columns, options.tolerance, privacy);
    files.add(FAIRNESS, json(&FairnessReport::unmeasured(subject.model.classes()))?);
    files.add(DRIFT, json(&drift)?);
    let words = Words {
        covers: "the comparison of a table with a release",
        existence: "that this release exists: it says that the table could be read to its end".into(),
        figures:
            "none: labels were not read. Values that are not declared are counted by column, scores by group, with \
                  Gaussian noise"
                .into(),
    };
    paid.publish(files, n_records, words)?;
    Ok(drift)
}

/// Shares of the budget by purpose.
pub(crate) fn shares(subject: &Subject) -> &'static [(&'static str, f64)] {
    if subject.scores.is_some() { &[(VALUES, 0.5), (SCORES, 0.5)] } else { &[(VALUES, 1.0)] }
}

/// The counts with noise in the place of the exact ones; `most` are the rows of a unit.
pub(crate) fn released(table: &mut NewTable, paid: &Paid<'_>, most: u64) -> Result<Columns> {
    if let Some(cells) = &table.cells {
        let counts = scores_file::release(cells, paid.noise(SCORES)?, most, &mut paid.key.stream(SCORES, 0))?;
        table.counts = Some(counts);
    }
    Ok(table.columns.released(paid.noise(VALUES)?, most, &mut paid.key.stream(VALUES, 0)))
}

fn compared(subject: &Subject, table: &NewTable, columns: &Columns, tolerance: f64, privacy: String) -> Drift {
    let schema = subject.model.encoding().schema();
    let mut alarms = Vec::new();
    let columns = columns.compared(schema, tolerance, &mut alarms);
    let (scores, notes) = scores::compared(subject, table);
    let class = subject.scores.as_ref().and_then(ScoresFile::class);
    alarms.extend(scores.iter().filter(|drift| drift.change.is_told_from_noise).map(|drift| drift.in_words(class)));
    Drift { privacy, rows: table.rows, tolerance, confidence: CONFIDENCE, columns, scores, alarms, notes }
}

impl ScoreDrift {
    /// `class` is the positive one of more than two.
    fn in_words(&self, class: Option<&str>) -> String {
        let of_class = class.map_or(String::new(), |class| format!(" of {class} beside the strongest other class"));
        let percent = |rate: Rate| 100.0 * rate.value.unwrap_or_default();
        let (before, after) = (percent(self.before), percent(self.after));
        let of = &self.group;
        match self.above {
            None => format!("group {of}: {after:.1} % of the records, and {before:.1} % in the release"),
            Some(above) => format!(
                "scores of {of}: {after:.1} % have a probability{of_class} above {above:.3}, and {before:.1} % in the \
                 release"
            ),
        }
    }
}
