//! What a seed fixes and what it does not.

use dp_train::{Activation, DType, Randomness};

use crate::support::{Data, Outcome, Run, batches, config, mlp, privacy};

fn outcome(randomness: &Randomness, run: u32, variant: u16, method: &str, dtype: DType) -> Outcome {
    let data = Data::random(200, 6, 2, 2, 1);
    let config = config(mlp(&[16], Activation::Tanh), batches(0.1, 30), Some(privacy(method)));
    Run { streams: (randomness.clone(), run, variant), ..Run::new(config, dtype) }.on(&data)
}

#[test]
fn a_seed_replays_bit_for_bit() {
    for method in ["dpsgd", "dpsgd-f", "dpsgd-global-adapt", "soft-adaptive", "naive"] {
        for dtype in [DType::F32, DType::F64] {
            // Parameters, thresholds, counters and the ledger's digest.
            let replay = || outcome(&Randomness::from_seed(7), 3, 2, method, dtype);
            assert_eq!(replay(), replay(), "{method} {dtype:?}");
        }
    }
}

#[test]
fn seeds_runs_and_variants_differ() {
    let seven = Randomness::from_seed(7);
    let base = outcome(&seven, 3, 2, "dpsgd-f", DType::F32);
    let other_seed = outcome(&Randomness::from_seed(8), 3, 2, "dpsgd-f", DType::F32);
    let other_run = outcome(&seven, 4, 2, "dpsgd-f", DType::F32);
    let other_variant = outcome(&seven, 3, 1, "dpsgd-f", DType::F32);
    for other in [&other_seed, &other_run, &other_variant] {
        assert_ne!(other.parameters, base.parameters);
        assert_ne!(other.thresholds, base.thresholds);
        // The same plan: what it releases does not depend on chance.
        assert_eq!(other.ledger, base.ledger);
    }
    // Methods of one run are compared from the same start.
    assert_eq!(other_variant.initial, base.initial);
    assert_ne!(other_seed.initial, base.initial);
    assert_ne!(other_run.initial, base.initial);
}

/// Streams are separate: a method that draws noise for counts trains on the batches of one that
/// draws none.
#[test]
fn counts_do_not_disturb_batches() {
    let seven = Randomness::from_seed(7);
    let records = |method| outcome(&seven, 0, 0, method, DType::F32).counts.records;
    assert_eq!(records("dpsgd"), records("dpsgd-f"));
}

#[test]
fn entropy_of_the_operating_system_never_repeats() {
    let draw = || outcome(&Randomness::from_os().unwrap(), 0, 0, "dpsgd", DType::F32);
    let (a, b) = (draw(), draw());
    assert_ne!(a.initial, b.initial);
    assert_ne!(a.parameters, b.parameters);
}
