//! The rule at work: checked, trained with by its name, and audited, with its cap and without.

use std::num::NonZeroUsize;

use dp_audit::privacy::{AuditSettings, Plant, audit};
use dp_audit::replay::Replay;
use dp_clipping::check;
use dp_train::dp_accounting::Delta;
use dp_train::{DType, Device, Execution, Plan, PublicFacts, Randomness, Records, TrainConfig, Trainer, Unobserved};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    own_rule::register()?;
    // What the cap would hide: nothing.
    assert_eq!(check(&own_rule::rule()), [""; 0]);

    let facts = PublicFacts { n_records: 2_000, n_inputs: 2, n_classes: 2, n_groups: 1 };
    let features: Vec<f32> = (0..4_000).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
    let labels: Vec<u32> = features.chunks(2).map(|x| u32::from(x[0] > x[1])).collect();
    let records = Records::new(&features, &labels, &[0; 2_000], facts, DType::F32, &Device::Cpu)?;
    let config = r#"
        model = { name = "logistic-regression" }
        loss = "bce-with-logits"
        learning_rate = { constant = 1.0 }
        batches = { expected_size = 200, epochs = 5 }
        privacy = { method = "dp-psac", settings = { clip_norm = 1.0 }, target_epsilon = 2.0, delta = 1e-5 }
    "#;
    let plan = Plan::new(TrainConfig::from_toml(config, facts)?, facts)?;
    let mut trainer = Trainer::new(&plan, &records, Randomness::from_os()?.streams(0, 0)?, Execution::default())?;
    trainer.run(&mut Unobserved)?;
    let statement = trainer.statement("one record", Delta::new(1e-5)?)?;
    println!("{statement}");
    // The statement names the rule: it is the user's own, and its bound is the cap's.
    assert!(statement.to_string().contains("`psac`") && statement.epsilon.epsilon().get() <= 2.0);

    // Attacks on the trainer with this method: the claim stands, and falls where the cap is planted away.
    let settings = AuditSettings { runs: 800, canaries: 40, ..AuditSettings::quick() };
    let randomness = Randomness::from_seed(1);
    let (honest, without_cap) =
        (audit("dp-psac", &settings, None, &randomness)?, audit("dp-psac", &settings, Some(Plant::NoCap), &randomness)?);
    println!("audit: at least {:.2} of {:.2}", honest.audited_lower, honest.claimed_epsilon);
    println!("without the cap: at least {:.2} of {:.2}", without_cap.audited_lower, without_cap.claimed_epsilon);
    assert!(!honest.refuted() && without_cap.refuted());

    // Steps of neighbours, bit for bit.
    let (one, device, method) = (NonZeroUsize::MIN, Device::Cpu, Some("dp-psac".to_owned()));
    let replay = Replay { cases: 500, seed: 1, method, layer: None, plant: None, threads: one, ranks: one, device };
    let report = replay.run(&|_| {})?;
    println!("replay: {} cases, the largest change is {:.4} of its bound", report.cases, report.largest_ratio);
    assert_eq!(report.violations, 0);
    Ok(())
}
