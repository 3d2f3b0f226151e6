//! Whose gradients would clipping cut? Per-sample norms of a model, group by group.
//!
//! The figures are exact, and so not private: they are for data that the reader may see.
//!
//! ```sh
//! cargo run --release -p dp-engine --example gradient_norms
//! ```

use std::error::Error;

use dp_engine::{DType, Device, Engine, Loss, ModelConfig, PublicFacts, Records};

const FACTS: PublicFacts = PublicFacts { n_records: 200, n_inputs: 2, n_classes: 2, n_groups: 2 };
const THRESHOLD: f64 = 1.0;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // Every tenth record is of group 1, whose features are five times as large.
    let groups: Vec<usize> = (0..FACTS.n_records).map(|i| usize::from(i % 10 == 0)).collect();
    let size = |group: usize| if group == 1 { 5.0 } else { 1.0 };
    let point = |(i, &group): (usize, &usize)| [(i as f32).cos() * size(group), (i as f32).sin() * size(group)];
    let features: Vec<f32> = groups.iter().enumerate().flat_map(point).collect();
    let labels: Vec<u32> = features.chunks(2).map(|x| u32::from(x[1] > 0.0)).collect();
    let records = Records::new(&features, &labels, &groups, FACTS, DType::F32, &Device::Cpu)?;

    let mut engine = Engine::new(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &records, &Device::Cpu)?;
    let rows: Vec<usize> = records.held().collect();
    let norms = engine.differentiate_for_norms(&records, &rows)?;
    let cut = [0, 1].map(|group| {
        let of_group: Vec<f64> = norms.iter().zip(&groups).filter(|(_, g)| **g == group).map(|(n, _)| *n).collect();
        let n_cut = of_group.iter().filter(|norm| **norm > THRESHOLD).count();
        println!("Group {group}: {n_cut} of {} norms are above {THRESHOLD}.", of_group.len());
        (n_cut, of_group.len())
    });
    // All parameters are 0, so both probabilities are ½ and a norm is ½ √(|x|² + 1).
    assert_eq!(cut, [(0, 180), (20, 20)]);
    Ok(())
}
