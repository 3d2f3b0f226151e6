//! Values as TOML.

use std::fmt::Write as _;

use crate::printable::is_hidden;

/// A number as TOML reads it: always with a fraction or an exponent, since integers end at 2⁶³.
pub(super) fn number(value: f64) -> String {
    format!("{value:?}")
}

pub(super) fn list(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[{}]", values.join(", "))
}

/// A TOML string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            letter if is_hidden(letter) => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_quoting() {
        for name in [
            "plain",
            "with \"quotes\"",
            "back\\slash",
            "line\nbreak",
            "tab\t",
            "é",
            "\u{1b}[31m",
            "\u{202e}x",
            "\u{e0041}",
        ] {
            let document: toml::Table = format!("x = {}", quoted(name)).parse().unwrap();
            assert_eq!(document["x"].as_str(), Some(name));
        }
    }
}
