//! Claims over seeds: one or several comparisons, of plain quantities and of gaps.

use fair_metrics::{Alternative, Compared, Estimate, MetricError, SeedValues, compare, holm, resampled_t_test};
use study_report::statistics::{Direction, SIGNIFICANCE, TestedClaim};

use super::{Scenario, Sink};
use crate::draws::Draws;

const SEEDS: usize = 10;

/// Methods share a seed's partition: half of the variance.
fn methods(draws: &mut Draws<'_>, means: &[f64]) -> Result<Vec<SeedValues>, MetricError> {
    let shared = draws.normals(SEEDS, 0.0, 1.0);
    let values = |draws: &mut Draws<'_>, mean: f64| {
        let own = draws.normals(SEEDS, mean, 1.0);
        SeedValues::plain(&own.iter().zip(&shared).map(|(own, shared)| own + shared).collect::<Vec<_>>())
    };
    means.iter().map(|mean| values(draws, *mean)).collect()
}

/// That the first is smaller than every other.
fn least(quantities: &[SeedValues]) -> Result<TestedClaim, MetricError> {
    let Some((first, others)) = quantities.split_first() else { return Ok(TestedClaim::new(&[])) };
    let comparisons = others.iter().map(|other| compare(first, other)).collect::<Result<Vec<Compared>, _>>()?;
    Ok(TestedClaim::new(&comparisons))
}

fn least_of(draws: &mut Draws<'_>, means: &[f64]) -> Result<Direction, MetricError> {
    Ok(least(&methods(draws, means)?)?.direction(SIGNIFICANCE))
}

/// The gap of groups with these means, each varying with this deviation.
fn gap(draws: &mut Draws<'_>, means: &[f64], deviation: f64) -> Result<SeedValues, MetricError> {
    let seeds: Vec<Vec<f64>> =
        (0..SEEDS).map(|_| means.iter().map(|mean| mean + deviation * draws.normal()).collect()).collect();
    SeedValues::gap(&seeds)
}

fn gaps(draws: &mut Draws<'_>, a: (&[f64], f64), b: (&[f64], f64)) -> Result<Direction, MetricError> {
    let pair = [gap(draws, a.0, a.1)?, gap(draws, b.0, b.1)?];
    Ok(least(&pair)?.direction(SIGNIFICANCE))
}

/// Whether any of this many claims about equal methods is confirmed after Holm's adjustment.
fn any_of(draws: &mut Draws<'_>, n_claims: usize) -> Result<bool, MetricError> {
    let claims = (0..n_claims)
        .map(|_| Ok(least(&methods(draws, &[0.0, 0.0])?)?.p_claim))
        .collect::<Result<Vec<f64>, MetricError>>()?;
    Ok(holm(&claims)?.iter().any(|p| *p <= SIGNIFICANCE))
}

/// Seeds that partition one pool, as Nadeau and Bengio model them: their differences have
/// correlation `n_test/(n_train + n_test)`.
fn new_records(draws: &mut Draws<'_>, n_train: usize, n_test: usize) -> Result<bool, MetricError> {
    let correlation = n_test as f64 / (n_train + n_test) as f64;
    let shared = correlation.sqrt() * draws.normal();
    let differences: Vec<f64> =
        draws.normals(SEEDS, 0.0, (1.0 - correlation).sqrt()).iter().map(|own| own + shared).collect();
    let test = resampled_t_test(&Estimate::of(&differences)?, n_train, n_test, Alternative::TwoSided)?;
    Ok(test.is_some_and(|test| test.p_value <= SIGNIFICANCE))
}

