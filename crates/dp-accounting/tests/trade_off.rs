//! Trade-off curves against closed forms and against each other.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::{
    Accountant, Certainty, Delta, DpEvent, Epsilon, GdpAccountant, NeighbouringRelation, NoiseMultiplier, OutcomeCount,
    PldAccountant, PositiveEpsilon, RdpAccountant, SamplingRate, TradeOff,
};

fn pld(events: &[(DpEvent, u64)], relation: NeighbouringRelation) -> PldAccountant {
    let mut accountant = PldAccountant::new(relation).with_relative_width(1e-6).unwrap();
    for (event, count) in events {
        accountant.compose(event, *count).unwrap();
    }
    accountant
}

fn gaussian(sigma: f64) -> DpEvent {
    DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap())
}

/// Φ(Φ⁻¹(1 - α) - μ), mpmath 1.4 with 30 digits.
/// Laplace noise of scale 1/r: `1 - e^r·α`, `e^-r/(4α)` and `e^-r·(1 - α)`.
#[test]
fn laplace_noise_has_a_formula() {
    for rate in [0.01, 1.0, 3.0, 40.0, 800.0_f64] {
        let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
        accountant.compose(&DpEvent::laplace(NoiseMultiplier::new(rate.recip()).unwrap()), 1).unwrap();
        for alpha in [1e-9, 1e-3, 0.01, 0.183, 0.185, 0.5, 0.7, 0.999_f64] {
            let exact = if alpha < 0.5 * (-rate).exp() {
                1.0 - rate.exp() * alpha
            } else if alpha <= 0.5 {
                (-rate).exp() / (4.0 * alpha)
            } else {
                (-rate).exp() * (1.0 - alpha)
            };
            let missed = TradeOff::new(&accountant).false_negative_rate(alpha).unwrap();
            let (guaranteed, possible) = (missed.guaranteed, missed.possible.unwrap());
            assert!(
                guaranteed <= exact * (1.0 + 1e-14) && exact <= possible * (1.0 + 1e-14),
                "{rate} {alpha}: {missed:?}"
            );
            assert!(possible - guaranteed <= 1e-11 * exact, "{rate} {alpha}: {missed:?} {exact}");
            assert_eq!(missed.certainty, Certainty::Bound);
        }
        // δ(ε) = 1 - e^((ε - r)/2), and back.
        for share in [0.0, 0.3, 0.999] {
            let epsilon = share * rate;
            let exact = -(0.5 * (epsilon - rate)).exp_m1();
            let bound = accountant.delta(Epsilon::new(epsilon).unwrap()).unwrap();
            assert!(
                (bound.delta - exact).abs() <= 1e-11 * exact && bound.delta >= exact * (1.0 - 1e-15),
                "{bound:?} {exact}"
            );
            if exact < 0.9 {
                let back = accountant.epsilon(Delta::new(exact).unwrap()).unwrap();
                assert!((back.epsilon.get() - epsilon).abs() < 1e-9 * rate, "{back:?} {epsilon}");
            }
        }
    }
}

#[test]
fn gaussians_by_their_closed_form() {
    for (mu, alpha, expected) in [
        (1.0, 0.05, 0.740_488_977_158_555_9),
        (1.0, 0.5, 0.158_655_253_931_457_05),
        (1.0, 1e-6, 0.999_912_782_389_859_6),
        (0.1, 0.3, 0.664_363_126_560_670_6),
        (3.0, 0.01, 0.250_266_252_533_203_06),
        (3.0, 0.9, 9.279_735_164_075_62e-06),
    ] {
        let accountant = pld(&[(gaussian(1.0 / mu), 1)], NeighbouringRelation::AddRemove);
        let found = TradeOff::new(&accountant).false_negative_rate(alpha).unwrap();
        let possible = found.possible.unwrap();
        assert!(found.guaranteed <= expected * (1.0 + 1e-9), "μ {mu} α {alpha}: {found:?} {expected}");
        assert!(possible >= expected * (1.0 - 1e-9), "μ {mu} α {alpha}: {found:?} {expected}");
        assert!(possible - found.guaranteed < 1e-4 * (1.0 - alpha), "μ {mu} α {alpha}: {found:?}");
        assert_eq!(found.certainty, Certainty::Bound);
        let mu_found = TradeOff::new(&accountant).gaussian_mu(1e-8).unwrap();
        assert!(mu_found.guaranteed >= mu && mu_found.possible.unwrap() <= mu, "{mu}: {mu_found:?}");
        assert!(mu_found.guaranteed < mu * (1.0 + 1e-3), "{mu}: {mu_found:?}");
    }
}

