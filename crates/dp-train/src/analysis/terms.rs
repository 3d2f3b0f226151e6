//! From what a batch does to a group to the terms of the decomposition.

use super::sampled::Sampled;

/// One Poisson batch as one group sees it.
///
/// With `p = g_B` the plain and `c = ḡ_B` the clipped mean gradient of the batch, `G` the exact
/// mean gradient of the group and `H` its Hessian.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BatchOnGroup {
    /// `‖p‖`.
    pub(super) plain_norm: f64,
    /// `‖c‖`.
    pub(super) clipped_norm: f64,
    /// `⟨G, p⟩`.
    pub(super) plain_slope: f64,
    /// `⟨G, c⟩`.
    pub(super) clipped_slope: f64,
    /// `pᵀHp`.
    pub(super) plain_bend: f64,
    /// `cᵀHc`.
    pub(super) clipped_bend: f64,
}

/// `⟨G, x⟩` and `xᵀHx` of a step `x`: what the loss of the group does along it, to second order.
#[derive(Debug, Clone, Copy)]
struct Step {
    slope: f64,
    bend: f64,
}

impl Step {
    fn stretched(self, factor: f64) -> Self {
        Self { slope: self.slope * factor, bend: self.bend * factor * factor }
    }

    /// Change of the loss when `−ηx` is added to the parameters.
    fn loss(self, rate: f64) -> f64 {
        -rate * self.slope + rate * rate / 2.0 * self.bend
    }
}

impl BatchOnGroup {
    fn plain(&self) -> Step {
        Step { slope: self.plain_slope, bend: self.plain_bend }
    }

    fn clipped(&self) -> Step {
        Step { slope: self.clipped_slope, bend: self.clipped_bend }
    }

    /// `(‖c‖/‖p‖) p`: the plain direction with the clipped length; 0 if `p` is 0.
    fn shortened(&self) -> Step {
        let ratio = if self.plain_norm > 0.0 { self.clipped_norm / self.plain_norm } else { 0.0 };
        self.plain().stretched(ratio)
    }

    /// `(‖p‖/‖c‖) c`: the clipped direction with the plain length; `p` itself if nothing is left of
    /// `c` to have a direction.
    fn turned(&self) -> Step {
        if self.clipped_norm > 0.0 {
            self.clipped().stretched(self.plain_norm / self.clipped_norm)
        } else {
            self.plain()
        }
    }
}

/// The terms of one group that follow from batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ClippingTerms {
    pub(super) clip: Sampled,
    pub(super) magnitude: Sampled,
    pub(super) direction: Sampled,
    pub(super) magnitude_star: Sampled,
    pub(super) direction_star: Sampled,
    /// `‖G‖ E[‖c‖ (cos θ − cos θ̄)]`, the first-order part of the direction term over η.
    pub(super) direction_slope: Sampled,
    /// `‖G‖ E[‖p‖ (cos θ − cos θ̄)]`, that of its alternate.
    pub(super) direction_star_slope: Sampled,
    /// `cos θ`, `θ` the angle between `G` and `p`.
    pub(super) plain_cosine: Sampled,
    /// `cos θ̄`, `θ̄` the angle between `G` and `c`.
    pub(super) clipped_cosine: Sampled,
    /// `θ` in degrees.
    pub(super) plain_angle: Sampled,
    /// `θ̄` in degrees.
    pub(super) clipped_angle: Sampled,
}

