//! Which normalisation a model has.

use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};

/// Normalisation of a model's hidden layers.
///
/// **Example**
/// ```
/// use dp_engine::{DType, Device, Model, ModelConfig, Normalisation};
/// let config = ModelConfig::SoleymaniComplex { normalisation: Normalisation::BatchNorm };
/// let error = Model::new(&config, 98, 2, DType::F32, &Device::Cpu).err().map(|error| error.to_string());
/// assert!(error.is_some_and(|error| error.contains("group-norm")));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Normalisation {
    /// Mean and variance over groups of a record's channels (Wu and He 2018).
    GroupNorm {
        /// Number of groups; divides the channels of every layer that is normalised.
        groups: usize,
    },
    /// Mean and variance over the batch. Always refused: every record's gradient would then depend
    /// on all the others', so that clipping it would bound nothing. It is here to be refused by
    /// name.
    BatchNorm,
}

impl Normalisation {
    /// Number of groups over this many channels.
    pub(super) fn groups(self, channels: usize) -> Result<usize> {
        match self {
            Self::GroupNorm { groups } => check_groups(groups, channels),
            Self::BatchNorm => Err(batch_norm_refused("model.normalisation")),
        }
    }
}

/// `groups`, if they divide the channels.
pub(super) fn check_groups(groups: usize, channels: usize) -> Result<usize> {
    if groups > 0 && channels.is_multiple_of(groups) {
        return Ok(groups);
    }
    Err(EngineError::invalid("group-norm groups", groups, format!("a divisor of the {channels} channels")))
}

pub(super) fn batch_norm_refused(parameter: &'static str) -> EngineError {
    let expected = "group-norm (GroupNorm): statistics over the batch mix records, and clipping would bound nothing";
    EngineError::invalid(parameter, "batch-norm", expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_divide_channels_and_batch_norm_is_refused() {
        let group_norm = |groups| Normalisation::GroupNorm { groups };
        assert_eq!(group_norm(32).groups(64).unwrap(), 32);
        insta::assert_snapshot!(group_norm(0).groups(64).unwrap_err(), @"group-norm groups = 0: expected a divisor of the 64 channels");
        insta::assert_snapshot!(group_norm(48).groups(64).unwrap_err(), @"group-norm groups = 48: expected a divisor of the 64 channels");
        insta::assert_snapshot!(Normalisation::BatchNorm.groups(64).unwrap_err(), @"model.normalisation = batch-norm: expected group-norm (GroupNorm): statistics over the batch mix records, and clipping would bound nothing");
        // Asked for in a configuration file.
        let parsed: Normalisation = serde_json::from_str(r#"{"name": "batch-norm"}"#).unwrap();
        assert_eq!(parsed, Normalisation::BatchNorm);
    }
}