/// Two outcomes, ε = ln 3: the curve has the corner (1/4, 1/4) and ends (0, 1), (1, 0): at α = 0.1
/// it is 1 - 3·0.1.
#[test]
fn randomised_response_by_hand() {
    let response = DpEvent::RandomisedResponse {
        epsilon: PositiveEpsilon::new(3.0_f64.ln()).unwrap(),
        n_outcomes: OutcomeCount::new(2).unwrap(),
    };
    // Where δ is 0 no grid is fine enough for a relative width.
    let mut accountant = PldAccountant::new(NeighbouringRelation::ReplaceOne).with_max_points(1 << 16).unwrap();
    accountant.compose(&response, 1).unwrap();
    let trade_off = TradeOff::new(&accountant);
    for (alpha, expected) in [(0.1, 0.7), (0.25, 0.25), (0.4, 0.2), (0.0, 1.0), (1.0, 0.0)] {
        let found = trade_off.false_negative_rate(alpha).unwrap();
        assert!(found.guaranteed <= expected + 1e-12 && found.guaranteed > expected - 2e-3, "{alpha}: {found:?}");
        assert!(found.possible.unwrap() >= expected - 1e-12, "{alpha}: {found:?}");
    }
    let advantage = trade_off.advantage().unwrap();
    assert!((advantage.guaranteed - 0.5).abs() < 1e-3, "{advantage:?}");
    // Prior 1/4: odds 3, δ(ln 3) = 0, so the attacker learns nothing and errs with 1/4; prior 1/2:
    // (1 - 1/2)/2.
    assert!((trade_off.bayes_risk(0.25).unwrap().guaranteed - 0.25).abs() < 1e-3);
    assert!((trade_off.bayes_risk(0.75).unwrap().guaranteed - 0.25).abs() < 1e-3);
    assert!((trade_off.bayes_risk(0.5).unwrap().guaranteed - 0.25).abs() < 1e-3);
}

#[test]
fn nothing_and_everything_are_the_two_diagonals() {
    let nothing = pld(&[], NeighbouringRelation::AddRemove);
    let everything = pld(&[(DpEvent::NonPrivate, 1)], NeighbouringRelation::AddRemove);
    for alpha in [0.0, 1e-9, 0.3, 1.0] {
        let blind = TradeOff::new(&nothing).false_negative_rate(alpha).unwrap();
        assert!((blind.guaranteed - (1.0 - alpha)).abs() < 1e-6 && blind.guaranteed <= 1.0 - alpha, "{blind:?}");
        assert_eq!(TradeOff::new(&everything).false_negative_rate(alpha).unwrap().guaranteed, 0.0);
    }
    assert_eq!(TradeOff::new(&nothing).gaussian_mu(1e-6).unwrap().guaranteed, 0.0);
    assert_eq!(TradeOff::new(&everything).gaussian_mu(1e-6).unwrap().guaranteed, f64::INFINITY);
}

