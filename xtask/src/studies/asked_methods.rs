//! `--methods`: those of a study that are asked for, and methods that it does not have.

use anyhow::bail;
use dp_clipping::registry;

use super::comparison::{ALL, has_epsilon};
use super::study::Study;
use crate::run::experiment::{Experiment, MethodSetting, NON_PRIVATE};

/// Whose rate, bound and noise a method has that the paper did not train.
const MODEL: &str = "dpsgd";

impl Study {
    /// Keeps the methods that were asked for beside the reference, and adds those of the registry that
    /// the study does not have, with the settings of its DPSGD.
    ///
    /// # Errors
    /// For a name that is not in the registry, and for a method that cannot be added soundly: where points
    /// are searched for, it would have no part in the search.
    pub(super) fn keep_methods(&mut self, asked: &[String]) -> anyhow::Result<()> {
        if asked.is_empty() {
            return Ok(());
        }
        let mut known: Vec<&str> =
            self.experiments.iter().flat_map(|experiment| &experiment.methods).map(|method| method.name).collect();
        known.sort_unstable();
        known.dedup();
        let has_all = asked.iter().any(|name| name == ALL);
        let wanted: Vec<&str> = if has_all {
            known
                .iter()
                .copied()
                .chain(registry::all().into_iter().filter(|entry| has_epsilon(entry)).map(|entry| entry.name))
                .collect()
        } else {
            asked.iter().map(String::as_str).collect()
        };
        let mut added = Vec::new();
        for name in wanted.iter().filter(|name| !known.contains(name)) {
            let Ok(entry) = registry::find(name) else { bail!("--methods {name}: {}", unknown(name, &known)) };
            let searches = self.follow_up.is_some() || self.experiments.iter().any(|experiment| experiment.is_search);
            let has_model = self.experiments.iter().any(|experiment| models(experiment).next().is_some());
            if searches || !has_model {
                let why = if searches {
                    "searches for its methods' points"
                } else {
                    "has no DPSGD whose settings it could have"
                };
                bail!(
                    "--methods {name}: {} {why}: expected some of {}; `cargo xtask compare` trains any method, with a search of its own \
                     (docs/compare.md)",
                    self.name,
                    known.join(", ")
                );
            }
            if added.iter().all(|other: &&dp_clipping::MethodEntry| other.name != entry.name) {
                added.push(entry);
            }
        }
        for experiment in &mut self.experiments {
            let more: Vec<MethodSetting> = added
                .iter()
                .flat_map(|entry| models(experiment).map(|model| model.named(entry.name)).collect::<Vec<_>>())
                .collect();
            experiment.methods.retain(|method| method.name == NON_PRIVATE || wanted.contains(&method.name));
            if !more.is_empty() {
                let labels: Vec<&str> = added.iter().map(|entry| entry.label).collect();
                experiment.departures.push(format!(
                    "The paper did not train {}: added by --methods, at the rate, bound and noise of DPSGD, and not searched for.",
                    labels.join(", ")
                ));
                experiment.methods.extend(more);
            }
        }
        Ok(())
    }
}

/// The settings of DPSGD, at every point of what the experiment varies.
fn models(experiment: &Experiment) -> impl Iterator<Item = &MethodSetting> {
    experiment
        .methods
        .iter()
        .filter(|method| method.name == MODEL && method.search.is_none() && method.conditioned.is_none())
}

/// What is said of a name that is not in the registry.
fn unknown(name: &str, known: &[&str]) -> String {
    let near = known.iter().map(|known| (strsim::normalized_damerau_levenshtein(known, name), *known));
    let near = near.filter(|(likeness, _)| *likeness > 0.6).max_by(|(a, _), (b, _)| a.total_cmp(b));
    let question = match (near, registry::meant(name)) {
        (Some((_, known)), _) => format!("; did you mean {known}?"),
        (None, Some(entry)) => format!("; did you mean {} ({})?", entry.name, entry.label),
        (None, None) => String::new(),
    };
    format!("expected {ALL}, or some of {}{question}", known.join(", "))
}
