//! Methods in which the records of a batch act on each other: not certified, for analyses and as a
//! baseline.

use dp_clipping::{ClipConfig, Coupling};

use super::Trainer;
use super::fairlens::{Regularised, Usable};
use super::gradient::{Pass, Weighting};
use crate::error::{Result, TrainError};

impl Trainer<'_> {
    /// Losses and norms of the batch, where FairLens computes them itself.
    pub(super) fn pass_of_fairlens(&mut self, rows: &[usize]) -> Result<Option<Pass>> {
        let Some(fairlens) = &mut self.fairlens else { return Ok(None) };
        let parameters = self.engine.model().parameters().to_vec()?;
        let found = fairlens.losses_and_norms(self.records, rows, &parameters)?;
        Ok(found.map(|(losses, norms)| Pass::of(losses, norms, self.pass_of(rows).groups)))
    }

    /// With FairLens, computes the terms of its regularisers in the per-sample gradients of the
    /// batch, and replaces the norms by the norms of the regularised gradients. With other methods,
    /// does nothing.
    pub(super) fn regularise(&mut self, rows: &[usize], pass: &mut Pass) -> Result<Option<Regularised>> {
        let (Some(fairlens), Some(method)) = (&mut self.fairlens, &self.method) else { return Ok(None) };
        let usable: Vec<usize> = (0..rows.len()).filter(|i| !pass.blanked.contains(i)).collect();
        let mut norms: Vec<f64> = usable.iter().map(|&i| pass.norms[i]).collect();
        let batch = Usable { rows, positions: &usable, norms: &mut norms };
        let addition = fairlens.regularise(method.as_ref(), self.records, batch, self.plan.expected_batch_size())?;
        for (i, norm) in usable.into_iter().zip(norms) {
            pass.norms[i] = norm;
        }
        Ok(Some(addition))
    }

    /// Turns the clipped sum of the batch into what the coupling trains with.
    pub(super) fn couple(
        &mut self,
        rows: &[usize],
        pass: &Pass,
        weighting: &Weighting,
        addition: Option<&Regularised>,
    ) -> Result<()> {
        if let (Some(addition), Some(fairlens)) = (addition, &self.fairlens) {
            let usable = (0..rows.len()).filter(|i| !pass.blanked.contains(i));
            let scales: Vec<f64> = usable.map(|i| weighting.scales[i]).collect();
            if let Some(sum) = fairlens.weighted_sum(&scales)? {
                self.plain()?.set(&sum)?;
            }
            if let Regularised::Common(vector) = addition {
                self.plain()?.add(weighting.scales.iter().sum(), vector)?;
            }
        }
        let coupling = self.plan.coupling();
        if adds_noise(coupling) {
            return Ok(());
        }
        let mut sum = self.plain()?.to_vec()?;
        let mut ones = vec![1.0; rows.len()];
        for &i in &pass.blanked {
            ones[i] = 0.0;
        }
        self.second_pass(rows, pass, &ones, false)?;
        coupling.recombine(&mut sum, &self.plain()?.to_vec()?);
        Ok(self.plain()?.set(&sum)?)
    }
}

/// Whether a step adds noise: the analyses of one error of clipping (Esipova 2023, Table 1) do
/// without.
pub(crate) fn adds_noise(coupling: Coupling) -> bool {
    match coupling {
        Coupling::None | Coupling::Fairlens { .. } => true,
        Coupling::MagnitudeOnly | Coupling::DirectionOnly => false,
    }
}

/// Refuses what FairLens is not defined for.
pub(crate) fn check_coupling(clipping: &ClipConfig, n_classes: usize) -> Result<()> {
    if !matches!(clipping.coupling, Coupling::Fairlens { .. }) {
        return Ok(());
    }
    let coupling = format!("{:?}", clipping.coupling);
    let refuse = |expected: &str| Err(TrainError::invalid("privacy.clipping.coupling", coupling, expected));
    if n_classes != 2 {
        return refuse("None: FairLens is defined for two classes");
    }
    let of_record_alone = !matches!(clipping.controller, dp_clipping::Controller::PerGroup { .. })
        && matches!(clipping.weights, dp_clipping::Weights::Uniform);
    if !of_record_alone {
        return refuse("None: FairLens needs clipping factors that depend on the record alone");
    }
    Ok(())
}
