//! Thresholds of a model from the scores of its training records.

use dp_accounting::NoiseMultiplier;
use fair_decisions::Mode;
use rand_chacha::ChaCha20Rng;

use super::tables::TableSubset;
use crate::config::Config;
use crate::error::Result;
use crate::model::FittedModel;
use crate::scores::{self, ScoresFile};
use crate::thresholds::chosen;

/// Releases the scores of training records by group, and gives a model the thresholds that a mode chooses from them.
///
/// **Guarantee.** That of [`scores::release`]; the thresholds are a function of what is released.
pub(super) fn with_thresholds(
    model: &mut FittedModel,
    config: &Config,
    mode: Mode,
    training: TableSubset<'_>,
    noise: NoiseMultiplier,
    rng: &mut ChaCha20Rng,
) -> Result<ScoresFile> {
    let mut file = ScoresFile::of(model, config.fairness.class.clone());
    let cells = training.scores(model, &file)?;
    let counts = scores::release(&cells, noise, config.counted_per_unit(), rng)?;
    let (aim, decision) = (config.fairness.aim_of(mode)?, model.pipeline().decision);
    let (_, thresholds) = chosen(&file, &counts, &aim, decision, model.encoding().groups(), model.classes());
    model.set_thresholds(&thresholds)?;
    file.training = Some(counts);
    Ok(file)
}
