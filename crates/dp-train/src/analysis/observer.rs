//! The decomposition along a run.

use super::analyser::Analyser;
use super::decomposition::StepDecomposition;
use crate::error::Result;
use crate::observer::{Observer, StepState};

/// Takes every `every`-th step of a run apart, the first one included, without changing the run.
#[derive(Debug)]
pub struct DecompositionObserver<'a> {
    analyser: Analyser<'a>,
    every: u64,
    steps: Vec<StepDecomposition>,
}

impl<'a> DecompositionObserver<'a> {
    /// An observer that evaluates the decomposition every `every` steps; 0 counts as 1.
    pub fn new(analyser: Analyser<'a>, every: u64) -> Self {
        Self { analyser, every: every.max(1), steps: Vec::new() }
    }

    /// The decompositions so far, in the order of the steps.
    pub fn into_steps(self) -> Vec<StepDecomposition> {
        self.steps
    }
}

impl Observer for DecompositionObserver<'_> {
    fn wants_state(&self, step: u64) -> bool {
        step.is_multiple_of(self.every)
    }

    fn before_step(&mut self, state: &StepState<'_>) -> Result<()> {
        if self.wants_state(state.step) {
            self.steps.push(self.analyser.analyse(state)?);
        }
        Ok(())
    }
}
