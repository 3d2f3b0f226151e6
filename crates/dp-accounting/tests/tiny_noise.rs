//! Losses without a use are bounded, and the bound is there at once.

use std::time::{Duration, Instant};

use dp_accounting::{
    Accountant, Certainty, Delta, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, PldAccountant, SamplingRate,
};

#[test]
fn nearly_no_noise_is_answered_within_a_second() {
    for sigma in [1e-6, 1e-4, 1e-3] {
        let noise = NoiseMultiplier::new(sigma).unwrap();
        let step = DpEvent::gaussian(noise).poisson_sampled(SamplingRate::new(0.01).unwrap());
        let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
        accountant.compose(&step, 1_000).unwrap();
        let begun = Instant::now();
        let bound = accountant.epsilon(Delta::new(1e-5).unwrap()).unwrap();
        // One record in a step: at least 1/(2σ²) for the loss of a step in which it was drawn.
        assert!(bound.epsilon.get() > 0.5 / (sigma * sigma) && bound.epsilon.is_finite());
        assert!(matches!(bound.certainty, Certainty::FallBack { .. }), "{:?}", bound.certainty);
        assert!(accountant.delta(Epsilon::new(1.0).unwrap()).unwrap().delta <= 1.0);
        assert!(begun.elapsed() < Duration::from_secs(5), "{sigma}: {:?}", begun.elapsed());
    }
}
