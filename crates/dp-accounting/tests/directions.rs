//! One direction of neighbours alone, ε below 0, and groups of records.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::NeighbouringRelation::{Add, AddRemove, Remove, ReplaceOne, ZeroOut};
use dp_accounting::case::{Case, Outcome};
use dp_accounting::{
    Accountant, Conversion, Delta, DpEvent, Epsilon, GdpAccountant, MixtureOfGaussians, NeighbouringRelation,
    NoiseMultiplier, PldAccountant, RdpAccountant, SamplingRate, TradeOff,
};

fn sigma(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

fn rate(value: f64) -> SamplingRate {
    SamplingRate::new(value).unwrap()
}

fn step(q: f64, noise: f64) -> DpEvent {
    DpEvent::gaussian(sigma(noise)).poisson_sampled(rate(q))
}

fn pld(event: &DpEvent, count: u64, relation: NeighbouringRelation) -> PldAccountant {
    let mut accountant = PldAccountant::new(relation);
    accountant.compose(event, count).unwrap();
    accountant
}

fn epsilon(event: &DpEvent, count: u64, relation: NeighbouringRelation, delta: f64) -> (f64, f64) {
    let bound = pld(event, count, relation).epsilon(Delta::new(delta).unwrap()).unwrap();
    (bound.lower.unwrap().get(), bound.epsilon.get())
}

fn holds((lower, upper): (f64, f64), truth: f64, width: f64, what: &str) {
    assert!(lower <= truth * (1.0 + width) && truth * (1.0 - width) <= upper, "{what}: [{lower}, {upper}] {truth}");
    assert!(upper - lower <= 1e-3 * upper + 1e-9, "{what}: [{lower}, {upper}]");
}

/// dp_accounting 0.6, grids of 1e-4, the distributions of either direction.
#[test]
fn directions_of_sampled_mechanisms() {
    let cases = [
        (step(0.01, 1.0), 1_000, 1e-5, 1.828_243_645_591_767, 1.416_672_495_851_233),
        (step(0.2, 1.0), 20, 1e-6, 7.655_340_672_941_209, 2.906_780_280_478_945),
        (step(0.05, 0.7), 100, 1e-5, 7.881_466_202_832_994, 2.762_623_806_785_207),
        (
            DpEvent::laplace(sigma(1.5)).poisson_sampled(rate(0.05)),
            50,
            1e-5,
            0.833_250_163_404_496_1,
            0.729_672_501_244_052_9,
        ),
    ];
    for (event, count, delta, removed, added) in cases {
        holds(epsilon(&event, count, Remove, delta), removed, 1e-3, &event.to_string());
        holds(epsilon(&event, count, Add, delta), added, 1e-3, &event.to_string());
        // Removal is the worse one, and both together cost what the worse does.
        holds(epsilon(&event, count, AddRemove, delta), removed, 1e-3, &event.to_string());
    }
}

/// One step, by its formula in 30 digits (mpmath 1.3); below 0 the other direction answers.
#[test]
fn either_direction_below_zero() {
    let truths = [
        (
            0.2,
            1.0,
            0.1,
            [0.051_816_130_560_518_57, 0.116_317_084_993_226_37],
            [0.023_379_341_534_199_496, 0.142_047_755_753_034_23],
        ),
        (
            0.01,
            0.5,
            0.005,
            [0.006_153_989_014_226_129, 0.007_822_507_022_916_406],
            [0.002_849_196_643_140_522, 0.011_110_816_673_287_359],
        ),
    ];
    for (q, noise, at, removed, added) in truths {
        for (relation, [above, below]) in [(Remove, removed), (Add, added)] {
            let accountant = pld(&step(q, noise), 1, relation);
            for (epsilon, truth) in [(at, above), (-at, below)] {
                let bound = accountant.privacy_profile(epsilon).unwrap();
                let lower = bound.lower.unwrap();
                assert!(
                    lower <= truth * (1.0 + 1e-14) && truth <= bound.delta * (1.0 + 1e-14),
                    "{relation} {epsilon}: {bound:?}"
                );
                assert!(bound.delta - lower < 1e-10, "{relation} {epsilon}: {bound:?}");
            }
        }
    }
}

#[test]
fn the_largest_loss_of_an_addition_is_finite() {
    // Whoever is absent may just not have been drawn: -ln(1 - q), each time.
    let pure = |relation| epsilon(&step(0.25, 1.0), 4, relation, 0.0);
    let exact = -4.0 * 0.75_f64.ln();
    let (lower, upper) = pure(Add);
    assert!(lower <= exact && exact <= upper && upper - lower < 1e-13, "[{lower}, {upper}]");
    assert_eq!(pure(Remove).1, f64::INFINITY);
}

/// By every accountant, with any noise and at any δ, and δ is 0 from there on.
#[test]
fn an_addition_costs_no_more_than_its_largest_loss() {
    for (q, noise, count) in [(0.25, 1.0, 4_u32), (0.5, 0.02, 1), (0.5, 0.3, 3), (0.999, 0.1, 1), (0.01, 1e-3, 1_000)] {
        let exact = -f64::from(count) * libm::log1p(-q);
        let query = step(q, noise);
        let mut rdp = RdpAccountant::new(Add);
        rdp.compose(&query, count.into()).unwrap();
        let mut gdp = GdpAccountant::new(Add);
        gdp.compose(&query, count.into()).unwrap();
        let pld = pld(&query, count.into(), Add);
        for accountant in [&rdp as &dyn Accountant, &rdp.clone().with_conversion(Conversion::Classic), &gdp, &pld] {
            for delta in [0.0, 1e-300, 1e-10, 1e-5, 0.1] {
                let bound = accountant.epsilon(Delta::new(delta).unwrap()).unwrap();
                let name = accountant.name();
                assert!(bound.epsilon.get() <= exact * (1.0 + 1e-12), "{name} {q} {noise} {delta}: {bound:?} {exact}");
                assert!(
                    bound.lower.is_none_or(|lower| lower <= bound.epsilon),
                    "{name} {q} {noise} {delta}: {bound:?}"
                );
            }
            let beyond = accountant.delta(Epsilon::new(exact * (1.0 + 1e-12)).unwrap()).unwrap();
            assert_eq!((beyond.delta, beyond.lower), (0.0, Some(0.0)));
        }
    }
    // With next to no noise the truth is just below: exp(ε)·(1 - q) = 1 - δ, so ln 2 + ln(1 - 1e-5).
    let (lower, upper) = epsilon(&step(0.5, 0.02), 1, Add, 1e-5);
    let exact = std::f64::consts::LN_2 + libm::log1p(-1e-5);
    assert!(lower <= exact && exact <= upper && upper - lower < 1e-9, "[{lower}, {upper}] {exact}");
    // Laplace noise, too: its pure ε is 2, and the divergences' bound is above it at small δ.
    let laplace = DpEvent::laplace(NoiseMultiplier::new(0.5).unwrap());
    for relation in [Remove, Add] {
        let mut rdp = RdpAccountant::new(relation);
        rdp.compose(&laplace, 1).unwrap();
        assert!(rdp.epsilon(Delta::new(1e-300).unwrap()).unwrap().epsilon.get() <= 2.0 * (1.0 + 1e-14));
    }
}

#[test]
fn attacks_in_one_direction() {
    let (remove, add) = (pld(&step(0.2, 0.8), 1, Remove), pld(&step(0.2, 0.8), 1, Add));
    let (remove, add) = (TradeOff::new(&remove), TradeOff::new(&add));
    // Exchanging the data sets exchanges both kinds of error: one curve is the other's inverse.
    for alpha in [0.003, 0.05, 0.4] {
        let missed = remove.false_negative_rate(alpha).unwrap();
        let back = add.false_negative_rate(missed.guaranteed).unwrap();
        assert!(
            back.guaranteed <= alpha * 1.01 && back.possible.unwrap() >= alpha * 0.97,
            "{alpha}: {missed:?} {back:?}"
        );
    }
    // Who is in with probability 0.9 under the one is out with it under the other.
    let (one, other) = (remove.bayes_risk(0.9).unwrap(), add.bayes_risk(0.9).unwrap());
    assert!((one.guaranteed - other.guaranteed).abs() < 1e-3 * one.guaranteed, "{one:?} {other:?}");
    let (one, other) = (remove.gaussian_mu(1e-3).unwrap(), add.gaussian_mu(1e-3).unwrap());
    assert!((one.guaranteed / other.guaranteed - 1.0).abs() < 1e-6, "{one:?} {other:?}");
}

/// A full batch takes a record's place from another one. What is left of sampling then is that of
/// batches of fixed size.
#[test]
fn batches_that_are_always_cut_are_of_fixed_size() {
    let cut = DpEvent::TruncatedPoissonGaussian {
        noise_multiplier: sigma(2.0),
        sampling_rate: rate(0.1),
        n_records: 1_000,
        max_batch_size: 1,
    };
    let fixed = DpEvent::gaussian(sigma(2.0)).fixed_size_sampled(1_000, 100).unwrap();
    let (lower, upper) = epsilon(&fixed, 10, ReplaceOne, 1e-5);
    for relation in [ZeroOut, ReplaceOne] {
        let found = epsilon(&cut, 10, relation, 1e-5);
        assert!(
            found.0 <= upper && lower <= found.1 && found.1 - found.0 < 2e-3 * found.1,
            "{found:?} {lower} {upper}"
        );
    }
    // Of a record that comes or goes, two contributions against none.
    holds(epsilon(&cut, 10, AddRemove, 1e-5), epsilon(&step(0.1, 1.0), 10, AddRemove, 1e-5).1, 1e-3, "add-remove");
    // Rényi divergence bounds it, too.
    let mut rdp = RdpAccountant::new(ZeroOut);
    rdp.compose(&cut, 10).unwrap();
    assert!(rdp.epsilon(Delta::new(1e-5).unwrap()).unwrap().epsilon.get() >= lower);
}

/// A cut batch under zero-out by hand: with σ → 0 a record in a batch of one is seen, or the one
/// that it displaced is.
#[test]
fn displaced_records_are_charged() {
    let at = |max_batch_size| DpEvent::TruncatedPoissonGaussian {
        noise_multiplier: sigma(0.5),
        sampling_rate: rate(0.3),
        n_records: 40,
        max_batch_size,
    };
    let plain = epsilon(&step(0.3, 0.5), 3, ZeroOut, 1e-5);
    let (never, often) = (epsilon(&at(40), 3, ZeroOut, 1e-5), epsilon(&at(12), 3, ZeroOut, 1e-5));
    holds(never, plain.1, 1e-3, "never cut");
    assert!(often.0 > plain.1 * 1.05, "{often:?} {plain:?}");
}

/// Users with two records in one part of the data and three in another: each part's event for as
/// many, composed.
#[test]
fn groups_and_users_mix() {
    let one = |k| step(0.02, 3.0).for_user(k).unwrap();
    let mixed = DpEvent::Composed(vec![
        one(2).repeated(50),
        one(3).repeated(20),
        DpEvent::gaussian(sigma(40.0)).for_user(2).unwrap(),
    ]);
    let (lower, upper) = epsilon(&mixed, 1, AddRemove, 1e-6);
    let all = |k| {
        epsilon(
            &DpEvent::Composed(vec![one(k).repeated(70), DpEvent::gaussian(sigma(40.0)).for_user(k).unwrap()]),
            1,
            AddRemove,
            1e-6,
        )
    };
    assert!(all(2).0 < upper && lower < all(3).1, "[{lower}, {upper}] {:?} {:?}", all(2), all(3));
    assert!(upper - lower <= 1e-3 * upper);
    // The same by the field of a case.
    let line =
        r#"{"sampling_rate":0.02,"noise_multiplier":3,"steps":50,"delta":1e-6,"user_records":2,"accountant":"pld"}"#;
    let outcome = Outcome::of_line(line.as_bytes(), &Case::default());
    assert_eq!(outcome.number("epsilon_pld_upper"), Some(epsilon(&one(2), 50, AddRemove, 1e-6).1));
}

/// A user whose records are replaced by another user's: both pull the sum, in opposite directions.
#[test]
fn replaced_users() {
    // Everything sampled, k = 2: a Gaussian of sensitivity 4.
    let nearly = MixtureOfGaussians::of_user(sigma(8.0), rate(1.0 - 1e-15), 2).unwrap();
    let exact = epsilon(&DpEvent::gaussian(sigma(2.0)), 5, AddRemove, 1e-5);
    holds(epsilon(&DpEvent::MixtureOfGaussians(nearly), 5, ReplaceOne, 1e-5), exact.1, 1e-3, "whole data");
    // One record: as Poisson batches under replace-one.
    let one = MixtureOfGaussians::of_user(sigma(2.0), rate(0.05), 1).unwrap();
    let poisson = epsilon(&step(0.05, 2.0), 30, ReplaceOne, 1e-5);
    holds(epsilon(&DpEvent::MixtureOfGaussians(one), 30, ReplaceOne, 1e-5), poisson.1, 1e-3, "one record");
}

#[test]
fn relations_have_names_in_json() {
    for (relation, name) in [(Remove, "\"remove\""), (Add, "\"add\"")] {
        assert_eq!(serde_json::to_string(&relation).unwrap(), name);
        assert_eq!(relation.exchanged().exchanged(), relation);
    }
    let line =
        r#"{"sampling_rate":0.2,"noise_multiplier":1,"steps":1,"epsilon":-0.1,"relation":"add","accountant":"pld"}"#;
    let found = Outcome::of_line(line.as_bytes(), &Case::default()).number("delta_pld_upper").unwrap();
    assert!((found - 0.142_047_755_753_034_23).abs() < 1e-12, "{found}");
    assert_eq!(AddRemove.exchanged(), AddRemove);
    let at = Epsilon::new(0.1).unwrap();
    let both = pld(&step(0.2, 1.0), 1, AddRemove);
    assert_eq!(both.exchanged_delta(at).unwrap(), both.delta(at).unwrap());
}