pub(super) fn simulate(sink: Sink<'_>) -> Result<(), MetricError> {
    use Direction::{Confirmed, Contradicted};
    const ONE_TRUE: &str = "claim of one comparison: confirmed";
    const ONE_FALSE: &str = "claim of one comparison: contradicted";
    const THREE_TRUE: &str = "claim of three comparisons: confirmed";
    const THREE_FALSE: &str = "claim of three comparisons: contradicted";
    let equal = "equal methods";
    sink(Scenario { rule: ONE_TRUE, truth: equal, trial: &|d| Ok(least_of(d, &[0.0; 2])? == Confirmed) })?;
    sink(Scenario { rule: ONE_FALSE, truth: equal, trial: &|d| Ok(least_of(d, &[0.0; 2])? == Contradicted) })?;
    sink(Scenario { rule: THREE_TRUE, truth: equal, trial: &|d| Ok(least_of(d, &[0.0; 4])? == Confirmed) })?;
    sink(Scenario { rule: THREE_FALSE, truth: equal, trial: &|d| Ok(least_of(d, &[0.0; 4])? == Contradicted) })?;
    sink(Scenario {
        rule: THREE_TRUE,
        truth: "two comparisons hold, the third pair is equal",
        trial: &|d| Ok(least_of(d, &[0.0, 9.0, 9.0, 0.0])? == Confirmed),
    })?;
    sink(Scenario {
        rule: THREE_FALSE,
        truth: "two comparisons hold, the third pair is equal",
        trial: &|d| Ok(least_of(d, &[0.0, 9.0, 9.0, 0.0])? == Contradicted),
    })?;
    sink(Scenario {
        rule: "family of 14 claims, Holm: any confirmed",
        truth: "equal methods throughout",
        trial: &|d| any_of(d, 14),
    })?;
    gaps_of_means(sink)?;
    sink(Scenario {
        rule: "difference on new records (Nadeau and Bengio): significant",
        truth: "equal methods; ten partitions of one pool, a fifth of it for testing",
        trial: &|d| new_records(d, 4, 1),
    })
}

/// Claims about gaps, of methods that are unequally noisy.
fn gaps_of_means(sink: Sink<'_>) -> Result<(), MetricError> {
    use Direction::{Confirmed, Contradicted};
    const GAP_TRUE: &str = "claim of a smaller gap: confirmed";
    const GAP_FALSE: &str = "claim of a smaller gap: contradicted";
    let none = "two groups, no gap in either method";
    sink(Scenario {
        rule: GAP_TRUE,
        truth: none,
        trial: &|d| Ok(gaps(d, (&[0.0; 2], 1.0), (&[0.0; 2], 1.0))? == Confirmed),
    })?;
    let noisy = "two groups, no gap, the other method three times as noisy";
    sink(Scenario {
        rule: GAP_TRUE,
        truth: noisy,
        trial: &|d| Ok(gaps(d, (&[0.0; 2], 1.0), (&[0.0; 2], 3.0))? == Confirmed),
    })?;
    let very_noisy = "two groups, no gap, the other method a thousand times as noisy";
    sink(Scenario {
        rule: GAP_TRUE,
        truth: very_noisy,
        trial: &|d| Ok(gaps(d, (&[0.0; 2], 0.001), (&[0.0; 2], 1.0))? == Confirmed),
    })?;
    sink(Scenario {
        rule: GAP_FALSE,
        truth: "two groups, no gap, this method a thousand times as noisy",
        trial: &|d| Ok(gaps(d, (&[0.0; 2], 1.0), (&[0.0; 2], 0.001))? == Contradicted),
    })?;
    let opposite = "two groups, equal gaps in opposite directions";
    sink(Scenario {
        rule: GAP_TRUE,
        truth: opposite,
        trial: &|d| Ok(gaps(d, (&[0.0, 2.0], 1.0), (&[2.0, 0.0], 1.0))? == Confirmed),
    })?;
    sink(Scenario {
        rule: GAP_FALSE,
        truth: opposite,
        trial: &|d| Ok(gaps(d, (&[0.0, 2.0], 1.0), (&[2.0, 0.0], 1.0))? == Contradicted),
    })?;
    let four = "four groups, no gap, the other method three times as noisy";
    sink(Scenario {
        rule: GAP_TRUE,
        truth: four,
        trial: &|d| Ok(gaps(d, (&[0.0; 4], 1.0), (&[0.0; 4], 3.0))? == Confirmed),
    })?;
    sink(Scenario {
        rule: GAP_TRUE,
        truth: "four groups, the same widest gap",
        trial: &|d| Ok(gaps(d, (&[0.0, 3.0, 1.0, 1.0], 1.0), (&[3.0, 0.0, 1.0, 1.0], 1.0))? == Confirmed),
    })
}
