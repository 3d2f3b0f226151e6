//! Settings in which bounds once failed or never came, as lines of `cargo xtask account --jsonl -`.
//!
//! True values: mpmath 1.3, 60 digits, from distribution functions.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::case::{Case, Outcome};
use dp_accounting::{
    Accountant, Calibration, Certainty, Delta, Divergence, DpEvent, Epsilon, Ledger, MixtureOfGaussians,
    NeighbouringRelation, NoiseMultiplier, PldAccountant, RdpAccountant, RenyiOrder, Rho, SamplingRate, TradeOff,
    TrialCount,
};

/// Answers take a second at most on an idle core; this leaves room for a busy machine.
const SECONDS: f64 = 10.0;

/// Numbers of an answer by name.
fn answer(case: &str) -> serde_json::Value {
    let outcome = Outcome::of_line(case.as_bytes(), &Case::default());
    assert!(outcome.is_answered, "{case}: {:?}", outcome.note);
    assert!(outcome.seconds < SECONDS, "{case}: {} s", outcome.seconds);
    serde_json::to_value(outcome).unwrap()
}

/// The true value is in the bracket, which is as narrow as that, and RDP is not below it.
fn holds(case: &str, quantity: &str, truth: f64, width: f64) {
    let found = answer(case);
    let number = |name: &str| found[format!("{quantity}_{name}")].as_f64().unwrap();
    let (lower, upper) = (number("pld_lower"), number("pld_upper"));
    assert!(lower <= truth && truth <= upper, "{case}: [{lower:?}, {upper:?}] without {truth:?}");
    assert!(upper - lower <= width * truth, "{case}: [{lower:?}, {upper:?}]");
    assert!(number("rdp") >= truth && number("rdp_classic") >= truth, "{case}: {found}");
}

/// Next to no noise: a step reveals the record if it is drawn, and the truth is `1 - (1 - q)^k`.
#[test]
fn steps_that_reveal_a_record_are_bracketed() {
    let noise = |scale| NoiseMultiplier::new(scale).unwrap();
    let rate = |q| SamplingRate::new(q).unwrap();
    let kinds: [(&str, DpEvent); 4] = [
        ("Gaussian", DpEvent::gaussian(noise(0.02))),
        ("Laplace", DpEvent::laplace(noise(0.02))),
        ("discrete Gaussian", DpEvent::DiscreteGaussian { sigma: noise(0.02), sensitivity: 1 }),
        ("discrete Laplace", DpEvent::DiscreteLaplace { scale: noise(0.02), sensitivity: 1 }),
    ];
    for (name, event) in kinds {
        for (q, count) in [(1e-4, 1), (1e-4, 285_000), (0.3, 80), (0.01, 10)] {
            let step = event.clone().poisson_sampled(rate(q));
            let truth = -libm::expm1(count as f64 * libm::log1p(-q));
            for relation in [NeighbouringRelation::AddRemove, NeighbouringRelation::Remove] {
                let mut accountant = PldAccountant::new(relation).with_max_points(1 << 16).unwrap();
                accountant.compose(&step, count).unwrap();
                let bound = accountant.delta(Epsilon::new(2.0).unwrap()).unwrap();
                let lower = bound.lower.unwrap();
                // Noise of Laplace's kind hides the record with probability e^-25.
                let is_close = (1.0 - 1e-3) * truth <= lower && lower <= truth * (1.0 + 1e-9);
                assert!(is_close, "{name} {q} x {count} {relation}: {bound:?}, {truth}");
                assert!(
                    bound.delta >= lower && bound.delta <= (truth * 1.05).min(1.0),
                    "{name} {q} x {count}: {bound:?}"
                );
            }
            // Added instead: ε = -k·ln(1 - q) + ln(1 - δ), where that is above 0.
            let mut accountant = PldAccountant::new(NeighbouringRelation::Add).with_max_points(1 << 16).unwrap();
            accountant.compose(&step, count).unwrap();
            let truth = (-(count as f64) * libm::log1p(-q) + libm::log1p(-1e-5)).max(0.0);
            let bound = accountant.epsilon(Delta::new(1e-5).unwrap()).unwrap();
            let lower = bound.lower.unwrap().get();
            assert!(
                lower <= truth * (1.0 + 1e-5) && bound.epsilon.get() >= truth * (1.0 - 1e-5),
                "{name}: {bound:?} {truth}"
            );
            assert!(lower >= truth * (1.0 - 1e-3) - 1e-8, "{name} {q} x {count}: {bound:?} {truth}");
        }
    }
}

