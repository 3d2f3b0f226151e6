//! Rates that all groups reach where a coin decides between thresholds.

use super::hull::Hull;
use super::{Effort, Search};
use crate::grid::N_EDGES;
use crate::mixture::Mixture;
use crate::mode::Mode;

impl Search<'_> {
    /// The best of: these edges, and mixtures of them or of the common threshold with rates that all groups reach, as
    /// far as the cap allows.
    ///
    /// **Source.** Hardt, Price and Srebro 2016, section 5: a point below the convex hulls of all ROC curves; of one
    /// rate the most accurate mixture of each group.
    pub(super) fn mixed(&self, edges: &[usize], max_loss: f64, effort: Effort) -> Vec<Mixture> {
        let fixed = |edges: &[usize]| edges.iter().map(|&edge| Mixture::at(edge)).collect::<Vec<_>>();
        let bases = [fixed(&self.common), fixed(edges)];
        let mut best = (self.cost(&bases[1], max_loss), bases[1].clone());
        for target in self.targets(effort.targets) {
            for base in &bases {
                let share = self.reach(base, &target, max_loss);
                let mixed: Vec<Mixture> =
                    base.iter().zip(&target).map(|(base, target)| base.or(target, share)).collect();
                let cost = self.cost(&mixed, max_loss);
                if cost < best.0 {
                    best = (cost, mixed);
                }
            }
        }
        best.1
    }

    /// The largest probability of the target at which no loss is above the cap.
    fn reach(&self, base: &[Mixture], target: &[Mixture], max_loss: f64) -> f64 {
        let mode = self.aim.mode;
        let [of_base, of_target] = [base, target].map(|all| self.losses(&self.rates.quality(mode, all)));
        let within = of_base.into_iter().zip(of_target).map(|(base, target)| {
            if target > max_loss { (max_loss - base).max(0.0) / (target - base).max(f64::MIN_POSITIVE) } else { 1.0 }
        });
        // A little less: no rounding passes the cap.
        within.fold(1.0, f64::min).min(1.0) * (1.0 - 1e-9)
    }

    /// Mixtures with which the rates of all large groups are the same.
    fn targets(&self, n: usize) -> Vec<Vec<Mixture>> {
        let large = &self.rates.large;
        if n == 0 || self.aim.mode == Mode::WorstGroup {
            return Vec::new();
        }
        let is_odds = self.aim.mode == Mode::EqualizedOdds;
        let point = |group: usize, edge: usize| {
            let [rate, other] = self.rates.compared(self.aim.mode, group, edge);
            if is_odds { [rate, other] } else { [rate, self.rates.adds(group, edge)] }
        };
        let hulls: Vec<[Hull; 2]> =
            large.iter().map(|&group| [1.0, -1.0].map(|sign| Hull::of(|edge| point(group, edge), sign))).collect();
        let n_points = large.len() * N_EDGES;
        (0..n_points)
            .step_by(n_points.div_ceil(n))
            .filter_map(|place| {
                let x = point(large[place / N_EDGES], place % N_EDGES)[0];
                let sides: Vec<[(Mixture, f64); 2]> =
                    hulls.iter().map(|[upper, lower]| Some([upper.at(x)?, lower.at(x)?])).collect::<Option<_>>()?;
                // The most accurate point that all reach: on the lowest of the hulls.
                let y = sides.iter().map(|[(_, upper), _]| *upper).fold(f64::INFINITY, f64::min);
                let mut mixtures: Vec<Mixture> = self.common.iter().map(|&edge| Mixture::at(edge)).collect();
                for (&group, [(upper, of_upper), (lower, of_lower)]) in large.iter().zip(sides) {
                    if is_odds && y < of_lower {
                        return None;
                    }
                    let below =
                        if is_odds && of_upper > of_lower { (of_upper - y) / (of_upper - of_lower) } else { 0.0 };
                    mixtures[group] = upper.or(&lower, below);
                }
                Some(mixtures)
            })
            .collect()
    }
}
