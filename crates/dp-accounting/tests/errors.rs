//! The text of every error, as a user meets it.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::{
    Accountant, AccountingError, Calibration, Delta, DpEvent, Epsilon, GdpAccountant, Ledger, Mark,
    NeighbouringRelation, NoiseMultiplier, PldAccountant, RdpAccountant, SamplingRate,
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

/// Every variant is here, in one wording: one line without a final stop, and no text of a cause in
/// the text of what it caused.
fn check<E: std::error::Error + std::fmt::Debug>(source: &str, errors: &[E]) -> String {
    let known = source.split_once("pub enum").and_then(|(_, rest)| rest.split_once("\n}")).unwrap().0;
    let variants = known.lines().filter_map(|line| {
        let name = line.strip_prefix("    ")?;
        name.starts_with(char::is_uppercase).then(|| name.split(|c: char| !c.is_alphanumeric()).next())?
    });
    for variant in variants {
        assert!(errors.iter().any(|error| format!("{error:?}").starts_with(variant)), "no {variant} among the errors");
    }
    let mut all = Vec::new();
    for error in errors {
        let text = error.to_string();
        assert!(!text.ends_with('.') && !text.contains('\n'), "{text}");
        let (mut above, mut cause) = (text.clone(), error.source());
        while let Some(error) = cause {
            assert!(!above.contains(&error.to_string()), "{above} repeats {error}");
            (above, cause) = (error.to_string(), error.source());
        }
        all.push(text);
    }
    all.join("\n")
}

#[test]
fn every_variant_in_one_wording() {
    let text = || "x".to_owned();
    let errors = [
        SamplingRate::new(1.5).unwrap_err(),
        AccountingError::NoSoundAnalysis { event: text(), relation: ADD_REMOVE, possible: "y" },
        AccountingError::NotRepresentable { accountant: "GDP", event: text(), possible: "y" },
        AccountingError::Unreachable { parameter: "steps", searched: text(), target: 1.0, closest: 2.0 },
        AccountingError::LedgerTampered { index: 0, expected: text(), found: text() },
        AccountingError::LedgerVersion { found: 1, supported: 2 },
        AccountingError::LedgerWithoutEnd,
        AccountingError::LedgerCut { n_expected: 1, expected: text(), n_found: 0, found: text() },
        AccountingError::AccountantInUse { accountant: text() },
        AccountingError::InconsistentMark { mark: Mark::Certified, epsilon: f64::INFINITY, n_given: 1 },
        AccountingError::Incomplete { needed: "`delta`" },
        AccountingError::Conflicting { first: "`steps`", second: "`epochs`" },
        AccountingError::NotACase { message: text() },
        AccountingError::RelationMismatch { left: ADD_REMOVE, right: REPLACE_ONE },
        AccountingError::CountOverflow { limit: 7 },
    ];
    check(include_str!("../src/error.rs"), &errors);
}

/// Values at the ends of a range are accepted or refused as the text says.
#[test]
fn ranges_are_true_at_both_ends() {
    let texts = |errors: &[AccountingError]| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(SamplingRate::new(1.0).is_ok() && SamplingRate::new(f64::MIN_POSITIVE).is_ok());
    assert!(gaussian().poisson_sampled_at(0.0).is_ok() && gaussian().poisson_sampled_at(1.0).is_ok());
    assert!(Delta::new(0.0).is_ok() && Delta::new(1.0).is_ok());
    assert!(NoiseMultiplier::new(1e-6).is_ok() && NoiseMultiplier::new(f64::MAX).is_ok());
    assert!(DpEvent::gaussian_at(0.0).is_ok() && DpEvent::gaussian_at(f64::INFINITY).is_ok());
    assert!(PldAccountant::new(ADD_REMOVE).with_relative_width(1e-9).is_ok());
    assert!(PldAccountant::new(ADD_REMOVE).with_max_points(64).is_ok());
    assert!(gaussian().for_user(1).is_ok() && gaussian().for_user(255).is_ok());
    insta::assert_snapshot!(texts(&[
        SamplingRate::new(0.0).unwrap_err(),
        gaussian().poisson_sampled_at(-0.1).unwrap_err(),
        DpEvent::nothing().poisson_sampled_at(7.0).unwrap_err(),
        Delta::new(-0.1).unwrap_err(),
        NoiseMultiplier::new(9e-7).unwrap_err(),
        DpEvent::gaussian_at(9e-7).unwrap_err(),
        PldAccountant::new(ADD_REMOVE).with_relative_width(1.0).unwrap_err(),
        PldAccountant::new(ADD_REMOVE).with_max_points(63).unwrap_err(),
        gaussian().for_user(0).unwrap_err(),
        gaussian().for_user(256).unwrap_err(),
    ]));
}
