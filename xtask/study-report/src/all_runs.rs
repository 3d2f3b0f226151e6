//! What all runs of a report cost one record together: whoever sees the report sees them all.

use dp_accounting::{Accountant, Delta, DpEvent, MarkedEpsilon, PldAccountant, Scope};
use dp_train::Plan;
use fair_report::number;
use run_records::{ExperimentResults, MethodResults, PrivacyRecord, StudyResults, mark_epsilon};
use serde::{Deserialize, Serialize};

/// The runs of a report on the same records, whatever the experiments that they belong to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AllRuns {
    /// Names of the data set.
    data: Vec<String>,
    /// Of its files.
    data_digest: String,
    /// Of methods with a proof; also those that left no model, because their noise was drawn all the
    /// same.
    runs: u64,
    /// Methods with a proof, counted in each experiment.
    methods: usize,
    experiments: usize,
    /// The largest of the methods.
    delta: f64,
    /// At that δ, as if every record were in each run's training part; `None` if a ledger cannot be
    /// read or has no analysis.
    epsilon: Option<MarkedEpsilon>,
}

/// One entry for every data set with a run of a method with a proof, in the order of the
/// experiments.
pub(crate) fn by_data(results: &StudyResults) -> Vec<AllRuns> {
    let mut digests: Vec<&str> = Vec::new();
    for experiment in &results.experiments {
        let digest = &*experiment.dataset.digest;
        if !digests.contains(&digest) && proven(experiment).next().is_some() {
            digests.push(digest);
        }
    }
    let of = |digest: &&str| {
        let on_it = |experiment: &&ExperimentResults| experiment.dataset.digest == **digest;
        all_runs(digest, &results.experiments.iter().filter(on_it).collect::<Vec<_>>())
    };
    digests.iter().map(of).collect()
}

/// Methods with a proof that were run.
fn proven(experiment: &ExperimentResults) -> impl Iterator<Item = (&MethodResults, &PrivacyRecord)> {
    let methods = experiment.methods.iter().filter(|method| n_runs(method) > 0);
    methods.filter_map(|method| Some((method, method.privacy.as_ref().filter(|privacy| privacy.certified)?)))
}

fn all_runs(digest: &str, experiments: &[&ExperimentResults]) -> AllRuns {
    let mut names: Vec<String> = Vec::new();
    for experiment in experiments {
        if !names.contains(&experiment.dataset.name) {
            names.push(experiment.dataset.name.clone());
        }
    }
    let methods = || experiments.iter().flat_map(|experiment| proven(experiment));
    let scopes = || methods().filter_map(|(_, privacy)| privacy.scope.as_ref());
    // All conditions: each is one of some run.
    let mut conditions: Vec<String> = Vec::new();
    for condition in scopes().flat_map(|scope| &scope.conditions) {
        if !conditions.contains(condition) {
            conditions.push(condition.clone());
        }
    }
    let scope = scopes().next().map(|scope| Scope { conditions, ..scope.clone() });
    let epsilon = composed(methods().map(|(method, privacy)| (privacy, n_runs(method))));
    AllRuns {
        data: names,
        data_digest: digest.to_owned(),
        runs: methods().map(|(method, _)| n_runs(method)).sum(),
        methods: methods().count(),
        experiments: experiments.iter().filter(|experiment| proven(experiment).next().is_some()).count(),
        delta: methods().map(|(_, privacy)| privacy.delta).fold(0.0, f64::max),
        epsilon: epsilon.map(|epsilon| mark_epsilon(epsilon, true, scope.as_ref())),
    }
}

impl AllRuns {
    /// For the head of a report.
    pub(crate) fn sentence(&self) -> String {
        let count = |n: usize, what: &str| {
            let plural = if n == 1 { "" } else { "s" };
            format!("{} {what}{plural}", number::count(n as u64))
        };
        let epsilon = match &self.epsilon {
            Some(epsilon) => format!("ε at most {epsilon:#} at δ = {:e}", self.delta),
            None => "no bound on ε is known, because a ledger cannot be read or has no analysis".to_owned(),
        };
        // Of data that are not public there is none.
        let is_digest = self.data_digest.len() == 64 && self.data_digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let files =
            if is_digest { format!("files with digest {}…; ", &self.data_digest[..12]) } else { String::new() };
        format!(
            "All {} runs of methods with a proof on {} ({files}{} in {}) together: {epsilon}. One who sees this report sees them all.",
            number::count(self.runs),
            self.data.join(", "),
            count(self.methods, "method"),
            count(self.experiments, "experiment"),
        )
    }
}

/// Runs that were made, also those that left no model: their noise was drawn all the same.
pub(crate) fn n_runs(method: &MethodResults) -> u64 {
    (method.runs.len() + method.failures.len()) as u64
}

