//! Sentences of a statement: unit of privacy, coverage, settings, batches.

use dp_table::{BadRows, BlockKind, Encoding};

use super::candidates::Candidate;
use super::trial_score::ScoreGoal;
use super::{FitPlan, PlannedGroup};
use crate::coins::IN_WORDS;
use crate::config::{Config, UnitRows, WeightEntry};
use crate::fairness::FairnessReport;
use crate::network;
use crate::statement::Unit;

/// The unit of privacy.
pub(super) fn unit(config: &Config) -> Unit {
    match &config.unit {
        None => Unit {
            what: "one record (a row of the table; a person with several rows, say in a bootstrap sample, has less \
                   protection)"
                .into(),
            max_records: 1,
            rows: UnitRows::First,
        },
        Some(unit) => Unit {
            what: format!("all records with one value of `{}` (which records share one is public)", unit.column),
            max_records: config.counted_per_unit(),
            rows: unit.rows,
        },
    }
}

/// Parts of the release that ε covers.
pub(super) fn covers(has_test: bool) -> Vec<String> {
    let mut covers = vec!["the model".to_owned(), "its pipeline".to_owned(), "its card".to_owned()];
    if has_test {
        covers.push("the fairness figures".to_owned());
    }
    covers
}

/// The method, and how much a record counts in it.
pub(super) fn method(config: &Config, candidate: &Candidate) -> String {
    let method = &candidate.method;
    match &config.weight {
        None => method.clone(),
        Some(WeightEntry { column, high, .. }) => format!(
            "{method}. A record counts in training by its weight in `{column}`, at most {high} and divided by it, so that none \
             counts more than one record; rates and numbers of groups are of records, without weights"
        ),
    }
}

/// The information in the existence of a release: a run that refuses its table has none.
pub(super) fn existence(config: &Config) -> String {
    let says = match (config.table.bad_rows, &config.unit) {
        (BadRows::Refuse, _) => "every record fitted the configuration (`bad_rows = \"refuse\"`)",
        (BadRows::Drop, None) => "the table could be read to its end (`bad_rows = \"drop\"`)",
        (BadRows::Drop, Some(_)) => {
            "the table could be read to its end, and the unit of every record (`bad_rows = \"drop\"`)"
        }
    };
    format!("that this release exists: it says that {says}")
}

/// The source of the test figures, and the group that may be served worst.
pub(crate) fn test_figures(fairness: &FairnessReport) -> String {
    if !fairness.measured {
        return "none: all records were trained on".into();
    }
    let lowest = fairness.lowest().map_or(String::new(), |lowest| format!("; {lowest}"));
    if let Some(numbers) = &fairness.numbers {
        let largest = numbers.largest_error().map_or(String::new(), |largest| format!("; {largest}"));
        let [low, high] = numbers.range;
        let remarks = numbers.remarks();
        let moved = if remarks.is_empty() {
            String::new()
        } else {
            let what = "the released mean error of each group is taken off its predictions, at no further ε";
            format!("; {what}: {}", remarks.join("; "))
        };
        return format!(
            "from sums of errors by group on records that were not trained on, with Gaussian noise, that of each number of \
             records of standard deviation {:.2}; labels and predictions are within {low} and {high}, labels beyond are set to \
             the nearer end; a record is in one part alone, so ε is the largest of the parts'{largest}{moved}",
            fairness.noise_std
        );
    }
    let counts = if fairness.price_curve.is_empty() && fairness.groups.iter().all(|group| group.auc.is_none()) {
        "counts by group, class and answer"
    } else {
        "cumulative counts by group, class and score"
    };
    let has_coins = fairness.thresholds.as_ref().is_some_and(|thresholds| !thresholds.coins.is_empty());
    let coins = if has_coins { format!("; {IN_WORDS}, and figures are means over it") } else { String::new() };
    format!(
        "from {counts} on records that were not trained on, each number of records with Gaussian noise of standard \
         deviation {:.2}; a record is in one part alone, so ε is the largest of the parts'{coins}{lowest}",
        fairness.noise_std
    )
}

