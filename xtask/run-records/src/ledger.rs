//! The ledger that a run is stored with, and the one that the ε of its method was composed of.
//!
//! A method has one record for all its runs, and its ε is composed of the ledger in it. A run with
//! another ledger (of another revision of the program, say) released something else, and must not
//! be shown under that ε.

use anyhow::bail;
use dp_accounting::{DpEvent, NeighbouringRelation};
use serde::Deserialize;
use serde_json::Value;

use crate::difference::difference;
use crate::record::{PrivacyRecord, StudyResults};

/// What a ledger says, whatever its format is: what was released, how often, and for whom.
#[derive(PartialEq, Deserialize)]
struct Content {
    relation: NeighbouringRelation,
    entries: Vec<Entry>,
}

#[derive(PartialEq, Deserialize)]
struct Entry {
    event: DpEvent,
    count: u64,
}

/// Refuses a ledger that holds other events, or another number of them.
///
/// Digests are not compared, because those of earlier versions were of another encoding; a database
/// has seals of its own.
///
/// # Errors
/// Names the first difference.
pub fn refuse_other(stored: &Value, composed: &Value) -> anyhow::Result<()> {
    let read = |ledger: &Value| serde_json::from_value::<Content>(ledger.clone());
    match (read(stored), read(composed)) {
        (Ok(stored), Ok(composed)) if stored == composed => return Ok(()),
        // Text that cannot be read is at least the same text.
        (Err(_), Err(_)) if stored == composed => return Ok(()),
        _ => {}
    }
    let found = difference(&without_digests(stored), &without_digests(composed));
    bail!(
        "its ledger is not the one that its ε is composed of: {}",
        found.unwrap_or_else(|| "one of them cannot be read".to_owned())
    )
}

/// [`refuse_other`] for a stored run and what its method costs; without privacy there is no ε.
///
/// # Errors
/// As [`refuse_other`].
pub fn refuse_unlike(stored: &Value, privacy: Option<&PrivacyRecord>) -> anyhow::Result<()> {
    privacy.map_or(Ok(()), |privacy| refuse_other(stored, &privacy.ledger))
}

/// Refuses two costs of one method that are of different ledgers, or of which one is a guarantee
/// and the other is none.
///
/// # Errors
/// Names the difference.
pub fn refuse_other_cost(stored: Option<&PrivacyRecord>, composed: Option<&PrivacyRecord>) -> anyhow::Result<()> {
    match (stored, composed) {
        (None, None) => Ok(()),
        (Some(stored), Some(composed)) if stored.certified == composed.certified => {
            refuse_other(&stored.ledger, &composed.ledger)
        }
        (Some(_), Some(_)) => bail!("one of the two has a proof, and the other has none"),
        _ => bail!("one of the two is private, and the other is not"),
    }
}

/// Refuses records in which a run says that it was trained on other files than those of its
/// experiment.
///
/// # Errors
/// Names the run.
pub(crate) fn refuse_other_data(results: &StudyResults) -> anyhow::Result<()> {
    for experiment in &results.experiments {
        for method in &experiment.methods {
            for run in &method.runs {
                let Some(provenance) = &run.provenance else { continue };
                if provenance.data_digest != experiment.dataset.digest {
                    bail!(
                        "{}: {}, seed {}: trained on files of digest {}, and the experiment is on those of {}",
                        experiment.id,
                        method.method,
                        run.index + 1,
                        provenance.data_digest,
                        experiment.dataset.digest
                    );
                }
            }
        }
    }
    Ok(())
}

fn without_digests(ledger: &Value) -> Value {
    let mut ledger = ledger.clone();
    if let Some(ledger) = ledger.as_object_mut() {
        ledger.retain(|name, _| matches!(name.as_str(), "relation" | "entries"));
        for entry in ledger.get_mut("entries").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(entry) = entry.as_object_mut() {
                entry.remove("digest");
            }
        }
    }
    ledger
}

#[cfg(test)]
mod tests {
    use dp_accounting::{Ledger, NoiseMultiplier};

    use super::*;

    fn ledger(sigma: f64, count: u64) -> Value {
        let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
        ledger.record(&DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap()), count).unwrap();
        serde_json::to_value(ledger).unwrap()
    }

    #[test]
    fn events_and_counts_are_compared_and_formats_are_not() {
        let stored = ledger(1.0, 10);
        let mut earlier = stored.clone();
        earlier["entries"][0]["digest"] = "of an earlier encoding".into();
        earlier["version"] = 1.into();
        refuse_other(&earlier, &stored).unwrap();
        let error = |other: &Value| refuse_other(&stored, other).unwrap_err().to_string();
        assert_eq!(
            error(&ledger(1.0, 11)),
            "its ledger is not the one that its ε is composed of: entries[0].count: 10 and 11"
        );
        assert!(error(&ledger(2.0, 10)).contains("noise_multiplier"), "{}", error(&ledger(2.0, 10)));
        let mut related = stored.clone();
        related["relation"] = serde_json::to_value(NeighbouringRelation::AddRemove).unwrap();
        assert!(error(&related).contains("relation"));
        assert!(error(&Value::Null).starts_with("its ledger is not the one"));
        assert!(error(&serde_json::json!({"entries": []})).starts_with("its ledger is not the one"));
    }
}
