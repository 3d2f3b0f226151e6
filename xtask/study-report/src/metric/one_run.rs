//! The quantities of one run.

use anyhow::bail;
use dp_train::analysis::GroupTerms;
use fair_metrics::{macro_accuracy, worst_class_accuracy};
use run_records::{EpochRecord, ExperimentResults, MetricsRecord, RunRecord};

use super::REFERENCE;
use super::column::{Column, Metric};

/// Which records of a run a figure is about.
pub(super) enum Scope {
    All,
    Groups(Vec<usize>),
}

impl Column {
    /// One run's value, as a fraction.
    pub(super) fn value(&self, experiment: &ExperimentResults, run: &RunRecord, scope: &Scope) -> Option<f64> {
        let reference = || reference_run(experiment, run.index);
        let accuracy = |run: &RunRecord| mean_of(&run.test, scope, |metrics| metrics.accuracy);
        // Means over an epoch are kept by group, without the number of records they are over.
        let single = || match scope {
            Scope::Groups(groups) if groups.len() == 1 => Some(groups[0]),
            _ => None,
        };
        let loss = |run: &RunRecord| {
            if self.in_batches {
                loss_in_batches(experiment, run, single()?)
            } else {
                mean_of(&run.test, scope, |metrics| metrics.loss)
            }
        };
        match self.metric {
            Metric::Accuracy => accuracy(run),
            Metric::AccuracyChange => Some(accuracy(run)? - accuracy(reference()?)?),
            Metric::PrivacyCost | Metric::PrivacyCostGap => Some(accuracy(reference()?)? - accuracy(run)?),
            Metric::Loss | Metric::LossGap | Metric::DisparityReduction => loss(run),
            Metric::ExcessiveRisk | Metric::ExcessiveRiskGap => Some(loss(run)? - loss(reference()?)?),
            Metric::TrainLoss => *run.epochs.last()?.loss.get(single()?)?,
            Metric::FinalTrainLoss => mean_of(&run.train, scope, |metrics| metrics.loss),
            Metric::ValidationLoss => mean_of(run.validation.as_ref()?, scope, |metrics| metrics.loss),
            Metric::MeanGradientNorm => *run.epochs.last()?.mean_gradient_norm.get(single()?)?,
            Metric::GradientNorm => mean_over_epochs(experiment, run, scope, |epoch| &epoch.gradient_norm),
            Metric::ClippedGradientNorm => {
                mean_over_epochs(experiment, run, scope, |epoch| &epoch.clipped_gradient_norm)
            }
            Metric::ClippingBias => {
                let before = mean_over_epochs(experiment, run, scope, |epoch| &epoch.gradient_norm)?;
                Some(before - mean_over_epochs(experiment, run, scope, |epoch| &epoch.clipped_gradient_norm)?)
            }
            Metric::MacroAccuracy => macro_accuracy(&run.test.class_recall),
            Metric::WorstClassAccuracy => worst_class_accuracy(&run.test.class_recall),
            Metric::WorstGroupMacroAccuracy => run.test.worst_group_macro_accuracy(),
            Metric::F1 => run.test.f1(),
            Metric::MagnitudeError => mean_over_steps(run, single()?, |terms| Some(terms.magnitude.mean)),
            Metric::DirectionError => mean_over_steps(run, single()?, |terms| Some(terms.direction.mean)),
            Metric::MagnitudeErrorStar => mean_over_steps(run, single()?, |terms| Some(terms.magnitude_star.mean)),
            Metric::DirectionErrorStar => mean_over_steps(run, single()?, |terms| Some(terms.direction_star.mean)),
            Metric::BestBound => mean_over_steps(run, single()?, |terms| Some(terms.error?.best.mean)),
            Metric::FirstThreshold => first_threshold(run, single()?),
        }
    }
}

/// A mean over the records of a scope.
fn mean_of(
    metrics: &MetricsRecord,
    scope: &Scope,
    of: impl Fn(&run_records::GroupMetrics) -> Option<f64>,
) -> Option<f64> {
    let groups = match scope {
        Scope::All => return of(&metrics.overall),
        Scope::Groups(groups) => groups,
    };
    let (mut sum, mut n) = (0.0, 0);
    for metrics in groups.iter().filter_map(|&group| metrics.groups.get(group)).filter(|metrics| metrics.n > 0) {
        sum += of(metrics)? * metrics.n as f64;
        n += metrics.n;
    }
    (n > 0).then(|| sum / n as f64)
}

