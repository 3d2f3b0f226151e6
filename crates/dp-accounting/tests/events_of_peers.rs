//! Events that other libraries account for, against their authors' values, 50-digit sums and each
//! other.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::{
    Accountant, BandedMatrixFactorisation, Certainty, Delta, DpEvent, Epsilon, MixtureOfGaussians,
    NeighbouringRelation, NoiseMultiplier, PldAccountant, RdpAccountant, SamplingRate, TreeAggregation,
};

fn sigma(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

fn rate(value: f64) -> SamplingRate {
    SamplingRate::new(value).unwrap()
}

fn pld(event: &DpEvent, count: u64, relation: NeighbouringRelation) -> PldAccountant {
    let mut accountant = PldAccountant::new(relation);
    accountant.compose(event, count).unwrap();
    accountant
}

const ADD_REMOVE: NeighbouringRelation = NeighbouringRelation::AddRemove;

/// The bracket holds a value known to `tolerance`, and is narrow.
fn holds(lower: f64, upper: f64, exact: f64, tolerance: f64, what: &str) {
    let slack = tolerance * exact;
    assert!(lower <= exact + slack && upper >= exact - slack, "{what}: [{lower}, {upper}] for {exact}");
    assert!(upper - lower <= 5e-3 * upper + 2.0 * slack, "{what}: [{lower}, {upper}] for {exact}");
}

fn delta_is(event: &DpEvent, count: u64, epsilon: f64, exact: f64) {
    let bound = pld(event, count, ADD_REMOVE).delta(Epsilon::new(epsilon).unwrap()).unwrap();
    holds(bound.lower.unwrap(), bound.delta, exact, 1e-12, &event.to_string());
    // Rényi divergence bounds the same thing, unless something fails altogether.
    let mut rdp = RdpAccountant::new(ADD_REMOVE);
    rdp.compose(event, count).unwrap();
    assert!(rdp.delta(Epsilon::new(epsilon).unwrap()).unwrap().delta >= exact * (1.0 - 1e-12), "{event}");
}

/// Optimal composition (Kairouz, Oh & Viswanath 2015, Theorem 3.3), mpmath 1.4 with 50 digits.
#[test]
fn epsilon_delta_mechanisms_compose_optimally() {
    for (epsilon, delta, count, at, exact) in [
        (0.1, 1e-7, 100, 2.0, 0.020_149_976_977_904_356),
        (0.5, 0.0, 20, 4.0, 0.129_221_965_117_763_64),
        (1.0, 1e-3, 5, 2.5, 0.346_082_312_164_861_35),
        (0.01, 1e-9, 1_000, 0.5, 0.009_754_750_702_569_918),
    ] {
        let event =
            DpEvent::EpsilonDelta { epsilon: Epsilon::new(epsilon).unwrap(), delta: Delta::new(delta).unwrap() };
        delta_is(&event, count, at, exact);
        // Below what fails altogether there is no ε; far above, basic composition bounds it.
        let accountant = pld(&event, count, ADD_REMOVE);
        let failing = 1.0 - (1.0 - delta).powi(count as i32);
        let none = accountant.epsilon(Delta::new(0.5 * failing).unwrap()).unwrap().epsilon;
        assert!(if delta > 0.0 { !none.is_finite() } else { none.get() <= epsilon * count as f64 * (1.0 + 1e-12) });
        let some = accountant.epsilon(Delta::new((2.0 * failing).max(1e-9)).unwrap()).unwrap();
        assert!(some.epsilon.get() <= epsilon * count as f64 * (1.0 + 1e-9) && some.certainty == Certainty::Bound);
    }
}

/// One release, by summing over the integers: mpmath 1.4 with 50 digits.
#[test]
fn discrete_noise_by_its_sums() {
    for (scale, sensitivity, at, exact) in [
        (2.0, 1, 0.3, 0.112_832_734_206_543_25),
        (5.0, 3, 0.4, 0.099_667_994_624_955_8),
        (0.5, 1, 1.5, 0.346_566_645_198_997_6),
    ] {
        let event = DpEvent::DiscreteLaplace { scale: sigma(scale), sensitivity };
        delta_is(&event, 1, at, exact);
        let pure = pld(&event, 7, ADD_REMOVE).epsilon(Delta::new(0.0).unwrap()).unwrap().epsilon.get();
        assert!((pure / (7.0 * f64::from(sensitivity) / scale) - 1.0).abs() < 1e-12);
    }
    for (scale, sensitivity, at, exact) in [
        (2.0, 1, 0.5, 0.054_007_223_694_154_42),
        (8.0, 3, 1.0, 0.000_718_880_520_800_528_7),
        (0.6, 1, 2.0, 0.149_111_988_175_365_27),
    ] {
        delta_is(&DpEvent::DiscreteGaussian { sigma: sigma(scale), sensitivity }, 1, at, exact);
    }
    // Wide noise on the integers is as good as continuous noise.
    let discrete = pld(&DpEvent::DiscreteGaussian { sigma: sigma(50.0), sensitivity: 10 }, 30, ADD_REMOVE);
    let continuous = pld(&DpEvent::gaussian(sigma(5.0)), 30, ADD_REMOVE);
    let at = Delta::new(1e-6).unwrap();
    let (discrete, continuous) = (discrete.epsilon(at).unwrap(), continuous.epsilon(at).unwrap());
    holds(discrete.lower.unwrap().get(), discrete.epsilon.get(), continuous.epsilon.get(), 1e-3, "wide noise");
}

/// dp_accounting 0.6, `from_mixture_gaussian_mechanism` at its default interval of 1e-4, whose
/// bound is pessimistic by less than 1e-4.
#[test]
fn mixtures_agree_with_dp_accounting() {
    let mixture = MixtureOfGaussians::new(sigma(1.0), [0.0, 1.0, 2.0], [0.81, 0.18, 0.01]).unwrap();
    let accountant = pld(&DpEvent::MixtureOfGaussians(mixture.clone()), 20, ADD_REMOVE);
    for (delta, theirs) in
        [(1e-3, 4.955_332_177_807_447), (1e-5, 7.878_891_688_800_286), (1e-8, 11.901_188_502_046_548)]
    {
        let bound = accountant.epsilon(Delta::new(delta).unwrap()).unwrap();
        assert_eq!(bound.certainty, Certainty::Bound);
        holds(bound.lower.unwrap().get(), bound.epsilon.get(), theirs, 1e-4, "mixture");
    }
    // A user with two records in Poisson batches at rate 1/10 is that mixture.
    let user = DpEvent::gaussian(sigma(1.0)).poisson_sampled(rate(0.1)).for_user(2).unwrap();
    assert!(matches!(&user, DpEvent::MixtureOfGaussians(of_user)
        if of_user.probabilities().iter().zip(mixture.probabilities()).all(|(a, b)| (a - b).abs() < 1e-12)));
    // With two amounts it is a Poisson-sampled Gaussian.
    let two = MixtureOfGaussians::new(sigma(0.8), [0.0, 1.0], [0.98, 0.02]).unwrap();
    let at = Delta::new(1e-6).unwrap();
    let mixed = pld(&DpEvent::MixtureOfGaussians(two), 300, ADD_REMOVE).epsilon(at).unwrap();
    let step = DpEvent::gaussian(sigma(0.8)).poisson_sampled(rate(0.02));
    let sampled = pld(&step, 300, ADD_REMOVE).epsilon(at).unwrap();
    holds(mixed.lower.unwrap().get(), mixed.epsilon.get(), sampled.epsilon.get(), 1e-3, "two amounts");
}

/// Between known limits; the profile itself is compared with differences of tails where it is cut
/// (`pld::pair_cells`).
#[test]
fn replacing_a_record_of_a_poisson_batch() {
    let step = DpEvent::gaussian(sigma(4.0)).poisson_sampled(rate(0.01));
    let bound = pld(&step, 1_000, NeighbouringRelation::ReplaceOne).epsilon(Delta::new(1e-5).unwrap()).unwrap();
    let removed = pld(&step, 1_000, ADD_REMOVE).epsilon(Delta::new(1e-5).unwrap()).unwrap();
    // Between one removal and the group of a removal and an addition.
    assert!(
        bound.lower.unwrap() > removed.epsilon && bound.epsilon.get() < 3.0 * removed.epsilon.get(),
        "{bound:?} {removed:?}"
    );
    // Everything sampled: a Gaussian of twice the sensitivity.
    let whole = DpEvent::gaussian(sigma(4.0)).poisson_sampled(rate(1.0 - 1e-15));
    let at = Delta::new(1e-5).unwrap();
    let nearly = pld(&whole, 10, NeighbouringRelation::ReplaceOne).epsilon(at).unwrap();
    let exact = pld(&DpEvent::gaussian(sigma(2.0)), 10, ADD_REMOVE).epsilon(at).unwrap();
    holds(nearly.lower.unwrap().get(), nearly.epsilon.get(), exact.epsilon.get(), 1e-3, "whole data");
}

#[test]
fn correlated_noise_is_what_its_theorems_say() {
    let at = Delta::new(1e-6).unwrap();
    let epsilon = |event: &DpEvent, count: u64| pld(event, count, ADD_REMOVE).epsilon(at).unwrap();
    let banded = BandedMatrixFactorisation::new(sigma(1.5), rate(0.1), 8, 1_000).unwrap();
    let step = DpEvent::gaussian(sigma(1.5)).poisson_sampled(rate(0.1));
    assert_eq!(epsilon(&DpEvent::BandedMatrixFactorisation(banded), 2), epsilon(&step, 250));
    // dp_accounting 0.6: RDP of a tree of 2^10 steps is 11·α/2σ².
    let tree = TreeAggregation::new(sigma(20.0), 1 << 10).unwrap();
    let mut rdp = RdpAccountant::new(ADD_REMOVE);
    rdp.compose(&DpEvent::TreeAggregation(tree), 1).unwrap();
    assert!((rdp.rdp(5.0).unwrap() - 5.0 * 11.0 / 800.0).abs() < 1e-12);
    let levels = epsilon(&DpEvent::gaussian(sigma(20.0)), 11);
    holds(
        levels.lower.unwrap().get(),
        levels.epsilon.get(),
        epsilon(&DpEvent::TreeAggregation(tree), 1).epsilon.get(),
        1e-9,
        "tree",
    );
}

#[test]
fn truncation_costs_what_full_batches_cost() {
    let at = Delta::new(1e-6).unwrap();
    let truncated = |max_batch_size: u64| DpEvent::TruncatedPoissonGaussian {
        noise_multiplier: sigma(1.0),
        sampling_rate: rate(0.1),
        n_records: 1_000,
        max_batch_size,
    };
    let epsilon = |event: &DpEvent, relation| pld(event, 50, relation).epsilon(at).unwrap();
    let poisson = DpEvent::gaussian(sigma(1.0)).poisson_sampled(rate(0.1));
    let plain = epsilon(&poisson, ADD_REMOVE).epsilon.get();
    let never = epsilon(&truncated(1_000), ADD_REMOVE);
    holds(never.lower.unwrap().get(), never.epsilon.get(), plain, 1e-3, "never truncated");
    let (rarely, often) = (epsilon(&truncated(150), ADD_REMOVE), epsilon(&truncated(100), ADD_REMOVE));
    assert!(rarely.epsilon.get() >= plain * (1.0 - 1e-3) && rarely.epsilon.get() < plain * 1.05, "{rarely:?} {plain}");
    assert!(often.epsilon > rarely.epsilon, "{often:?} {rarely:?}");
    // Where the number of records is public, a record still takes another one's place in a full
    // batch.
    let public = epsilon(&truncated(100), NeighbouringRelation::ZeroOut);
    assert!(public.lower.unwrap() > epsilon(&poisson, NeighbouringRelation::ZeroOut).epsilon, "{public:?}");
}

/// Alternatives one of which is the worst for everybody cost what it costs, by PLD too.
#[test]
fn alternatives_cost_the_worst() {
    let step = |q: f64, noise: f64| DpEvent::gaussian(sigma(noise)).poisson_sampled(rate(q));
    let at = Delta::new(1e-6).unwrap();
    let worst = pld(&step(0.02, 0.9), 100, ADD_REMOVE).epsilon(at).unwrap();
    let groups = DpEvent::OneOf(vec![step(0.02, 1.5), step(0.02, 0.9), step(0.01, 0.9)]);
    assert_eq!(pld(&groups, 100, ADD_REMOVE).epsilon(at).unwrap(), worst);
    // Neither dominates, and a record may meet another one each time: only Rényi divergence is known.
    let crossing = [step(0.02, 1.5), step(0.01, 0.9)];
    let bound = pld(&DpEvent::OneOf(crossing.to_vec()), 100, ADD_REMOVE).epsilon(at).unwrap();
    assert!(matches!(bound.certainty, Certainty::FallBack { .. }) && bound.epsilon.is_finite());
    // A record that meets the same one each time: the larger ε, whatever else was released.
    let before = DpEvent::gaussian(sigma(20.0));
    let alone = crossing.clone().map(|event| {
        let event = DpEvent::Composed(vec![before.clone(), event.repeated(100)]);
        pld(&event, 1, ADD_REMOVE).epsilon(at).unwrap()
    });
    let of_each = DpEvent::OneOf(crossing.map(|event| event.repeated(100)).to_vec());
    let together = pld(&DpEvent::Composed(vec![of_each, before]), 1, ADD_REMOVE);
    let bound = together.epsilon(at).unwrap();
    assert_ne!(alone[0].epsilon, alone[1].epsilon);
    let largest = if alone[0].epsilon > alone[1].epsilon { alone[0].epsilon } else { alone[1].epsilon };
    assert_eq!((bound.epsilon, bound.certainty), (largest, Certainty::Bound));
    let delta = together.delta(bound.epsilon).unwrap();
    assert!(delta.delta <= at.get() * (1.0 + 1e-6) && delta.lower.unwrap() > 0.99 * at.get(), "{delta:?}");
}

/// Balls and bins, by Rényi divergence: below the Gaussian that every step would be, above half of
/// what Poisson sampling costs.
#[test]
fn random_allocation_is_bounded() {
    let at = Delta::new(1e-5).unwrap();
    let epsilon = |event: &DpEvent, count: u64| {
        let mut accountant = RdpAccountant::new(ADD_REMOVE);
        accountant.compose(event, count).unwrap();
        accountant.epsilon(at).unwrap().epsilon.get()
    };
    let allocated = DpEvent::RandomAllocation { noise_multiplier: sigma(1.0), steps: 100, participations: 1 };
    let poisson = DpEvent::gaussian(sigma(1.0)).poisson_sampled(rate(0.01)).repeated(100);
    let (one, five) = (epsilon(&allocated, 1), epsilon(&allocated, 5));
    assert!(one < epsilon(&DpEvent::gaussian(sigma(1.0)), 1) && one > 0.5 * epsilon(&poisson, 1), "{one}");
    assert!(five < epsilon(&DpEvent::gaussian(sigma(1.0)), 5), "{five}");
    let twice = DpEvent::RandomAllocation { noise_multiplier: sigma(1.0), steps: 200, participations: 2 };
    assert_eq!(epsilon(&twice, 1), epsilon(&allocated, 2));
    assert!(RdpAccountant::new(NeighbouringRelation::ReplaceOne).compose(&allocated, 1).is_err());
}

/// Every event as a law: n times is n-fold, Rényi divergence bounds it too, and JSON brings it
/// back.
#[test]
fn every_event_conforms() {
    let mixture = MixtureOfGaussians::new(sigma(2.0), [0.0, 1.0, 3.0], [0.5, 0.4, 0.1]).unwrap();
    let tree = TreeAggregation::new(sigma(9.0), 100).unwrap().with_participations(3, 20).unwrap();
    let events = [
        DpEvent::EpsilonDelta { epsilon: Epsilon::new(0.2).unwrap(), delta: Delta::new(1e-9).unwrap() },
        DpEvent::BandedMatrixFactorisation(BandedMatrixFactorisation::new(sigma(1.5), rate(0.1), 8, 99).unwrap()),
        DpEvent::TreeAggregation(tree),
        DpEvent::MixtureOfGaussians(mixture),
        DpEvent::DiscreteLaplace { scale: sigma(8.0), sensitivity: 2 },
        DpEvent::DiscreteLaplace { scale: sigma(3.0), sensitivity: 2 }.poisson_sampled(rate(0.1)),
        DpEvent::DiscreteGaussian { sigma: sigma(8.0), sensitivity: 2 },
        DpEvent::TruncatedPoissonGaussian {
            noise_multiplier: sigma(1.0),
            sampling_rate: rate(0.05),
            n_records: 200,
            max_batch_size: 15,
        },
    ];
    let at = Delta::new(1e-6).unwrap();
    for event in events {
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<DpEvent>(&json).unwrap(), event, "{json}");
        let composed = pld(&event, 6, ADD_REMOVE).epsilon(at).unwrap();
        let listed = pld(&DpEvent::Composed(vec![event.clone(); 3]), 2, ADD_REMOVE).epsilon(at).unwrap();
        assert_eq!(composed, listed, "{event}");
        let mut rdp = RdpAccountant::new(ADD_REMOVE);
        rdp.compose(&event, 6).unwrap();
        let by_rdp = rdp.epsilon(at).unwrap().epsilon;
        assert!(by_rdp.is_finite() && by_rdp >= composed.lower.unwrap(), "{event}: {composed:?} {by_rdp:?}");
        let fewer = pld(&event, 3, ADD_REMOVE).epsilon(at).unwrap();
        assert!(fewer.lower.unwrap() <= composed.epsilon, "{event}");
        assert!(composed.epsilon.get() <= by_rdp.get() * (1.0 + 1e-9), "{event}: {composed:?} {by_rdp:?}");
    }
}
