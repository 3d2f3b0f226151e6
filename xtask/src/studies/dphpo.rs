//! `cargo xtask reproduce dphpo`: Zhao 2025, 4.3 and Figure 4. Rate, bound and batch size are
//! searched for within ε.

use dp_accounting::{Epsilon, TrialCount};
use dp_data::mnist::Collection;
use study_report::{Claim, Judged, Searched, StudyPresentation};

use super::study::{Study, StudyArgs};
use super::zhao::{self, BOUNDS, RATES, STRATEGIES, Search};
use crate::run::data_setting::DataSetting;
use crate::run::experiment::{Experiment, MethodSetting};
use crate::run::random_search::RandomSearch;
use crate::run::strategy::strategy;

/// Batch sizes of A.4.2.
const BATCH_SIZES: [usize; 6] = [1_024, 2_048, 4_096, 8_192, 16_384, 32_768];
/// Expected numbers of trials.
const TRIALS: [f64; 3] = [3.0, 10.0, 30.0];
const QUICK_TRIALS: [f64; 2] = [2.0, 4.0];
/// Shape of the truncated negative binomial: geometric.
const SHAPE: f64 = 1.0;
/// Searches, as in the paper.
const SEEDS: u32 = 20;

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let trials: &[f64] = if args.options.quick { &QUICK_TRIALS } else { &TRIALS };
    let accuracies = [("women's accuracy", "accuracy", "female"), ("men's accuracy", "accuracy", "male")];
    let [adult, dutch] = zhao::censuses(args);
    let mnist = zhao::images(args, Collection::Mnist);
    let fashion = zhao::images(args, Collection::FashionMnist);
    let mut experiments = Vec::new();
    let mut claims = Vec::new();
    let mut searches = Vec::new();
    for (data, columns) in [
        (adult, &accuracies[..]),
        (dutch, &accuracies[..]),
        (mnist, &zhao::WORST_CLASS[..]),
        (fashion, &zhao::WORST_CLASS[..]),
    ] {
        claims.extend(self::claims(&data, trials, columns)?);
        experiments.push(experiment(&data, trials)?);
        searches.push(Searched {
            experiment: id(&data),
            judged: Judged::MacroAccuracy,
            published: Some("Zhao 2025, 4.3"),
        });
    }
    Ok(Study::new(
        "dphpo",
        StudyPresentation {
            ranked: Vec::new(),
            searches,
            pooled: None,
            title: "Constant, adaptive and bounded adaptive clipping where the search is part of ε".to_owned(),
            tables: Vec::new(),
            claims,
        },
        experiments,
    ))
}

fn id(data: &Search) -> String {
    format!("zhao-{}-dphpo", data.name)
}

/// Every strategy with every expected number of trials.
fn experiment(data: &Search, trials: &[f64]) -> anyhow::Result<Experiment> {
    let epsilon = data.epsilons[1];
    let mut methods = vec![zhao::reference(data.reference_rate)];
    for name in STRATEGIES {
        for &mean in trials {
            methods.push(searching(name, epsilon, mean)?);
        }
    }
    let departures = vec![
        format!(
            "Each trial is within ε = {epsilon}, the middle one of the paper's table; the paper does not print that of its search. What \
             a search costs follows from it, and curves run over that."
        ),
        "A trial is scored on a fifth of the training part, held out, by counts of right and wrong answers with Gaussian noise; the \
         paper does not say on which records it scores, nor that scores have noise. A record is trained on or counted, never both, so \
         that a trial costs the dearer of the two, not their sum."
            .to_owned(),
        "The number of trials is geometric; the paper has the truncated negative binomial and prints no shape. It charges the number \
         of points of its grid as the expected number of trials; here the mean that was drawn with is charged."
            .to_owned(),
        "The best trial's model is released as it is. Training it again on the whole training part would cost ε again.".to_owned(),
        "A batch size above the number of records is all records.".to_owned(),
        "The reference without privacy, which the paper does not have, takes plain steps with rate 1.".to_owned(),
    ];
    let setting = zhao::Setting {
        id: id(data),
        title: format!("Zhao 2025: {}, search within ε", data.title),
        data: DataSetting { evaluation: zhao::VALIDATION, ..data.source.into() },
        model: data.model.clone(),
        loss: data.loss.clone(),
        batch_size: data.batch_size,
        epochs: data.epochs,
        seeds: SEEDS,
    };
    zhao::experiment(setting, methods, departures)
}

/// A strategy that searches its own settings. Unbounded adaptive clipping has no bound to search.
fn searching(name: &'static str, epsilon: f64, mean_trials: f64) -> anyhow::Result<MethodSetting> {
    let mut method = strategy(name, RATES[0], None).at("trials", mean_trials);
    method.search = Some(RandomSearch {
        rates: RATES.to_vec(),
        bounds: if name == "unbounded-adaptive" { Vec::new() } else { BOUNDS.to_vec() },
        batch_sizes: BATCH_SIZES.to_vec(),
        epsilon: Epsilon::new(epsilon)?,
        trials: TrialCount::negative_binomial(SHAPE, 1.0 / mean_trials)?,
    });
    Ok(method)
}

/// What the paper says of searches with these expected numbers of trials.
fn claims(data: &Search, trials: &[f64], columns: &[(&str, &str, &str)]) -> anyhow::Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for mean in trials {
        for (words, metric, group) in columns {
            let of = |name: &str| format!("{name} trials={mean}");
            let (constant, unbounded) = (of("dpsgd-normalised"), of("unbounded-adaptive"));
            let whole = ("constant and unbounded adaptive clipping", vec![constant.as_str(), &unbounded]);
            for (rivals, others) in [whole, ("unbounded adaptive clipping", vec![&unbounded])] {
                claims.push(Claim::greatest(
                    &format!(
                        "Found by a search within ε, bounded beats {rivals}: {words}, {}, {mean} trials on average",
                        data.title
                    ),
                    "Zhao 2025, 4.3",
                    &id(data),
                    (*metric, *group),
                    &of("bounded-adaptive"),
                    &others,
                )?);
            }
        }
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometric_number_of_trials_has_the_mean_it_says() {
        for mean in TRIALS.into_iter().chain(QUICK_TRIALS) {
            let search = searching("bounded-adaptive", 0.2, mean).unwrap().search.unwrap();
            assert!((search.trials.mean() - mean).abs() < 1e-9);
        }
        assert_eq!(searching("unbounded-adaptive", 0.2, 3.0).unwrap().id, "unbounded-adaptive trials=3");
    }
}
