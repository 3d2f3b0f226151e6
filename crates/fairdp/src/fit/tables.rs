//! The records of a run: all of them, or those that this rank has.

use std::path::Path;
use std::sync::Arc;

use dp_linear::{RowSource as _, SparseRow, of_ranks};
use dp_table::{EncodedFile, EncodedTable, NumberLabel, Schema, TableCounts};
use dp_train::ranks::{Alone, Collective, held_by};

use super::FitOptions;
use super::size::TableSize;
use crate::bounds;
use crate::config::{Config, UnitEntry, UnitRows};
use crate::diagnostics::{Answers, Diagnostics, RecordCounts};
use crate::error::{FairdpError, Result};
use crate::key::NoiseBinding;
use crate::model::FittedModel;
use crate::numbers::NumberAnswers;
use crate::rank_files::RankFiles;
use crate::recipe::{Method, Recipe};
use crate::scores::ScoresFile;
use crate::subsets::{Division, HeldTable, RowList, SubsetRows, features, not_in, split, within_most};
use fair_decisions::ScoreCells;

/// Whether each rank needs its own records alone. Trials are made side by side, each on all
/// records; so is a network without privacy, whose sums depend on how they are split; a table that
/// is kept is kept whole; and the rows of a unit may be anywhere, where their mean is a record.
pub(super) fn can_share(config: &Config, recipe: &Recipe, options: &FitOptions) -> bool {
    let trains_alone = options.reference && matches!(recipe.method, Method::Sgd(_));
    let has_means = config.unit.as_ref().is_some_and(|unit| unit.rows == UnitRows::Mean);
    config.tuning.is_none() && !trains_alone && !options.keep_encoded && !has_means
}

/// Tables that were read, and the parts of their records.
pub(super) struct Tables {
    pub(super) training: EncodedTable,
    pub(super) counts: TableCounts,
    /// Counts of a separate test table.
    pub(super) test_counts: Option<TableCounts>,
    source: RankFiles,
    /// A separate test table, with its records that are used.
    test: Option<(EncodedTable, RankFiles, RowList)>,
    /// Records of the training table that are used: for training, test, validation.
    members: [RowList; 3],
}

impl Tables {
    /// The training table, and the test table if it is separate.
    pub(super) fn all(&self) -> impl Iterator<Item = &EncodedTable> {
        [&self.training].into_iter().chain(self.test.as_ref().map(|(table, ..)| table))
    }

    /// The data that the noise on them is bound to.
    pub(super) fn bound(&self, config: &str) -> Result<NoiseBinding> {
        let of = |table: &EncodedTable| {
            let missing = || FairdpError::Internal("a table that was not read has no digest of its rows".into());
            table.rows_digest().ok_or_else(missing)
        };
        let test = self.test.as_ref().map(|(table, ..)| of(table)).transpose()?;
        Ok(NoiseBinding::new(of(&self.training)?, test, config))
    }

    /// Reads the training table, and the test table if there is one; `place` is for a training
    /// table that is read whole.
    pub(super) fn read(
        config: &Config,
        schema: &Schema,
        mut source: RankFiles,
        place: EncodedFile<'_>,
        folder: &Path,
        division: Division<'_>,
        ranks: &Arc<dyn Collective>,
    ) -> Result<Self> {
        let (training, counts) = source.encode(schema, place, folder)?;
        let unit = config.unit.as_ref();
        let (test, test_counts) = match config.test_files()? {
            None => (None, None),
            Some(files) => {
                let mut of_test = RankFiles::new(files, ranks, source.is_shared())?;
                let (table, counts) = of_test.encode(schema, EncodedFile::Temporary(folder), folder)?;
                let held = HeldTable { table: &table, ranks: of_test.ranks() };
                let members = tested(held, HeldTable { table: &training, ranks: source.ranks() }, unit)?;
                (Some((table, of_test, members)), Some(counts))
            }
        };
        let members = divided(HeldTable { table: &training, ranks: source.ranks() }, unit, division)?;
        Ok(Self { training, counts, test_counts, source, test, members })
    }