/// A bracket that says nothing is called so.
#[test]
fn what_says_nothing_is_named() {
    let discrete = DpEvent::MixtureOfGaussians(
        MixtureOfGaussians::new(NoiseMultiplier::new(0.01).unwrap(), [0.0, 1.0], [0.5, 0.5]).unwrap(),
    );
    let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove).with_max_points(64).unwrap();
    accountant.compose(&discrete, 100).unwrap();
    let bound = accountant.delta(Epsilon::new(1.0).unwrap()).unwrap();
    if (bound.lower, bound.delta) == (Some(0.0), 1.0) {
        let Certainty::FallBack { reason } = bound.certainty else { panic!("{bound:?}") };
        assert!(reason.starts_with("nothing is known"), "{reason}");
    }
    let of_mu = TradeOff::new(&accountant).gaussian_mu(1e-6).unwrap();
    assert!(of_mu.guaranteed.is_finite() || of_mu.certainty != Certainty::Bound, "{of_mu:?}");
}

/// Every answer of a search ends, also where the noise has too many outcomes to list.
#[test]
fn wide_discrete_gaussians_are_answered() {
    let delta = Delta::new(1e-5).unwrap();
    // dp_accounting 0.6 finds 243.9 and 373 (by the continuous noise, which they approach).
    for (target, sensitivity, exact) in [(0.02, 1, 131.8), (0.01, 1, 243.8), (1.0, 100, 373.1)] {
        let target = Epsilon::new(target).unwrap();
        let calibration = Calibration::new(NeighbouringRelation::AddRemove, target, delta).unwrap();
        let sigma = calibration.noise_multiplier(|sigma| DpEvent::DiscreteGaussian { sigma, sensitivity }).unwrap();
        // By Rényi divergences a tenth more.
        assert!((exact..1.15 * exact).contains(&sigma.get()), "{sigma} {exact}");
    }
    let event = |sigma| DpEvent::DiscreteGaussian { sigma: NoiseMultiplier::new(sigma).unwrap(), sensitivity: 1 };
    let mut before = f64::INFINITY;
    for sigma in [1e3, 1.3e4, 1e5] {
        for event in [event(sigma), event(sigma).poisson_sampled(SamplingRate::new(0.1).unwrap())] {
            let mut accountant = RdpAccountant::new(NeighbouringRelation::AddRemove);
            accountant.compose(&event, 10).unwrap();
            let epsilon = accountant.epsilon(delta).unwrap().epsilon.get();
            assert!(epsilon > 0.0 && epsilon < before, "{sigma}: {epsilon}");
        }
        let mut accountant = RdpAccountant::new(NeighbouringRelation::AddRemove);
        accountant.compose(&event(sigma), 10).unwrap();
        before = accountant.epsilon(delta).unwrap().epsilon.get();
    }
}

