//! From a published data set to a split: where its records come from, and how many of each group
//! and class are in either part. A generated stand-in is used, and said, where the files are not.
//!
//! ```sh
//! cargo run --release -p dp-data --example groups_of_a_split
//! ```

use dp_data::adult::{Adult, AdultOptions, Encoding};
use dp_data::{DataError, DataLocator, Dataset, InputConstant, PublishedSet};

pub(crate) fn main() -> Result<(), DataError> {
    let mut locator = DataLocator::from_env("datasets/cache");
    locator.offline = true; // nothing is downloaded
    let table = Adult.load(&locator)?;
    let split = Adult.split(&table.records, &AdultOptions::new(Encoding::Xu), 1)?;

    let source = if table.provenance.synthetic { "generated" } else { "real" };
    println!("{} {source} records, {} inputs each", table.provenance.n_records, split.train.n_inputs());
    for (name, part) in [("training", &split.train), ("test", &split.test)] {
        for (group, counts) in counts(part).into_iter().enumerate() {
            println!(
                "{name}: {:>6}: {} records, {} of class 1",
                part.group_names[group],
                counts[0] + counts[1],
                counts[1]
            );
        }
    }
    for condition in split.constants.iter().filter_map(InputConstant::condition) {
        println!("a guarantee is conditional on {condition}");
    }
    Ok(())
}

/// Records of each group by class.
fn counts(part: &Dataset) -> Vec<[usize; 2]> {
    let mut counts = vec![[0; 2]; part.group_names.len()];
    for (&group, &label) in part.groups.iter().zip(&part.labels) {
        counts[group][label as usize] += 1;
    }
    counts
}
