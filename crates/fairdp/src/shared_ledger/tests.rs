//! Files of ledgers, and what their fits cost.

use std::fs;
use std::path::PathBuf;

use dp_linear::GaussianBudget;

use super::budget::gaussian;
use super::*;
use crate::exit::Exit;
use crate::seal::sealed;

const DELTA: f64 = 1e-5;

fn config(more: &str) -> Config {
    let text = format!(
        "version = 1\n[table]\nfiles = [\"t.csv\"]\n[label]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n\
         [[column]]\nname = \"x\"\nkind = \"number\"\nlow = 0\nhigh = 1\n[privacy]\nepsilon = 1\ndelta = 1e-5\n{more}"
    );
    Config::from_toml(&text, Path::new("c.toml")).unwrap()
}

fn account(epsilon: f64) -> Result<Account> {
    let budget = GaussianBudget::new(dp_accounting::Epsilon::new(epsilon)?, Delta::new(DELTA)?)?;
    gaussian(budget.mu())
}

/// Enters a fit of this name.
fn enter(files: (&Path, Option<&Path>), name: &str, epsilon: f64, config: &Config) -> Result<LedgerTotals> {
    let scope = config.scope().map(ToOwned::to_owned);
    let releases = account(epsilon)?.releases().to_vec();
    let fit = Fit { name: name.into(), bound_to: Some("data".into()), scope, releases };
    let entering = Entering { ledger: files.0, witness: files.1, asked: config.into(), at: &account };
    entering.enter(fit, false)
}

struct TestFiles(tempfile::TempDir);

impl TestFiles {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn ledger(&self) -> PathBuf {
        self.0.path().join("ledger.json")
    }

    fn witness(&self) -> PathBuf {
        self.0.path().join("witness.json")
    }
}

/// Each changed, removed, added or moved line shows; a ledger that ends early shows to its witness.
#[test]
fn a_ledger_that_was_changed_is_found() {
    let place = TestFiles::new();
    let (ledger, witness) = (place.ledger(), place.witness());
    let config = config("total_epsilon = 3\n");
    for name in ["a", "b", "c"] {
        enter((&ledger, Some(&witness)), name, 0.5, &config).unwrap();
    }
    let text = fs::read_to_string(&ledger).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    let found = |text: &str, witness: Option<&Path>| {
        fs::write(&ledger, text).unwrap();
        let found = LedgerView::read(&ledger, witness);
        found.map(|view| view.fits().unwrap().len()).map_err(|error| {
            assert_eq!(error.exit(), Exit::NotVerified, "{error}");
            error.to_string()
        })
    };
    let joined = |order: &[usize]| order.iter().map(|&line| lines[line].to_owned() + "\n").collect::<String>();
    assert_eq!(found(&text, Some(&witness)), Ok(3));
    assert!(found(&text.replacen("\"cap\":3", "\"cap\":9", 1), None).unwrap_err().ends_with("line 1 was changed"));
    for place in 0..text.len() - 1 {
        let mut bytes = text.clone().into_bytes();
        bytes[place] ^= 1;
        if let Ok(changed) = String::from_utf8(bytes) {
            fs::write(&ledger, &changed).unwrap();
            assert!(LedgerView::read(&ledger, None).is_err(), "{place}");
        }
    }
    for order in [&[0, 1, 3][..], &[0, 2, 1, 3], &[0, 1, 1, 2, 3], &[0, 2, 3]] {
        let message = found(&joined(order), None).unwrap_err();
        assert!(message.contains("does not follow the one before"), "{message}");
    }
    assert!(found(text.trim_end(), None).unwrap_err().ends_with("ends within a line"));
    // Cut at its end, it is whole; the witness saw more.
    assert_eq!(found(&joined(&[0, 1, 2]), None), Ok(2));
    let shorter = found(&joined(&[0, 1, 2]), Some(&witness)).unwrap_err();
    assert!(shorter.contains("was shortened or replaced: it has 2 fits, and the witness"), "{shorter}");
    let message = enter((&ledger, Some(&witness)), "d", 0.1, &config).unwrap_err().to_string();
    assert!(message.contains("was shortened"), "{message}");
    // Another ledger of the same length, and none.
    fs::remove_file(&ledger).unwrap();
    let message = enter((&ledger, Some(&witness)), "d", 0.1, &config).unwrap_err().to_string();
    assert!(message.contains("is not there, and the witness"), "{message}");
    for name in ["a", "b", "d"] {
        enter((&ledger, None), name, 0.5, &config).unwrap();
    }
    let message = LedgerView::read(&ledger, Some(&witness)).unwrap_err().to_string();
    assert!(message.contains("was replaced: its first 3 fits are not those"), "{message}");
    // A program that ended between its two writes left a witness that is behind.
    fs::write(&ledger, joined(&[0, 1, 2])).unwrap();
    fs::remove_file(&witness).unwrap();
    enter((&ledger, Some(&witness)), "d", 0.1, &config).unwrap();
    let behind = fs::read_to_string(&witness).unwrap();
    enter((&ledger, None), "e", 0.1, &config).unwrap();
    assert_eq!(enter((&ledger, Some(&witness)), "f", 0.1, &config).unwrap().n_fits, 4);
    assert_ne!(fs::read_to_string(&witness).unwrap(), behind);
}

