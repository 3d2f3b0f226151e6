//! RDP against independent generators, and the ε that the papers print.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test may panic")]

mod golden_tables;

use dp_accounting::{
    Accountant, Conversion, Delta, DpEvent, NeighbouringRelation, NoiseMultiplier, Orders, RdpAccountant, SamplingRate,
};

fn accountant(q: f64, sigma: f64, steps: u64) -> RdpAccountant {
    let step = DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap()).poisson_sampled(SamplingRate::new(q).unwrap());
    let mut accountant = RdpAccountant::new(NeighbouringRelation::AddRemove);
    accountant.compose(&step, steps).unwrap();
    accountant
}

fn epsilon(accountant: &RdpAccountant, delta: f64) -> f64 {
    accountant.epsilon(Delta::new(delta).unwrap()).unwrap().epsilon.get()
}

#[test]
fn divergences_equal_high_precision_quadrature() {
    for row in golden_tables::rows(include_str!("golden/rdp_orders.tsv")) {
        let ours = accountant(row.number("sampling_rate"), row.number("noise_multiplier"), 1)
            .rdp(row.number("order"))
            .unwrap();
        let tolerance = if row.number("digits") > 20.0 { 1e-7 } else { 1e-6 };
        assert!((ours / row.number("rdp") - 1.0).abs() < tolerance, "{ours}: {}", row.describe());
    }
}

#[test]
fn never_below_the_truth_and_never_above_the_peers() {
    for row in golden_tables::rows(include_str!("golden/dpsgd.tsv")) {
        let (q, sigma, delta) = (row.number("sampling_rate"), row.number("noise_multiplier"), row.number("delta"));
        let run = accountant(q, sigma, row.number("steps") as u64);
        let ours = epsilon(&run, delta);
        if let Some(truth) = row.optional("truth") {
            assert!(ours >= truth - row.number("truth_abs_tol"), "{ours}: {}", row.describe());
        }
        if let Some(peer) = row.optional("rdp_opacus") {
            assert!(ours <= peer * (1.0 + 1e-6), "{ours}: {}", row.describe());
        }
        if let Some(peer) = row.optional("rdp_classic") {
            let run = run.clone().with_orders(Orders::moments_accountant()).with_conversion(Conversion::Classic);
            assert!((epsilon(&run, delta) / peer - 1.0).abs() < 1e-6, "{}: {}", epsilon(&run, delta), row.describe());
        }
        if let Some(peer) = row.optional("rdp_improved") {
            let run = run.with_orders(Orders::moments_accountant());
            assert!(
                (epsilon(&run, delta) / peer.max(0.0) - 1.0).abs() < 1e-6,
                "{}: {}",
                epsilon(&run, delta),
                row.describe()
            );
        }
    }
}

/// Xu et al. 2021: the moments accountant, classic conversion, orders 2 to 64, `T = epochs·n/b`,
/// `q = b/n`, δ = 1e-6.
#[test]
fn xu_prints_these_epsilons() {
    let moments = |q: f64, sigma: f64, steps: f64| {
        // The papers' T is a real number; a Rényi divergence composes to any real count.
        let run = accountant(q, sigma, 1);
        let Orders::Fixed(orders) = Orders::moments_accountant() else { panic!("a fixed list") };
        orders
            .iter()
            .map(|&order| steps * run.rdp(order).unwrap() + 1e6_f64.ln() / (order - 1.0))
            .fold(f64::INFINITY, f64::min)
    };
    for (name, records, sigma, epochs, published) in [
        ("Adult", 36_178.0, 1.0, 20.0, 3.100),
        ("balanced Adult", 22_400.0, 1.0, 20.0, 3.991),
        ("Dutch", 48_336.0, 1.0, 20.0, 2.664),
        ("unbalanced Dutch", 32_000.0, 1.0, 20.0, 3.286),
        ("MNIST", 54_649.0, 0.8, 60.0, 6.550),
        ("balanced MNIST", 60_000.0, 0.8, 60.0, 6.225),
    ] {
        let ours = moments(256.0 / records, sigma, epochs * records / 256.0);
        assert!((ours - published).abs() < 6e-4, "{name}: {ours}, published {published}");
    }
}

/// Esipova et al. 2023: Opacus, improved conversion, `q = 1/⌈n/b⌉`, `T = epochs·⌈n/b⌉`, δ = 1e-6.
#[test]
fn esipova_prints_these_epsilons() {
    for (name, batches, sigma, epochs, published) in [
        ("CelebA", 636, 0.8, 30, 2.493),
        ("Dutch", 189, 1.0, 20, 2.27),
        ("MNIST", 214, 0.8, 60, 5.90),
        ("Adult", 92, 1.0, 20, 3.408),
    ] {
        let run = accountant(1.0 / f64::from(batches), sigma, u64::from(batches as u32) * epochs)
            .with_orders(Orders::opacus());
        let ours = epsilon(&run, 1e-6);
        let digits = if published * 100.0 == f64::round(published * 100.0) { 5e-3 } else { 6e-4 };
        assert!((ours - published).abs() < digits, "{name}: {ours}, published {published}");
    }
}
