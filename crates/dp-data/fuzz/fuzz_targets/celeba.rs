//! The two lists of CelebA; the images they name are not there.
#![no_main]

use dp_data::PublishedSet;
use dp_data::celeba::Celeba;
use dp_data_fuzz::placed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (folder, locator) = placed(input, &["list_attr_celeba.txt", "list_eval_partition.txt"]);
    std::fs::create_dir(folder.path().join("img_align_celeba")).expect("writable");
    let _ = Celeba.load(&locator);
});
