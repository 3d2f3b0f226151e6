//! Convex hulls of the points that thresholds reach.

use crate::grid::N_EDGES;
use crate::mixture::Mixture;

/// The vertices of one side of the convex hull of points, by rising x.
#[derive(Debug)]
pub(super) struct Hull(Vec<(usize, [f64; 2])>);

impl Hull {
    /// The upper side of the points of all edges, or with a sign of −1 the lower one.
    pub(super) fn of(point: impl Fn(usize) -> [f64; 2], sign: f64) -> Self {
        let mut points: Vec<(usize, [f64; 2])> = (0..N_EDGES).map(|edge| (edge, point(edge))).collect();
        points.sort_by(|(_, a), (_, b)| a[0].total_cmp(&b[0]).then((sign * b[1]).total_cmp(&(sign * a[1]))));
        points.dedup_by(|next, one| next.1[0] == one.1[0]);
        let mut hull: Vec<(usize, [f64; 2])> = Vec::new();
        for next in points {
            while let [.., (_, a), (_, b)] = hull[..]
                && sign * ((b[0] - a[0]) * (next.1[1] - a[1]) - (b[1] - a[1]) * (next.1[0] - a[0])) >= 0.0
            {
                hull.pop();
            }
            hull.push(next);
        }
        Self(hull)
    }

    /// The mixture whose mean is at this x, and its y; `None` beyond the range.
    pub(super) fn at(&self, x: f64) -> Option<(Mixture, f64)> {
        let above = self.0.partition_point(|(_, point)| point[0] < x);
        let &(next, b) = self.0.get(above)?;
        if b[0] == x {
            return Some((Mixture::at(next), b[1]));
        }
        let &(edge, a) = self.0.get(above.checked_sub(1)?)?;
        let weight = (x - a[0]) / (b[0] - a[0]);
        Some((Mixture::at(edge).or(&Mixture::at(next), weight), a[1] + weight * (b[1] - a[1])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a parabola, whose chords are below it and above the line between its ends.
    #[test]
    fn a_point_between_vertices_is_a_mixture_of_both() {
        let last = (N_EDGES - 1) as f64;
        let point = |edge: usize| {
            let x = edge as f64 / last;
            [x, x * (2.0 - x)]
        };
        let (upper, lower) = (Hull::of(point, 1.0), Hull::of(point, -1.0));
        assert_eq!((upper.0.len(), lower.0.len()), (N_EDGES, 2));
        let (coin, y) = upper.at(3.25 / last).unwrap();
        assert_eq!(coin.parts().iter().map(|(edge, _)| *edge).collect::<Vec<_>>(), [3, 4]);
        assert!((coin.mean(|edge| point(edge)[0]) - 3.25 / last).abs() < 1e-12);
        assert!((coin.mean(|edge| point(edge)[1]) - y).abs() < 1e-12);
        let (coin, y) = lower.at(0.25).unwrap();
        assert!((y - 0.25).abs() < 1e-12 && coin.parts().len() == 2, "{coin:?}");
        assert!(upper.at(1.5).is_none() && upper.at(-0.5).is_none());
    }
}
