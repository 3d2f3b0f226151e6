//! Calibration, the analytic Gaussian mechanism, repeat-and-select and the high-precision oracle.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test may panic")]

mod golden_tables;

use dp_accounting::{
    Accountant, Calibration, Delta, DpEvent, Epsilon, GdpAccountant, NeighbouringRelation, NoiseMultiplier, Orders,
    PldAccountant, RdpAccountant, SamplingRate, TrialCount, analytic_gaussian_noise_multiplier,
};

const ADD_REMOVE: NeighbouringRelation = NeighbouringRelation::AddRemove;

fn sampled(q: f64, sigma: NoiseMultiplier) -> DpEvent {
    DpEvent::gaussian(sigma).poisson_sampled(SamplingRate::new(q).unwrap())
}

fn noise(sigma: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(sigma).unwrap()
}

#[test]
fn noise_multipliers_are_calibrated_to_the_peers() {
    for row in golden_tables::rows(include_str!("golden/calibration.tsv")) {
        let (q, steps) = (row.number("sampling_rate"), row.number("steps") as u64);
        let (target, delta) =
            (Epsilon::new(row.number("target_epsilon")).unwrap(), Delta::new(row.number("delta")).unwrap());
        let event = |sigma| sampled(q, sigma).repeated(steps);
        // On more orders than Opacus's the noise can only be smaller.
        let by_rdp = Calibration::new(ADD_REMOVE, target, delta).unwrap();
        let sigma = by_rdp.noise_multiplier(event).unwrap();
        if let Some(peer) = row.optional("opacus_more_orders") {
            assert!(
                (sigma.get() / peer - 1.0).abs() < 3e-3 && sigma.get() < peer * (1.0 + 2e-6),
                "{sigma}: {}",
                row.describe()
            );
        }
        assert!(by_rdp.epsilon_of(&event(sigma), 1).unwrap() <= target);
        // By PLD: not below the exact value, and above it by no more than the width of the bracket
        // allows.
        let by_pld = Calibration::of_remaining_budget(PldAccountant::new(ADD_REMOVE), target, delta).unwrap();
        let by_pld = by_pld.with_relative_tolerance(1e-4).unwrap();
        let sigma = by_pld.noise_multiplier(event).unwrap().get();
        let exact = row.number("exact");
        assert!(sigma >= exact * (1.0 - 1e-7) && sigma < exact * 1.002, "{sigma}: {}", row.describe());
    }
}

#[test]
fn opacus_orders_reproduce_opacus_calibration() {
    for row in golden_tables::rows(include_str!("golden/calibration.tsv")) {
        let (q, steps) = (row.number("sampling_rate"), row.number("steps") as u64);
        let (target, delta) =
            (Epsilon::new(row.number("target_epsilon")).unwrap(), Delta::new(row.number("delta")).unwrap());
        let accountant = RdpAccountant::new(ADD_REMOVE).with_orders(Orders::opacus());
        let calibration = Calibration::of_remaining_budget(accountant, target, delta).unwrap();
        let found = calibration.noise_multiplier(|sigma| sampled(q, sigma).repeated(steps));
        match row.optional("opacus") {
            Some(peer) => assert!((found.unwrap().get() / peer - 1.0).abs() < 1e-5, "{}", row.describe()),
            None => assert!(
                found.unwrap_err().to_string().starts_with("no noise multiplier in [1e-2, 1e7]"),
                "{}",
                row.describe()
            ),
        }
    }
}

