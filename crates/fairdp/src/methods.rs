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
            summary: entry.summary,
            source: entry.source,
            counts: config.queries(&context).into_iter().map(|query| query.name).collect(),
            needs_groups: config.needs_groups(),
            certified: config.certified(),
        }
    });
    let conditioned = CONDITIONED.iter().map(|(name, goal, summary)| MethodLine {
        name,
        summary,
        source: "docs/conditioned-adjusted.md",
        counts: if *goal == Goal::EqualRecall { vec!["right answers by class".into()] } else { Vec::new() },
        needs_groups: false,
        certified: true,
    });
    std::iter::once(auto).chain(conditioned).chain(named).collect()
}
