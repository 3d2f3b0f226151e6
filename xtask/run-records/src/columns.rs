//! A JSON value taken apart into columns: values at the same place of like records lie together, so
//! that a compressor finds what they share.
//!
//! The first line lists the columns, `[[place, lines], …]`; their lines follow in that order, each
//! of them JSON. A value is visited from the outside in and adds one line to the column of its
//! place:
//!
//! | value | line |
//! |---|---|
//! | number, text, truth value, null | itself |
//! | array of `n` values | `[n]`; its values lie at the place with `/*` |
//! | object | the array of its names; the value of each lies at the place with `/name` |

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value};

/// How deep values may lie in each other, as in `serde_json`: a hostile file must not exhaust the
/// stack.
const MAX_DEPTH: usize = 128;

/// The columns of a value as text.
///
/// # Errors
/// If the value cannot be serialised.
pub(super) fn write(value: &Value) -> anyhow::Result<String> {
    let mut columns = Columns::default();
    columns.take_apart(value, "")?;
    let lengths: Vec<(&str, usize)> = columns.all.iter().map(|column| (column.place.as_str(), column.n)).collect();
    let mut text = serde_json::to_string(&lengths)?;
    text.push('\n');
    text.extend(columns.all.iter().map(|column| column.text.as_str()));
    Ok(text)
}

/// The value whose columns these are.
///
/// # Errors
/// Names the column, if lines are missing, left over, or none of ours.
pub(super) fn read(text: &str) -> anyhow::Result<Value> {
    let mut lines = text.lines();
    let head = lines.next().context("the list of columns is missing")?;
    let lengths: Vec<(String, usize)> = serde_json::from_str(head).context("the list of columns")?;
    let mut columns: BTreeMap<String, VecDeque<&str>> = BTreeMap::new();
    for (name, n) in lengths {
        let column: VecDeque<&str> = lines.by_ref().take(n).collect();
        ensure!(column.len() == n, "column {name:?}: expected {n} lines, found {}", column.len());
        ensure!(!columns.contains_key(&name), "column {name:?} is listed twice");
        columns.insert(name, column);
    }
    ensure!(lines.next().is_none(), "lines after the last column");
    let value = put_together(&mut columns, "", 0)?;
    if let Some((name, _)) = columns.iter().find(|(_, column)| !column.is_empty()) {
        bail!("column {name:?}: more lines than values");
    }
    Ok(value)
}

/// The lines of the values at one place, each with its end.
struct Column {
    place: String,
    text: String,
    n: usize,
}

#[derive(Default)]
struct Columns {
    /// In the order in which their first values were met.
    all: Vec<Column>,
    /// Where each is among them, by its place.
    indices: BTreeMap<String, usize>,
}

impl Columns {
    fn take_apart(&mut self, value: &Value, place: &str) -> anyhow::Result<()> {
        match value {
            Value::Array(values) => {
                self.push(place, &format!("[{}]", values.len()));
                let below = format!("{place}/*");
                values.iter().try_for_each(|value| self.take_apart(value, &below))
            }
            Value::Object(fields) => {
                self.push(place, &serde_json::to_string(&fields.keys().collect::<Vec<_>>())?);
                fields.iter().try_for_each(|(name, value)| self.take_apart(value, &format!("{place}/{name}")))
            }
            scalar => {
                self.push(place, &serde_json::to_string(scalar)?);
                Ok(())
            }
        }
    }

    fn push(&mut self, place: &str, line: &str) {
        let index = self.indices.get(place).copied().unwrap_or_else(|| {
            self.indices.insert(place.to_owned(), self.all.len());
            self.all.push(Column { place: place.to_owned(), text: String::new(), n: 0 });
            self.all.len() - 1
        });
        let column = &mut self.all[index];
        column.text.push_str(line);
        column.text.push('\n');
        column.n += 1;
    }
}

