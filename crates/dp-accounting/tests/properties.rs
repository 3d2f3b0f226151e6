//! What any accountant's bounds keep, whatever the setting.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::{
    Accountant, Delta, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, PldAccountant, RdpAccountant,
    SamplingRate,
};
use proptest::prelude::*;

fn sampled(q: f64, sigma: f64) -> DpEvent {
    DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap()).poisson_sampled(SamplingRate::new(q).unwrap())
}

fn composed<A: Accountant>(mut accountant: A, events: &[(DpEvent, u64)]) -> A {
    for (event, count) in events {
        accountant.compose(event, *count).unwrap();
    }
    accountant
}

/// Both ends of PLD's bracket, and RDP's bound.
fn epsilons(events: &[(DpEvent, u64)], delta: f64) -> (f64, f64, f64) {
    let delta = Delta::new(delta).unwrap();
    let pld = composed(PldAccountant::new(NeighbouringRelation::AddRemove), events).epsilon(delta).unwrap();
    let rdp = composed(RdpAccountant::new(NeighbouringRelation::AddRemove), events).epsilon(delta).unwrap();
    (pld.lower.unwrap().get(), pld.epsilon.get(), rdp.epsilon.get())
}

fn setting() -> impl Strategy<Value = (f64, f64, u64, f64)> {
    (-7.0_f64..-0.5, -0.4_f64..2.0, 0.0_f64..7.0, -25.0_f64..-3.0)
        .prop_map(|(q, sigma, steps, delta)| (q.exp(), sigma.exp(), steps.exp() as u64, delta.exp()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_and_blocks_change_no_bit((q, sigma, steps, delta) in setting(), other in 1_u64..50) {
        let (a, b, c) = (sampled(q, sigma), sampled(0.5 * q, 1.5 * sigma), DpEvent::gaussian(NoiseMultiplier::new(9.0 * sigma).unwrap()));
        let (half, rest) = (steps / 2, steps - steps / 2);
        let forwards = [(a.clone(), steps), (b.clone(), other), (c.clone(), 1)];
        let backwards = [(c, 1), (a.clone(), half), (b, other), (a, rest)];
        prop_assert_eq!(epsilons(&forwards, delta), epsilons(&backwards, delta));
    }

    /// The exact ε is monotone, so a bracket of the more private setting never lies above one of
    /// the less private.
    #[test]
    fn epsilon_is_monotone((q, sigma, steps, delta) in setting(), by in 1.01_f64..3.0) {
        let (_, upper, rdp) = epsilons(&[(sampled(q, sigma), steps)], delta);
        for (event, count, delta) in [
            (sampled(q, sigma * by), steps, delta),
            (sampled(q / by, sigma), steps, delta),
            (sampled(q, sigma), (steps as f64 / by) as u64, delta),
            (sampled(q, sigma), steps, delta * by),
        ] {
            let (lower, _, other_rdp) = epsilons(&[(event.clone(), count)], delta);
            prop_assert!(lower <= upper, "{event} {count} {delta}: {lower} {upper}");
            prop_assert!(other_rdp <= rdp * (1.0 + 1e-9), "{event} {count} {delta}: {other_rdp} {rdp}");
        }
    }

    #[test]
    fn delta_of_epsilon_of_delta_is_no_more((q, sigma, steps, delta) in setting()) {
        let events = [(sampled(q, sigma), steps)];
        let (lower, upper, rdp) = epsilons(&events, delta);
        let pld = composed(PldAccountant::new(NeighbouringRelation::AddRemove), &events);
        // At the upper end the exact δ is at most the one asked for, at the lower end at least.
        let at_upper = pld.delta(Epsilon::new(upper).unwrap()).unwrap();
        prop_assert!(at_upper.lower.unwrap() <= delta, "{at_upper:?} {delta}");
        if lower > 0.0 {
            let at_lower = pld.delta(Epsilon::new(lower).unwrap()).unwrap();
            prop_assert!(at_lower.delta >= delta, "{at_lower:?} {delta}");
        }
        let by_rdp = composed(RdpAccountant::new(NeighbouringRelation::AddRemove), &events);
        let back = by_rdp.delta(Epsilon::new(rdp).unwrap()).unwrap().delta;
        prop_assert!(rdp == 0.0 || back <= delta * (1.0 + 1e-6), "{back} {delta}");
    }

    /// T steps at δ cost at most T times what one costs at δ/T, and no less than one at δ.
    #[test]
    fn many_steps_lie_between_one_and_as_many_times_one((q, sigma, steps, delta) in setting()) {
        let (lower, upper, _) = epsilons(&[(sampled(q, sigma), steps)], delta);
        let (one_lower, _, _) = epsilons(&[(sampled(q, sigma), 1)], delta);
        let (_, part_upper, _) = epsilons(&[(sampled(q, sigma), 1)], delta / steps as f64);
        prop_assert!(one_lower <= upper, "{one_lower} {upper}");
        prop_assert!(lower <= steps as f64 * part_upper * (1.0 + 1e-15), "{lower} {part_upper}");
    }
}
