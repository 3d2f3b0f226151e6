//! Parts of one's own: what a rule, a controller or weights from outside of this crate are told, and
//! how a configuration holds them.

mod check;
mod names;

use std::any::TypeId;
use std::fmt::{self, Debug, Formatter};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::ClipError;
use crate::controllers::OwnController;
use crate::rules::OwnRule;
use crate::weights::OwnWeights;

pub use check::check;
pub(crate) use names::{Parts, is_kebab_case};

/// Most parameters of a part of one's own.
const MOST: usize = 4;

/// A rule, a controller or weights of one's own, with the values of its parameters: what
/// [`ScaleRule::Own`](crate::ScaleRule::Own), [`Controller::Own`](crate::Controller::Own) and
/// [`Weights::Own`](crate::Weights::Own) hold.
///
/// Two of them are equal if name and values are. In JSON it is its name and its parameters. It is read
/// back by that name, from what [`registry::register`](crate::registry::register) made known.
///
/// ```
/// use dp_clipping::{Own, OwnRule};
///
/// /// `C/(‖g‖ + a)`.
/// #[derive(Debug)]
/// struct Shifted;
///
/// impl OwnRule for Shifted {
///     fn name(&self) -> &'static str {
///         "shifted"
///     }
///     fn parameters(&self) -> &'static [&'static str] {
///         &["a"]
///     }
///     fn scale(&self, norm: f64, threshold: f64, parameters: &[f64]) -> f64 {
///         threshold / (norm + parameters[0])
///     }
/// }
///
/// let rule: Own<dyn OwnRule> = Own::rule(&Shifted, &[0.5]);
/// assert_eq!(serde_json::to_string(&rule)?, r#"{"name":"shifted","parameters":{"a":0.5}}"#);
/// # use dp_clipping::serde_json;
/// # Ok::<(), serde_json::Error>(())
/// ```
pub struct Own<T: ?Sized + 'static> {
    part: &'static T,
    values: [f64; MOST],
    n_values: usize,
}

impl<T: ?Sized> Clone for Own<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Own<T> {}

impl Own<dyn OwnRule> {
    /// A rule with these values of its parameters, in their order.
    pub fn rule(part: &'static dyn OwnRule, values: &[f64]) -> Self {
        Self::new(part, values)
    }
}

impl Own<dyn OwnController> {
    /// A controller with these values of its parameters, in their order.
    pub fn controller(part: &'static dyn OwnController, values: &[f64]) -> Self {
        Self::new(part, values)
    }
}

impl Own<dyn OwnWeights> {
    /// Weights with these values of their parameters, in their order.
    pub fn weights(part: &'static dyn OwnWeights, values: &[f64]) -> Self {
        Self::new(part, values)
    }
}

impl<T: Part + ?Sized> Own<T> {
    fn new(part: &'static T, values: &[f64]) -> Self {
        let mut kept = [0.0; MOST];
        kept.iter_mut().zip(values).for_each(|(kept, &value)| *kept = value);
        Self { part, values: kept, n_values: values.len() }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.part.part_name()
    }

    pub(crate) fn part(&self) -> &'static T {
        self.part
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.values[..self.n_values.min(MOST)]
    }

    /// Refuses values that the part has no parameters for, and those that are not finite.
    pub(crate) fn check_values(&self) -> Result<(), ClipError> {
        let expected = self.part.parameter_names();
        if expected.len() > MOST || expected.len() != self.n_values {
            let names = if expected.is_empty() { "none".to_owned() } else { expected.join(", ") };
            let expected = format!("{} of `{}` ({names}), at most {MOST}", expected.len(), self.name());
            return Err(ClipError::invalid("number of parameters", self.n_values, expected));
        }
        match self.values().iter().position(|value| !value.is_finite()) {
            Some(index) => Err(ClipError::invalid(expected[index], self.values[index], "a finite number")),
            None => Ok(()),
        }
    }

    /// Refuses a part that a program could not find again by its name.
    pub(crate) fn check_registered(&self) -> Result<(), ClipError> {
        match T::find(self.name()) {
            Some(known) if known.type_of() == self.part.type_of() => Ok(()),
            Some(_) => Err(ClipError::invalid(T::KIND, self.name(), "a name that no other part has")),
            None => Err(ClipError::invalid(
                T::KIND,
                self.name(),
                "a part of a method that `dp_clipping::registry::register` was given before",
            )),
        }
    }
}

impl<T: Part + ?Sized> PartialEq for Own<T> {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.n_values == other.n_values && self.values == other.values
    }
}

impl<T: Part + ?Sized> Debug for Own<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        f.debug_map().entries(self.part.parameter_names().iter().zip(self.values())).finish()
    }
}

impl<T: Part + ?Sized> Serialize for Own<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.part.parameter_names().iter().map(|&name| name.to_owned());
        let parameters: Map<String, Value> = names.zip(self.values().iter().map(|&value| value.into())).collect();
        serde_json::json!({ "name": self.name(), "parameters": parameters }).serialize(serializer)
    }
}

/// [`Own`] as written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    parameters: Map<String, Value>,
}

impl<'de, T: Part + ?Sized> Deserialize<'de> for Own<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { name, parameters } = Written::deserialize(deserializer)?;
        let part = T::find(&name).ok_or_else(|| {
            D::Error::custom(format!("{} = {name}: expected a part of a method that this program registers", T::KIND))
        })?;
        let names = part.parameter_names();
        if let Some(unknown) = parameters.keys().find(|key| !names.contains(&key.as_str())) {
            let expected = format!("one of {}", names.join(", "));
            return Err(D::Error::custom(format!("parameters.{unknown}: expected {expected}")));
        }
        let value = |name: &&str| {
            let value = parameters.get(*name).and_then(Value::as_f64);
            value.ok_or_else(|| D::Error::custom(format!("parameters.{name}: expected a number")))
        };
        Ok(Self::new(part, &names.iter().map(value).collect::<Result<Vec<f64>, _>>()?))
    }
}

/// What the three kinds of parts have in common. Only this crate implements it.
pub trait Part: Debug + 'static {
    /// What a part of this kind is called in errors.
    #[doc(hidden)]
    const KIND: &'static str;
    #[doc(hidden)]
    fn part_name(&self) -> &'static str;
    #[doc(hidden)]
    fn parameter_names(&self) -> &'static [&'static str];
    #[doc(hidden)]
    fn type_of(&self) -> TypeId;
    #[doc(hidden)]
    fn find(name: &str) -> Option<&'static Self>;
}

macro_rules! part {
    ($part:ident, $kind:literal, $list:ident) => {
        impl Part for dyn $part {
            const KIND: &'static str = $kind;

            fn part_name(&self) -> &'static str {
                self.name()
            }

            fn parameter_names(&self) -> &'static [&'static str] {
                self.parameters()
            }

            fn type_of(&self) -> TypeId {
                let any: &dyn std::any::Any = self;
                any.type_id()
            }

            fn find(name: &str) -> Option<&'static Self> {
                crate::registry::with_parts(|parts| parts.$list.iter().copied().find(|part| part.name() == name))
            }
        }
    };
}

part!(OwnRule, "rule", rules);
part!(OwnController, "controller", controllers);
part!(OwnWeights, "weights", weights);