    /// Gives each rank the training records that it sums: of a method by name, whole blocks.
    pub(super) fn share_out(
        &mut self,
        config: &Config,
        recipe: &Recipe,
        division: Division<'_>,
        folder: &Path,
    ) -> Result<()> {
        let Method::Sgd(named) = &recipe.method else { return Ok(()) };
        let ranks = self.source.ranks();
        let (rank, size, n) = (ranks.rank(), ranks.size(), self.members[0].len());
        let starts: Vec<usize> =
            (1..size).map(|rank| held_by(rank, size, n, named.sampling_rate, None).start).collect();
        let mut rows = self.members[0].rows_of(&starts, self.training.rows(), ranks)?;
        rows.insert(0, 0);
        rows.push(self.training.rows());
        let Some(&[start, end]) = rows.get(rank..rank + 2) else { return Ok(()) };
        if let Some(other) = self.source.other_rows(&self.training, start..end, folder)? {
            self.training = other;
            let held = HeldTable { table: &self.training, ranks: self.source.ranks() };
            self.members = divided(held, config.unit.as_ref(), division)?;
        }
        Ok(())
    }

    /// Numbers of training, test and validation records that are used.
    pub(super) fn sizes(&self) -> [usize; 3] {
        let [training, test, validation] = &self.members;
        let test = self.test.as_ref().map_or(test, |(.., test)| test);
        [training.n_records(), test.n_records(), validation.n_records()]
    }

    /// Values in the tables that are not declared, a line each.
    pub(super) fn remarks(&self, schema: &Schema) -> Vec<String> {
        let mut remarks = self.counts.remarks(schema);
        if let Some(counts) = &self.test_counts {
            remarks.extend(counts.remarks(schema).into_iter().map(|remark| format!("test table: {remark}")));
        }
        remarks
    }

    /// Exact figures of a model's answers. **Not private.**
    pub(super) fn diagnostics(&self, model: &FittedModel, measured: &Measured, has_test: bool) -> Result<Diagnostics> {
        let [training, test, _] = self.sizes();
        let records = RecordCounts { training, test, has_test };
        let (groups, counts) = (model.encoding().groups(), self.counts.clone());
        match measured {
            Measured::Classes(answers) => Diagnostics::of(answers, records, groups, model.classes().len(), counts),
            Measured::Numbers(answers) => Ok(Diagnostics::of_numbers(answers, records, groups, counts)),
        }
    }

    /// Their public size.
    pub(super) fn size(&self, config: &Config) -> Result<TableSize> {
        Ok(TableSize {
            records: self.members.iter().map(RowList::n_records).sum(),
            test_records: self.test.as_ref().map(|(.., members)| members.n_records()),
            features: bounds::widest(config)?.width(),
        })
    }

    pub(super) fn training(&self) -> TableSubset<'_> {
        TableSubset { table: &self.training, source: &self.source, members: &self.members[0] }
    }

    pub(super) fn validation(&self) -> TableSubset<'_> {
        TableSubset { table: &self.training, source: &self.source, members: &self.members[2] }
    }

    pub(super) fn test(&self) -> TableSubset<'_> {
        match &self.test {
            None => TableSubset { table: &self.training, source: &self.source, members: &self.members[1] },
            Some((table, source, members)) => TableSubset { table, source, members },
        }
    }
}

/// Records of a table that are used, by part.
fn divided(held: HeldTable<'_>, unit: Option<&UnitEntry>, division: Division<'_>) -> Result<[RowList; 3]> {
    let mut parts = split(held, unit.is_some(), division)?;
    if let Some(unit) = unit {
        for part in &mut parts {
            *part = of_units(held, part, unit)?;
        }
    }
    Ok(parts)
}

