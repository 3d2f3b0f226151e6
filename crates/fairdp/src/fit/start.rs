//! The released model that a fit starts from.

use std::path::Path;

use dp_linear::Linear;
use dp_table::{NumberLabel, Schema};

use crate::bounds;
use crate::config::Config;
use crate::error::{FairdpError, Result};
use crate::model::{FittedModel, Layer};
use crate::new_records::Subject;
use crate::recipe::{Architecture, Method, Recipe};
use crate::statement::StartedFrom;

const FROM: &str = "--from";

/// A released model, and where it is from.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) from: StartedFrom,
    schema: Schema,
    /// On the features as they are.
    layers: Vec<Layer>,
    /// The same of an additive model.
    linear: Option<Linear>,
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
    /// Those of [`verify`](crate::verify()); [`FairdpError::File`] for a release of figures, which has no model.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let Subject { verified, model, digest, .. } = Subject::open(folder)?;
        let linear = match model.layers() {
            [layer] => Some(linear(&model, layer)?),
            _ => None,
        };
        let statement = verified.statement;
        let from = StartedFrom {
            statement: digest,
            epsilon: statement.epsilon,
            delta: statement.delta,
            private: statement.private,
        };
        Ok(Self { from, schema: model.encoding().schema().clone(), layers: model.layers().to_vec(), linear })
    }

    /// An additive model.
    pub(super) fn linear(&self) -> Option<&Linear> {
        self.linear.as_ref()
    }

    /// The layers of a model, on the features as they are.
    pub(super) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Widths of hidden layers.
    fn hidden(&self) -> Vec<usize> {
        self.layers.iter().rev().skip(1).rev().map(|layer| layer.biases.len()).collect()
    }

    /// The line of the configuration that is kept with it: a run is continued with the same start.
    pub(super) fn comment(&self) -> String {
        format!("# --from: the release whose statement has sha256 {}\n", self.from.statement)
    }

    /// Refuses another model than that of the release, and a method that cannot go on from it.
    fn check_recipe(&self, recipe: &Recipe) -> Result<()> {
        let own: &[usize] = match &recipe.architecture {
            Architecture::Additive => &[],
            Architecture::Mlp { hidden } => hidden,
            Architecture::Network { .. } => {
                let expected = format!("auto, additive or mlp with {FROM}: a network on pixels begins anew");
                return Err(FairdpError::invalid("model.kind", "network", expected));
            }
        };
        if self.hidden() != own {
            return Err(differs("hidden layers", &in_json(&own), &in_json(&self.hidden())));
        }
        if let (Method::Sgd(named), Architecture::Additive) = (&recipe.method, &recipe.architecture) {
            let expected =
                format!("the default or a conditioned one with {FROM}: of an additive model, others begin anew");
            return Err(FairdpError::invalid("method.name", named.name, expected));
        }
        Ok(())
    }

    /// Refuses a configuration whose model has other inputs or answers, or is trained otherwise.
    pub(super) fn check(&self, config: &Config, recipes: &[Recipe]) -> Result<()> {
        if let Some(column) = bounds::private_columns(config).next() {
            let expected = format!("the low and high of the release that {FROM} names");
            return Err(FairdpError::invalid(format!("bounds of column `{}`", column.name), "private", expected));
        }
        recipes.iter().try_for_each(|recipe| self.check_recipe(recipe))?;
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

/// An additive model as it is trained: of a number in places of its range.
fn linear(model: &FittedModel, layer: &Layer) -> Result<Linear> {
    let value = |value: &f32| f64::from(*value);
    let (middle, half) = model.number().map_or((0.0, 1.0), |range| (range.middle(), NumberLabel::half(range)));
    let weights = layer.weights.chunks_exact(layer.n_inputs());
    let weights = weights.map(|row| row.iter().map(|weight| value(weight) / half).collect()).collect();
    let intercepts = layer.biases.iter().map(|bias| (value(bias) - middle) / half).collect();
    Ok(Linear::new(weights, intercepts, model.pipeline().priors.clone())?)
}

fn differs(what: &str, own: &str, before: &str) -> FairdpError {
    FairdpError::invalid(what, own, format!("{before}, as the release that {FROM} names has it"))
}

fn in_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