/// How settings were chosen.
pub(super) fn settings(config: &Config, plan: &FitPlan, known: Option<&str>) -> String {
    let Some(tuning) = &config.tuning else {
        let given = config.user_settings();
        if let Some(known) = known {
            let given = if given.is_empty() { String::new() } else { format!(", with {}", given.join(", ")) };
            return format!(
                "none within this fit{given}. Whether its settings were chosen by a look at these records, or by earlier fits, is not \
                 known here, and no ε here covers it: {known}"
            );
        }
        if given.is_empty() {
            return "none: every setting follows from public numbers and from the releases below".into();
        }
        return format!(
            "{}, as the configuration has them. Choosing them by a look at these records costs privacy, and no ε here covers it",
            given.join(", ")
        );
    };
    let by = match ScoreGoal::of(config) {
        ScoreGoal::Probabilities => "the noisy sum of 1 less the Brier score".to_owned(),
        ScoreGoal::WorstGroup { min_accuracy } => format!(
            "the balanced accuracy of the group that is served worst, from noisy counts of right and wrong answers by group and \
             class, less what accuracy lacks to {min_accuracy},"
        ),
    };
    let named = plan
        .candidates
        .iter()
        .enumerate()
        .map(|(index, candidate)| format!("({}) {}, {}", index + 1, candidate.model, candidate.method));
    format!(
        "the best of a random number of trials, {} expected, each a candidate out of {} that was drawn without a look at the \
         records; compared by {by} over records that were neither trained nor tested on (Papernot and Steinke 2022); the other \
         trials and their number stay secret; the candidates: {}",
        tuning.mean_trials,
        plan.candidates.len(),
        named.collect::<Vec<_>>().join("; ")
    )
}

/// How records came into batches and parts.
pub(super) fn sampling(plan: &FitPlan) -> String {
    if !plan.groups.is_empty() {
        let of_group = |group: &PlannedGroup| {
            format!("{} {} (threshold × {})", group.group, group.sampling_rate, group.threshold_share)
        };
        return format!(
            "Poisson by group: this program drew every record into every batch with the public probability of its group, \
             independently, by ChaCha20, and clipped it at its group's share of the threshold: {}; which records a batch has is \
             not released; {DIVIDED}",
            plan.groups.iter().map(of_group).collect::<Vec<_>>().join(", ")
        );
    }
    let first = plan.candidates.first();
    if let Some((limits, sigma)) = first.and_then(|one| Some((one.recipe.limits_of_rates()?, one.noise_multiplier))) {
        return format!(
            "Poisson by group: this program drew every record into every batch with a probability from {} to {}, independently, by \
             ChaCha20; that of a group followed from the noisy losses of earlier steps, and the larger it was, the smaller was the \
             group's threshold; the noise is {sigma} times the threshold at the least rate; the divergence in the ledger is the largest \
             of all rates under it, and `fairdp verify` takes it as it is said; which records a batch has is not released; {DIVIDED}",
            limits.least, limits.largest
        );
    }
    let mut rates: Vec<f64> = plan.candidates.iter().map(|candidate| candidate.recipe.sampling_rate()).collect();
    rates.retain(|rate| *rate < 1.0);
    let batches = if rates.is_empty() {
        "none: every step uses all training records, so nothing is amplified and nothing assumed of a sampler".into()
    } else {
        format!(
            "Poisson: this program drew every record into every batch with probability {}, independently, by ChaCha20; which \
             records a batch has is not released",
            rates.iter().map(f64::to_string).collect::<Vec<_>>().join(" or ")
        )
    };
    format!("{batches}; {DIVIDED}")
}

const DIVIDED: &str =
    "the parts of the records were divided by this program, by the record's number or by a keyed hash of its unit";

/// What makes features of the records and depends on none of them.
pub(super) fn fixed(config: &Config, encoding: &Encoding) -> Vec<String> {
    let images = encoding.blocks().iter().filter_map(|block| {
        let BlockKind::Image { length, filters, .. } = &block.kind else { return None };
        let column = &block.column;
        Some(match filters {
            Some(filters) => {
                format!("column `{column}`: {length} features of an image by {filters}, whose filters are constants")
            }
            None => network::fixed(config.model.network.unwrap_or_default(), column, *length),
        })
    });
    let encoder = config.card.as_ref().and_then(|card| {
        let digest = card.encoder_sha256.as_ref().map(|digest| format!(", sha256 {}", digest.to_lowercase()));
        let encoder = card.encoder.as_ref()?;
        Some(format!("the encoder {encoder}{}, as the configuration says", digest.unwrap_or_default()))
    });
    images.chain(encoder).collect()
}
