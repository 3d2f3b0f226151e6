//! From predictions by group to the cost of privacy, the gap between groups, and how sure it is.

use fair_metrics::{
    Estimate, Groups, Labels, Measured, MetricError, Predictions, accuracy_by_group, gaps_over_seeds, largest_gap,
    pairwise_gaps, privacy_cost, t_interval,
};

/// Right for all but every n-th record of a group: 20th and 10th without privacy, 20th and 4th with it.
fn accuracy(seed: usize, every: [usize; 2]) -> Result<Vec<Measured>, MetricError> {
    let groups: Vec<usize> = (0..600).map(|i| usize::from(i % 3 == 0)).collect();
    let labels: Vec<u32> = (0..600).map(|i| (i % 2) as u32).collect();
    let is_wrong = |i: usize| (i * 7 + seed * 11) % 23 * every[groups[i]] < 23;
    let predictions: Vec<u32> = (0..600).map(|i| labels[i] ^ u32::from(is_wrong(i))).collect();
    accuracy_by_group(Labels(&labels), Predictions(&predictions), &Groups::new(&groups, 2)?)
}

pub(crate) fn main() -> Result<(), MetricError> {
    let mut costs = Vec::new();
    for seed in 0..5 {
        let (plain, private) = (accuracy(seed, [20, 10])?, accuracy(seed, [20, 4])?);
        costs.push(privacy_cost(&Measured::values(&plain), &Measured::values(&private))?);
    }
    let gap = largest_gap(&pairwise_gaps(&costs[0])?).and_then(|pair| pair.gap);
    println!("first seed: the groups' costs {:?}, the gap {gap:?}", costs[0]);

    let of_small_group: Vec<f64> = costs.iter().filter_map(|cost| cost[1]).collect();
    let estimate = Estimate::of(&of_small_group)?;
    println!("cost of the small group over seeds: {:?} ± {:?}", estimate.mean, estimate.standard_error);
    let gaps = gaps_over_seeds(&costs)?;
    let interval = t_interval(&gaps[0].difference, 0.95)?;
    println!("difference of the costs, 95 %: {interval:?}");
    // The small group pays more.
    assert!(interval.is_some_and(|interval| interval.high < 0.0));
    Ok(())
}
