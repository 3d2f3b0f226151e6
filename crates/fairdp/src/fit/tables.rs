//! The records of a run: all of them, or those that this rank has.

use std::path::Path;
use std::sync::Arc;

use dp_data::table::{EncodedFile, EncodedTable, Schema, TableCounts};
use dp_train::ranks::{Alone, Collective, held_by};

use super::FitOptions;
use crate::choice::{Choice, Method};
use crate::config::{Config, UnitEntry};
use crate::diagnostics::Answers;
use crate::error::Result;
use crate::key::Key;
use crate::model::Model;
use crate::parts::{Members, PartRows, Shares, also_in, beyond, split};
use crate::solver::rows::RowSource as _;
use crate::source::Source;

/// Whether each rank needs its own records alone. Trials are made side by side, each on all
/// records; so is a network without privacy, whose sums depend on how they are split; and a table
/// that is kept is kept whole.
pub(super) fn can_share(config: &Config, choice: &Choice, options: &FitOptions) -> bool {
    let trains_alone = options.reference && matches!(choice.method, Method::Named(_));
    config.tuning.is_none() && !trains_alone && !options.keep_encoded
}

/// Tables that were read, and the parts of their records.
pub(super) struct Tables {
    pub(super) training: EncodedTable,
    pub(super) counts: TableCounts,
    source: Source,
    /// A test table of its own.
    test: Option<(EncodedTable, Source)>,
    /// Of the training table: training, test, validation.
    members: [Members; 3],
}

impl Tables {
    /// The training table, and the test table if it is one of its own.
    pub(super) fn all(&self) -> impl Iterator<Item = &EncodedTable> {
        [&self.training].into_iter().chain(self.test.as_ref().map(|(table, _)| table))
    }

    /// Reads the training table, and the test table if there is one; `place` is for a training
    /// table that is read whole.
    pub(super) fn read(
        config: &Config,
        schema: &Schema,
        mut source: Source,
        (place, folder): (EncodedFile<'_>, &Path),
        (shares, key): (Shares, &Key),
        ranks: &Arc<dyn Collective>,
    ) -> Result<Self> {
        let (training, counts) = source.encode(schema, place, folder)?;
        let test = match &config.test.files {
            None => None,
            Some(files) => {
                let mut of_test = Source::new(config.files(files)?, ranks, source.is_shared())?;
                let (table, _) = of_test.encode(schema, EncodedFile::Temporary(folder), folder)?;
                Some((table, of_test))
            }
        };
        let members = split(&training, config.unit.is_some(), shares, key, source.ranks())?;
        Ok(Self { training, counts, source, test, members })
    }

    /// Gives each rank the training records that it sums: of a method by name, whole blocks.
    pub(super) fn share_out(
        &mut self,
        (config, choice): (&Config, &Choice),
        (shares, key): (Shares, &Key),
        folder: &Path,
    ) -> Result<()> {
        let Method::Named(named) = &choice.method else { return Ok(()) };
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
            self.members = split(&self.training, config.unit.is_some(), shares, key, self.source.ranks())?;
        }
        Ok(())
    }

    /// Numbers of training, test and validation records.
    pub(super) fn sizes(&self) -> [usize; 3] {
        let [training, test, validation] = &self.members;
        [training.len(), self.test.as_ref().map_or(test.len(), |(table, _)| table.rows()), validation.len()]
    }

    pub(super) fn training(&self, unit: Option<&UnitEntry>) -> Result<Portion<'_>> {
        Portion::new(&self.training, &self.source, self.members[0].clone(), unit)
    }

    pub(super) fn validation(&self, unit: Option<&UnitEntry>) -> Result<Portion<'_>> {
        Portion::new(&self.training, &self.source, self.members[2].clone(), unit)
    }

    /// Of a test table of its own, units that also have training records are left out: a unit is in
    /// one part alone.
    pub(super) fn test(&self, unit: Option<&UnitEntry>) -> Result<Portion<'_>> {
        let Some((table, source)) = &self.test else {
            return Portion::new(&self.training, &self.source, self.members[1].clone(), unit);
        };
        let mut portion = Portion::new(table, source, Members::all(table), unit)?;
        if unit.is_some() {
            let trained_on = also_in(&self.training, table, &portion.members, self.source.ranks())?;
            portion.left_out.iter_mut().zip(trained_on).for_each(|(is_out, is_trained_on)| *is_out |= is_trained_on);
        }
        Ok(portion)
    }
}

/// The records of one part.
pub(super) struct Portion<'a> {
    table: &'a EncodedTable,
    source: &'a Source,
    members: Members,
    left_out: Vec<bool>,
}

impl<'a> Portion<'a> {
    fn new(table: &'a EncodedTable, source: &'a Source, members: Members, unit: Option<&UnitEntry>) -> Result<Self> {
        let left_out = match unit {
            Some(unit) => beyond(table, &members, unit.max_records, source.ranks())?,
            None => Vec::new(),
        };
        Ok(Self { table, source, members, left_out })
    }

    /// They, for a solver on these ranks.
    pub(super) fn rows(&self, ranks: Arc<dyn Collective>) -> PartRows<'_> {
        PartRows::new(self.table, &self.members, &self.left_out, ranks, self.source.is_shared())
    }

    /// What a model says of those that are here.
    pub(super) fn answers_here(&self, model: &Model) -> Answers {
        let rows = PartRows::new(self.table, &self.members, &self.left_out, Arc::new(Alone), true);
        let mut answers = Answers::default();
        let mut probabilities = vec![0.0; model.classes().len()];
        rows.visit(self.members.held(), &mut |index, row| {
            if row.is_blank() {
                return;
            }
            let group = self.table.group(self.members.row(index));
            let features = row.columns.iter().map(|&column| column as usize).zip(row.values.iter().copied());
            model.probabilities(features, &mut probabilities);
            answers.labels.push(row.label as u32);
            answers.answers.push(model.decide(&probabilities, group as usize) as u32);
            answers.groups.push(group);
            answers.scores.push(probabilities[probabilities.len() - 1]);
        });
        answers
    }

    /// What a model says of them, in the order of the table, on every rank.
    pub(super) fn answers(&self, model: &Model) -> Result<Answers> {
        self.answers_here(model).of_ranks(self.source.ranks())
    }

    /// Those that have the records together.
    pub(super) fn ranks(&self) -> &dyn Collective {
        self.source.ranks()
    }
}
