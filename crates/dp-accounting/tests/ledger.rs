//! The ledger as others see it: equal however it was filled, broken by any change, and worth what a
//! fresh accountant says.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::{
    Accountant, Delta, DpEvent, Ledger, LedgerEntry, NeighbouringRelation, NoiseMultiplier, RdpAccountant, SamplingRate,
};

const ADD_REMOVE: NeighbouringRelation = NeighbouringRelation::AddRemove;

fn step(sigma: f64) -> DpEvent {
    DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap()).poisson_sampled(SamplingRate::new(0.01).unwrap())
}

fn filled() -> Ledger {
    let mut ledger = Ledger::new(ADD_REMOVE);
    ledger.record(&step(1.0), 100).unwrap();
    ledger.record(&step(2.0), 7).unwrap();
    ledger.record(&step(1.0), 5).unwrap();
    ledger
}

#[test]
fn count_list_and_composition_are_the_same_ledger() {
    let mut listed = Ledger::new(ADD_REMOVE);
    for _ in 0..60 {
        listed.record(&step(1.0), 1).unwrap();
    }
    listed.record(&step(1.0).repeated(20), 2).unwrap();
    listed.record(&DpEvent::Composed(vec![step(2.0).repeated(7), step(1.0).repeated(5)]), 1).unwrap();
    listed.record(&step(3.0), 0).unwrap();
    assert_eq!(listed, filled());
    assert_eq!(listed.digest(), filled().digest());
    assert_eq!(listed.entries().iter().map(LedgerEntry::count).collect::<Vec<_>>(), [100, 7, 5]);
}

#[test]
fn merging_appends() {
    let mut merged = Ledger::new(ADD_REMOVE);
    merged.record(&step(1.0), 40).unwrap();
    let mut rest = Ledger::new(ADD_REMOVE);
    rest.record(&step(1.0), 60).unwrap();
    rest.record(&step(2.0), 7).unwrap();
    rest.record(&step(1.0), 5).unwrap();
    merged.merge(&rest).unwrap();
    assert_eq!(merged, filled());
    let other = Ledger::new(NeighbouringRelation::ReplaceOne);
    insta::assert_snapshot!(merged.merge(&other).unwrap_err(), @"cannot combine add-remove with replace-one neighbours: keep both under one relation");
}

#[test]
fn any_change_shows() {
    let json = serde_json::to_string(&filled()).unwrap();
    assert_eq!(serde_json::from_str::<Ledger>(&json).unwrap(), filled());
    let cheaper = json.replacen("\"count\":100", "\"count\":10", 1);
    let noisier = json.replacen("\"noise_multiplier\":2.0", "\"noise_multiplier\":3.0", 1);
    let relation = json.replacen("add-remove", "zero-out", 1);
    for changed in [cheaper, noisier, relation] {
        assert_ne!(changed, json);
        let error = serde_json::from_str::<Ledger>(&changed).unwrap_err().to_string();
        assert!(error.starts_with("ledger entry ") && error.contains("does not match its digest"), "{error}");
    }
    // A removed, a repeated and two exchanged entries.
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let entries = value["entries"].as_array().unwrap().clone();
    for order in [vec![1, 2], vec![0, 2], vec![0, 0, 1, 2], vec![1, 0, 2]] {
        let mut changed = value.clone();
        changed["entries"] = order.iter().map(|&i: &usize| entries[i].clone()).collect();
        assert!(serde_json::from_value::<Ledger>(changed).is_err(), "{order:?}");
    }
}

