//! What a study's author says about it: which published tables it answers, and why rows that differ
//! may differ.

use super::claims::Claim;
use super::judged::Searched;
use super::pooled::Pooled;
use super::published::PublishedTable;
use super::ranking::Ranked;

/// Everything the report needs beyond the records.
#[derive(Debug, Clone)]
pub struct StudyPresentation {
    /// Top heading.
    pub title: String,
    /// In order; each names the experiment it is answered by.
    pub tables: Vec<TablePresentation>,
    /// What the papers claim.
    pub claims: Vec<Claim>,
    /// Experiments whose methods are put side by side in `summary.json` of the committed report;
    /// mostly none.
    pub ranked: Vec<Ranked>,
    /// What the grids of the study are searched for; mostly none.
    pub searches: Vec<Searched>,
    /// A test that a paper makes over all settings at once; mostly none.
    pub pooled: Option<Pooled>,
}

/// One published table and the experiment that answers it.
#[derive(Debug, Clone)]
pub struct TablePresentation {
    /// Anchor, for example `esipova2023-table-4`.
    pub id: String,
    /// [`ExperimentResults::id`](run_records::ExperimentResults::id) of the experiment. A table
    /// whose experiment was not run is left out.
    pub experiment: String,
    /// The figures of the paper.
    pub published: PublishedTable,
    /// What we think makes a row differ.
    pub causes: Vec<Cause>,
    /// What we think makes rows differ that have no cause of their own.
    pub cause_of_others: Option<String>,
    /// How the table's figures are read, where the paper leaves it open.
    pub notes: Vec<String>,
}

/// The suspected cause of one row's difference.
#[derive(Debug, Clone)]
pub struct Cause {
    /// Registry name of the method.
    pub method: String,
    /// One sentence.
    pub text: String,
}

impl Cause {
    /// What we think makes this method's row differ.
    pub fn new(method: &str, text: &str) -> Self {
        Self { method: method.to_owned(), text: text.to_owned() }
    }
}

impl TablePresentation {
    /// A table of published figures and the experiment that answers it.
    ///
    /// # Errors
    /// If the table, which is part of this program, does not parse.
    pub fn new(id: &str, experiment: &str, published: &str, causes: Vec<Cause>) -> anyhow::Result<Self> {
        let published = PublishedTable::parse(published)?;
        Ok(Self {
            id: id.to_owned(),
            experiment: experiment.to_owned(),
            published,
            causes,
            cause_of_others: None,
            notes: Vec::new(),
        })
    }

    /// Says which of several experiments answers this table.
    #[must_use]
    pub fn answered_by(mut self, words: &str) -> Self {
        self.published.data = format!("{}; ours {words}", self.published.data);
        self
    }

    /// Says what we think makes rows differ that have no cause of their own.
    #[must_use]
    pub fn because(mut self, words: &str) -> Self {
        self.cause_of_others = Some(words.to_owned());
        self
    }

    /// Says below the table how its figures are read.
    #[must_use]
    pub fn noted(mut self, words: &str) -> Self {
        self.notes.push(words.to_owned());
        self
    }

    /// The suspected cause for a method, `cause not known` if none is given.
    pub fn cause(&self, method: &str) -> &str {
        let own = self.causes.iter().find(|cause| cause.method == method).map(|cause| &cause.text);
        own.or(self.cause_of_others.as_ref()).map_or("cause not known", String::as_str)
    }
}
