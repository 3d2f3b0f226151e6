//! The JSON Schema of configurations, for editors.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::Config;
use crate::recipe;

/// The JSON Schema of configurations. An editor that knows TOML checks a file whose first line is
/// `#:schema` with the path of the schema.
pub fn config_schema() -> serde_json::Value {
    schemars::schema_for!(Config).to_value()
}

/// A table of settings that another crate has, all with defaults.
pub(super) struct Settings<T>(PhantomData<T>);

impl<T: Default + Serialize> JsonSchema for Settings<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let default = serde_json::to_value(T::default()).unwrap_or_default();
        let keys = default.as_object().into_iter().flatten().map(|(key, _)| (key.clone(), true.into()));
        let keys: serde_json::Map<String, serde_json::Value> = keys.collect();
        json_schema!({ "type": "object", "properties": keys, "additionalProperties": false })
    }
}

/// `auto`, or the name of a method.
pub(super) struct MethodName;

impl JsonSchema for MethodName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "MethodName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": recipe::method_names().collect::<Vec<_>>() })
    }
}
