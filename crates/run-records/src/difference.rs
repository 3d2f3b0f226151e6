//! Where two records differ.

use serde_json::Value;

/// Members that say how fast a run was and by which revision, not what came out.
const TIMES: [&str; 2] = ["seconds", "code_revision"];

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
                let found = walk(a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null), path);
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
    }
}
