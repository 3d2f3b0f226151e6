//! Values that peers' own suites assert, through the cases that users write.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test may panic")]

use std::collections::BTreeMap;

use dp_accounting::Accountant;
use dp_accounting::case::{Case, Outcome};

/// What one fact came to.
struct Judged {
    peer: String,
    agrees: bool,
    line: String,
}

fn judge(line: &str) -> Judged {
    let fields: Vec<&str> = line.split('\t').collect();
    let [peer, test, quantity, json, expected, tolerance, verdict, _reason] = fields[..] else {
        panic!("eight columns: {line}")
    };
    let (expected, tolerance): (f64, f64) = (expected.parse().unwrap(), tolerance.parse().unwrap());
    let case = Case::from_json(json).unwrap();
    let (found, text) = if let Some(order) = quantity.strip_prefix("rdp:") {
        let checked = case.check().unwrap();
        let mut accountant = checked.rdp();
        accountant.compose(&checked.event().unwrap(), checked.steps()).unwrap();
        (accountant.rdp(order.parse().unwrap()).ok(), String::new())
    } else {
        let outcome = serde_json::to_value(Outcome::of_case(&case, &Case::default())).unwrap();
        (outcome[quantity].as_f64(), outcome.to_string())
    };
    let agrees = match (verdict, found) {
        ("refused" | "infinite", None) => true,
        ("equal", Some(found)) => (found - expected).abs() <= tolerance * expected.abs(),
        ("absolute", Some(found)) => (found - expected).abs() <= tolerance,
        ("at-most", Some(found)) => found <= expected * (1.0 + tolerance),
        ("at-least", Some(found)) => found >= expected * (1.0 - tolerance),
        ("within", Some(found)) => found > expected && found < tolerance,
        _ => false,
    };
    Judged {
        peer: peer.to_owned(),
        agrees,
        line: format!("{peer}, {test}: {found:?} for {verdict} {expected} ± {tolerance} {text}"),
    }
}

#[test]
fn peers_suites_agree_or_differ_as_stated() {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut failures = Vec::new();
    for line in include_str!("peers/facts.tsv").lines().filter(|line| !line.starts_with('#')).skip(1) {
        let judged = judge(line);
        let count = counts.entry(judged.peer).or_default();
        count.0 += 1;
        count.1 += usize::from(judged.agrees);
        if !judged.agrees {
            failures.push(judged.line);
        }
    }
    assert!(failures.is_empty(), "{counts:?}\n{}", failures.join("\n"));
}