/// σ and a rate to 1e-9, a number of steps to the last one, by every accountant.
#[test]
fn calibration_finds_parameters_to_nine_digits() {
    fn check<A: Accountant + Clone>(accountant: A) {
        let name = accountant.name();
        let target = Epsilon::new(2.0).unwrap();
        let calibration = Calibration::of_remaining_budget(accountant, target, Delta::new(1e-5).unwrap()).unwrap();
        let epsilon =
            |q: f64, sigma: f64, steps: u64| calibration.epsilon_of(&sampled(q, noise(sigma)), steps).unwrap().get();
        let sigma = calibration.noise_multiplier(|sigma| sampled(0.01, sigma).repeated(1_000)).unwrap().get();
        assert!(
            epsilon(0.01, sigma, 1_000) <= 2.0 && epsilon(0.01, sigma * (1.0 - 2e-9), 1_000) > 2.0,
            "{name}: {sigma}"
        );
        let rate =
            calibration.sampling_rate(|rate| DpEvent::gaussian(noise(1.0)).poisson_sampled(rate).repeated(1_000));
        let rate = rate.unwrap().get();
        assert!(epsilon(rate, 1.0, 1_000) <= 2.0 && epsilon(rate * (1.0 + 2e-9), 1.0, 1_000) > 2.0, "{name}: {rate}");
        let steps = calibration.steps(&sampled(0.01, noise(1.0))).unwrap();
        assert!(epsilon(0.01, 1.0, steps) <= 2.0 && epsilon(0.01, 1.0, steps + 1) > 2.0, "{name}: {steps}");
    }
    check(RdpAccountant::new(ADD_REMOVE));
    check(PldAccountant::new(ADD_REMOVE));
    check(GdpAccountant::new(ADD_REMOVE));
}

#[test]
fn steps_rates_and_batch_sizes_are_the_largest_that_meet_the_target() {
    let (target, delta) = (Epsilon::new(2.0).unwrap(), Delta::new(1e-5).unwrap());
    let calibration = Calibration::new(ADD_REMOVE, target, delta).unwrap();
    let step = sampled(0.01, noise(1.0));
    let steps = calibration.steps(&step).unwrap();
    assert!(
        calibration.epsilon_of(&step, steps).unwrap() <= target
            && calibration.epsilon_of(&step, steps + 1).unwrap() > target
    );
    let rate = calibration
        .sampling_rate(|rate| DpEvent::gaussian(noise(1.0)).poisson_sampled(rate).repeated(1_000))
        .unwrap()
        .get();
    let above = sampled(rate * (1.0 + 1e-5), noise(1.0));
    assert!(calibration.epsilon_of(&sampled(rate, noise(1.0)), 1_000).unwrap() <= target);
    assert!(calibration.epsilon_of(&above, 1_000).unwrap() > target);
    let size = calibration
        .batch_size(10_000, |rate| DpEvent::gaussian(noise(1.0)).poisson_sampled(rate).repeated(1_000))
        .unwrap();
    assert_eq!(size, (rate * 10_000.0).floor() as u64);
    // Against what is left: half of the steps were already taken.
    let mut spent = RdpAccountant::new(ADD_REMOVE);
    spent.compose(&step, steps / 2).unwrap();
    let rest = Calibration::of_remaining_budget(spent, target, delta).unwrap();
    assert_eq!(rest.steps(&step).unwrap(), steps - steps / 2);
    // A spent budget leaves nothing.
    let mut all = RdpAccountant::new(ADD_REMOVE);
    all.compose(&step, steps).unwrap();
    assert_eq!(Calibration::of_remaining_budget(all, target, delta).unwrap().steps(&step).unwrap(), 0);
}

#[test]
fn analytic_gaussian_agrees() {
    for row in golden_tables::rows(include_str!("golden/analytic_gaussian.tsv")) {
        let (epsilon, delta) = (Epsilon::new(row.number("epsilon")).unwrap(), Delta::new(row.number("delta")).unwrap());
        let sigma = analytic_gaussian_noise_multiplier(epsilon, delta).unwrap();
        assert!((sigma.get() / row.number("sigma") - 1.0).abs() < 1e-8, "{sigma}: {}", row.describe());
        let mut accountant = PldAccountant::new(ADD_REMOVE);
        accountant.compose(&DpEvent::gaussian(sigma), 1).unwrap();
        assert!((accountant.epsilon(delta).unwrap().epsilon.get() / epsilon.get() - 1.0).abs() < 1e-8);
    }
}