/// The mean over epochs of a quantity that is kept by group, each group with the weight of its
/// training records: batches have them in that proportion.
fn mean_over_epochs(
    experiment: &ExperimentResults,
    run: &RunRecord,
    scope: &Scope,
    of: impl Fn(&EpochRecord) -> &[Option<f64>],
) -> Option<f64> {
    let all: Vec<usize>;
    let groups = match scope {
        Scope::Groups(groups) => groups,
        Scope::All => {
            all = (0..experiment.dataset.groups.len()).collect();
            &all
        }
    };
    let (mut sum, mut weight) = (0.0, 0.0);
    for epoch in &run.epochs {
        for &group in groups {
            let n = experiment.dataset.groups.get(group)?.n_train as f64;
            // An epoch may have drawn no record of a small group.
            let Some(value) = *of(epoch).get(group)? else { continue };
            sum += n * value;
            weight += n;
        }
    }
    (weight > 0.0).then(|| sum / weight)
}

/// The mean over the batches of the last epoch of a group's mean loss, 0 where a batch has none of
/// its records. Such batches have their expected share: drawn at the rate of one batch an epoch,
/// each of the `n` records is absent with `1 - 1/batches`.
fn loss_in_batches(experiment: &ExperimentResults, run: &RunRecord, group: usize) -> Option<f64> {
    let last = run.epochs.last()?;
    let loss = (*last.loss.get(group)?)?;
    let batches = last.step as f64 / last.epoch as f64;
    let n = experiment.dataset.groups.get(group)?.n_train as f64;
    Some(loss * (1.0 - (1.0 - 1.0 / batches).powf(n)))
}

/// A term of a group, the mean over the evaluated steps; `None` unless steps were taken apart.
fn mean_over_steps(run: &RunRecord, group: usize, of: impl Fn(&GroupTerms) -> Option<f64>) -> Option<f64> {
    let steps = &run.analysis.as_ref()?.steps;
    let terms: Option<Vec<f64>> = steps.iter().map(|step| of(step.groups.get(group)?.as_ref()?)).collect();
    let terms = terms.filter(|terms| !terms.is_empty())?;
    Some(terms.iter().sum::<f64>() / terms.len() as f64)
}