fn put_together(columns: &mut BTreeMap<String, VecDeque<&str>>, place: &str, depth: usize) -> anyhow::Result<Value> {
    ensure!(depth < MAX_DEPTH, "column {place:?}: values lie more than {MAX_DEPTH} deep in each other");
    let line = columns.get_mut(place).and_then(VecDeque::pop_front);
    let line = line.with_context(|| format!("column {place:?}: fewer lines than values"))?;
    let line: Value = serde_json::from_str(line).with_context(|| format!("column {place:?}"))?;
    let Value::Array(shape) = line else {
        ensure!(!line.is_object(), "column {place:?}: expected a number, a text or a shape");
        return Ok(line);
    };
    if let [Value::Number(n)] = &shape[..] {
        let n = n.as_u64().with_context(|| format!("column {place:?}: expected a number of values, found {n}"))?;
        let below = format!("{place}/*");
        return (0..n).map(|_| put_together(columns, &below, depth + 1)).collect();
    }
    let mut fields = Map::new();
    for name in shape {
        let Value::String(name) = name else { bail!("column {place:?}: expected the name of a field, found {name}") };
        let value = put_together(columns, &format!("{place}/{name}"), depth + 1)?;
        fields.insert(name, value);
    }
    Ok(Value::Object(fields))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_at_one_place_lie_together() {
        let value = json!([{"a": 1.5, "b": [true, null]}, {"a": 2, "b": []}]);
        let text = "[[\"\",1],[\"/*\",2],[\"/*/a\",2],[\"/*/b\",2],[\"/*/b/*\",2]]\n\
                    [2]\n[\"a\",\"b\"]\n[\"a\",\"b\"]\n1.5\n2\n[2]\n[0]\ntrue\nnull\n";
        assert_eq!(write(&value).unwrap(), text);
        assert_eq!(read(text).unwrap(), value);
    }

    #[test]
    fn every_value_comes_back_with_its_bits() {
        let numbers = [0.1 + 0.2, -0.0, 5e-324, f64::MAX, 1.0 / 3.0];
        // Names that look like places share a column, and are told apart by their order.
        let value = json!({
            "": {}, "a/b": "x\ny", "a": {"b": [[], [[u64::MAX]]], "*": i64::MIN}, "numbers": numbers, "ε": "ä\u{2028}",
        });
        let back = read(&write(&value).unwrap()).unwrap();
        assert_eq!(back, value);
        let bits: Vec<u64> =
            back["numbers"].as_array().unwrap().iter().map(|number| number.as_f64().unwrap().to_bits()).collect();
        assert_eq!(bits, numbers.map(f64::to_bits));
        for scalar in [json!(null), json!(7), json!("seven"), json!([]), json!({})] {
            assert_eq!(read(&write(&scalar).unwrap()).unwrap(), scalar);
        }
    }

    #[test]
    fn what_is_none_of_ours_is_named() {
        let error = |text: &str| format!("{:#}", read(text).unwrap_err());
        assert_eq!(error(""), "the list of columns is missing");
        assert!(error("{}\n").starts_with("the list of columns: "));
        assert_eq!(error("[[\"\",2]]\n1\n"), "column \"\": expected 2 lines, found 1");
        assert_eq!(error("[[\"\",1],[\"\",1]]\n1\n2\n"), "column \"\" is listed twice");
        assert_eq!(error("[[\"\",1]]\n1\n2\n"), "lines after the last column");
        assert_eq!(error("[[\"\",2]]\n1\n2\n"), "column \"\": more lines than values");
        assert_eq!(error("[[\"\",1]]\n[1]\n"), "column \"/*\": fewer lines than values");
        assert_eq!(error("[[\"\",1]]\n[-1]\n"), "column \"\": expected a number of values, found -1");
        assert_eq!(error("[[\"\",1]]\n[1,\"a\"]\n"), "column \"\": expected the name of a field, found 1");
        assert_eq!(error("[[\"\",1]]\n{}\n"), "column \"\": expected a number, a text or a shape");
        let deep: Vec<(String, usize)> = (0..200).map(|depth| ("/*".repeat(depth), 1)).collect();
        let text = format!("{}\n{}", serde_json::to_string(&deep).unwrap(), "[1]\n".repeat(200));
        assert!(error(&text).ends_with("values lie more than 128 deep in each other"), "{}", error(&text));
    }
}
