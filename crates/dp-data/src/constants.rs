//! Sources of the constants that shape the inputs of every record.

use serde::{Deserialize, Serialize};

/// The source of a constant. An ε for training on the encoded records depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConstantSource {
    /// Declared: a documented range, a fixed list, a number that was written down. It depends on no
    /// record.
    Public,
    /// Released from the records with noise. The event belongs into the ledger of every run on the
    /// encoded records.
    Paid {
        /// The event, in words.
        event: String,
    },
    /// Taken from the records without noise, as the papers did: one record changes the inputs of
    /// all others. A guarantee for training is then conditional on the constant.
    Records {
        /// The use of the records, for example `was fitted on the private records`.
        how: String,
    },
}

/// A constant that shapes the inputs of every record, with its source.
///
/// ```
/// use dp_data::InputConstant;
/// let scaling = InputConstant::from_records("the scaling", "was fitted on the private records");
/// assert_eq!(scaling.condition().unwrap(), "the scaling, which was fitted on the private records");
/// assert_eq!(InputConstant::public("the scaling").condition(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputConstant {
    /// The constant, for example `the scaling`.
    pub what: String,
    /// Its source.
    pub source: ConstantSource,
}

impl InputConstant {
    /// A declared constant.
    pub fn public(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: ConstantSource::Public }
    }

    /// A constant that was released with noise.
    pub fn paid(what: impl Into<String>, event: impl Into<String>) -> Self {
        Self { what: what.into(), source: ConstantSource::Paid { event: event.into() } }
    }

    /// A constant taken from the records.
    pub fn from_records(what: impl Into<String>, how: impl Into<String>) -> Self {
        Self { what: what.into(), source: ConstantSource::Records { how: how.into() } }
    }

    /// The condition that it puts on a guarantee, if it was taken from the records.
    pub fn condition(&self) -> Option<String> {
        match &self.source {
            ConstantSource::Records { how } => Some(format!("{}, which {how}", self.what)),
            ConstantSource::Public | ConstantSource::Paid { .. } => None,
        }
    }
}
