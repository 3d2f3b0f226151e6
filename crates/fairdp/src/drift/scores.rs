//! Groups and scores of a new table beside the released cumulative scores.

use dp_linear::sigmoid;
use dp_table::Group;
use fair_decisions::{CumulativeCounts, N_CELLS, PrefixSums};
use fair_metrics::noisy::{Change, Share, mean_of_shares};

use super::ScoreDrift;
use super::table::NewTable;
use crate::fairness::{CONFIDENCE, Rate};
use crate::new_records::Subject;

/// Ranges of probability between whose edges shares are compared.
const RANGES: usize = 8;

/// Cumulative scores of a release, whose records are of two sides, or of a table, whose are all of the first.
struct Counts<'a> {
    cumulative: &'a CumulativeCounts,
    n_sides: usize,
    sums: &'a PrefixSums,
}

impl Counts<'_> {
    /// Records above an edge, and the others, of some groups.
    fn above(&self, groups: &[usize], edge: usize) -> Share {
        let mut sum = Share::exact(0.0, 0.0);
        for &group in groups {
            for side in 0..self.n_sides {
                sum = sum.and(self.cumulative.share_above(self.sums, group, side, edge));
            }
        }
        sum
    }

    /// Records of a group, and of all others.
    fn of_group(&self, group: usize) -> Share {
        let total = |group: usize| -> f64 { (0..self.n_sides).map(|side| self.cumulative.total(group, side)).sum() };
        let others: f64 = (0..self.cumulative.n_groups()).filter(|other| *other != group).map(total).sum();
        let noise = (0..self.n_sides).map(|side| self.cumulative.total_noise(self.sums, side).powi(2)).sum::<f64>();
        Share::independent(total(group), others, noise, (self.cumulative.n_groups() - 1) as f64 * noise)
    }
}

/// Every share that both have, and what is not compared.
pub(super) fn compared(subject: &Subject, table: &NewTable) -> (Vec<ScoreDrift>, Vec<String>) {
    let mut notes = Vec::new();
    let known =
        subject.scores.as_ref().and_then(|scores| Some((scores, scores.test.as_ref().or(scores.training.as_ref())?)));
    let (Some((scores, known)), Some(found)) = (known, &table.counts) else {
        notes.push(
            "groups and scores are not compared: the release has no cumulative scores (they are of two classes, or of more \
             with fairness.class)"
                .to_owned(),
        );
        return (Vec::new(), notes);
    };
    if !table.has_groups {
        notes.push("groups are not compared: the table has not all of their columns".to_owned());
    }
    let sums = PrefixSums::new();
    let before = Counts { cumulative: known, n_sides: 2, sums: &sums };
    let after = Counts { cumulative: found, n_sides: 1, sums: &sums };
    let groups = if table.has_groups { subject.model.encoding().groups() } else { &[] };
    let mut pairs: Vec<(Group, Option<f64>, Share, Share)> = Vec::new();
    if groups.len() > 1 {
        let own = groups.iter().enumerate();
        pairs.extend(own.map(|(place, group)| (group.clone(), None, before.of_group(place), after.of_group(place))));
    }
    let all = |counts: &CumulativeCounts| (0..counts.n_groups()).collect::<Vec<usize>>();
    let several = if groups.len() > 1 { groups } else { &[] };
    let members = std::iter::once((Group::all(), all(known), all(found)))
        .chain(several.iter().enumerate().map(|(place, group)| (group.clone(), vec![place], vec![place])));
    for (group, of_known, of_found) in members {
        for range in 1..RANGES {
            let edge = range * (N_CELLS / RANGES) - 1;
            let above = sigmoid(scores.threshold(edge));
            pairs.push((group.clone(), Some(above), before.above(&of_known, edge), after.above(&of_found, edge)));
        }
    }
    let rate = |share: &Share, level: f64| mean_of_shares(std::slice::from_ref(share), level);
    let ends = |rate: Rate| rate.value.map(|value| [value, rate.low, rate.high]);
    let n = pairs.iter().filter(|(.., before, after)| before.is_known() && after.is_known()).count();
    let level_of_all = 1.0 - (1.0 - CONFIDENCE) / n.max(1) as f64;
    let mut unknown: Vec<String> = Vec::new();
    let mut drifts = Vec::new();
    for (group, above, before, after) in pairs {
        let wide = [&before, &after].map(|share| ends(rate(share, level_of_all)));
        let [before, after] = [before, after].map(|share| rate(&share, CONFIDENCE));
        let ([Some(known), Some(found)], [Some(of_known), Some(of_found)]) = ([ends(before), ends(after)], wide) else {
            unknown.push(group.to_string());
            continue;
        };
        let change = Change::between([known, found], [of_known, of_found]);
        drifts.push(ScoreDrift { group, above, before, after, change });
    }
    unknown.dedup();
    if !unknown.is_empty() {
        notes.push(format!("not compared, of too few records in the release or the table: {}", unknown.join(", ")));
    }
    (drifts, notes)
}