/// Records of a separate test table that are used. A unit with training records has none: a unit is
/// in one part alone.
fn tested(held: HeldTable<'_>, training: HeldTable<'_>, unit: Option<&UnitEntry>) -> Result<RowList> {
    let members = RowList::all(held.table);
    let Some(unit) = unit else { return Ok(members) };
    let members = not_in(training, held, &members)?;
    of_units(held, &members, unit)
}

/// The records that units have in a part: their first rows, or the mean of all.
fn of_units(held: HeldTable<'_>, members: &RowList, unit: &UnitEntry) -> Result<RowList> {
    match unit.rows {
        UnitRows::First => within_most(held, members, unit.most()),
        UnitRows::Mean => members.means(held.table, unit.target()),
    }
}

/// A model's answers for some records.
pub(crate) enum Measured {
    Classes(Answers),
    Numbers(NumberAnswers),
}

/// The records of one subset.
#[derive(Clone, Copy)]
pub(crate) struct TableSubset<'a> {
    pub(crate) table: &'a EncodedTable,
    pub(crate) source: &'a RankFiles,
    pub(crate) members: &'a RowList,
}

impl<'a> TableSubset<'a> {
    /// The records for a solver on these ranks.
    pub(super) fn rows(self, ranks: Arc<dyn Collective>) -> SubsetRows<'a> {
        SubsetRows::new(self.table, self.members, ranks, self.source.is_shared())
    }

    /// Calls `visit` with the group, the class and a model's probabilities for each record of this
    /// rank.
    fn visit_here(&self, model: &FittedModel, visit: &mut dyn FnMut(u32, SparseRow<'_>, &[f64])) {
        let rows = SubsetRows::new(self.table, self.members, Arc::new(Alone), true);
        let mut probabilities = vec![0.0; model.classes().len()];
        rows.visit(self.members.held(), &mut |index, row| {
            if row.is_blank() {
                return;
            }
            model.probabilities(features(row), &mut probabilities);
            visit(self.members.group(self.table, index), row, &probabilities);
        });
    }

    /// A model's answers for the records of this rank.
    fn answers_here(&self, model: &FittedModel) -> Answers {
        let mut answers = Answers::default();
        self.visit_here(model, &mut |group, row, probabilities| {
            answers.labels.push(row.label as u32);
            answers.answers.push(model.decide(probabilities, features(row), group as usize) as u32);
            answers.groups.push(group);
            answers.scores.push(probabilities[probabilities.len() - 1]);
        });
        answers
    }

    /// Counts of all ranks' records by group, class and cell of the score.
    pub(crate) fn scores(&self, model: &FittedModel, scores: &ScoresFile) -> Result<ScoreCells> {
        let (scoring, n_groups) = (scores.scoring(model), model.encoding().groups().len());
        let mut cells = scoring.no_records(n_groups);
        self.visit_here(model, &mut |group, row, probabilities| {
            scoring.add(&mut cells, group as usize, row.label, probabilities);
        });
        Ok(scoring.no_records(0).with_values(of_ranks(cells.into_values(), self.source.ranks())?))
    }

    /// A model's numbers for the records of this rank, in units of the label.
    fn numbers_here(&self, model: &FittedModel, range: &NumberLabel) -> NumberAnswers {
        let rows = SubsetRows::new(self.table, self.members, Arc::new(Alone), true);
        let mut answers = NumberAnswers::default();
        rows.visit(self.members.held(), &mut |index, row| {
            if row.is_blank() {
                return;
            }
            let label = range.middle() + f64::from(row.target) * range.half();
            let group = self.members.group(self.table, index);
            answers.push(group, model.predicted_number(features(row), group as usize, range), label);
        });
        answers
    }

    /// A model's answers for all records, in the order of the table, on every rank.
    pub(crate) fn answers(&self, model: &FittedModel) -> Result<Measured> {
        let ranks = self.source.ranks();
        Ok(match model.number() {
            Some(range) => Measured::Numbers(self.numbers_here(model, range).of_ranks(ranks)?),
            None => Measured::Classes(self.answers_here(model).of_ranks(ranks)?),
        })
    }
}
