//! A logistic regression learns as much from the generated census as from the published one.

mod logistic;

use dp_data::adult::{self, Adult, AdultOptions, AdultTable, Encoding};
use dp_data::{DataLocator, PublishedSet};

fn accuracy_by_group(table: &AdultTable) -> [f64; 2] {
    logistic::accuracy_by_group(
        &Adult.split(&table.records, &AdultOptions::new(Encoding::Xu), 5).expect("options are valid"),
    )
}

#[test]
fn synthetic_accuracy_by_sex_is_like_adults() {
    let [male, female] = accuracy_by_group(&Adult.stand_in(adult::SYNTHETIC_SEED).unwrap());
    // Guessing the majority gives 0.6875 and 0.8864.
    assert!((0.78..0.83).contains(&male), "{male}");
    assert!((0.90..0.94).contains(&female), "{female}");

    let mut locator = DataLocator::from_env(std::env::temp_dir().join("dp-data-no-cache"));
    locator.offline = true;
    let table = Adult.load(&locator).unwrap();
    if table.provenance.synthetic {
        eprintln!("comparison skipped: DP_DATA_DIR has no adult");
        return;
    }
    let [real_male, real_female] = accuracy_by_group(&table);
    eprintln!("men {male:.3} (published {real_male:.3}), women {female:.3} (published {real_female:.3})");
    assert!((male - real_male).abs() < 0.02 && (female - real_female).abs() < 0.02);
}