#[test]
fn searches_cost_no_more_than_the_peer_says() {
    for row in golden_tables::rows(include_str!("golden/repeat_select.tsv")) {
        let (eta, mean) = (row.number("eta"), row.number("mean_trials"));
        if eta.is_finite() && mean <= 1.0 {
            // Always one trial: no search.
            continue;
        }
        let trials = if eta.is_finite() {
            TrialCount::negative_binomial_with_mean(eta, mean)
        } else {
            TrialCount::poisson(mean)
        };
        let run = sampled(row.number("sampling_rate"), noise(row.number("noise_multiplier")))
            .repeated(row.number("steps") as u64);
        let mut one_run = RdpAccountant::new(ADD_REMOVE);
        one_run.compose(&run, 1).unwrap();
        let mut search = RdpAccountant::new(ADD_REMOVE);
        search.compose(&run.best_of(trials.unwrap()), 1).unwrap();
        for (column, delta) in [("epsilon_1e-5", 1e-5), ("epsilon_1e-6", 1e-6)] {
            let delta = Delta::new(delta).unwrap();
            let (ours, single) =
                (search.epsilon(delta).unwrap().epsilon.get(), one_run.epsilon(delta).unwrap().epsilon.get());
            assert!(ours >= single, "{ours} {single}: {}", row.describe());
            if let Some(peer) = row.optional(column) {
                assert!(ours <= peer * (1.0 + 1e-6), "{ours}: {}", row.describe());
            }
        }
    }
}

#[test]
fn divergences_equal_the_oracle() {
    for row in golden_tables::rows(include_str!("oracle/oracle_rdp.tsv")) {
        let mut accountant = RdpAccountant::new(ADD_REMOVE);
        accountant.compose(&sampled(row.number("sampling_rate"), noise(row.number("noise_multiplier"))), 1).unwrap();
        let ours = accountant.rdp(row.number("order")).unwrap();
        // An upper bound, and above the value by its rounding alone: at order 1.001 three digits
        // cancel.
        let excess = ours / row.number("rdp") - 1.0;
        assert!(excess > -4e-16 && excess < 2e-9, "{ours}: {}", row.describe());
    }
}

/// The oracle has one direction a row: the upper bound holds for each, and the lower one for the
/// larger.
#[test]
fn profiles_contain_the_oracle() {
    let mut largest: Vec<((u64, u64, u64, u64), f64)> = Vec::new();
    for row in golden_tables::rows(include_str!("oracle/oracle_delta.tsv")) {
        let (q, sigma, steps, epsilon) =
            (row.number("sampling_rate"), row.number("noise_multiplier"), row.number("steps"), row.number("epsilon"));
        let key = (q.to_bits(), sigma.to_bits(), steps as u64, epsilon.to_bits());
        match largest.iter_mut().find(|(known, _)| *known == key) {
            Some((_, delta)) => *delta = delta.max(row.number("delta")),
            None => largest.push((key, row.number("delta"))),
        }
    }
    for ((q, sigma, steps, epsilon), truth) in largest {
        let (q, sigma, epsilon) = (f64::from_bits(q), f64::from_bits(sigma), f64::from_bits(epsilon));
        let mut accountant = PldAccountant::new(ADD_REMOVE);
        accountant.compose(&sampled(q, noise(sigma)), steps).unwrap();
        // δ of the bracket contains δ of the oracle, and ε at that δ contains ε.
        let bound = accountant.delta(Epsilon::new(epsilon).unwrap()).unwrap();
        let what = format!("q {q} σ {sigma} T {steps} ε {epsilon}: {bound:?}, oracle {truth}");
        assert!(bound.lower.unwrap() <= truth * (1.0 + 1e-10) && truth <= bound.delta * (1.0 + 1e-10), "{what}");
        let bound = accountant.epsilon(Delta::new(truth).unwrap()).unwrap();
        let (lower, upper) = (bound.lower.unwrap().get(), bound.epsilon.get());
        assert!(lower <= epsilon * (1.0 + 1e-10) && epsilon <= upper * (1.0 + 1e-10), "{what} [{lower}, {upper}]");
    }
}
