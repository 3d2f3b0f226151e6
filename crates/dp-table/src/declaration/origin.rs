//! Where an entry comes from.

use schemars::JsonSchema;
use serde::Deserialize;

/// The origin of an entry that no person wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Read from the records.
    Data,
}

impl Origin {
    /// Whether an entry was read from the records and nobody checked that it is public.
    pub fn is_open(from: Option<Self>, public: bool) -> bool {
        from == Some(Self::Data) && !public
    }
}
