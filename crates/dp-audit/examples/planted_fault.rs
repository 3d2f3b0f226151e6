//! An attack on the sensitivity of a step that finds nothing, and the same attack where a fault was
//! planted.

use std::num::NonZeroUsize;

use dp_audit::Fault;
use dp_audit::replay::Replay;
use dp_train::{Device, TrainError};

pub(crate) fn main() -> Result<(), TrainError> {
    let one = NonZeroUsize::MIN;
    let attack = |plant| Replay {
        cases: 60,
        seed: 1,
        method: Some("dpsgd".into()),
        layer: None,
        plant,
        threads: one,
        ranks: one,
        device: Device::Cpu,
    };
    let honest = attack(None).run(&|_| {})?;
    println!("{} cases, {} violations", honest.cases, honest.violations);
    assert_eq!(honest.violations, 0);

    let planted = attack(Some(Fault::NoCap)).run(&|_| {})?;
    println!("with a planted fault: {} cases, {} violations", planted.cases, planted.violations);
    assert!(planted.violations > 0);
    Ok(())
}
