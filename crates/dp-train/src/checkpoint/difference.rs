//! Differences between two configurations, in words.

use serde_json::Value;

/// One line per value that differs, under its dotted name; objects are compared key by key.
/// Both come with where they are from: `here`, `in the checkpoint`.
pub(crate) fn between(name: &str, one: (&Value, &str), other: (&Value, &str)) -> Vec<String> {
    let ((ours, here), (theirs, there)) = (one, other);
    if let (Value::Object(a), Value::Object(b)) = (ours, theirs) {
        let mut keys: Vec<&String> = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).collect();
        keys.sort();
        let of =
            |object: &serde_json::Map<String, Value>, key: &String| object.get(key).cloned().unwrap_or(Value::Null);
        let of_key = |key| between(&format!("{name}.{key}"), (&of(a, key), here), (&of(b, key), there));
        return keys.into_iter().flat_map(of_key).collect();
    }
    if ours == theirs { Vec::new() } else { vec![format!("{name}: {ours} {here}, {theirs} {there}")] }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_named() {
        let ours = json!({"l2": 0.1, "model": {"name": "mlp", "hidden": [4]}, "privacy": null, "loss": "x"});
        let theirs =
            json!({"l2": 0.2, "model": {"name": "mlp", "hidden": [5]}, "privacy": {"delta": 0.5}, "loss": "x"});
        assert_eq!(
            between("config", (&ours, "here"), (&theirs, "in the checkpoint")),
            [
                "config.l2: 0.1 here, 0.2 in the checkpoint",
                "config.model.hidden: [4] here, [5] in the checkpoint",
                r#"config.privacy: null here, {"delta":0.5} in the checkpoint"#,
            ]
        );
        assert!(between("config", (&ours, "here"), (&ours, "there")).is_empty());
    }
}
