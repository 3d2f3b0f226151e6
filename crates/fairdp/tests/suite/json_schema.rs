// As much of JSON Schema as configurations need; a schema with anything else fails.

use serde_json::Value;

/// Why a value is not what a schema describes; `None` if it is. Of a fragment nothing is missing.
pub(crate) fn refusal(root: &Value, schema: &Value, value: &Value, is_fragment: bool) -> Option<String> {
    let Value::Object(rules) = schema else {
        return (*schema == Value::Bool(false)).then(|| format!("{value} is not expected"));
    };
    let check = |schema: &Value, value: &Value| refusal(root, schema, value, is_fragment);
    let list = |rule: &Value| rule.as_array().cloned().unwrap_or_default();
    rules.iter().find_map(|(name, rule)| match name.as_str() {
        "$schema" | "$defs" | "title" | "description" | "default" | "format" => None,
        "$ref" => {
            let place = rule.as_str()?.trim_start_matches('#');
            check(root.pointer(place).unwrap_or(&Value::Bool(false)), value)
        }
        "type" => {
            let is = |kind: &Value| match kind.as_str().unwrap_or_default() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64() || value.is_u64(),
                "number" => value.is_number(),
                "null" => value.is_null(),
                _ => false,
            };
            let kinds = if rule.is_array() { list(rule) } else { vec![rule.clone()] };
            (!kinds.iter().any(is)).then(|| format!("{value}: expected {rule}"))
        }
        "const" => (rule != value).then(|| format!("{value}: expected {rule}")),
        "enum" => (!list(rule).contains(value)).then(|| format!("{value}: expected one of {rule}")),
        "anyOf" | "oneOf" => {
            let refusals: Vec<String> = list(rule).iter().filter_map(|schema| check(schema, value)).collect();
            (refusals.len() == list(rule).len()).then(|| refusals.join(", or "))
        }
        "allOf" => list(rule).iter().find_map(|schema| check(schema, value)),
        "properties" => {
            let mut known = rule.as_object()?.iter();
            known.find_map(|(key, schema)| Some(format!("{key}: {}", check(schema, value.get(key)?)?)))
        }
        "additionalProperties" => {
            let known = rules.get("properties").and_then(Value::as_object);
            let mut others =
                value.as_object()?.iter().filter(|(key, _)| !known.is_some_and(|all| all.contains_key(*key)));
            others.find_map(|(key, value)| Some(format!("{key}: {}", check(rule, value)?)))
        }
        "required" if is_fragment => None,
        "required" => {
            let is_missing = |key: &&Value| value.is_object() && value.get(key.as_str().unwrap_or_default()).is_none();
            list(rule).iter().find(is_missing).map(|key| format!("{key} is missing"))
        }
        "items" => value.as_array()?.iter().find_map(|value| check(rule, value)),
        "minimum" => (value.as_f64() < rule.as_f64()).then(|| format!("{value}: expected at least {rule}")),
        "maximum" => (value.as_f64() > rule.as_f64()).then(|| format!("{value}: expected at most {rule}")),
        "minLength" => (value.as_str()?.chars().count() < rule.as_u64()? as usize).then(|| format!("{value} is short")),
        "maxLength" => (value.as_str()?.chars().count() > rule.as_u64()? as usize).then(|| format!("{value} is long")),
        other => Some(format!("the rule {other} is not known")),
    })
}
