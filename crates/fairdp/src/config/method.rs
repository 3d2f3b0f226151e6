//! `[method]`: how a model is trained.

use dp_clipping::PresetParams;
use schemars::JsonSchema;
use serde::Deserialize;

use super::schema::{MethodName, Settings};

/// `[method]`. All keys but the name are for methods by name.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MethodChoice {
    /// `auto`, or a name from `fairdp methods`; `auto` unless given.
    #[schemars(with = "Option<MethodName>")]
    pub name: Option<String>,
    /// Probability with which a record enters a step's batch; 1, all records in every step, unless
    /// given, and 0.01 for a network on pixels.
    pub sampling_rate: Option<f64>,
    /// Rates by group, in place of `sampling_rate`.
    pub sampling: Option<SamplingEntry>,
    /// Steps; 100 unless given, and 200 for a network on pixels.
    pub steps: Option<u64>,
    /// Rate of the first step; it falls to 0 along a cosine.
    pub learning_rate: Option<f64>,
    /// Hyper-parameters of the method; the paper's values unless given.
    #[schemars(with = "Option<Settings<PresetParams>>")]
    pub settings: Option<PresetParams>,
}

/// `sampling = { by = "group", rates = […] }`, or `{ by = "loss", least = …, largest = … }`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(
    tag = "by",
    rename_all = "kebab-case",
    deny_unknown_fields,
    expecting = "{ by = \"group\", rates = [0.2, 0.5] } or { by = \"loss\", least = 0.1, largest = 0.4 }"
)]
#[non_exhaustive]
pub enum SamplingEntry {
    /// Groups have rates of their own.
    Group {
        /// Probability with which a record of each group enters a step's batch, in the order of the
        /// groups: values as they are declared, then other, then missing; of several columns the last
        /// one's change first.
        rates: Vec<f64>,
    },
    /// Groups have rates that follow their noisy losses.
    Loss {
        /// The least rate of a group.
        least: f64,
        /// The largest.
        largest: f64,
    },
}

impl SamplingEntry {
    /// As a person may have written it.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Group { rates } => format!("sampling by group {rates:?}"),
            Self::Loss { least, largest } => format!("sampling by loss, {least} to {largest}"),
        }
    }
}

impl MethodChoice {
    /// Whether no setting is made.
    pub(crate) fn is_auto(&self) -> bool {
        self.name.as_deref().is_none_or(|name| name == "auto")
            && *self == Self { name: self.name.clone(), ..Self::default() }
    }
}