/// 20,000 events, each once: twice as many take about twice as long, and Gaussians are still exact.
#[test]
fn long_lists_take_linear_time() {
    let list: Vec<_> = (0..20_000).map(|i| DpEvent::gaussian_at(100.0 + f64::from(i)).unwrap()).collect();
    let start = std::time::Instant::now();
    let mut ledger = Ledger::new(NeighbouringRelation::AddRemove);
    ledger.record(&DpEvent::Composed(list.clone()), 1).unwrap();
    for event in &list {
        ledger.record(&DpEvent::Composed(vec![event.clone()]), 1).unwrap();
    }
    assert_eq!(ledger.entries().len(), 40_000);
    let mut accountant = PldAccountant::of(&ledger).unwrap();
    for event in &list {
        accountant.compose(event, 1).unwrap();
    }
    let bound = accountant.epsilon(Delta::new(1e-5).unwrap()).unwrap();
    // Three of each: μ² = 3·Σ 1/σ².
    let mu = (0..20_000).map(|i| 3.0 / f64::powi(100.0 + f64::from(i), 2)).sum::<f64>().sqrt();
    let mut one = PldAccountant::new(NeighbouringRelation::AddRemove);
    one.compose(&DpEvent::gaussian_at(mu.recip()).unwrap(), 1).unwrap();
    let exact = one.epsilon(Delta::new(1e-5).unwrap()).unwrap().epsilon.get();
    assert!((bound.epsilon.get() / exact - 1.0).abs() < 1e-9, "{bound:?} {exact}");
    // Quadratic time took minutes.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn rdp_of_the_sampled_gaussian_where_nearly_every_record_is_drawn() {
    let at =
        |q: f64, sigma: f64| format!(r#"{{"sampling_rate":{q},"noise_multiplier":{sigma},"steps":1,"delta":1e-5}}"#);
    holds(&at(0.999_999_999_9, 0.05), "epsilon", 284.391_849_497_195_5, 1e-13);
    holds(&at(0.999_999_99, 0.03), "epsilon", 696.777_791_457_273_2, 1e-13);
}

#[test]
fn the_closed_form_where_epsilon_is_near_0_or_delta_near_1() {
    let at = |steps: u32, delta: f64| {
        format!(r#"{{"sampling_rate":1,"noise_multiplier":1,"steps":{steps},"delta":{delta}}}"#)
    };
    holds(&at(1, 0.382_924_9), "epsilon", 7.308_033_377_113_851e-08, 1e-6);
    holds(&at(100, 0.999_999), "epsilon", 1.124_472_302_591_755_1, 1e-12);
    let far = r#"{"sampling_rate":1,"noise_multiplier":9.99,"steps":1,"epsilon":3}"#;
    holds(far, "delta", 1.801_266_073_161_251e-199, 1e-10);
}

#[test]
fn every_delta_is_answered_from_both_sides() {
    let rare = r#"{"sampling_rate":1.248e-7,"noise_multiplier":0.335,"steps":1,"epsilon":4.09}"#;
    holds(rare, "delta", 4.443_742_814_794_257e-15, 1e-11);
    let one = r#"{"sampling_rate":0.2,"noise_multiplier":1,"steps":1,"epsilon":1}"#;
    holds(one, "delta", 0.002_296_821_967_018_118, 1e-12);
    // 0.8 of ε at 1e-5: 2.5e-5, not the 1.85e-3 that RDP alone knows.
    let found = answer(r#"{"sampling_rate":0.001,"noise_multiplier":0.5,"steps":100,"epsilon":1.687}"#);
    let number = |name: &str| found[name].as_f64().unwrap();
    let (lower, upper) = (number("delta_pld_lower"), number("delta_pld_upper"));
    assert!(lower > 2.5e-5 && upper < 2.55e-5 && upper - lower < 1e-3 * upper, "[{lower}, {upper}]");
}

/// Next to no noise: panels of a grid would take minutes. What is known is the Rényi bound above,
/// and below that many steps are no more private than one.
#[test]
fn next_to_no_noise_is_answered_by_what_is_known() {
    for sigma in [1e-6, 1e-5, 1e-4, 3e-4] {
        let found =
            answer(&format!(r#"{{"sampling_rate":0.01,"noise_multiplier":{sigma},"steps":1000,"delta":1e-5}}"#));
        let (lower, upper) =
            (found["epsilon_pld_lower"].as_f64().unwrap(), found["epsilon_pld_upper"].as_f64().unwrap());
        assert!(lower >= 0.5 / (sigma * sigma) && upper.is_finite(), "{sigma}: [{lower}, {upper}]");
    }
}

#[test]
fn batches_of_fixed_size_with_little_noise_are_answered() {
    for (sigma, steps) in [(0.011, 100), (0.013, 1_000), (0.015, 1)] {
        let case = format!(
            r#"{{"sampler":"fixed-size","records":50000,"batch_size":256,"noise_multiplier":{sigma},"steps":{steps},"delta":1e-5}}"#
        );
        let found = answer(&case);
        let (lower, upper) =
            (found["epsilon_pld_lower"].as_f64().unwrap(), found["epsilon_pld_upper"].as_f64().unwrap());
        assert!(lower > 0.99 * upper, "{case}: [{lower}, {upper}]");
    }
}

/// Papernot & Steinke 2022, Theorem 2 for a logarithmic number of trials (η = 0), of a
/// ρ-zero-concentrated run at orders λ and λ̂: `ρλ + (1 - 1/λ̂)·ρλ̂ + ln(1/γ)/λ̂ + ln E[K]/(λ-1)`,
/// smallest at `λ̂ = √(ln(1/γ)/ρ)`.
fn searched(rho: f64, gamma: f64, order: f64) -> f64 {
    let log = -gamma.ln();
    let log_mean = ((1.0 / gamma - 1.0) / log).ln();
    rho * order + 2.0 * (rho * log).sqrt() - rho + log_mean / (order - 1.0)
}

fn search(rho: f64, gamma: f64) -> RdpAccountant {
    let one = DpEvent::ZeroConcentrated { rho: Rho::new(rho).unwrap() };
    let search = one.best_of(TrialCount::negative_binomial(0.0, gamma).unwrap());
    let mut accountant = RdpAccountant::new(NeighbouringRelation::AddRemove);
    accountant.compose(&search, 1).unwrap();
    accountant
}

#[test]
fn repeat_and_select_is_monotone_in_the_order_and_searched_without_a_cap() {
    // The bound at order 18.5 is the smallest and holds below: 0.7795, where that of order 1.1
    // alone is 31.11.
    let found = search(0.01, 0.01).rdp(1.1).unwrap();
    let least = (0..4_000).map(|i| searched(0.01, 0.01, 2.0 + 0.01 * f64::from(i))).fold(f64::INFINITY, f64::min);
    assert!((searched(0.01, 0.01, 1.1) - 31.11).abs() < 5e-3);
    assert!((found - least).abs() < 1e-6 && (found - 0.779_5).abs() < 5e-5, "{found} {least}");
    // λ̂ = 2.6e8 and beyond any list of orders.
    let order = 1e9;
    let (found, expected) = (search(1e-16, 1e-3).rdp(order).unwrap(), searched(1e-16, 1e-3, order));
    assert!(found >= expected * (1.0 - 1e-12) && found < expected * 1.000_01, "{found} {expected}");
}

/// Beside a Gaussian that asks for a low order the bound of a higher order counts, too: without it
/// ε would be larger by one.
#[test]
fn a_search_beside_a_gaussian_is_monotone_in_the_order() {
    let (rho, gamma, delta) = (0.01, 0.01, 1e-5_f64);
    let mut accountant = search(rho, gamma);
    accountant.compose(&DpEvent::ZeroConcentrated { rho: Rho::new(3.0).unwrap() }, 1).unwrap();
    let found = accountant.epsilon(Delta::new(delta).unwrap()).unwrap().epsilon.get();
    let orders = || (1..20_000).map(|i| 1.0 + 0.002 * f64::from(i));
    let least = orders().map(|order| searched(rho, gamma, order)).fold(f64::INFINITY, f64::min);
    let bound = |is_monotone: bool| {
        let at = |order: f64| {
            let search = searched(rho, gamma, order);
            // Below the order of the smallest bound that one holds.
            let search = if is_monotone && order < 18.5 { search.min(least) } else { search };
            search + 3.0 * order + ((order - 1.0) / order).ln() - (delta.ln() + order.ln()) / (order - 1.0)
        };
        orders().map(at).fold(f64::INFINITY, f64::min)
    };
    let (monotone, raw) = (bound(true), bound(false));
    assert!((found / monotone - 1.0).abs() < 1e-5, "{found} {monotone}");
    assert!(raw > found + 0.8, "{raw} {found}");
}

/// The best order of a sampled Gaussian, kept alone: ε is the same to the last digit there, and no
/// order above it is known. With something else that asks for another order the bound is looser.
#[test]
fn one_order_is_enough_where_it_is_the_best() {
    let delta = Delta::new(1e-5).unwrap();
    let step = DpEvent::gaussian_at(1.1).unwrap().poisson_sampled_at(0.02).unwrap();
    let epsilon = |event: &DpEvent, count: u64| {
        let mut accountant = RdpAccountant::new(NeighbouringRelation::ZeroOut);
        accountant.compose(event, count).unwrap();
        accountant.epsilon(delta).unwrap()
    };
    let all = epsilon(&step, 500);
    let order = all.order.unwrap();
    let mut one = RdpAccountant::new(NeighbouringRelation::ZeroOut);
    one.compose(&step, 1).unwrap();
    let divergence = Divergence::new(one.rdp(order).unwrap()).unwrap();
    let known = DpEvent::RenyiAtOrder { order: RenyiOrder::new(order).unwrap(), divergence };
    let found = epsilon(&known, 500);
    assert_eq!(found.order, Some(order));
    assert!((found.epsilon.get() / all.epsilon.get() - 1.0).abs() < 1e-12, "{found:?} {all:?}");
    let mut mixed = RdpAccountant::new(NeighbouringRelation::ZeroOut);
    mixed.compose(&known, 500).unwrap();
    mixed.compose(&DpEvent::gaussian_at(0.2).unwrap(), 1).unwrap();
    assert!(mixed.rdp(order * 1.001).unwrap().is_infinite() && mixed.rdp(1.5).unwrap().is_finite());
    assert!(mixed.epsilon(delta).unwrap().order.unwrap() < order);
    // By loss distributions there is nothing but this bound.
    let mut pld = PldAccountant::new(NeighbouringRelation::ZeroOut);
    pld.compose(&known, 500).unwrap();
    let bound = pld.epsilon(delta).unwrap();
    assert!(bound.epsilon == found.epsilon && matches!(bound.certainty, Certainty::FallBack { .. }), "{bound:?}");
    assert!(known.for_user(2).is_err() && known.poisson_sampled_at(0.5).is_ok());
}

/// 10⁸ searches of next to no privacy loss, each with a geometric number of trials: `6n·√(ρ
/// ln(1/γ))` at orders of 7e7. With orders up to 10⁶ alone it would be 1381.9.
#[test]
fn many_searches_ask_for_orders_beyond_a_million() {
    let one = DpEvent::ZeroConcentrated { rho: Rho::new(1e-15).unwrap() };
    let search = one.best_of(TrialCount::negative_binomial(1.0, 0.01).unwrap());
    let mut accountant = RdpAccountant::new(NeighbouringRelation::AddRemove);
    accountant.compose(&search, 100_000_000).unwrap();
    let found = accountant.epsilon(Delta::new(1e-5).unwrap()).unwrap().epsilon.get();
    let expected = 6e8 * (1e-15 * 100.0_f64.ln()).sqrt();
    assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
}

#[test]
fn without_privacy_delta_is_1_at_every_epsilon() {
    let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
    accountant.compose(&DpEvent::NonPrivate, 1).unwrap();
    for epsilon in [0.0, 10.0, f64::INFINITY] {
        assert_eq!(accountant.delta(Epsilon::new(epsilon).unwrap()).unwrap().delta, 1.0);
    }
    assert!(!accountant.epsilon(Delta::new(0.5).unwrap()).unwrap().epsilon.is_finite());
}

/// Wide cells: what no better analysis could avoid must not be above what composition allows, T
/// times the ε of one.
#[test]
fn lower_bounds_hold_for_large_losses() {
    let delta = Delta::new(1e-6).unwrap();
    let pure = |epsilon: f64| DpEvent::EpsilonDelta {
        epsilon: Epsilon::new(epsilon).unwrap(),
        delta: Delta::new(1e-10).unwrap(),
    };
    let laplace = |scale: f64| DpEvent::laplace(NoiseMultiplier::new(scale).unwrap());
    let cases = [(pure(38.0), 400, 15_200.0), (pure(102.0), 1_223, 124_746.0), (laplace(0.01), 1_000, 100_000.0)];
    for (event, count, most) in cases {
        let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
        accountant.compose(&event, count).unwrap();
        let bound = accountant.epsilon(delta).unwrap();
        let lower = bound.lower.map_or(0.0, Epsilon::get);
        assert!(lower <= most, "{event}: {lower}");
        assert!(bound.epsilon.get() <= 1.001 * most, "{event}: {:?}", bound.epsilon);
    }
}

/// A discrete Gaussian has outcomes of any loss, though few of them can be listed.
#[test]
fn discrete_gaussians_have_no_pure_epsilon() {
    let event = |sigma: f64| DpEvent::DiscreteGaussian { sigma: NoiseMultiplier::new(sigma).unwrap(), sensitivity: 1 };
    let sampled = event(10.0).poisson_sampled(SamplingRate::new(0.1).unwrap());
    for event in [event(10.0), event(1.0), sampled] {
        let mut rdp = RdpAccountant::new(NeighbouringRelation::AddRemove);
        let mut pld = PldAccountant::new(NeighbouringRelation::AddRemove);
        rdp.compose(&event, 1).unwrap();
        pld.compose(&event, 1).unwrap();
        for bound in [rdp.epsilon(Delta::new(0.0).unwrap()), pld.epsilon(Delta::new(0.0).unwrap())] {
            assert_eq!(bound.unwrap().epsilon, Epsilon::INFINITE, "{event}");
        }
    }
    let mut rdp = RdpAccountant::new(NeighbouringRelation::AddRemove);
    rdp.compose(&event(10.0), 1).unwrap();
    assert!((rdp.rdp(1_000.0).unwrap() - 5.0).abs() < 1e-9);
}

/// Panels of mixtures with next to no noise are too many: what is known without them is the answer.
#[test]
fn replaced_records_under_next_to_no_noise_are_answered_in_time() {
    let begin = std::time::Instant::now();
    for sigma in [1e-3, 1e-5, 2.7e-6] {
        let noise = NoiseMultiplier::new(sigma).unwrap();
        let event = DpEvent::gaussian(noise).poisson_sampled(SamplingRate::new(0.5).unwrap());
        let mut accountant = PldAccountant::new(NeighbouringRelation::ReplaceOne);
        accountant.compose(&event, 2).unwrap();
        assert!(accountant.epsilon(Delta::new(1e-5).unwrap()).is_ok());
    }
    assert!(begin.elapsed().as_secs_f64() < 3.0 * SECONDS, "{:?}", begin.elapsed());
}

/// True values: exact sums in 60 digits. Outcomes that are next to impossible without the record are
/// no less likely with it.
#[test]
fn discrete_gaussians_of_large_sensitivity_are_bounded_from_above() {
    for (sensitivity, delta, truth) in
        [(31, 1e-9, 666.321_9), (20, 1e-100, 620.0), (60, 1e-6, 2_080.0), (10, 1e-6, 90.0)]
    {
        let event = DpEvent::DiscreteGaussian { sigma: NoiseMultiplier::new(1.0).unwrap(), sensitivity };
        let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
        accountant.compose(&event, 1).unwrap();
        let bound = accountant.epsilon(Delta::new(delta).unwrap()).unwrap();
        assert!(bound.epsilon.get() >= truth, "{sensitivity}: {:?}", bound.epsilon);
        let delta = accountant.delta(Epsilon::new(0.99 * truth).unwrap()).unwrap();
        assert!(delta.delta > 0.1 * delta.lower.unwrap_or(0.0), "{sensitivity}: {delta:?}");
    }
}
