//! The published files, where `DP_DATA_DIR` has them.

use dp_data::adult::{Adult, AdultOptions, AdultTable, Encoding, GroupBy, Sampling};
use dp_data::{DataLocator, PublishedSet};

/// `None`, said aloud, where the published files are not at hand.
fn table() -> Option<AdultTable> {
    let mut locator = DataLocator::from_env(std::env::temp_dir().join("dp-data-no-cache"));
    locator.offline = true;
    if locator.env_dir.is_none() {
        eprintln!("skipped: DP_DATA_DIR is not set");
        return None;
    }
    let table = Adult.load(&locator).expect("the published files verify");
    if table.provenance.synthetic {
        eprintln!("skipped: DP_DATA_DIR has no adult");
        return None;
    }
    Some(table)
}

#[test]
fn counts_are_the_published_ones() {
    let Some(table) = table() else { return };
    assert_eq!(table.records.len(), 48_842);
    let options = AdultOptions::new(Encoding::Esipova);
    let split = Adult.split(&table.records, &options, 3).unwrap();
    let sizes: Vec<_> =
        split.train.group_sizes().iter().zip(split.test.group_sizes()).map(|(train, test)| train + test).collect();
    assert_eq!(sizes, [30_527, 14_695]);
    let earners = split.train.labels.iter().chain(&split.test.labels).filter(|&&label| label == 1).count();
    assert_eq!(earners, 9_539 + 1_669);
    insta::assert_snapshot!(table.provenance.source, @"UCI Machine Learning Repository, Adult, doi:10.24432/C5XW20 (Becker and Kohavi, 1996) (DP_DATA_DIR; checksums verified)");
    insta::assert_snapshot!(split.notes.join("\n"), @r"
    45222 of 48842 records are complete (no `?`); incomplete ones are dropped.
    All 45222 remaining records take part.
    Random split: 36178 training and 9044 test records.
    Encoding esipova: 98 inputs, numbers as z-scores, sex among the inputs.
    Scaling is by declared ranges, which are public; values outside are clamped.
    ");
}

#[test]
fn every_input_varies_in_the_full_data() {
    let Some(table) = table() else { return };
    // Declared bins follow no record: some of them are empty.
    for encoding in Encoding::ALL.into_iter().filter(|encoding| *encoding != Encoding::Binned) {
        let split = Adult.split(&table.records, &AdultOptions::new(encoding), 3).unwrap();
        for (column, name) in split.train.feature_names.iter().enumerate() {
            let used =
                split.train.features.column(column).iter().chain(split.test.features.column(column)).any(|&x| x != 0.0);
            assert!(used, "{encoding}: {name} is never used");
        }
        assert!(split.train.features.iter().all(|value| value.is_finite()));
    }
}

#[test]
fn balanced_as_the_authors_ran_it() {
    let Some(table) = table() else { return };
    let mut options = AdultOptions::new(Encoding::Esipova);
    options.sampling = Sampling::Balanced { per_group: 14_695 };
    let split = Adult.split(&table.records, &options, 3).unwrap();
    // ⌈23,512/256⌉ = 92 steps an epoch: the authors' sampling rate 1/92.
    assert_eq!(split.train.len(), 23_512);
    options.sampling = Sampling::BalancedOnAverage { per_group: 14_000 };
    let sizes = Adult.split(&table.records, &options, 3).unwrap().train.group_sizes();
    // 0.8·14,000 = 11,200; the coin and the split spread it by about 70.
    assert!(sizes.iter().all(|size| (10_780..=11_620).contains(size)), "{sizes:?}");
    options.sampling = Sampling::Balanced { per_group: 14_695 };
    options.group_by = GroupBy::Age;
    let by_age = Adult.split(&table.records, &options, 3).unwrap();
    assert_eq!(by_age.train.features, split.train.features);
    assert_ne!(by_age.train.groups, split.train.groups);
}

#[test]
fn zhao_trains_on_balanced_records_and_tests_on_the_rest() {
    let Some(table) = table() else { return };
    let mut options = AdultOptions::new(Encoding::Zhao);
    options.sampling = Sampling::BalancedTraining { per_group: 14_000 };
    let split = Adult.split(&table.records, &options, 3).unwrap();
    assert_eq!(split.train.group_sizes(), [14_000, 14_000]);
    // 32,650 men and 16,192 women, incomplete records included.
    assert_eq!(split.test.group_sizes(), [18_650, 2_192]);
}
