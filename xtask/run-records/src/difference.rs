//! Where two records differ.

use serde_json::Value;

/// Members that say how fast a run was and by which revision, not what came out.
const TIMES: [&str; 2] = ["seconds", "code_revision"];
/// Members that follow from others and that records up to November 2026 do not have: the end of a
/// ledger, and the number of records in a scope.
const NEW: [&str; 3] = ["n_entries", "last_digest", "n_records"];

/// The first value in which two records differ, as `path: ours and theirs`; `None` if they differ
/// in times at most.
pub(super) fn difference(ours: &Value, theirs: &Value) -> Option<String> {
    walk(ours, theirs, &mut String::new())
}

fn walk(ours: &Value, theirs: &Value, path: &mut String) -> Option<String> {
    let here = path.len();
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let added = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(added).filter(|key| !TIMES.contains(&key.as_str())) {
                if here > 0 {
                    path.push('.');
                }
                path.push_str(key);
                let null = Value::Null;
                let (ours, theirs) = (a.get(key), b.get(key));
                let is_new = NEW.contains(&key.as_str()) && (ours.is_none() || theirs.is_none());
                let found = if is_new { None } else { walk(ours.unwrap_or(&null), theirs.unwrap_or(&null), path) };
                if found.is_some() {
                    return found;
                }
                path.truncate(here);
            }
            None
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                path.push_str(&format!("[{index}]"));
                let found = walk(a, b, path);
                if found.is_some() {
                    return found;
                }
                path.truncate(here);
            }
            None
        }
        (Value::Array(a), Value::Array(b)) => Some(format!("{path}: {} and {} values", a.len(), b.len())),
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path}: {a} and {b}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_has_a_path() {
        let ours = json!({"seconds": 1.0, "test": {"groups": [{"accuracy": 0.5}, {"accuracy": 0.25}]}, "n": [1, 2]});
        let mut theirs = ours.clone();
        theirs["seconds"] = json!(2.0);
        assert_eq!(difference(&ours, &theirs), None);
        theirs["test"]["groups"][1]["accuracy"] = json!(0.75);
        assert_eq!(difference(&ours, &theirs).unwrap(), "test.groups[1].accuracy: 0.25 and 0.75");
        theirs["n"] = json!([1]);
        assert_eq!(difference(&ours, &theirs).unwrap(), "n: 2 and 1 values");
        assert_eq!(difference(&json!({}), &json!({"a": 1})).unwrap(), "a: null and 1");
        // A ledger from before its end was stored, and one cut at its end.
        let stored = |n: u64| json!({"n_entries": n, "last_digest": "0a", "entries": [1]});
        assert_eq!(difference(&json!({"entries": [1]}), &stored(1)), None);
        assert_eq!(difference(&stored(2), &stored(1)).unwrap(), "n_entries: 2 and 1");
    }
}
