//! The conditions that parts of a user's own put on a guarantee.

use dp_clipping::ClipConfig;
use dp_engine::Loss;

use crate::train_config::TrainConfig;

/// The condition that a part of a method from outside of `dp-clipping` puts on a guarantee: one phrase
/// each ([`ClipConfig::own_parts`]). The cap on every scale, and the form of counts, hold its bound.
///
/// ```
/// use dp_clipping::registry;
/// use dp_train::conditions_of_own_method;
/// assert!(conditions_of_own_method(&registry::find("dpsgd")?.default_config()).is_empty());
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
pub fn conditions_of_own_method(clipping: &ClipConfig) -> Vec<String> {
    let condition = |name| {
        format!(
            "the part `{name}` of the method, which is the user's own: it must be a function of what it is given, without a \
             memory (its bound is held by the cap on every scale, not by a proof of the part)"
        )
    };
    clipping.own_parts().into_iter().map(condition).collect()
}

/// The conditions that all parts of one's own put on the guarantee of a run.
pub(crate) fn conditions_of_own_parts(config: &TrainConfig) -> Vec<String> {
    let condition = |what: String| {
        format!(
            "the {what}, which is the user's own: it must be a function of one record and the parameters, without a memory (what \
             it adds is formed and measured record by record)"
        )
    };
    let method = config.privacy.iter().flat_map(|privacy| conditions_of_own_method(&privacy.clipping));
    let layers = config.model.own_layers().into_iter().map(|name| format!("layer `{name}`"));
    let loss = if let Loss::Own { loss } = &config.loss { Some(format!("loss `{loss}`")) } else { None };
    method.chain(layers.chain(loss).map(condition)).collect()
}
