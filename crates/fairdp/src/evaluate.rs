//! A released model on newly labelled records: its figures, under an ε of these records, and whether they
//! are those of the release.

use std::path::Path;
use std::sync::Arc;

use dp_linear::Streams as _;
use dp_table::{BadRows, EncodedFile, EncodedTable, Group, TableFiles};
use dp_train::ranks::{Alone, Collective};
use fair_decisions::CumulativeCounts;
use fair_metrics::noisy::{Change, NoisyNumber};
use serde::{Deserialize, Serialize};

use crate::coins::IN_WORDS;
use crate::error::{FairdpError, Result};
use crate::fairness::{CONFIDENCE, Difference, FairnessReport, GroupRates, Rate, release_counts};
use crate::fit::tables::{Measured, TableSubset};
use crate::fit::{ANSWERS, ERRORS, SCORES, test_figures};
use crate::group_scores::GroupScores;
use crate::key::NoiseBinding;
use crate::model::FittedModel;
use crate::new_records::{NewTableOptions, Paid, PaymentOptions, Subject, Words, refuse_taken};
use crate::numbers::{NumberFigures, NumberReport};
use crate::rank_files::RankFiles;
use crate::release::{FAIRNESS, ReleaseFiles, json};
use crate::scores::{self, ScoresFile};
use crate::statement::ReleaseStatement;
use crate::subsets::{HeldTable, RowList, within_most};

/// Its name in a release.
const COMPARISON: &str = "comparison.json";

/// A figure of the release and of the new records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FigureChange {
    /// Which: `accuracy`, `auc` and so on.
    pub figure: String,
    /// Whose.
    pub group: Group,
    /// In the release.
    pub before: f64,
    /// On the new records.
    pub after: f64,
    /// How far it moved.
    pub change: Change,
}

/// `comparison.json`: it follows from two releases, and costs nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Comparison {
    /// Confidence of every interval, and that no change at all is wrongly told from noise.
    pub confidence: f64,
    /// Every figure that both have.
    pub changes: Vec<FigureChange>,
    /// Figures that one of them has not: too few records, or no test part.
    pub not_compared: Vec<String>,
}

/// Figures of a model on new records.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Evaluated {
    /// The statement of the new release.
    pub statement: ReleaseStatement,
    /// The figures, within its ε.
    pub fairness: FairnessReport,
    /// The figures of the release beside them.
    pub comparison: Comparison,
}

impl Comparison {
    /// Changes that are more than sampling and noise.
    pub fn alarms(&self) -> impl Iterator<Item = &FigureChange> {
        self.changes.iter().filter(|change| change.change.is_told_from_noise)
    }

    /// `wider` gives both reports again with intervals at another level, where it can.
    fn of(before: &FairnessReport, after: &FairnessReport, wider: Wider<'_>) -> Result<Self> {
        let (before, after) = (figures(before), figures(after));
        let mut pairs = Vec::new();
        let mut not_compared = Vec::new();
        for (figure, group, value) in after {
            let same = before.iter().find(|(other, of, _)| *other == figure && *of == group);
            match (same.and_then(|(.., value)| *value), value) {
                (Some(before), Some(after)) => pairs.push((figure, group, before, after)),
                _ => not_compared.push(format!("{figure} of {group}")),
            }
        }
        let n = pairs.len();
        let again = wider(1.0 - (1.0 - CONFIDENCE) / n.max(1) as f64)?;
        let again = again.map(|reports| reports.map(|report| figures(&report)));
        let changes = pairs.into_iter().map(|(figure, group, before, after)| {
            let own = |figures: &[Figure]| {
                let found = figures.iter().find(|(other, of, _)| *other == figure && *of == group);
                found.and_then(|(.., ends)| *ends)
            };
            let wide = again.as_ref().and_then(|[before, after]| Some([own(before)?, own(after)?]));
            let wide = wide.unwrap_or_else(|| [before, after].map(|ends| Change::widened(ends, CONFIDENCE, n)));
            let change = Change::between([before, after], wide);
            FigureChange { figure, group, before: before[0], after: after[0], change }
        });
        Ok(Self { confidence: CONFIDENCE, changes: changes.collect(), not_compared })
    }
}

