//! Floating-point numbers in JSON, infinities and NaN included.
//!
//! JSON has no such numbers and serde_json writes `null` for them, from which no `f64` comes back:
//! a run that diverged could be stored and never be read again. Here they are the strings `inf`,
//! `-inf` and `NaN`.

use std::fmt;

use serde::de::{DeserializeOwned, Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number as it stands in JSON.
#[derive(Debug, Clone, Copy)]
pub struct Wire(f64);

/// What is made of numbers and can be written with them.
pub trait Extended: Sized {
    /// The same with [`Wire`] in place of `f64`.
    type Wire: Serialize + DeserializeOwned;

    /// For writing.
    fn to_wire(&self) -> Self::Wire;
    /// After reading.
    fn from_wire(wire: Self::Wire) -> Self;
}

impl Extended for f64 {
    type Wire = Wire;

    fn to_wire(&self) -> Wire {
        Wire(*self)
    }

    fn from_wire(wire: Wire) -> Self {
        wire.0
    }
}

impl<T: Extended> Extended for Option<T> {
    type Wire = Option<T::Wire>;

    fn to_wire(&self) -> Self::Wire {
        self.as_ref().map(T::to_wire)
    }

    fn from_wire(wire: Self::Wire) -> Self {
        wire.map(T::from_wire)
    }
}

impl<T: Extended> Extended for Vec<T> {
    type Wire = Vec<T::Wire>;

    fn to_wire(&self) -> Self::Wire {
        self.iter().map(T::to_wire).collect()
    }

    fn from_wire(wire: Self::Wire) -> Self {
        wire.into_iter().map(T::from_wire).collect()
    }
}

/// For `#[serde(with = "extended")]`.
///
/// # Errors
/// Those of the serialiser.
pub fn serialize<T: Extended, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.to_wire().serialize(serializer)
}

/// For `#[serde(with = "extended")]`.
///
/// # Errors
/// Those of the deserialiser.
pub fn deserialize<'de, T: Extended, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Wire::deserialize(deserializer).map(T::from_wire)
}

impl Serialize for Wire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { serializer.serialize_f64(self.0) } else { serializer.collect_str(&self.0) }
    }
}

impl<'de> Deserialize<'de> for Wire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WireVisitor)
    }
}

struct WireVisitor;

impl Visitor<'_> for WireVisitor {
    type Value = Wire;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"inf\", \"-inf\" or \"NaN\"")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Wire, E> {
        Ok(Wire(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Wire, E> {
        Ok(Wire(value as f64))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Wire, E> {
        Ok(Wire(value as f64))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Wire, E> {
        match value {
            "inf" => Ok(Wire(f64::INFINITY)),
            "-inf" => Ok(Wire(f64::NEG_INFINITY)),
            "NaN" => Ok(Wire(f64::NAN)),
            other => Err(E::invalid_value(Unexpected::Str(other), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Serialize, Deserialize)]
    struct Numbers {
        #[serde(with = "super")]
        one: f64,
        #[serde(with = "super")]
        some: Vec<Option<f64>>,
    }

    #[test]
    fn every_number_comes_back_with_its_bits() {
        let some = vec![Some(0.1 + 0.2), None, Some(-0.0), Some(f64::NEG_INFINITY), Some(5e-324), Some(3.0)];
        let json = serde_json::to_string(&Numbers { one: f64::INFINITY, some: some.clone() }).unwrap();
        assert_eq!(json, r#"{"one":"inf","some":[0.30000000000000004,null,-0.0,"-inf",5e-324,3.0]}"#);
        let back: Numbers = serde_json::from_str(&json).unwrap();
        assert_eq!(back.one, f64::INFINITY);
        let bits =
            |values: &[Option<f64>]| -> Vec<Option<u64>> { values.iter().map(|v| v.map(f64::to_bits)).collect() };
        assert_eq!(bits(&back.some), bits(&some));
        let nan: Numbers = serde_json::from_str(r#"{"one":"NaN","some":[1]}"#).unwrap();
        assert!(nan.one.is_nan() && nan.some == [Some(1.0)]);
    }

    #[test]
    fn other_words_are_refused() {
        let error = serde_json::from_str::<Numbers>(r#"{"one":"big","some":[]}"#).unwrap_err().to_string();
        assert!(error.contains(r#"expected a number, "inf", "-inf" or "NaN""#), "{error}");
    }
}