#[test]
fn a_cut_at_the_end_shows() {
    let value = serde_json::to_value(filled()).unwrap();
    let entries = value["entries"].as_array().unwrap();
    assert_eq!(value["n_entries"], 3);
    assert_eq!(value["last_digest"], entries[2]["digest"]);
    let error = |value: serde_json::Value| serde_json::from_value::<Ledger>(value).unwrap_err().to_string();
    for n in 0..3 {
        let mut cut = value.clone();
        cut["entries"] = entries[..n].into();
        let text = error(cut);
        assert!(text.contains("cut or changed at its end") && text.contains(&format!("has {n}")), "{text}");
    }
    // Chained anew after a cut, or continued: only the stored end betrays it.
    let mut continued = filled();
    continued.record(&step(9.0), 1).unwrap();
    let mut shorter = Ledger::new(ADD_REMOVE);
    shorter.record(&step(1.0), 100).unwrap();
    shorter.record(&step(2.0), 7).unwrap();
    shorter.record(&step(1.0), 4).unwrap();
    for other in [continued, shorter] {
        let mut swapped = value.clone();
        swapped["entries"] = serde_json::to_value(other).unwrap()["entries"].clone();
        assert!(error(swapped).contains("cut or changed at its end"));
    }
    for (field, other) in [("n_entries", 2.into()), ("last_digest", entries[1]["digest"].clone())] {
        let mut changed = value.clone();
        changed[field] = other;
        assert!(error(changed).contains("cut or changed at its end"));
    }
    for field in ["n_entries", "last_digest"] {
        let mut without = value.clone();
        without.as_object_mut().unwrap().remove(field);
        insta::allow_duplicates! {
            insta::assert_snapshot!(error(without), @"the ledger carries no `n_entries` and `last_digest`, so entries that were cut from its end would not be missed: record its events anew");
        }
    }
    // An empty ledger has an end, too.
    let empty = Ledger::new(ADD_REMOVE);
    assert_eq!(serde_json::from_value::<Ledger>(serde_json::to_value(&empty).unwrap()).unwrap(), empty);
}

#[test]
fn a_refused_list_leaves_the_ledger_as_it_was() {
    let mut ledger = filled();
    let list = DpEvent::Composed(vec![step(1.0), step(2.0), step(2.0).repeated(u64::MAX)]);
    assert!(ledger.record(&list, 1).is_err());
    assert_eq!(ledger, filled());
    let mut other = Ledger::new(ADD_REMOVE);
    other.record(&step(1.0), u64::MAX).unwrap();
    assert!(ledger.merge(&other).is_err());
    assert_eq!(ledger, filled());
    let mut empty = Ledger::new(ADD_REMOVE);
    assert!(empty.record(&list, 1).is_err());
    assert_eq!(empty, Ledger::new(ADD_REMOVE));
}

#[test]
fn composes_to_the_same_epsilon_as_its_events() {
    let mut from_ledger = RdpAccountant::new(ADD_REMOVE);
    filled().compose_into(&mut from_ledger).unwrap();
    let mut direct = RdpAccountant::new(ADD_REMOVE);
    direct.compose(&step(2.0), 7).unwrap();
    direct.compose(&step(1.0), 105).unwrap();
    let delta = Delta::new(1e-5).unwrap();
    let (a, b) = (from_ledger.epsilon(delta).unwrap().epsilon.get(), direct.epsilon(delta).unwrap().epsilon.get());
    assert!((a / b - 1.0).abs() < 1e-12);
    let mut wrong = RdpAccountant::new(NeighbouringRelation::ZeroOut);
    assert!(filled().compose_into(&mut wrong).is_err());
}

/// Computed apart, from the bytes that the encoding's tests write out by hand: `python3 -c` with
/// `hashlib.sha256` over the start text, then over digest + length + event + count.
#[test]
fn digests_are_of_the_canonical_encoding() {
    let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
    ledger.record(&DpEvent::gaussian(NoiseMultiplier::new(1.0).unwrap()), 3).unwrap();
    assert_eq!(ledger.digest(), "ca968075241e3f79c025929c4841c4bdf829afdf15e73352090ff61c608bff5c");
}

#[test]
fn another_version_is_refused() {
    let json = serde_json::to_string(&filled()).unwrap();
    assert!(json.starts_with("{\"version\":2,"), "{json}");
    let error = |json: &str| serde_json::from_str::<Ledger>(json).unwrap_err().to_string();
    insta::assert_snapshot!(error(&json.replacen("\"version\":2,", "", 1)), @"the ledger is of version 1, but this program reads and writes version 2: its digests cannot be checked; record its events anew");
    assert!(error(&json.replacen("\"version\":2", "\"version\":3", 1)).contains("version 3"));
}
