//! The released model that a fit starts from.

use std::path::Path;

use dp_linear::Linear;
use dp_table::{NumberLabel, Schema};

use crate::bounds;
use crate::config::Config;
use crate::error::{FairdpError, Result};
use crate::new_records::Subject;
use crate::recipe::{Method, Recipe};
use crate::statement::StartedFrom;

const FROM: &str = "--from";

/// A released model, and where it is from.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) from: StartedFrom,
    schema: Schema,
    linear: Linear,
}

/// By the statement of the release, which has the digests of everything in it.
impl PartialEq for Start {
    fn eq(&self, other: &Self) -> bool {
        self.from == other.from
    }
}

impl Start {
    /// Reads a release after its checks.
    ///
    /// # Errors
    /// Those of [`verify`](crate::verify()); [`FairdpError::InvalidParameter`] for a network.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let Subject { verified, model, digest, .. } = Subject::open(folder)?;
        let [layer] = model.layers() else {
            return Err(FairdpError::invalid(FROM, "a network", "the release of an additive model"));
        };
        let value = |value: &f32| f64::from(*value);
        // Of a number in places of its range, as it is trained.
        let (middle, half) = model.number().map_or((0.0, 1.0), |range| (range.middle(), NumberLabel::half(range)));
        let weights = layer.weights.chunks_exact(layer.n_inputs());
        let weights = weights.map(|row| row.iter().map(|weight| value(weight) / half).collect()).collect();
        let intercepts = layer.biases.iter().map(|bias| (value(bias) - middle) / half).collect();
        let linear = Linear::new(weights, intercepts, model.pipeline().priors.clone())?;
        let statement = verified.statement;
        let from = StartedFrom {
            statement: digest,
            epsilon: statement.epsilon,
            delta: statement.delta,
            private: statement.private,
        };
        Ok(Self { from, schema: model.encoding().schema().clone(), linear })
    }

    pub(super) fn linear(&self) -> Linear {
        self.linear.clone()
    }

    /// The line of the configuration that is kept with it: a run is continued with the same start.
    pub(super) fn comment(&self) -> String {
        format!("# --from: the release whose statement has sha256 {}\n", self.from.statement)
    }

    /// Refuses a configuration whose model has other inputs or answers, or is trained otherwise.
    pub(super) fn check(&self, config: &Config, recipes: &[Recipe]) -> Result<()> {
        if let Some(column) = bounds::private_columns(config).next() {
            let expected = format!("the low and high of the release that {FROM} names");
            return Err(FairdpError::invalid(format!("bounds of column `{}`", column.name), "private", expected));
        }
        if recipes.iter().any(|recipe| matches!(recipe.method, Method::Sgd(_))) {
            let expected =
                format!("the default or a conditioned one with {FROM}: a network or a method by name begins anew");
            return Err(FairdpError::invalid("method", "one by name, or of a network", expected));
        }
        let (own, before) = (config.schema(&|_| None)?, &self.schema);
        if own.label != before.label {
            let what = "label of the configuration";
            return Err(differs(what, &in_json(&own.label), &in_json(&before.label)));
        }
        if own.group_as_input != before.group_as_input || own.group_as_input && own.groups != before.groups {
            let what = "groups as inputs";
            let told = |schema: &Schema| {
                if schema.group_as_input { in_json(&schema.groups) } else { "none".to_owned() }
            };
            return Err(differs(what, &told(&own), &told(before)));
        }
        if own.missing != before.missing {
            return Err(differs("table.missing", &in_json(&own.missing), &in_json(&before.missing)));
        }
        for (own, before) in own.columns.iter().zip(&before.columns) {
            if own.0 != before.0 {
                return Err(differs("columns in order", &format!("`{}`", own.0), &format!("`{}`", before.0)));
            }
            if own.1 != before.1 {
                let what = format!("column `{}`", own.0);
                return Err(differs(&what, &in_json(&own.1), &in_json(&before.1)));
            }
        }
        if own.columns.len() != before.columns.len() {
            let [own, before] = [own.columns.len(), before.columns.len()].map(|n| n.to_string());
            return Err(differs("number of columns", &own, &before));
        }
        Ok(())
    }
}

fn differs(what: &str, own: &str, before: &str) -> FairdpError {
    FairdpError::invalid(what, own, format!("{before}, as the release that {FROM} names has it"))
}

fn in_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
