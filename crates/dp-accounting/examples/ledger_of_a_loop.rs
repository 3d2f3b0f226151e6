//! A training loop that records what it releases, and stops before its budget is exceeded.

use dp_accounting::{
    AccountingError, Delta, DpEvent, Ledger, NeighbouringRelation, NoiseMultiplier, SamplingRate, Scope, Statement,
};

pub(crate) fn main() -> Result<(), AccountingError> {
    let (budget, delta) = (2.0, Delta::new(1e-5)?);
    let step = DpEvent::gaussian(NoiseMultiplier::new(1.0)?).poisson_sampled(SamplingRate::new(0.01)?);
    let mut ledger = Ledger::new(NeighbouringRelation::AddRemove);
    // Class counts, released once before the training.
    ledger.record(&DpEvent::gaussian(NoiseMultiplier::new(20.0)?), 1)?;

    let mut epochs = 0;
    loop {
        // The cost of an epoch is known before it is taken.
        let mut planned = ledger.clone();
        planned.record(&step, 100)?;
        if planned.epsilon(delta)?.epsilon.get() > budget {
            break;
        }
        // Here go a hundred steps: a Poisson batch, clipped, with noise.
        (ledger, epochs) = (planned, epochs + 1);
    }
    println!("{epochs} epochs");
    let statement = Statement::new(&ledger, delta, Scope::of("one person's record", ["class counts", "the model"]))?;
    println!("{statement}");
    assert!(epochs > 5 && statement.epsilon.epsilon().get() <= budget);
    Ok(())
}
