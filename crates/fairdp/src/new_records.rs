//! Releases of figures about new records, under an ε of these records: by `evaluate`, and by `drift` where
//! their people are to be protected.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dp_accounting::{Delta, Epsilon, NoiseMultiplier};
use dp_linear::GaussianBudget;
use dp_table::declaration::TextMarks;
use dp_table::{ReadProgress, TableFiles};

use crate::account::Account;
use crate::config::read::{encoding, with_vectors};
use crate::config::{EpsilonChoice, UnitRows};
use crate::error::{FairdpError, Result};
use crate::fit::{program, refuse_delta};
use crate::input;
use crate::key::{DrawnKey, NoiseBinding, NoiseKey};
use crate::model::FittedModel;
use crate::output;
use crate::planned::Planned;
use crate::release::{PRIVATE, ReleaseFiles, STATEMENT};
use crate::scores::{SCORES, ScoresFile};
use crate::seal::sha256;
use crate::shared_ledger::{Asked, Entering, Fit};
use crate::statement::{Facts, ReleaseStatement};
use crate::subset::Subset;
use crate::text_marks::of_new_table;
use crate::unfinished::release_of;
use crate::verify::{Verified, verify};

/// How figures about new records are paid for, and where they go.
#[derive(Debug, Clone)]
pub struct PaymentOptions {
    /// The folder that is made, as that of a run.
    pub out: PathBuf,
    /// ε of the new records, or what their ledger has left.
    pub epsilon: EpsilonChoice,
    /// δ; that of the release unless given.
    pub delta: Option<f64>,
    /// Makes the figures repeatable, and not private.
    pub seed: Option<u64>,
    /// A file that several releases about these people share, with a cap on the ε of all.
    pub ledger: Option<PathBuf>,
    /// A file that remembers the ledger.
    pub witness: Option<PathBuf>,
    /// The cap of a ledger that is not there yet, or a smaller one; its ε unless given.
    pub total_epsilon: Option<f64>,
    /// The people of the records: a declaration that nobody is in two scopes of the ledger.
    pub scope: Option<String>,
}

/// How a table of new records is read.
#[derive(Debug, Clone, Default)]
pub struct NewTableOptions {
    /// The character between two fields of a text file, of ASCII; that of the run's table unless given.
    pub delimiter: Option<char>,
    /// The character around a field that holds delimiters, or an empty text for none; that of the run's
    /// table unless given.
    pub quote: Option<String>,
    /// The encoding of text files, as `table.encoding` of a configuration.
    pub encoding: Option<String>,
    /// Columns of vectors in files of their own, by name: a file for each of the table's.
    pub vectors: BTreeMap<String, Vec<String>>,
    /// Where the reading says how far it is, and is told to end.
    pub reading: Option<Arc<ReadProgress>>,
}

impl NewTableOptions {
    pub(crate) fn files(&self, tables: &[String], model: &FittedModel) -> Result<TableFiles> {
        let marks = TextMarks { delimiter: self.delimiter, quote: self.quote.clone() };
        let mut files = of_new_table(&marks, &model.pipeline().text, TableFiles::new(tables)?)?;
        if let Some(label) = &self.encoding {
            files = files.with_encoding(encoding(label)?);
        }
        let files = with_vectors(files, &self.vectors)?;
        Ok(match &self.reading {
            Some(progress) => files.watched(Arc::clone(progress)),
            None => files,
        })
    }
}

/// A release that holds, with what new records are compared with.
pub(crate) struct Subject {
    pub(crate) verified: Verified,
    pub(crate) model: FittedModel,
    /// Cumulative scores of its training or test records.
    pub(crate) scores: Option<ScoresFile>,
    /// sha256 of its statement.
    pub(crate) digest: String,
}

impl Subject {
    /// # Errors
    /// Those of [`verify`]; [`FairdpError::File`] for a release of figures, which has no model.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let verified = verify(folder)?;
        let release = release_of(folder)?;
        let statement = &verified.statement;
        if statement.about.is_some() {
            return Err(FairdpError::file(&release, "has figures about new records, and no model"));
        }
        let model = FittedModel::load(&release)?;
        let scores = if statement.files.contains_key(SCORES) {
            let bytes = input::bytes(&release.join(SCORES))?;
            Some(ScoresFile::from_json(&bytes, model.encoding().groups(), model.classes())?)
        } else {
            None
        };
        let digest = sha256(&input::bytes(&release.join(STATEMENT))?);
        Ok(Self { verified, model, scores, digest })
    }

    /// Records of one unit that are used, at most.
    pub(crate) fn records_per_unit(&self) -> Result<u64> {
        let unit = &self.verified.statement.unit;
        if unit.rows == UnitRows::Mean {
            let expected = "first rows of units as records: how rows were averaged is not in a release";
            return Err(FairdpError::invalid("unit.rows", "mean", expected));
        }
        Ok(unit.max_records)
    }
}