/// The mean of a group's threshold over the first tenth of the recorded steps; `None` if groups have
/// none of their own.
fn first_threshold(run: &RunRecord, group: usize) -> Option<f64> {
    let first = &run.thresholds[..run.thresholds.len().div_ceil(10)];
    let values: Option<Vec<f64>> = first.iter().map(|step| step.values.get(group).copied()).collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// The run without privacy that shares its split and initial weights with run `index`.
pub fn reference_run(experiment: &ExperimentResults, index: usize) -> Option<&RunRecord> {
    let reference = experiment.methods.iter().find(|method| method.method == REFERENCE)?;
    reference.runs.iter().find(|run| run.index == index)
}

/// Indices of the groups of this name: one, or all intersections that have it as a part.
pub(super) fn members(experiment: &ExperimentResults, name: &str) -> anyhow::Result<Vec<usize>> {
    let groups = &experiment.dataset.groups;
    let indices = |is: &dyn Fn(&str) -> bool| (0..groups.len()).filter(|&index| is(&groups[index].name)).collect();
    let exact: Vec<usize> = indices(&|group| group == name);
    let found: Vec<usize> =
        if exact.is_empty() { indices(&|group| group.split(", ").any(|part| part == name)) } else { exact };
    if found.is_empty() {
        let known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        bail!("experiment `{}` has no group `{name}`, only {}", experiment.id, known.join(", "));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn norms_of_groups_have_the_weight_of_their_records() {
        let mut experiment = fixture::study().experiments.remove(0);
        experiment.dataset.groups[0].n_train = 30;
        experiment.dataset.groups[1].n_train = 10;
        for epoch in &mut experiment.methods[1].runs[0].epochs {
            epoch.gradient_norm = vec![Some(2.0), Some(6.0)];
            epoch.clipped_gradient_norm = vec![Some(0.1), None];
        }
        let first = |metric| {
            let column = Column::parse(metric, "total").unwrap();
            column.by_run(&experiment, &experiment.methods[1]).unwrap()[0].1.unwrap()
        };
        assert!((first("gradient_norm") - 3.0).abs() < 1e-12);
        assert!((first("clipped_gradient_norm") - 0.1).abs() < 1e-12, "a group that was not drawn has no weight");
        assert!((first("clipping_bias") - 2.9).abs() < 1e-12, "3.0 before, 0.1 after");
    }

    #[test]
    fn a_batch_without_the_group_has_no_loss() {
        let mut experiment = fixture::study().experiments.remove(0);
        experiment.dataset.groups[0].n_train = 2;
        experiment.dataset.groups[1].n_train = 10_000;
        for (method, loss) in [(0, [0.2, 0.1]), (1, [0.8, 0.5])] {
            for run in &mut experiment.methods[method].runs {
                let last = run.epochs.last_mut().unwrap();
                (last.epoch, last.step, last.loss) = (3, 30, loss.map(Some).to_vec());
            }
        }
        let of = |metric, group| {
            let column = Column::parse(metric, group).unwrap();
            column.estimate(&experiment, &experiment.methods[1]).unwrap().mean.unwrap()
        };
        let groups = &experiment.dataset.groups;
        // Ten batches an epoch: both records are absent from a batch with 0.9².
        assert!((of("loss_in_batches", &groups[0].name) - 0.8 * 0.19).abs() < 1e-12);
        assert!((of("loss_in_batches", &groups[1].name) - 0.5).abs() < 1e-12);
        assert!((of("excessive_risk_in_batches", &groups[0].name) - 0.6 * 0.19).abs() < 1e-12);
        assert!((of("loss", &groups[0].name) - 0.8 * 0.19).abs() > 1e-3, "the test records' own");
    }

    #[test]
    fn a_threshold_of_a_group_is_of_the_first_tenth() {
        let mut experiment = fixture::study().experiments.remove(0);
        for run in &mut experiment.methods[1].runs {
            let at = |step: u64| run_records::ThresholdRecord { step, values: vec![step as f64, 1.0] };
            run.thresholds = (1..=20).map(at).collect();
        }
        let groups = experiment.dataset.groups.clone();
        let of = |method: usize, group: usize| {
            let column = Column::parse("first_threshold", &groups[group].name).unwrap();
            column.estimate(&experiment, &experiment.methods[method]).unwrap().mean
        };
        assert_eq!((of(1, 0), of(1, 1)), (Some(1.5), Some(1.0)));
    }

    #[test]
    fn a_part_of_an_intersection_is_the_mean_over_its_records() {
        let mut experiment = fixture::study().experiments.remove(0);
        experiment.dataset.groups[0].name = "male, young".to_owned();
        experiment.dataset.groups[1].name = "male, old".to_owned();
        for run in experiment.methods.iter_mut().flat_map(|method| &mut method.runs) {
            run.test.groups[0] = run_records::GroupMetrics { n: 30, accuracy: Some(0.9), loss: Some(0.2) };
            run.test.groups[1] = run_records::GroupMetrics { n: 10, accuracy: Some(0.5), loss: Some(0.6) };
        }
        let mean = |metric, group| {
            let column = Column::parse(metric, group).unwrap();
            column.estimate(&experiment, &experiment.methods[0]).unwrap().mean.unwrap()
        };
        // (30·0.9 + 10·0.5)/40 and (30·0.2 + 10·0.6)/40.
        assert!((mean("accuracy", "male") - 0.8).abs() < 1e-12);
        assert!((mean("loss", "male") - 0.3).abs() < 1e-12);
        assert!((mean("loss_gap", "young|old") - 0.4).abs() < 1e-12);
        // The second pair is one group against itself: (0.4 + 0)/2.
        assert!((mean("loss_gap", "young|old+male|male") - 0.2).abs() < 1e-12);
        assert!(Column::parse("accuracy", "female").unwrap().estimate(&experiment, &experiment.methods[0]).is_err());
    }
}
