//! Random allocation by its privacy loss distribution: true values, other implementations'
//! brackets, and laws.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::{
    Accountant, Certainty, Delta, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, PldAccountant,
    RdpAccountant, SamplingRate,
};

fn sigma(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

fn allocated(noise: f64, steps: u64) -> DpEvent {
    DpEvent::RandomAllocation { noise_multiplier: sigma(noise), steps, participations: 1 }
}

fn pld(event: &DpEvent, count: u64, relation: NeighbouringRelation) -> PldAccountant {
    let mut accountant = PldAccountant::new(relation);
    accountant.compose(event, count).unwrap();
    accountant
}

/// Lower and upper end of ε.
fn epsilon(accountant: &PldAccountant, delta: f64) -> (f64, f64) {
    let bound = accountant.epsilon(Delta::new(delta).unwrap()).unwrap();
    (bound.lower.unwrap().get(), bound.epsilon.get())
}

/// One of two steps: mpmath 1.3, 30 digits, by the formula of Black and Scholes for one step and a
/// quadrature over the other.
#[test]
fn one_of_two_steps_to_thirty_digits() {
    let truths = [
        (1.0, 1.0, 0.059_206_501_085_892_65, 0.050_197_662_369_488_24),
        (1.0, 3.0, 1.677_027_714_117_893_3e-4, 1.590_265_081_872_704_3e-5),
        (0.5, 2.0, 0.232_321_343_459_063_71, 0.186_449_148_388_192_5),
        (2.0, 0.5, 0.018_326_594_760_935_13, 0.017_397_485_846_783_53),
        (0.3, 10.0, 0.037_611_225_265_399_19, 0.006_187_594_407_004_083),
        (4.0, 0.25, 0.007_358_024_806_236_06, 0.007_289_889_984_630_927),
    ];
    for (noise, at, removed, added) in truths {
        let directions = [(NeighbouringRelation::Remove, removed), (NeighbouringRelation::Add, added)];
        for (relation, truth) in directions {
            let bound = pld(&allocated(noise, 2), 1, relation).delta(Epsilon::new(at).unwrap()).unwrap();
            let lower = bound.lower.unwrap();
            assert!(lower <= truth && truth <= bound.delta, "{noise} {at} {relation}: [{lower}, {}]", bound.delta);
            assert!(bound.delta - lower < 2e-3 * truth, "{noise} {at} {relation}: [{lower}, {}]", bound.delta);
        }
    }
}

/// Brackets, to a tenth of ε, that `PLD_accounting` 2.0, the code of Feldman & Shenfeld 2026 (arXiv
/// 2602.17284), computes overlap with ours, which are narrower.
#[test]
fn brackets_of_the_theorems_authors() {
    let theirs: [(f64, f64, u64, u64, f64, f64); 1] =
        [(1e-5, 1.0, 100, 1, 0.608_509_605_791_576_8, 0.635_651_976_706_838)];
    for (delta, noise, steps, epochs, low, high) in theirs {
        let (lower, upper) = epsilon(&pld(&allocated(noise, steps), epochs, NeighbouringRelation::AddRemove), delta);
        assert!(lower <= high && low <= upper, "σ {noise}, {steps} steps: [{lower}, {upper}], theirs [{low}, {high}]");
        assert!(upper - lower < high - low, "σ {noise}, {steps} steps: [{lower}, {upper}], theirs [{low}, {high}]");
    }
}

#[test]
fn laws_of_random_allocation() {
    let relation = NeighbouringRelation::AddRemove;
    let at = 1e-5;
    let (lower, upper) = epsilon(&pld(&allocated(1.0, 30), 2, relation), at);
    // Less than everything in one step, at least as much as with more steps, more noise or fewer
    // epochs.
    let one_step = epsilon(&pld(&DpEvent::gaussian(sigma(1.0)), 2, relation), at);
    assert!(upper < one_step.0, "{upper} {one_step:?}");
    for fewer in [
        pld(&allocated(1.0, 60), 2, relation),
        pld(&allocated(1.3, 30), 2, relation),
        pld(&allocated(1.0, 30), 1, relation),
    ] {
        assert!(epsilon(&fewer, at).0 < upper);
    }
    // Rényi divergence bounds it, and the order of composition changes nothing.
    let mut rdp = RdpAccountant::new(relation);
    rdp.compose(&allocated(1.0, 30), 2).unwrap();
    assert!(rdp.epsilon(Delta::new(at).unwrap()).unwrap().epsilon.get() > lower);
    let step = DpEvent::gaussian(sigma(2.0)).poisson_sampled(SamplingRate::new(0.1).unwrap());
    let (mut forward, mut backward) = (pld(&step, 3, relation), pld(&allocated(1.0, 30), 2, relation));
    forward.compose(&allocated(1.0, 30), 2).unwrap();
    backward.compose(&step, 3).unwrap();
    assert_eq!(epsilon(&forward, at), epsilon(&backward, at));
    assert!(epsilon(&forward, at).1 > lower);
    // δ(ε(δ)) comes back.
    let back = pld(&allocated(1.0, 30), 2, relation).delta(Epsilon::new(upper).unwrap()).unwrap();
    assert!(back.lower.unwrap() <= at && back.delta > 0.9 * at, "{back:?}");
}

/// Next to no noise is left to Rényi divergence, and the answer says so.
#[test]
fn next_to_no_noise_falls_back() {
    let bound =
        pld(&allocated(0.05, 10), 1, NeighbouringRelation::AddRemove).epsilon(Delta::new(1e-5).unwrap()).unwrap();
    assert!(matches!(bound.certainty, Certainty::FallBack { .. }) && bound.lower.is_none(), "{bound:?}");
}
