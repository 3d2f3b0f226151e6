//! The parts that this process knows by name.

use super::{OwnController, OwnRule, OwnWeights, Part};
use crate::{ClipConfig, ClipError, Controller, ScaleRule, Weights};

/// Names of this crate's own parts, which no other may take.
const TAKEN: [&str; 13] = [
    "hard",
    "normalised",
    "global-drop",
    "global-clip",
    "global-tanh",
    "tanh",
    "automatic",
    "constant",
    "geometric",
    "per-group",
    "uniform",
    "naive",
    "multiplicative",
];

/// Parts of one's own, in the order in which they were registered.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) rules: Vec<&'static dyn OwnRule>,
    pub(crate) controllers: Vec<&'static dyn OwnController>,
    pub(crate) weights: Vec<&'static dyn OwnWeights>,
}

impl Parts {
    pub(crate) const fn none() -> Self {
        Self { rules: Vec::new(), controllers: Vec::new(), weights: Vec::new() }
    }

    /// Takes in the parts of a configuration that are one's own. A part may be in several methods.
    ///
    /// # Errors
    /// [`ClipError::InvalidParameter`] for a name that is not in kebab case, or that another part has.
    /// Nothing is then taken in.
    pub(crate) fn take_in(&mut self, config: &ClipConfig) -> Result<(), ClipError> {
        let rule = if let ScaleRule::Own { rule, .. } = config.rule { Some(rule.part()) } else { None };
        let controller =
            if let Controller::Own { controller, .. } = config.controller { Some(controller.part()) } else { None };
        let weights = if let Weights::Own { weights, .. } = config.weights { Some(weights.part()) } else { None };
        let rule = new(&self.rules, rule)?;
        let controller = new(&self.controllers, controller)?;
        let weights = new(&self.weights, weights)?;
        self.rules.extend(rule);
        self.controllers.extend(controller);
        self.weights.extend(weights);
        Ok(())
    }
}

/// The part, if it is not known yet.
fn new<T: Part + ?Sized>(known: &[&'static T], part: Option<&'static T>) -> Result<Option<&'static T>, ClipError> {
    let Some(part) = part else { return Ok(None) };
    let name = part.part_name();
    if !is_kebab_case(name) {
        return Err(ClipError::invalid(T::KIND, name, "a name of lower-case letters, digits and hyphens"));
    }
    match known.iter().find(|other| other.part_name() == name) {
        Some(other) if other.type_of() == part.type_of() => Ok(None),
        None if !TAKEN.contains(&name) => Ok(Some(part)),
        _ => Err(ClipError::invalid(T::KIND, name, "a name that no other part has")),
    }
}

pub(crate) fn is_kebab_case(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}