/// Means over batches, with `⟨G, g_D⟩`, the exact mean of `⟨G, p⟩`, taking most of the sampling
/// error out.
///
/// A batch adds `⟨G, x⟩ − β(⟨G, p⟩ − ⟨G, g_D⟩)` to a mean of `⟨G, x⟩`, where `x` is any of the four
/// steps. The bracket has mean 0, so no bias comes of it as long as `β` does not depend on the
/// batch: it is the mean of `‖c‖/‖p‖` over the *other* batches where `x` has the clipped length,
/// and 1 where it has the plain one.
pub(super) fn clipping_terms(batches: &[BatchOnGroup], group_norm: f64, exact_slope: f64, rate: f64) -> ClippingTerms {
    let ratios: Vec<f64> =
        batches.iter().map(|b| if b.plain_norm > 0.0 { b.clipped_norm / b.plain_norm } else { 0.0 }).collect();
    let total: f64 = ratios.iter().sum();
    let others = (batches.len() as f64 - 1.0).max(1.0);
    let surprises: Vec<(BatchOnGroup, f64, f64)> = batches
        .iter()
        .zip(&ratios)
        .map(|(batch, ratio)| (*batch, batch.plain_slope - exact_slope, (total - ratio) / others))
        .collect();
    let loss =
        |step: Step, surprise: f64, beta: f64| Step { slope: step.slope - beta * surprise, bend: step.bend }.loss(rate);
    let over = |value: &dyn Fn(&BatchOnGroup, f64, f64) -> f64| {
        let draws: Vec<f64> = surprises.iter().map(|(batch, surprise, beta)| value(batch, *surprise, *beta)).collect();
        Sampled::over(draws.into_iter())
    };
    let cosine = |slope: f64, length: f64| {
        let lengths = group_norm * length;
        if lengths > 0.0 { (slope / lengths).clamp(-1.0, 1.0) } else { 0.0 }
    };
    let plain = |b: &BatchOnGroup, surprise| loss(b.plain(), surprise, 1.0);
    let clipped = |b: &BatchOnGroup, surprise, beta| loss(b.clipped(), surprise, beta);
    let shortened = |b: &BatchOnGroup, surprise, beta| loss(b.shortened(), surprise, beta);
    let turned = |b: &BatchOnGroup, surprise| loss(b.turned(), surprise, 1.0);
    let plain_cosine = |b: &BatchOnGroup| cosine(b.plain_slope, b.plain_norm);
    // As in `turned`: what is clipped to nothing has not been turned.
    let clipped_cosine = |b: &BatchOnGroup| {
        if b.clipped_norm > 0.0 { cosine(b.clipped_slope, b.clipped_norm) } else { plain_cosine(b) }
    };
    ClippingTerms {
        clip: over(&|b, s, beta| clipped(b, s, beta) - plain(b, s)),
        magnitude: over(&|b, s, beta| shortened(b, s, beta) - plain(b, s)),
        direction: over(&|b, s, beta| clipped(b, s, beta) - shortened(b, s, beta)),
        magnitude_star: over(&|b, s, beta| clipped(b, s, beta) - turned(b, s)),
        direction_star: over(&|b, s, _| turned(b, s) - plain(b, s)),
        direction_slope: over(&|b, _, _| b.shortened().slope - b.clipped().slope),
        direction_star_slope: over(&|b, _, _| b.plain().slope - b.turned().slope),
        plain_cosine: over(&|b, _, _| plain_cosine(b)),
        clipped_cosine: over(&|b, _, _| clipped_cosine(b)),
        plain_angle: over(&|b, _, _| plain_cosine(b).acos().to_degrees()),
        clipped_angle: over(&|b, _, _| clipped_cosine(b).acos().to_degrees()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One batch in the plane: G = (1, 0), H = I, p = (4, 3), c = (0, 2), η = 0.1, exact slope 4
    /// (that of the batch). T(x) = −0.1⟨G,x⟩ + 0.005‖x‖²: T(p) = −0.4 + 0.125 = −0.275; T(c) =
    /// 0.02; shortened = (1.6, 1.2): −0.16 + 0.02 = −0.14; turned = (0, 5): 0.125.
    #[test]
    fn by_hand() {
        let batch = BatchOnGroup {
            plain_norm: 5.0,
            clipped_norm: 2.0,
            plain_slope: 4.0,
            clipped_slope: 0.0,
            plain_bend: 25.0,
            clipped_bend: 4.0,
        };
        let terms = clipping_terms(&[batch], 1.0, 4.0, 0.1);
        let close = |sampled: Sampled, expected: f64| assert!((sampled.mean - expected).abs() < 1e-15, "{sampled:?}");
        close(terms.clip, 0.02 + 0.275);
        close(terms.magnitude, -0.14 + 0.275);
        close(terms.direction, 0.02 + 0.14);
        close(terms.magnitude_star, 0.02 - 0.125);
        close(terms.direction_star, 0.125 + 0.275);
        close(terms.direction_slope, 1.6);
        close(terms.direction_star_slope, 4.0);
        close(terms.plain_cosine, 0.8);
        assert!((terms.clipped_angle.mean - 90.0).abs() < 1e-12);
    }

    /// Nothing left of the batch: all of it is an error of magnitude, in both decompositions.
    #[test]
    fn a_batch_clipped_to_nothing_has_no_direction() {
        let gone = BatchOnGroup {
            plain_norm: 5.0,
            clipped_norm: 0.0,
            plain_slope: 4.0,
            clipped_slope: 0.0,
            plain_bend: 25.0,
            clipped_bend: 0.0,
        };
        let terms = clipping_terms(&[gone], 1.0, 4.0, 0.1);
        assert_eq!((terms.direction.mean, terms.direction_star.mean), (0.0, 0.0));
        assert_eq!(terms.magnitude.mean, terms.clip.mean);
        assert_eq!(terms.clipped_angle.mean, terms.plain_angle.mean);
        assert!((terms.clip.mean - 0.275).abs() < 1e-15);
    }

    fn batch() -> impl Strategy<Value = BatchOnGroup> {
        (0.01..10.0_f64, 0.0..10.0_f64, -1.0..1.0_f64, -1.0..1.0_f64, -1.0..1.0_f64, -1.0..1.0_f64).prop_map(
            |(plain_norm, clipped_norm, plain_slope, clipped_slope, plain_bend, clipped_bend)| BatchOnGroup {
                plain_norm,
                clipped_norm,
                plain_slope: plain_slope * plain_norm,
                clipped_slope: clipped_slope * clipped_norm,
                plain_bend: plain_bend * plain_norm * plain_norm,
                clipped_bend: clipped_bend * clipped_norm * clipped_norm,
            },
        )
    }

    proptest! {
        /// R^mag + R^dir = R^clip = R^mag* + R^dir*, whatever the batches.
        #[test]
        fn magnitude_and_direction_add_up(
            batches in prop::collection::vec(batch(), 1..8), exact in -5.0..5.0_f64, rate in 1e-3..1.0_f64,
        ) {
            let terms = clipping_terms(&batches, 1.0, exact, rate);
            let size = 1.0 + batches.iter().map(|b| b.plain_norm.max(b.clipped_norm).powi(2)).fold(0.0, f64::max);
            prop_assert!((terms.magnitude.mean + terms.direction.mean - terms.clip.mean).abs() < 1e-13 * size);
            prop_assert!((terms.magnitude_star.mean + terms.direction_star.mean - terms.clip.mean).abs() < 1e-13 * size);
        }

        /// A batch that is only scaled has no error of direction, in any decomposition.
        #[test]
        fn scaling_alone_is_no_error_of_direction(plain in batch(), factor in 0.01..2.0_f64, rate in 1e-3..1.0_f64) {
            let scaled = BatchOnGroup {
                clipped_norm: factor * plain.plain_norm,
                clipped_slope: factor * plain.plain_slope,
                clipped_bend: factor * factor * plain.plain_bend,
                ..plain
            };
            let terms = clipping_terms(&[scaled, scaled], 1.0, 0.3, rate);
            prop_assert!(terms.direction.mean.abs() < 1e-13 * (1.0 + plain.plain_norm.powi(2)));
            prop_assert!(terms.direction_star.mean.abs() < 1e-13 * (1.0 + plain.plain_norm.powi(2)));
        }
    }
}