/// Two reports again, with intervals at this level.
type Wider<'a> = &'a dyn Fn(f64) -> Result<Option<[FairnessReport; 2]>>;

/// A figure by name and group: value and ends, where they are known.
type Figure = (String, Group, Option<[f64; 3]>);

fn figures(report: &FairnessReport) -> Vec<Figure> {
    if let Some(numbers) = &report.numbers {
        return figures_of_numbers(numbers);
    }
    let ends = |rate: Rate| rate.value.map(|value| [value, rate.low, rate.high]);
    let mut figures = Vec::new();
    for rates in report.overall.iter().chain(&report.groups) {
        let GroupRates { group, accuracy, balanced_accuracy, .. } = rates;
        let own = [
            ("accuracy", Some(*accuracy)),
            ("balanced accuracy", Some(*balanced_accuracy)),
            ("selection rate", rates.selection_rate),
            ("true-positive rate", rates.true_positive_rate),
            ("false-positive rate", rates.false_positive_rate),
            ("auc", rates.auc),
        ];
        let own = own.into_iter().filter_map(|(name, rate)| Some((name.to_owned(), group.clone(), ends(rate?))));
        figures.extend(own);
    }
    for range in report.overall.iter().flat_map(|overall| &overall.calibration) {
        let name = format!("positive among probabilities {:.3} to {:.3}", range.from, range.to);
        figures.push((name, Group::all(), ends(range.positive_rate)));
    }
    let gaps = [
        ("accuracy difference", &report.accuracy_difference),
        ("demographic parity difference", &report.demographic_parity_difference),
        ("equal opportunity difference", &report.equal_opportunity_difference),
        ("equalized odds difference", &report.equalized_odds_difference),
    ];
    let gaps = gaps.into_iter().filter_map(|(name, gap)| {
        let gap = gap.as_ref()?;
        Some((name.to_owned(), Group::all(), ends(Difference::rate(gap))))
    });
    figures.extend(gaps);
    figures
}

fn figures_of_numbers(report: &NumberReport) -> Vec<Figure> {
    let ends = |number: NoisyNumber| Some([number.value?, number.low?, number.high?]);
    let of = |figures: &NumberFigures| {
        [
            ("r2", figures.r2),
            ("mean absolute error", figures.mean_absolute_error),
            ("root mean squared error", figures.root_mean_squared_error),
            ("mean error", figures.mean_error),
        ]
        .map(|(name, number)| (name.to_owned(), figures.group.clone(), ends(number)))
    };
    let mut all: Vec<Figure> = std::iter::once(&report.overall).chain(&report.groups).flat_map(of).collect();
    let gap = report.mean_error_difference;
    all.extend(gap.map(|gap| ("mean error difference".to_owned(), Group::all(), ends(gap))));
    all
}

