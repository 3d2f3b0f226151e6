//! Methods in which the records of a batch act on each other: not certified, for analyses and as a
//! baseline.

use dp_clipping::{ClipConfig, Coupling};

use super::Trainer;
use super::fairlens::{Regularised, Usable};
use super::gradient::{Pass, Weighting};
use crate::error::{Result, TrainError};

impl Trainer<'_> {
    /// With FairLens, computes the terms of its regularisers in the per-sample gradients of the
    /// batch, and replaces the norms by the norms of the regularised gradients. With other methods,
    /// does nothing.
    pub(super) fn regularise(&mut self, rows: &[usize], pass: &mut Pass) -> Result<Option<Regularised>> {
        let (Some(fairlens), Some(method)) = (&mut self.fairlens, &self.method) else { return Ok(None) };
        let usable: Vec<usize> = (0..rows.len()).filter(|i| !pass.blanked.contains(i)).collect();
        let usable_rows: Vec<usize> = usable.iter().map(|&i| rows[i]).collect();
        let mut norms: Vec<f64> = usable.iter().map(|&i| pass.norms[i]).collect();
        let parameters = self.engine.model().parameters().to_vec()?;
        let addition = fairlens.regularise(
            method.as_ref(),
            self.records,
            Usable { rows: &usable_rows, norms: &mut norms },
            self.plan.expected_batch_size(),
            &parameters,
        )?;
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
        match addition {
            Some(Regularised::Common(vector)) => {
                let alpha = weighting.scales.iter().sum();
                self.plain()?.add(alpha, vector)?;
            }
            Some(Regularised::Own) => {
                let usable = (0..rows.len()).filter(|i| !pass.blanked.contains(i));
                let scales: Vec<f64> = usable.map(|i| weighting.scales[i]).collect();
                let sum = self.fairlens.as_ref().map_or(Ok(None), |fairlens| fairlens.weighted_sum(&scales))?;
                if let Some(sum) = sum {
                    self.plain()?.set(&sum)?;
                }
            }
            None => {}
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
