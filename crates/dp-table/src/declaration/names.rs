//! Lists of names, as a JSON Schema has them.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};

use super::document::known;

/// A name of a list that another type has, as serde reads it: for `#[schemars(with = …)]`.
#[derive(Debug)]
pub struct Names<T>(PhantomData<T>);

impl<T: DeserializeOwned> JsonSchema for Names<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // No name is empty, and the refusal has all of them.
        let refusal = T::deserialize(StrDeserializer::<Error>::new("")).err().map(|error| error.to_string());
        let refusal = refusal.unwrap_or_default();
        json_schema!({ "type": "string", "enum": known(&refusal) })
    }
}
