//! What commands print for programs: one JSON object each, with the version of its fields.

use std::io::{self, Write};

use fairdp::printable_json;
use serde::Serialize;
use serde_json::Value;

/// Fields are added under one version. It grows where one changes its meaning or goes.
const VERSION: u32 = 1;

/// The object with its version, unless it is a document that has one.
fn versioned(answer: impl Serialize) -> serde_json::Result<Value> {
    let mut answer = serde_json::to_value(answer)?;
    if let Value::Object(fields) = &mut answer {
        fields.entry("version").or_insert_with(|| VERSION.into());
    }
    Ok(answer)
}

/// One line.
pub(super) fn line(out: &mut impl Write, answer: impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", printable_json(&versioned(answer)?.to_string()))
}

/// A document, a line for each field.
pub(super) fn document(out: &mut impl Write, answer: impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", printable_json(&serde_json::to_string_pretty(&versioned(answer)?)?))
}

/// The JSON Schema of configurations.
pub(super) fn schema(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string_pretty(&fairdp::config_schema())?)
}
