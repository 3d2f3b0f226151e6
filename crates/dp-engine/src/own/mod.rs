//! Layers and losses from outside of this crate, known to the whole process by their names.

mod layer;
mod loss;

use std::sync::{PoisonError, RwLock};

use crate::error::{EngineError, Result};

pub use layer::{OwnLayer, OwnShape};
pub use loss::OwnLoss;

static LAYERS: RwLock<Vec<&'static dyn OwnLayer>> = RwLock::new(Vec::new());
static LOSSES: RwLock<Vec<&'static dyn OwnLoss>> = RwLock::new(Vec::new());

/// Makes a layer known by its name, for [`LayerConfig::Own`](crate::LayerConfig::Own). Call it once, at
/// the start of the program: nothing is ever replaced.
///
/// # Errors
/// [`EngineError::InvalidParameter`] for a name that is not in kebab case, or that is taken.
///
/// **Example**: [`OwnLayer`].
pub fn register_layer(layer: &'static dyn OwnLayer) -> Result<()> {
    register(&LAYERS, layer, layer.name(), "layer", |known| known.name())
}

/// Makes a loss known by its name, for [`Loss::Own`](crate::Loss::Own). Call it once, at the start of
/// the program: nothing is ever replaced.
///
/// # Errors
/// [`EngineError::InvalidParameter`] for a name that is not in kebab case, or that is taken.
///
/// **Example**: [`OwnLoss`].
pub fn register_loss(loss: &'static dyn OwnLoss) -> Result<()> {
    register(&LOSSES, loss, loss.name(), "loss", |known| known.name())
}

fn register<T: ?Sized>(
    list: &RwLock<Vec<&'static T>>,
    part: &'static T,
    name: &str,
    kind: &'static str,
    name_of: impl Fn(&T) -> &str,
) -> Result<()> {
    let is_kebab = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !is_kebab {
        return Err(EngineError::invalid(kind, name, "a name of lower-case letters, digits and hyphens"));
    }
    let mut list = list.write().unwrap_or_else(PoisonError::into_inner);
    if list.iter().any(|known| name_of(known) == name) {
        return Err(EngineError::invalid(kind, name, "a name that is not registered yet"));
    }
    list.push(part);
    Ok(())
}

pub(crate) fn find_layer(name: &str) -> Result<&'static dyn OwnLayer> {
    let known = LAYERS.read().unwrap_or_else(PoisonError::into_inner);
    let found = known.iter().copied().find(|layer| layer.name() == name);
    found.ok_or_else(|| EngineError::invalid("own.layer", name, registered(known.iter().map(|layer| layer.name()))))
}

pub(crate) fn find_loss(name: &str) -> Result<&'static dyn OwnLoss> {
    let known = LOSSES.read().unwrap_or_else(PoisonError::into_inner);
    let found = known.iter().copied().find(|loss| loss.name() == name);
    found.ok_or_else(|| EngineError::invalid("loss.own", name, registered(known.iter().map(|loss| loss.name()))))
}

fn registered<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names = names.collect::<Vec<_>>().join(", ");
    format!("one that this program registers: {}", if names.is_empty() { "there is none" } else { &names })
}
