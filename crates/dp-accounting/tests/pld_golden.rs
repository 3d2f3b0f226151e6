//! PLD brackets against the true ε.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test may panic")]

mod golden_tables;

use dp_accounting::{
    Accountant, Certainty, Delta, DpEvent, NeighbouringRelation, NoiseMultiplier, PldAccountant, SamplingRate,
};

/// Rows whose `truth` is not: the generator's contour sum failed (it returned 0, or a value below
/// its own lower bound), or its stated tolerance is smaller than its error.
/// `golden/oracle_delta.tsv` has the profile at these settings.
const FAILED_TRUTHS: [&str; 8] = [
    "grid_q0.1_s0.3_T1000_d1e-05",
    "grid_q0.1_s0.5_T20000_d1e-08",
    "grid_q0.5_s0.5_T1000_d1e-05",
    "grid_q0.5_s0.5_T1000_d1e-08",
    "grid_q0.5_s1_T1000_d1e-05",
    "grid_q0.5_s2_T1000_d1e-08",
    "grid_q0.5_s5_T20000_d1e-08",
    "grid_q0.0001_s20_T1000_d1e-08",
];

fn accountant(q: f64, sigma: f64, steps: f64) -> PldAccountant {
    let step = DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap()).poisson_sampled(SamplingRate::new(q).unwrap());
    let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
    accountant.compose(&step, steps as u64).unwrap();
    accountant
}

#[test]
fn brackets_contain_the_truth() {
    for row in golden_tables::rows(include_str!("golden/dpsgd.tsv")) {
        let (q, sigma, steps) = (row.number("sampling_rate"), row.number("noise_multiplier"), row.number("steps"));
        // The slowest tenth of the table, heavy tails far below the size of one step, is run by
        // `cargo xtask account --jsonl`.
        if q < 0.001 && steps > 1_000.0 && sigma < 1.0 {
            continue;
        }
        let bound = accountant(q, sigma, steps).epsilon(Delta::new(row.number("delta")).unwrap()).unwrap();
        let (lower, upper) = (bound.lower.unwrap().get(), bound.epsilon.get());
        assert_eq!(bound.certainty, Certainty::Bound, "{}", row.describe());
        assert!(upper - lower <= 1e-3 * upper + 1e-9, "[{lower}, {upper}]: {}", row.describe());
        if let Some(truth) = row.optional("truth").filter(|_| !FAILED_TRUTHS.contains(&row.text("id"))) {
            let tolerance = row.number("truth_abs_tol");
            assert!(lower <= truth + tolerance && truth - tolerance <= upper, "[{lower}, {upper}]: {}", row.describe());
        }
    }
}

#[test]
fn laplace_agrees_with_the_peer() {
    for row in golden_tables::rows(include_str!("golden/laplace.tsv")) {
        let (q, scale, steps) = (row.number("sampling_rate"), row.number("scale"), row.number("steps") as u64);
        let event =
            DpEvent::laplace(NoiseMultiplier::new(scale).unwrap()).poisson_sampled(SamplingRate::new(q).unwrap());
        let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
        accountant.compose(&event, steps).unwrap();
        let bound = accountant.epsilon(Delta::new(row.number("delta")).unwrap()).unwrap();
        let (lower, upper) = (bound.lower.unwrap().get(), bound.epsilon.get());
        assert_eq!(bound.certainty, Certainty::Bound, "{}", row.describe());
        if let Some(peer) = row.optional("pld_1e5").or(row.optional("pld_1e4")) {
            // The peer's pessimistic estimate adds up to its interval per composition.
            assert!(
                lower <= peer * (1.0 + 1e-6) && upper > peer * 0.998 - 1e-6,
                "[{lower}, {upper}]: {}",
                row.describe()
            );
        }
        for coarser in [row.optional("rdp"), row.optional("pure")].into_iter().flatten() {
            assert!(lower <= coarser && upper <= coarser * (1.0 + 1e-3), "[{lower}, {upper}]: {}", row.describe());
        }
    }
}

#[test]
fn heterogeneous_compositions_agree_with_the_peer() {
    for row in golden_tables::rows(include_str!("golden/heterogeneous.tsv")) {
        let mut accountant =
            accountant(row.number("sampling_rate"), row.number("noise_multiplier"), row.number("steps"));
        for (kind, make) in [("gaussian", DpEvent::gaussian as fn(_) -> _), ("laplace", DpEvent::laplace)] {
            let count = row.number(if kind == "gaussian" { "gaussian_count" } else { "laplace_count" }) as u64;
            if count > 0 {
                accountant.compose(&make(NoiseMultiplier::new(row.number(kind)).unwrap()), count).unwrap();
            }
        }
        let bound = accountant.epsilon(Delta::new(row.number("delta")).unwrap()).unwrap();
        let (lower, upper) = (bound.lower.unwrap().get(), bound.epsilon.get());
        let peer = row.number("pld");
        assert!(lower <= peer * (1.0 + 1e-6) && upper >= peer * (1.0 - 1e-3), "[{lower}, {upper}]: {}", row.describe());
        assert!(upper < row.number("rdp"), "[{lower}, {upper}]: {}", row.describe());
    }
}
