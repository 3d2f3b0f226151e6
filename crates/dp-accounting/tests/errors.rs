//! The text of every error, as a user meets it.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::{
    Accountant, Calibration, Delta, DpEvent, Epsilon, GdpAccountant, Ledger, NeighbouringRelation, NoiseMultiplier,
    PldAccountant, RdpAccountant, SamplingRate,
};

const ADD_REMOVE: NeighbouringRelation = NeighbouringRelation::AddRemove;
const REPLACE_ONE: NeighbouringRelation = NeighbouringRelation::ReplaceOne;

fn gaussian() -> DpEvent {
    DpEvent::gaussian(NoiseMultiplier::new(1.0).unwrap())
}

fn sampled_at(rate: SamplingRate) -> DpEvent {
    gaussian().poisson_sampled(rate)
}

fn sampled() -> DpEvent {
    sampled_at(SamplingRate::new(0.01).unwrap())
}

#[test]
fn out_of_range() {
    let order = RdpAccountant::new(ADD_REMOVE).rdp(1.0).unwrap_err();
    insta::assert_snapshot!(order, @"order = 1: expected a finite number above 1");
    let width = PldAccountant::new(ADD_REMOVE).with_relative_width(0.0).unwrap_err();
    insta::assert_snapshot!(width, @"relative_width = 0: expected a number in [1e-9, 1)");
    let sample = gaussian().fixed_size_sampled(100, 101).unwrap_err();
    insta::assert_snapshot!(sample, @"sample_size = 101: expected at least 1 and at most the number of records");
}

#[test]
fn no_sound_analysis() {
    let fixed = gaussian().fixed_size_sampled(1_000, 10).unwrap();
    let error = RdpAccountant::new(ADD_REMOVE).compose(&fixed, 1).unwrap_err();
    insta::assert_snapshot!(error, @"no sound analysis of fixed-size-sampled (10 of 1000) Gaussian (noise multiplier 1) under add-remove neighbours: sampling of fixed size is analysed under replace-one, Poisson sampling under add-remove and zero-out");
}

#[test]
fn not_representable() {
    let laplace = DpEvent::laplace(NoiseMultiplier::new(2.0).unwrap());
    let error = GdpAccountant::new(ADD_REMOVE).compose(&laplace, 1).unwrap_err();
    insta::assert_snapshot!(error, @"the GDP accountant cannot represent Laplace (noise multiplier 2): it knows Gaussians, Poisson-sampled or on the whole data; use RDP or PLD");
}

#[test]
fn unreachable() {
    let (target, delta) = (Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap());
    let calibration = Calibration::new(ADD_REMOVE, target, delta).unwrap();
    let noise = calibration.noise_multiplier(|_| DpEvent::NonPrivate).unwrap_err();
    insta::assert_snapshot!(noise, @"no noise multiplier in [1e-2, 1e7] reaches an epsilon of 1: the closest gives inf");
    let size = calibration.batch_size(1_000, |rate| sampled_at(rate).repeated(1_000_000)).unwrap_err();
    insta::assert_snapshot!(size, @"no batch size in [1, 1000] reaches an epsilon of 1: the closest gives 6.497429582422213");
}

#[test]
fn ledger_tampered() {
    let mut ledger = Ledger::new(ADD_REMOVE);
    ledger.record(&sampled(), 100).unwrap();
    let text = serde_json::to_string(&ledger).unwrap();
    let forged = serde_json::from_str::<Ledger>(&text.replace("\"count\":100", "\"count\":10"));
    insta::assert_snapshot!(forged.unwrap_err(), @"ledger entry 0 does not match its digest: expected 59901adc00fb5507297ea843b1b472365baf91e339f6772d790ef77209085b41, found 752b6d6d9cf049e64cd67408644c07dc5a2d15f956cedc015aebc6e8588023a7");
}

#[test]
fn relation_mismatch() {
    let mut accountant = RdpAccountant::new(REPLACE_ONE);
    let error = Ledger::new(ADD_REMOVE).compose_into(&mut accountant).unwrap_err();
    insta::assert_snapshot!(error, @"cannot combine add-remove with replace-one neighbours: keep both under one relation");
}

#[test]
fn count_overflow() {
    let error = RdpAccountant::new(ADD_REMOVE).compose(&sampled().repeated(1 << 60), 1).unwrap_err();
    insta::assert_snapshot!(error, @"the number of compositions exceeds 9007199254740992");
}
