//! A slice of `cargo xtask audit accounting`: bounds against a second implementation in 200-bit
//! arithmetic.

use dp_accounting::audit::{Evidence, check, check_second_stream};
use dp_accounting::{
    Accountant, Delta, DpEvent, NeighbouringRelation, NoiseMultiplier, PldAccountant, RdpAccountant, SamplingRate,
};

#[test]
fn no_bound_is_violated() {
    let findings: Vec<_> = (0..48).map(|index| check(2_026, index)).collect();
    for finding in &findings {
        assert!(finding.violations.is_empty(), "{}: {:?}", finding.setting, finding.violations);
    }
    let judged = findings.iter().filter(|finding| finding.evidence != Evidence::None).count();
    assert!(judged > 20, "{judged} of {} settings were judged", findings.len());
}

#[test]
fn no_bound_of_the_second_stream_is_violated() {
    let findings: Vec<_> = (0..36).map(|index| check_second_stream(2_026, index)).collect();
    for finding in &findings {
        assert!(finding.violations.is_empty(), "{}: {:?}", finding.setting, finding.violations);
    }
    let judged = findings.iter().filter(|finding| finding.evidence != Evidence::None).count();
    assert!(judged > 18, "{judged} of {} settings were judged", findings.len());
}

/// Settings of one referee's attack, with values of 60 digits: ε, δ = 1e-5, one step.
#[test]
fn corners_where_bounds_once_failed() {
    for (q, sigma, truth) in
        [(0.999_999_999_9, 0.05, 284.391_849_497_195_5), (0.999_999_99, 0.03, 696.777_791_457_273_3)]
    {
        let step = DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap());
        let step = step.poisson_sampled(SamplingRate::new(q).unwrap());
        let delta = Delta::new(1e-5).unwrap();
        let mut pld = PldAccountant::new(NeighbouringRelation::AddRemove);
        let mut rdp = RdpAccountant::new(NeighbouringRelation::AddRemove);
        pld.compose(&step, 1).unwrap();
        rdp.compose(&step, 1).unwrap();
        let (bracket, rdp) = (pld.epsilon(delta).unwrap(), rdp.epsilon(delta).unwrap().epsilon.get());
        let (lower, upper) = (bracket.lower.unwrap().get(), bracket.epsilon.get());
        assert!(lower <= truth && truth <= upper && truth <= rdp, "[{lower}, {upper}] {rdp}");
        assert!(upper - lower < 1e-9 * truth, "[{lower}, {upper}]");
    }
}