/// Measures a released model on a table with labels, and compares the figures with those of the release.
/// Writes a run's folder, whose release has the figures (`fairness.json`), what they follow from and
/// `comparison.json`.
///
/// The mechanism is that of a fit's test part: noisy cumulative scores by group and class, of a model of more
/// than two classes without a positive one noisy answers, of a number noisy sums of errors. ε is of the new records alone; it
/// composes with that of the fit for a person whose records are in both tables, which a common ledger says.
///
/// # Errors
/// Those of [`verify`](crate::verify); [`FairdpError::Table`] for a row that does not fit;
/// [`FairdpError::Folder`] for an output that is there; [`FairdpError::BeyondCap`] and the other errors of a
/// ledger; [`FairdpError::NotForThisTable`] for a δ of one over the number of records and more.
pub fn evaluate(
    folder: &Path,
    tables: &[String],
    table: &NewTableOptions,
    payment: &PaymentOptions,
) -> Result<Evaluated> {
    let subject = Subject::open(folder)?;
    refuse_taken(&payment.out)?;
    let records_per_unit = subject.records_per_unit()?;
    let records = NewRecords::read(&subject, &table.files(tables, &subject.model)?, records_per_unit)?;
    let n_records = records.members.n_records();
    let purpose = match (&subject.scores, subject.model.number()) {
        (_, Some(_)) => ERRORS,
        (Some(_), None) => SCORES,
        (None, None) => ANSWERS,
    };
    let paid = Paid::enter(payment, &subject, n_records, &records.binding(&subject)?, &[(purpose, 1.0)])?;
    let mut files = ReleaseFiles::default();
    let (fairness, measured) = released(&subject, records.all(), &paid, purpose, records_per_unit)?;
    if let Some(scores) = &measured {
        files.add(scores::SCORES, scores.to_json()?);
    }
    let wider = |level: f64| again(&subject, measured.as_ref(), level);
    let comparison = Comparison::of(&subject.verified.fairness, &fairness, &wider)?;
    files.add(FAIRNESS, json(&fairness)?);
    files.add(COMPARISON, json(&comparison)?);
    let says = match subject.model.encoding().schema().bad_rows {
        BadRows::Refuse => "every record fitted the model's schema (`bad_rows = \"refuse\"`)",
        BadRows::Drop => "the table could be read to its end (`bad_rows = \"drop\"`)",
    };
    let has_coins = measured.is_some() && subject.model.pipeline().coins.is_some();
    let coins = if has_coins { format!("; {IN_WORDS}, and figures are means over it") } else { String::new() };
    let words = Words {
        covers: "the figures on new records",
        existence: format!("that this release exists: it says that {says}"),
        figures: test_figures(&fairness) + &coins,
    };
    let statement = paid.publish(files, n_records, words)?;
    Ok(Evaluated { statement, fairness, comparison })
}

/// Newly labelled records, encoded.
pub(crate) struct NewRecords {
    table: EncodedTable,
    source: RankFiles,
    /// Those that are counted.
    members: RowList,
}

impl NewRecords {
    /// Reads a table; of a unit at most so many rows are counted.
    pub(crate) fn read(subject: &Subject, files: &TableFiles, records_per_unit: u64) -> Result<Self> {
        let schema = subject.model.encoding().schema();
        let ranks: Arc<dyn Collective> = Arc::new(Alone);
        let mut source = RankFiles::new(files.clone(), &ranks, false)?;
        let temporary = std::env::temp_dir();
        let (table, _) = source.encode(schema, EncodedFile::Temporary(&temporary), &temporary)?;
        let mut members = RowList::all(&table);
        if schema.unit.is_some() {
            let held = HeldTable { table: &table, ranks: &Alone };
            members = within_most(held, &members, most_of_a_unit(records_per_unit))?;
        }
        Ok(Self { table, source, members })
    }

    pub(crate) fn all(&self) -> TableSubset<'_> {
        TableSubset { table: &self.table, source: &self.source, members: &self.members }
    }

    /// What noise on them is bound to.
    pub(crate) fn binding(&self, subject: &Subject) -> Result<NoiseBinding> {
        let rows = self.table.rows_digest();
        let rows = rows.ok_or_else(|| FairdpError::Internal("a table without a digest".into()))?;
        Ok(NoiseBinding::new(rows, None, &subject.digest))
    }
}

/// Rows of a unit that are counted.
fn most_of_a_unit(records_per_unit: u64) -> u64 {
    #[cfg(test)]
    if crate::hook::ALL_ROWS_OF_A_UNIT.get() {
        return u64::MAX;
    }
    records_per_unit
}

/// Releases the figures, and the scores that they follow from if there are any.
fn released(
    subject: &Subject,
    subset: TableSubset<'_>,
    paid: &Paid<'_>,
    purpose: &str,
    records_per_unit: u64,
) -> Result<(FairnessReport, Option<ScoresFile>)> {
    let model = &subject.model;
    let (groups, classes) = (model.encoding().groups(), model.classes());
    let (noise, mut rng) = (paid.noise(purpose)?, paid.key.stream(purpose, 0));
    if let (Some(known), None) = (&subject.scores, model.number()) {
        let scores = known.of_test(released_scores(subset, (model, known), paid, records_per_unit)?);
        let report = at_level(subject, &scores, CONFIDENCE)?;
        let report = report.ok_or_else(|| FairdpError::Internal("scores without those of test records".into()))?;
        return Ok((report, Some(scores)));
    }
    let report = match (subset.answers(model)?, model.number()) {
        (Measured::Numbers(numbers), Some(range)) => {
            let sums = numbers.release(groups.len(), range, noise, records_per_unit, &mut rng)?;
            let of_records = sums.first().map_or(0.0, |sums| sums.variances[0].sqrt());
            Ok(FairnessReport::of_numbers(NumberReport::of(&sums, groups, range)?, of_records))
        }
        (Measured::Classes(answers), _) => {
            let shape = (groups.len(), classes.len());
            let counts = release_counts(answers.counts(shape.0, shape.1), shape, noise, records_per_unit, &mut rng)?;
            FairnessReport::of(&counts, groups, classes)
        }
        (Measured::Numbers(_), None) => Err(FairdpError::Internal("numbers of a model of classes".into())),
    };
    Ok((report?, None))
}

