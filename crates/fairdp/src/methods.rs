//! The methods that a configuration can name.

use dp_clipping::{PublicContext, registry};
use dp_linear::Goal;
use serde::Serialize;

use crate::recipe::CONDITIONED;

/// A method in one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MethodLine {
    /// The value of `method.name`.
    pub name: &'static str,
    /// Its name in papers and reports.
    pub label: &'static str,
    /// A short description.
    pub summary: &'static str,
    /// The publication.
    pub source: &'static str,
    /// Counts that each of its steps releases besides the gradients.
    pub counts: Vec<String>,
    /// Whether it treats groups differently.
    pub needs_groups: bool,
    /// Whether an ε holds for it; `fit` refuses the others.
    pub certified: bool,
}

/// `auto`, conditioned training and every method of the registry, in the order of its tables, then
/// what this program registered.
pub fn methods() -> Vec<MethodLine> {
    let context = PublicContext { n_groups: 2, expected_batch_size: 1.0, noise_multiplier: 1.0 };
    let auto = MethodLine {
        name: "auto",
        label: "auto",
        summary: "the default: steps over all records on rows that are bounded in advance; conditioned for a table with vectors, dpsgd for a network",
        source: "docs/the-model.md",
        counts: Vec::new(),
        needs_groups: false,
        certified: true,
    };
    let named = registry::all().into_iter().map(|entry| {
        let config = entry.default_config();
        MethodLine {
            name: entry.name,
            label: entry.label,
            summary: entry.summary,
            source: entry.source,
            counts: config.queries(&context).into_iter().map(|query| query.name).collect(),
            needs_groups: config.needs_groups(),
            certified: config.certified(),
        }
    });
    let conditioned = CONDITIONED.iter().map(|(name, goal, summary)| MethodLine {
        name,
        label: name,
        summary,
        source: "docs/conditioned-adjusted.md",
        counts: if *goal == Goal::EqualRecall { vec!["right answers by class".into()] } else { Vec::new() },
        needs_groups: false,
        certified: true,
    });
    std::iter::once(auto).chain(conditioned).chain(named).collect()
}

/// Those of the [`methods`] whose name, name in the papers, description or source has this text; small
/// and capital letters, hyphens and blanks aside.
pub fn methods_like(text: &str) -> Vec<MethodLine> {
    let named = registry::like(text);
    let is_like = |line: &MethodLine| match registry::find(line.name) {
        Ok(entry) => named.iter().any(|other| other.name == entry.name),
        Err(_) => [line.name, line.summary].iter().any(|part| part.to_lowercase().contains(&text.to_lowercase())),
    };
    methods().into_iter().filter(is_like).collect()
}