/// The entries of a ledger in a record. Digests are not checked: those of earlier versions were of
/// another encoding.
#[derive(Deserialize)]
struct Entries {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    event: DpEvent,
    count: u64,
}

/// ε of these ledgers, each so many times, together, at the largest of their δ; `None` where one
/// cannot be read or has no analysis.
pub(crate) fn composed<'a>(ledgers: impl Iterator<Item = (&'a PrivacyRecord, u64)>) -> Option<f64> {
    let mut events: Vec<(DpEvent, u64)> = Vec::new();
    let mut delta = None;
    for (privacy, times) in ledgers {
        let Entries { entries } = serde_json::from_value(privacy.ledger.clone()).ok()?;
        for Entry { event, count } in entries {
            let count = count.checked_mul(times)?;
            // Few methods differ in what they release: each event is analysed once.
            match events.iter_mut().find(|(known, _)| *known == event) {
                Some((_, known)) => *known = known.checked_add(count)?,
                None => events.push((event, count)),
            }
        }
        delta = Some(delta.map_or(privacy.delta, |delta: f64| delta.max(privacy.delta)));
    }
    let mut accountant = PldAccountant::new(Plan::RELATION);
    for (event, count) in &events {
        accountant.compose(event, *count).ok()?;
    }
    Some(accountant.epsilon(Delta::new(delta?).ok()?).ok()?.epsilon.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn epsilon(all: &AllRuns) -> f64 {
        all.epsilon.as_ref().unwrap().epsilon().get()
    }

    /// Two experiments on one data set are one release: neither may be shown as if it were all.
    #[test]
    fn all_runs_on_one_data_set_are_composed_whatever_their_experiment() {
        let one = fixture::study();
        let [of_one] = &by_data(&one)[..] else { panic!("one data set") };
        assert_eq!((of_one.runs, of_one.methods, of_one.experiments), (20, 4, 1));

        let mut two = one.clone();
        let mut second = one.experiments[0].clone();
        second.id = "again".to_owned();
        two.experiments.push(second);
        let [of_two] = &by_data(&two)[..] else { panic!("one data set") };
        assert_eq!((of_two.runs, of_two.methods, of_two.experiments), (40, 8, 2));
        let ledgers = two.experiments.iter().flat_map(proven);
        let expected = composed(ledgers.map(|(method, privacy)| (privacy, n_runs(method)))).unwrap();
        assert_eq!(epsilon(of_two), expected);
        assert!(expected > 1.3 * epsilon(of_one), "{expected}");
        assert_eq!(
            of_two.sentence(),
            format!(
                "All 40 runs of methods with a proof on adult (files with digest {}…; 8 methods in 2 experiments) together: ε at most {:#} \
                 at δ = 1e-6. One who sees this report sees them all.",
                &one.experiments[0].dataset.digest[..12],
                of_two.epsilon.as_ref().unwrap()
            )
        );

        // Other records are another release.
        two.experiments[1].dataset.digest = "other".to_owned();
        let of_each = by_data(&two);
        assert_eq!(of_each.len(), 2);
        assert!(of_each.iter().all(|all| epsilon(all) == epsilon(of_one)));
    }

    /// Runs of a grid and runs that failed were made, too; methods without a proof have no part.
    #[test]
    fn every_run_counts_and_every_condition() {
        let mut study = fixture::study();
        let before = epsilon(&by_data(&study)[0]);
        let methods = &mut study.experiments[0].methods;
        let run = methods[1].runs.pop().unwrap();
        methods[1].failures.push(run_records::FailureRecord { index: run.index, reason: "diverged".to_owned() });
        assert_eq!(epsilon(&by_data(&study)[0]), before);
        let conditioned =
            |given: &str| Scope { conditions: vec![given.to_owned()], ..Scope::of("one record", ["the model"]) };
        let methods = &mut study.experiments[0].methods;
        methods[2].privacy.as_mut().unwrap().scope = Some(conditioned("the bins"));
        methods[3].privacy.as_mut().unwrap().scope = Some(conditioned("the scaling"));
        assert_eq!(by_data(&study)[0].epsilon.as_ref().unwrap().conditions(), ["the bins", "the scaling"]);
        for method in &mut study.experiments[0].methods {
            if let Some(privacy) = &mut method.privacy {
                privacy.certified = false;
            }
        }
        assert_eq!(by_data(&study), []);
    }

    /// What is not known is not left out.
    #[test]
    fn a_ledger_that_cannot_be_read_leaves_no_bound() {
        let mut study = fixture::study();
        study.experiments[0].methods[1].privacy.as_mut().unwrap().ledger = serde_json::json!({"entries": "?"});
        let [all] = &by_data(&study)[..] else { panic!("one data set") };
        assert_eq!(all.epsilon, None);
        assert!(all.sentence().contains("no bound on ε is known"), "{}", all.sentence());
    }
}