/// Ledgers as they were until November 2026: one sealed document.
#[test]
fn ledgers_of_version_1_are_read_and_go_on() {
    #[derive(Serialize)]
    struct Old {
        version: u32,
        cap: f64,
        delta: f64,
        unit: Option<String>,
        fits: Vec<Fit>,
    }
    let place = TestFiles::new();
    let fit = |name: &str| Fit {
        name: name.into(),
        bound_to: Some("data".into()),
        scope: None,
        releases: account(0.5).unwrap().releases().to_vec(),
    };
    let old = Old { version: 1, cap: 1.0, delta: DELTA, unit: None, fits: vec![fit("a"), fit("b")] };
    fs::write(place.ledger(), sealed(&old).unwrap()).unwrap();
    let before = LedgerView::read(&place.ledger(), None).unwrap();
    assert_eq!((before.fits().unwrap().len(), before.cap()), (2, 1.0));
    let totals = enter((&place.ledger(), Some(&place.witness())), "c", 0.3, &config("")).unwrap();
    assert_eq!((totals.n_fits, totals.before), (2, before.spent(DELTA).unwrap()));
    let after = LedgerView::read(&place.ledger(), Some(&place.witness())).unwrap();
    assert_eq!(after.fits().unwrap().iter().map(|fit| &*fit.name).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(fs::read_to_string(place.ledger()).unwrap().starts_with("{\"version\":2,"));
}

/// Twelve fits of the planned ε keep the cap, and a thirteenth does not; division would give less than
/// a third of it.
#[test]
fn twelve_planned_fits_keep_the_cap() {
    let place = TestFiles::new();
    let config = config("");
    let planned = LedgerView::planned(&place.ledger(), 1.0, DELTA).unwrap();
    let each = planned.shared(None, &[1.0; 12]).unwrap().unwrap();
    assert!(each.iter().all(|epsilon| *epsilon == each[0]) && each[0] > 3.0 / 12.0, "{each:?}");
    for (month, epsilon) in each.iter().enumerate() {
        let totals = enter((&place.ledger(), None), &format!("{month}"), *epsilon, &config).unwrap();
        assert_eq!(totals.n_fits, month);
        let left = 11 - month;
        if left > 0 {
            let again =
                LedgerView::read(&place.ledger(), None).unwrap().shared(None, &vec![1.0; left]).unwrap().unwrap();
            assert!((again[0] / epsilon - 1.0).abs() < 0.02, "{month}: {}", again[0]);
        }
    }
    let view = LedgerView::read(&place.ledger(), None).unwrap();
    let spent = view.spent(DELTA).unwrap();
    assert!(spent <= 1.0 && spent > 0.995, "{spent}");
    let message = enter((&place.ledger(), None), "13", each[0], &config).unwrap_err();
    assert!(matches!(message, FairdpError::BeyondCap { n_fits: 12, fits: Some(fits), .. } if fits < 0.05), "{message}");
    let unequal = planned.shared(None, &[4.0, 1.0]).unwrap().unwrap();
    assert!(unequal[0] > 1.7 * unequal[1] && unequal[0] + unequal[1] > 1.2, "{unequal:?}");
    assert!(planned.shared(None, &[]).is_err() && planned.shared(None, &[1.0, -1.0]).is_err());
}

/// A refusal names an ε that fits, and the rest spends the cap.
#[test]
fn the_rest_is_what_a_refusal_names() {
    let place = TestFiles::new();
    let with_cap = config("");
    enter((&place.ledger(), None), "a", 0.6, &with_cap).unwrap();
    let message = enter((&place.ledger(), None), "b", 0.9, &with_cap).unwrap_err();
    let FairdpError::BeyondCap { fits: Some(fits), .. } = message else { panic!("{message}") };
    assert!(message.to_string().ends_with(&format!("beyond the cap of 1; with ε = {fits} it would fit")), "{message}");
    let entering = Entering { ledger: &place.ledger(), witness: None, asked: (&with_cap).into(), at: &account };
    assert_eq!(entering.rest().unwrap(), fits);
    let totals = enter((&place.ledger(), None), "b", fits, &with_cap).unwrap();
    assert!(fits > 0.7 && totals.total > 0.995, "{totals:?} {fits}");
    // The search leaves a little.
    assert!(entering.rest().is_err() || entering.rest().unwrap() < 0.05);
}

/// Scopes compose in parallel; a fit without one is about the people of all.
#[test]
fn scopes_compose_in_parallel() {
    let place = TestFiles::new();
    let of = |scope: &str| config(&format!("[records]\nscope = \"{scope}\"\n"));
    for month in 1..=12 {
        let totals =
            enter((&place.ledger(), None), &format!("{month}"), 0.9, &of(&format!("2026-{month:02}"))).unwrap();
        assert!(totals.total < 0.901 && (month == 1 || totals.before > 0.89), "{totals:?}");
    }
    let message = enter((&place.ledger(), None), "again", 0.9, &of("2026-03")).unwrap_err().to_string();
    assert!(message.contains("12 fits have spent ε = 0.90"), "{message}");
    let view = LedgerView::read(&place.ledger(), None).unwrap();
    assert_eq!(view.scopes().len(), 12);
    let left = |scope: Option<&str>| view.shared(scope, &[1.0]).unwrap().unwrap()[0];
    assert!(left(Some("2027-01")) == 1.0 && left(Some("2026-03")) == left(None) && left(None) < 0.5);
    // One about anybody counts with each.
    let all = left(None);
    let totals = enter((&place.ledger(), None), "all", all, &config("")).unwrap();
    assert!(totals.total > 0.995);
    let view = LedgerView::read(&place.ledger(), None).unwrap();
    assert!(view.spent_in("2027-01").unwrap() < all * 1.001 && view.spent_in("2026-03").unwrap() > 0.995);
    assert!(enter((&place.ledger(), None), "new", 1.0, &of("2027-01")).is_err());
}