/// What was paid for: noise may be drawn for these releases alone.
pub(crate) struct Paid<'a> {
    options: &'a PaymentOptions,
    subject: &'a Subject,
    pub(crate) key: NoiseKey,
    account: Account,
    planned: Vec<Planned>,
    delta: f64,
    total_epsilon: Option<f64>,
}

/// The sentences of a statement that a release of figures does not share with a fit.
pub(crate) struct Words {
    pub(crate) covers: &'static str,
    /// What the existence of the release says of the records.
    pub(crate) existence: String,
    pub(crate) figures: String,
}

impl<'a> Paid<'a> {
    /// Enters the releases into the ledger, if there is one. `shares` are those of the budget, of `μ²`, by
    /// purpose; the records are those of one part, which is called the test.
    pub(crate) fn enter(
        options: &'a PaymentOptions,
        subject: &'a Subject,
        n_records: usize,
        binding: &NoiseBinding,
        shares: &[(&str, f64)],
    ) -> Result<Self> {
        refuse_taken(&options.out)?;
        let delta = options.delta.unwrap_or(subject.verified.statement.delta);
        refuse_delta(delta, n_records)?;
        let plan = |epsilon: f64| -> Result<Vec<Planned>> {
            let budget = GaussianBudget::new(Epsilon::new(epsilon)?, Delta::new(delta)?)?;
            shares.iter().map(|(name, share)| Planned::gaussian(budget, Subset::Test, name, *share, 1)).collect()
        };
        let account = |planned: &[Planned]| -> Result<Account> {
            let mut account = Account::default();
            planned.iter().try_for_each(|planned| account.record(planned))?;
            Ok(account)
        };
        let at = |epsilon: f64| account(&plan(epsilon)?);
        let unit = subject.model.encoding().schema().unit.as_deref();
        let asked =
            |epsilon| Asked { epsilon, delta, cap: options.total_epsilon, unit, scope: options.scope.as_deref() };
        let entering = |ledger: &'a Path, epsilon| Entering {
            ledger,
            witness: options.witness.as_deref(),
            asked: asked(epsilon),
            at: &at,
        };
        let epsilon = match (options.epsilon, &options.ledger) {
            (EpsilonChoice::Given(epsilon), _) => epsilon,
            (EpsilonChoice::Rest, Some(ledger)) => entering(ledger, options.total_epsilon.unwrap_or(1.0)).rest()?,
            (EpsilonChoice::Rest, None) => {
                return Err(FairdpError::invalid("--epsilon", "rest", "--ledger FILE with it, whose rest it is"));
            }
        };
        let planned = plan(epsilon)?;
        let account = account(&planned)?;
        let key = DrawnKey::new(options.seed)?.bind(binding);
        let total_epsilon = match &options.ledger {
            Some(ledger) => {
                let fit = Fit::new(&key, &account, options.scope.as_deref());
                Some(entering(ledger, epsilon).enter(fit, false)?.total)
            }
            None => None,
        };
        Ok(Self { options, subject, key, account, planned, delta, total_epsilon })
    }

    /// The noise of a release over what a unit can change, by its purpose.
    pub(crate) fn noise(&self, purpose: &str) -> Result<NoiseMultiplier> {
        let found = self.planned.iter().find(|planned| planned.purpose == purpose);
        let planned = found.ok_or_else(|| FairdpError::Internal(format!("{purpose}: not in the plan")))?;
        #[cfg(test)]
        if crate::hook::HALF_THE_NOISE.get() {
            return Ok(NoiseMultiplier::new(0.5 * planned.noise_multiplier.get())?);
        }
        Ok(planned.noise_multiplier)
    }

    /// Writes the release, and the private ledger.
    pub(crate) fn publish(&self, files: ReleaseFiles, n_records: usize, words: Words) -> Result<ReleaseStatement> {
        let (options, subject) = (self.options, self.subject);
        let mut statement = ReleaseStatement::of(Facts {
            account: &self.account,
            delta: self.delta,
            seed: options.seed,
            uncovered: Vec::new(),
            existence: words.existence,
            covers: vec![words.covers.to_owned()],
            unit: subject.verified.statement.unit.clone(),
            records: [0, n_records, 0],
            test_figures: words.figures,
            model: "that of an earlier release, which these records did not change".into(),
            method: "none: nothing was trained".into(),
            tuning: "none".into(),
            sampling: "none: all records that are used are counted".into(),
            total_epsilon: self.total_epsilon,
            scope: self.total_epsilon.and_then(|_| options.scope.clone()),
            program: program(None)?,
            card: subject.verified.statement.card.clone(),
            started_from: None,
            fixed: Vec::new(),
            epsilon_of_groups: BTreeMap::new(),
        })?;
        statement.about = Some(subject.digest.clone());
        output::private_folder(&options.out.join(PRIVATE))?;
        files.publish(&options.out, statement.clone(), &self.account)?;
        Ok(statement)
    }
}

/// A release is not replaced, and nothing else is.
pub(crate) fn refuse_taken(out: &Path) -> Result<()> {
    if out.exists() { Err(FairdpError::folder(out, "exists", "give a new one")) } else { Ok(()) }
}