/// Releases cumulative scores.
pub(crate) fn released_scores(
    subset: TableSubset<'_>,
    (model, known): (&FittedModel, &ScoresFile),
    paid: &Paid<'_>,
    records_per_unit: u64,
) -> Result<CumulativeCounts> {
    let cells = subset.scores(model, known)?;
    scores::release(&cells, paid.noise(SCORES)?, records_per_unit, &mut paid.key.stream(SCORES, 0))
}

/// The figures of test records at the model's thresholds, with intervals at this level; none without scores
/// of test records.
fn at_level(subject: &Subject, scores: &ScoresFile, level: f64) -> Result<Option<FairnessReport>> {
    let Some(counts) = &scores.test else { return Ok(None) };
    let model = &subject.model;
    let thresholds = scores.decisions_of(model);
    let class = scores.class().map(ToOwned::to_owned);
    let scores = GroupScores::new(scores, counts, model.encoding()).at_level(level);
    let report = FairnessReport::of_scores(&scores, &thresholds, model.classes())?;
    Ok(Some(FairnessReport { class, ..report }))
}

/// Both reports at another level, where both have scores.
fn again(subject: &Subject, measured: Option<&ScoresFile>, level: f64) -> Result<Option<[FairnessReport; 2]>> {
    let (Some(before), Some(after)) = (&subject.scores, measured) else { return Ok(None) };
    let reports = [at_level(subject, before, level)?, at_level(subject, after, level)?];
    Ok(match reports {
        [Some(before), Some(after)] => Some([before, after]),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use dp_engine::Grid;
    use dp_table::Level;
    use fair_metrics::noisy::NoisyCounts;
    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha20Rng;

    use super::*;

    const STD: f64 = 8.0;

    /// Figures of records of two groups that are answered rightly with this probability.
    fn report(right: f64, rng: &mut ChaCha20Rng) -> FairnessReport {
        let mut counts = vec![0.0; 8];
        for record in 0..2_000 {
            let (group, class) = (record % 2, record / 2 % 2);
            let answer = if rng.random::<f64>() < right { class } else { 1 - class };
            counts[(group * 2 + class) * 2 + answer] += 1.0;
        }
        let noisy = Grid::for_counts().release(counts, STD, rng);
        let groups = ["a", "b"].map(|name| Group::new(vec![Level::Value(name.into())]));
        let counts = NoisyCounts::new(noisy, 2, 2, STD).unwrap();
        FairnessReport::of(&counts, &groups, &["no".to_owned(), "yes".to_owned()]).unwrap()
    }

    /// Two tables of one population: of 300 pairs at most 5 % may have an alarm; more than 28 would be a
    /// chance of 1 in 1,000 at 5 %. Eight points of accuracy are told from noise.
    #[test]
    fn alarms_are_rare_where_nothing_changed_and_there_where_it_did() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let mut alarms = |after: f64| {
            let has_alarm = |rng: &mut ChaCha20Rng| {
                let (before, after) = (report(0.8, rng), report(after, rng));
                Comparison::of(&before, &after, &|_| Ok(None)).unwrap().alarms().next().is_some()
            };
            (0..300).filter(|_| has_alarm(&mut rng)).count()
        };
        let (same, other) = (alarms(0.8), alarms(0.72));
        assert!(same <= 28 && other >= 285, "{same} {other}");
    }
}
