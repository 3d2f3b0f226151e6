//! Thresholds that a coin decides between.

use serde::{Deserialize, Serialize};

/// Edges with their probabilities, which add up to 1: one edge, or several between which a coin decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mixture(Vec<(usize, f64)>);

impl From<usize> for Mixture {
    fn from(edge: usize) -> Self {
        Self::at(edge)
    }
}

impl From<&Mixture> for Mixture {
    fn from(mixture: &Mixture) -> Self {
        mixture.clone()
    }
}

impl Mixture {
    /// One edge.
    pub fn at(edge: usize) -> Self {
        Self(vec![(edge, 1.0)])
    }

    /// Edges in order with probabilities that add up to 1.
    pub fn of(parts: Vec<(usize, f64)>) -> Self {
        Self(parts)
    }

    /// The edges in order, each with its probability.
    pub fn parts(&self) -> &[(usize, f64)] {
        &self.0
    }

    /// The edge, if there is no coin.
    pub fn fixed(&self) -> Option<usize> {
        match self.0[..] {
            [(edge, _)] => Some(edge),
            _ => None,
        }
    }

    /// The edge that is most probable; of equals the first.
    pub fn likeliest(&self) -> usize {
        let of = |best: (usize, f64), part: &(usize, f64)| if part.1 > best.1 { *part } else { best };
        self.0.iter().fold((0, 0.0), of).0
    }

    /// The mean of a figure of each edge.
    pub fn mean(&self, of: impl Fn(usize) -> f64) -> f64 {
        self.0.iter().map(|&(edge, probability)| probability * of(edge)).sum()
    }

    /// The other one with this probability, else this one.
    #[must_use]
    pub(crate) fn or(&self, other: &Self, probability: f64) -> Self {
        let mut all: Vec<(usize, f64)> = self.0.iter().map(|&(edge, own)| (edge, own * (1.0 - probability))).collect();
        all.extend(other.0.iter().map(|&(edge, own)| (edge, own * probability)));
        all.sort_by_key(|(edge, _)| *edge);
        let mut parts: Vec<(usize, f64)> = Vec::new();
        for (edge, own) in all.into_iter().filter(|(_, own)| *own > LEAST) {
            match parts.last_mut() {
                Some(last) if last.0 == edge => last.1 += own,
                _ => parts.push((edge, own)),
            }
        }
        let sum: f64 = parts.iter().map(|(_, own)| own).sum();
        for (_, own) in &mut parts {
            *own /= sum;
        }
        Self(parts)
    }
}

/// A probability that is left out.
const LEAST: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_order_and_add_up() {
        let coin = Mixture::at(5).or(&Mixture::at(2), 0.25);
        assert_eq!(coin.parts(), [(2, 0.25), (5, 0.75)]);
        assert_eq!((coin.fixed(), coin.likeliest(), coin.mean(|edge| edge as f64)), (None, 5, 4.25));
        assert_eq!(coin.or(&Mixture::at(5), 0.5).parts(), [(2, 0.125), (5, 0.875)]);
        assert_eq!(coin.or(&Mixture::at(7), 1.0), Mixture::at(7));
    }
}
