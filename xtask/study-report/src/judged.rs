//! What methods are compared by, and what a search selects by.

use anyhow::ensure;

use super::metric::Column;
use super::presentation::StudyPresentation;

/// The figure that methods are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// Share of right answers.
    Accuracy,
    /// Mean of the class recalls.
    MacroAccuracy,
    /// The least class recall.
    WorstClass,
    /// The least mean of the class recalls within a group.
    WorstGroup,
}

/// A search: the point of a grid that is greatest by [`Self::judged`] on held-out records is trained
/// again, and judged by the same figure.
///
/// [`StudyPresentation::ensure_judged_as_selected`] refuses a claim or a ranking that judges what
/// this search selected by another figure. Only a paper that does so itself is an exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searched {
    /// The experiment with the best points. Those of its grids are named after it:
    /// `EXPERIMENT-grid…`.
    pub experiment: String,
    /// What the search maximises.
    pub judged: Judged,
    /// Where a paper selects by this figure and then judges by others.
    pub published: Option<&'static str>,
}

impl Judged {
    /// Its name in tables of figures.
    pub const fn metric(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::MacroAccuracy => "macro_accuracy",
            Self::WorstClass => "worst_class_accuracy",
            Self::WorstGroup => "worst_group_macro_accuracy",
        }
    }

    /// The same in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::MacroAccuracy => "macro accuracy",
            Self::WorstClass => "worst-class accuracy",
            Self::WorstGroup => "worst-group macro accuracy",
        }
    }

    /// What is lost on average where the worst is served best.
    pub(crate) const fn average(self) -> Option<Self> {
        match self {
            Self::Accuracy | Self::MacroAccuracy => None,
            Self::WorstClass | Self::WorstGroup => Some(Self::MacroAccuracy),
        }
    }

    /// Of all records, in per cent.
    ///
    /// # Errors
    /// None: the names are those of metrics.
    pub(crate) fn column(self) -> anyhow::Result<Column> {
        Column::parse(&format!("{}_pct", self.metric()), "total")
    }
}

impl StudyPresentation {
    /// The search that a grid belongs to.
    pub(crate) fn search_of(&self, grid: &str) -> Option<&Searched> {
        let (experiment, _) = grid.split_once("-grid")?;
        self.searches.iter().find(|searched| searched.experiment == experiment)
    }

    /// Whether this experiment is a grid of a declared search, or ends one.
    pub fn declares_search(&self, experiment: &str) -> bool {
        self.search_of(experiment).is_some() || self.searches.iter().any(|searched| searched.experiment == experiment)
    }

    /// Checks that what a search selected is judged by the figure that it was selected by.
    ///
    /// # Errors
    /// Names the claim or the ranking that judges by another one.
    pub fn ensure_judged_as_selected(&self) -> anyhow::Result<()> {
        for Searched { experiment, judged, .. } in self.searches.iter().filter(|search| search.published.is_none()) {
            for ranked in self.ranked.iter().filter(|ranked| ranked.experiment == experiment) {
                ensure!(
                    ranked.judged == *judged,
                    "the ranking of {experiment} judges by {}: expected {}, by which its search selects",
                    ranked.judged.words(),
                    judged.words()
                );
            }
            let selected = judged.column()?;
            for claim in &self.claims {
                for column in claim.columns_of(experiment) {
                    ensure!(
                        (column.metric, &column.subject) == (selected.metric, &selected.subject),
                        "the claim \"{}\" judges by {column}: expected {}, by which the search of {experiment} selects",
                        claim.text,
                        judged.words()
                    );
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Claim;
    use crate::{Ranked, fixture};

    /// What was selected by accuracy cannot be judged by the worst class, unless a paper does so.
    #[test]
    fn a_search_is_judged_by_what_it_selects_by() {
        let by = |judged, published| Searched { experiment: "esipova-adult".to_owned(), judged, published };
        let claim =
            |metric| Claim::greatest("A claim.", "ours", "esipova-adult", (metric, "total"), "dpsgd", &["dpsgd-f"]);
        let ranked = Ranked {
            experiment: "esipova-adult",
            data: "adult",
            recommended: "dpsgd",
            own: &["dpsgd"],
            judged: Judged::Accuracy,
        };
        let of = |searched: Searched, metric| StudyPresentation {
            searches: vec![searched],
            claims: vec![claim(metric).unwrap()],
            ranked: vec![ranked],
            ..fixture::presentation()
        };
        of(by(Judged::Accuracy, None), "accuracy").ensure_judged_as_selected().unwrap();
        let error = of(by(Judged::Accuracy, None), "worst_class_accuracy").ensure_judged_as_selected().unwrap_err();
        assert!(
            error.to_string().ends_with("expected accuracy, by which the search of esipova-adult selects"),
            "{error}"
        );
        let error = of(by(Judged::MacroAccuracy, None), "macro_accuracy").ensure_judged_as_selected().unwrap_err();
        assert!(error.to_string().starts_with("the ranking of esipova-adult judges by accuracy"), "{error}");
        of(by(Judged::MacroAccuracy, Some("a paper")), "accuracy").ensure_judged_as_selected().unwrap();
        let presentation = of(by(Judged::Accuracy, None), "accuracy");
        assert!(presentation.search_of("esipova-adult-grid-0.5-after-3").is_some());
        assert!(presentation.search_of("esipova-adult").is_none());
        let declares = |id| presentation.declares_search(id);
        assert!(declares("esipova-adult") && declares("esipova-adult-grid-1") && !declares("esipova-dutch"));
    }
}
