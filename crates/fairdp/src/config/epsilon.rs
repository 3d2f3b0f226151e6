//! Another ε in the place of a configuration's.

use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use crate::error::FairdpError;

/// The ε of a fit, where it is not its configuration's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EpsilonChoice {
    /// This one.
    Given(f64),
    /// As much as the ledger has left for the fit.
    Rest,
}

impl FromStr for EpsilonChoice {
    type Err = FairdpError;

    fn from_str(text: &str) -> Result<Self, FairdpError> {
        let epsilon = if text == "rest" { return Ok(Self::Rest) } else { text.parse().ok() };
        let epsilon = epsilon.filter(|epsilon: &f64| epsilon.is_finite() && *epsilon > 0.0);
        let refusal = || FairdpError::invalid("--epsilon", text, "a finite number above 0, or rest");
        epsilon.map(Self::Given).ok_or_else(refusal)
    }
}

/// The text of a configuration with another `privacy.epsilon`: it is what the noise is bound to, and
/// what the run keeps. A text without one is left as it is.
pub(crate) fn with_epsilon(text: &str, epsilon: f64) -> String {
    let Ok(document) = DeTable::parse(text) else { return text.to_owned() };
    let span = document.get_ref().get("privacy").and_then(|privacy| match privacy.get_ref() {
        DeValue::Table(privacy) => privacy.get("epsilon").map(toml::Spanned::span),
        _ => None,
    });
    match span {
        Some(span) => format!("{}{epsilon:?}{}", &text[..span.start], &text[span.end..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_replaced() {
        let text = "# epsilon = 3\n[privacy]\nepsilon = 1  # of all\ndelta = 1e-5\n[other]\nepsilon = 2\n";
        assert_eq!(with_epsilon(text, 0.25), text.replace("epsilon = 1 ", "epsilon = 0.25 "));
        assert_eq!(
            with_epsilon("privacy = { delta = 1e-5, epsilon = 8.0 }", 2.0),
            "privacy = { delta = 1e-5, epsilon = 2.0 }"
        );
        assert_eq!(with_epsilon("[privacy]\ndelta = 1", 2.0), "[privacy]\ndelta = 1");
    }

    #[test]
    fn choices_are_read() {
        assert_eq!("rest".parse::<EpsilonChoice>().unwrap(), EpsilonChoice::Rest);
        assert_eq!("0.5".parse::<EpsilonChoice>().unwrap(), EpsilonChoice::Given(0.5));
        for wrong in ["-1", "0", "inf", "all"] {
            let message = wrong.parse::<EpsilonChoice>().unwrap_err().to_string();
            assert_eq!(message, format!("--epsilon = {wrong}: expected a finite number above 0, or rest"));
        }
    }
}
