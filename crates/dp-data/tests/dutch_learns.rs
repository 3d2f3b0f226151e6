//! The Dutch census: published counts, and a logistic regression that learns as much from the
//! generated extract.

mod logistic;

use dp_data::dutch::{self, Dutch, DutchOptions, DutchTable, Encoding, Sampling};
use dp_data::{DataLocator, PublishedSet};

fn accuracy_by_sex(table: &DutchTable) -> [f64; 2] {
    let split = Dutch.split(&table.records, &DutchOptions::new(Encoding::Esipova), 5).expect("options are valid");
    logistic::accuracy_by_group(&split)
}

#[test]
fn synthetic_and_published() {
    let synthetic = Dutch.stand_in(dutch::SYNTHETIC_SEED).unwrap();
    let [male, female] = accuracy_by_sex(&synthetic);
    eprintln!("synthetic: men {male:.3}, women {female:.3}");
    assert!((0.78..0.83).contains(&male) && (0.84..0.89).contains(&female), "{male} {female}");

    let mut locator = DataLocator::from_env(std::env::temp_dir().join("dp-data-no-cache"));
    locator.offline = true;
    let table = Dutch.load(&locator).unwrap();
    if table.provenance.synthetic {
        eprintln!("skipped: DP_DATA_DIR has no dutch");
        return;
    }
    let [real_male, real_female] = accuracy_by_sex(&table);
    eprintln!("published: men {real_male:.3}, women {real_female:.3}");
    assert!((male - real_male).abs() < 0.03 && (female - real_female).abs() < 0.03);

    for encoding in Encoding::ALL {
        let split = Dutch.split(&table.records, &DutchOptions::new(encoding), 3).unwrap();
        let sizes: Vec<_> =
            split.train.group_sizes().iter().zip(split.test.group_sizes()).map(|(train, test)| train + test).collect();
        assert_eq!(sizes, [30_147, 30_273]);
        let high = split.train.labels.iter().chain(&split.test.labels).filter(|&&label| label == 1).count();
        assert_eq!(high, 28_763);
        // Every input is used.
        for (column, name) in split.train.feature_names.iter().enumerate() {
            let columns =
                [&split.train, &split.test].map(|part| part.features.column(column).iter().any(|&x| x != 0.0));
            assert!(columns.contains(&true), "{encoding}: {name}");
        }
    }
    let mut options = DutchOptions::new(Encoding::Xu);
    options.sampling = Sampling::Exactly { male: 30_000, female: 10_000 };
    let split = Dutch.split(&table.records, &options, 3).unwrap();
    assert_eq!((split.train.len(), split.test.len()), (32_000, 8_000));
}
