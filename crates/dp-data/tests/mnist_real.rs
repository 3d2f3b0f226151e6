//! The published images, where `DP_DATA_DIR` has them.

use dp_data::mnist::{Collection, MnistOptions, RareClass};
use dp_data::{DataLocator, GroupSample, PublishedSet};

#[test]
fn counts_are_the_published_ones() {
    let mut locator = DataLocator::from_env(std::env::temp_dir().join("dp-data-no-cache"));
    locator.offline = true;
    if locator.env_dir.is_none() {
        eprintln!("skipped: DP_DATA_DIR is not set");
        return;
    }
    for collection in Collection::ALL {
        let table = collection.load(&locator).unwrap();
        if table.provenance.synthetic {
            eprintln!("skipped: DP_DATA_DIR has no {collection}");
            continue;
        }
        assert_eq!((table.records.train.labels.len(), table.records.test.labels.len()), (60_000, 10_000));
        let rare = |keep| MnistOptions { rare: Some(RareClass { class: 8, keep }) };
        let by_coin = collection.split(&table.records, &rare(GroupSample::Coin(0.09)), 1).unwrap();
        let sizes = by_coin.train.group_sizes();
        match collection {
            // 5,851·0.09 = 527 ± 22.
            Collection::Mnist => {
                assert_eq!(sizes[..4], [5_923, 6_742, 5_958, 6_131]);
                assert!((400..650).contains(&sizes[8]), "{}", sizes[8]);
            }
            Collection::FashionMnist => assert_eq!(sizes[..4], [6_000; 4]),
        }
        assert_eq!(
            collection.split(&table.records, &rare(GroupSample::Exactly(500)), 1).unwrap().train.group_sizes()[8],
            500
        );
        let mean = by_coin.test.features.mean().unwrap();
        assert!((0.1..0.35).contains(&mean), "{mean}");
    }
}