/// The guarantee is a curve: monotone, convex, and RDP's lies below PLD's.
#[test]
fn curves_of_sampled_gaussians_keep_their_laws() {
    let step = gaussian(1.0).poisson_sampled(SamplingRate::new(0.01).unwrap());
    let tight = pld(&[(step.clone(), 1_000)], NeighbouringRelation::AddRemove);
    let mut loose = RdpAccountant::new(NeighbouringRelation::AddRemove);
    loose.compose(&step, 1_000).unwrap();
    let curve = |accountant: &dyn Accountant, alpha: f64| {
        TradeOff::new(accountant).false_negative_rate(alpha).unwrap().guaranteed
    };
    let alphas = [1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8];
    let values: Vec<f64> = alphas.iter().map(|&alpha| curve(&tight, alpha)).collect();
    for (&alpha, &value) in alphas.iter().zip(&values) {
        assert!(curve(&loose, alpha) <= value + 1e-9, "{alpha}");
        // f is its own inverse.
        let back = curve(&tight, value.min(1.0));
        assert!((back - alpha).abs() < 1e-4, "{alpha} {value} {back}");
    }
    for i in 1..alphas.len() - 1 {
        let part = (alphas[i] - alphas[i - 1]) / (alphas[i + 1] - alphas[i - 1]);
        assert!(values[i] < values[i - 1] && values[i] <= (1.0 - part) * values[i - 1] + part * values[i + 1] + 1e-6);
    }
    // Between the central-limit estimate, which is too small, and the Gaussian without sampling.
    let mu = TradeOff::new(&tight).gaussian_mu(1e-5).unwrap();
    let mut estimate = GdpAccountant::new(NeighbouringRelation::AddRemove);
    estimate.compose(&step, 1_000).unwrap();
    let central = TradeOff::new(&estimate).gaussian_mu(1e-5).unwrap();
    assert_eq!(central.certainty, Certainty::Estimate);
    assert!(mu.guaranteed > central.guaranteed && mu.guaranteed < 2.0 * central.guaranteed, "{mu:?} {central:?}");
    assert!(mu.possible.unwrap() > 0.99 * mu.guaranteed, "{mu:?}");
}

#[test]
fn limits_are_values() {
    let relation = NeighbouringRelation::AddRemove;
    let step = gaussian(1.0).poisson_sampled(SamplingRate::new(0.01).unwrap());
    let laplace = DpEvent::laplace(NoiseMultiplier::new(0.5).unwrap());
    let epsilon = |accountant: &dyn Accountant, delta: f64| accountant.epsilon(Delta::new(delta).unwrap()).unwrap();
    for new in [
        || Box::new(PldAccountant::new(NeighbouringRelation::AddRemove)) as Box<dyn Accountant>,
        || Box::new(RdpAccountant::new(NeighbouringRelation::AddRemove)) as Box<dyn Accountant>,
    ] {
        let with = |events: &[&DpEvent]| {
            let mut accountant = new();
            for event in events {
                accountant.compose(event, 3).unwrap();
            }
            accountant
        };
        // δ = 0 is the pure ε: 3 × 2, or none for Gaussians; δ = 1 asks for nothing.
        assert!((epsilon(&*with(&[&laplace]), 0.0).epsilon.get() - 6.0).abs() < 1e-12);
        assert_eq!(epsilon(&*with(&[&laplace, &step]), 0.0).epsilon, Epsilon::INFINITE);
        assert_eq!(epsilon(&*with(&[&step]), 1.0).epsilon.get(), 0.0);
        assert_eq!(epsilon(&*with(&[&DpEvent::NonPrivate]), 1.0).epsilon.get(), 0.0);
        assert_eq!(with(&[&DpEvent::NonPrivate]).delta(Epsilon::INFINITE).unwrap().delta, 1.0);
        assert_eq!(with(&[&step]).delta(Epsilon::INFINITE).unwrap().delta, 0.0);
        // σ = 0, σ = ∞ and q = 0.
        let silent = DpEvent::gaussian_at(1.0).unwrap().poisson_sampled_at(0.0).unwrap();
        assert_eq!(epsilon(&*with(&[&silent]), 0.0).epsilon.get(), 0.0);
        assert_eq!(epsilon(&*with(&[&DpEvent::gaussian_at(0.0).unwrap()]), 0.5).epsilon, Epsilon::INFINITE);
        assert_eq!(epsilon(&*with(&[&DpEvent::gaussian_at(f64::INFINITY).unwrap()]), 0.0).epsilon.get(), 0.0);
    }
    // Negative ε: δ(-ε) = 1 - e^-ε + e^-ε·δ(ε); for a Gaussian Φ(μ/2 + ε/μ) - e^-ε·Φ(-μ/2 + ε/μ), μ
    // = 1, ε = 1.
    let accountant = pld(&[(gaussian(1.0), 1)], relation);
    let found = accountant.privacy_profile(-1.0).unwrap();
    let expected = 0.933_192_798_731_141_9 - (-1.0_f64).exp() * 0.691_462_461_274_013_1;
    assert!(found.lower.unwrap() <= expected && found.delta >= expected && found.delta < expected + 1e-9, "{found:?}");
    assert!(accountant.privacy_profile(f64::NAN).is_err());
}
