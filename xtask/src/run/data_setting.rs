//! The records of an experiment: which data set, which of its records, and which part models are
//! evaluated on.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::Context;
use dp_data::adult::{self, Adult, AdultOptions};
use dp_data::celeba::{Celeba, CelebaOptions, Subset};
use dp_data::dutch::{self, Dutch, DutchOptions};
use dp_data::eicu::{self, Eicu, EicuOptions};
use dp_data::mimic::{self, Mimic, MimicOptions};
use dp_data::mnist::{Collection, MnistOptions, RareClass};
use dp_data::{DataLocator, GroupSample, Loaded, Provenance, PublishedSet, ScalingFit, Split, TestFraction};
use dp_train::{Purpose, Randomness};
use ndarray::Array2;
use rand::rngs::OsRng;
use rand::{RngCore, TryRngCore};
use run_records::output::Output;

use super::features::Features;
use super::own_data::{OwnData, OwnRecords};
use super::records::ExperimentData;
use super::text_inputs::TextInputs;
use crate::terminal::say;

/// The records of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DataSetting {
    /// Data set, encoding and sampling.
    pub(crate) source: Source,
    /// What the encoded records become.
    pub(crate) features: Features,
    /// What models are evaluated on.
    pub(crate) evaluation: EvaluationPart,
    /// Which partitions the seeds have.
    pub(crate) splits: Splits,
}

/// Which partition of the records a seed is trained and tested on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Splits {
    /// Each seed has its own.
    BySeed,
    /// All seeds have the first one's. Where hyper-parameters are searched, the test part is then
    /// held out of the search and of every seed; with partitions of their own, most test records of
    /// a later seed were in the search's training or validation part.
    First,
}

/// A data set with the choices a paper made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Source {
    /// Adult.
    Adult { encoding: adult::Encoding, sampling: adult::Sampling, scaling: ScalingFit, group_by: adult::GroupBy },
    /// Dutch census.
    Dutch { encoding: dutch::Encoding, sampling: dutch::Sampling, group_by: dutch::GroupBy },
    /// MNIST or Fashion-MNIST, groups are the classes; of the training images only a share, where
    /// one is given.
    Images { collection: Collection, rare: Option<RareClass>, share: Option<f64> },
    /// CelebA, groups by eyeglasses; of each part only a share, where one is given.
    Celeba { share: Option<f64> },
    /// GOSSIS-1-eICU, groups by gender and age.
    Eicu,
    /// MIMIC-III, groups by gender, age and ethnicity; the tables say what texts become.
    Mimic,
    /// Records of one's own; the tables say which.
    Own,
}

/// What models are evaluated on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum EvaluationPart {
    /// The test part, once, after training.
    Test,
    /// Besides, a validation part: to choose hyper-parameters or the last epoch by, without a look
    /// at the test part. Where the data set comes with none, this share of the training part is
    /// held out.
    TestAndValidation { share: f64 },
}

impl From<Source> for DataSetting {
    fn from(source: Source) -> Self {
        Self { source, features: Features::AsEncoded, evaluation: EvaluationPart::Test, splits: Splits::BySeed }
    }
}

/// The data sets of a study, each read when it is first asked for.
pub(crate) struct Tables {
    locator: DataLocator,
    adult: Table<Adult>,
    dutch: Table<Dutch>,
    images: [Table<Collection>; 2],
    celeba: Table<Celeba>,
    eicu: Table<Eicu>,
    mimic: Table<Mimic>,
    text_inputs: TextInputs,
    text_features: OnceLock<Array2<f32>>,
    own: Option<OwnData>,
    own_records: OnceLock<Loaded<OwnRecords>>,
}

impl Tables {
    /// Nothing is read yet.
    pub(crate) fn new(locator: DataLocator, text_inputs: TextInputs, own: Option<OwnData>) -> Self {
        Self {
            locator,
            adult: Table::new(Adult),
            dutch: Table::new(Dutch),
            images: [Collection::Mnist, Collection::FashionMnist].map(Table::new),
            celeba: Table::new(Celeba),
            eicu: Table::new(Eicu),
            mimic: Table::new(Mimic),
            text_inputs,
            text_features: OnceLock::new(),
            own,
            own_records: OnceLock::new(),
        }
    }

    /// Reads a data set, if it was not read before: where it comes from, and the name of its
    /// encoding.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read(&self, source: Source) -> anyhow::Result<(&Provenance, String)> {
        let at = &self.locator;
        Ok(match source {
            Source::Adult { encoding, .. } => (&self.adult.read(at)?.provenance, encoding.name().to_owned()),
            Source::Dutch { encoding, .. } => (&self.dutch.read(at)?.provenance, encoding.name().to_owned()),
            Source::Images { collection, .. } => (&self.images(collection).read(at)?.provenance, "pixels".to_owned()),
            Source::Celeba { .. } => (&self.celeba.read(at)?.provenance, "pixels".to_owned()),
            Source::Eicu => (&self.eicu.read(at)?.provenance, "eicu".to_owned()),
            Source::Mimic => (&self.mimic.read(at)?.provenance, self.text_inputs.name.clone()),
            Source::Own => {
                let encoding = self.own.as_ref().map_or("", OwnData::encoding);
                (&self.own_records()?.provenance, encoding.to_owned())
            }
        })
    }

    /// A split for each seed.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub(crate) fn data(
        &self,
        setting: &DataSetting,
        n_seeds: u32,
        randomness: &Randomness,
    ) -> anyhow::Result<ExperimentData<'_>> {
        let (provenance, encoding) = self.read(setting.source)?;
        let encoding = setting.features.name(encoding);
        let split_of = |run| if setting.splits == Splits::First { 0 } else { run };
        let seed = |run| Ok(randomness.stream(Purpose::Split, split_of(run), 0)?.next_u64());
        let seeds = (0..n_seeds).map(seed).collect::<anyhow::Result<Vec<u64>>>()?;
        let (n_seeds, setting) = (seeds.len(), *setting);
        let made = move |seed: u64| {
            let split = setting.features.of(self.split(setting.source, seed)?)?;
            match setting.evaluation {
                EvaluationPart::Test => Ok(split),
                EvaluationPart::TestAndValidation { share } => with_validation(split, share, seed),
            }
        };
        // Features that take long are computed once for the seeds that share a partition.
        let last: Mutex<Option<(u64, Split)>> = Mutex::default();
        let split = move |seed: usize| {
            let seed = seeds[seed];
            if setting.features == Features::AsEncoded {
                return made(seed);
            }
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            match &*last {
                Some((known, split)) if *known == seed => Ok(split.clone()),
                _ => Ok(last.insert((seed, made(seed)?)).1.clone()),
            }
        };
        let digest_key = if is_public(provenance) { None } else { Some(digest_key(&self.locator.cache_dir)?) };
        Ok(ExperimentData {
            provenance: provenance.clone(),
            encoding,
            digest_key,
            n_seeds,
            keeps_rows: setting.features != Features::AsEncoded,
            split: Box::new(split),
        })
    }

    fn split(&self, source: Source, seed: u64) -> anyhow::Result<Split> {
        let at = &self.locator;
        match source {
            Source::Adult { encoding, sampling, scaling, group_by } => {
                let options = AdultOptions { sampling, scaling_fit: scaling, group_by, ..AdultOptions::new(encoding) };
                self.adult.split(at, &options, seed)
            }
            Source::Dutch { encoding, sampling, group_by } => {
                self.dutch.split(at, &DutchOptions { sampling, group_by, ..DutchOptions::new(encoding) }, seed)
            }
            Source::Images { collection, rare, share } => {
                let split = self.images(collection).split(at, &MnistOptions { rare }, seed)?;
                match share {
                    Some(share) => with_share(split, share, seed),
                    None => Ok(split),
                }
            }
            Source::Celeba { share } => {
                let parts = &self.celeba.read(at)?.records.parts;
                let keep = |part: Subset| {
                    let n = parts.iter().filter(|candidate| **candidate == part).count();
                    share.map_or(GroupSample::All, |share| GroupSample::Exactly((share * n as f64).ceil() as usize))
                };
                self.celeba.split(at, &CelebaOptions { train: keep(Subset::Train), held_out: keep(Subset::Test) }, seed)
            }
            Source::Eicu => {
                let group_by = eicu::GroupBy::GenderAndAge;
                // The paper's way; its table is reproduced.
                let scaling_fit = ScalingFit::TrainOnly;
                self.eicu.split(at, &EicuOptions { group_by, scaling_fit }, seed)
            }
            Source::Mimic => {
                let options = MimicOptions { group_by: mimic::GroupBy::All };
                let admissions = &self.mimic.read(at)?.records;
                Ok(mimic::split(admissions, self.text_features()?, &self.text_inputs.name, &options, seed)?)
            }
            Source::Own => Ok(self.own_records()?.records.split(seed)),
        }
    }

    fn images(&self, collection: Collection) -> &Table<Collection> {
        &self.images[usize::from(collection == Collection::FashionMnist)]
    }

    fn own_records(&self) -> anyhow::Result<&Loaded<OwnRecords>> {
        if self.own_records.get().is_none() {
            let loaded = self.own.as_ref().context("a study of one's own records says where they are")?.load()?;
            announce(&loaded.provenance)?;
            // Empty until now, and nothing else holds it.
            let _ = self.own_records.set(loaded);
        }
        self.own_records.get().context("the records were just read")
    }

    fn text_features(&self) -> anyhow::Result<&Array2<f32>> {
        if self.text_features.get().is_none() {
            let admissions = &self.mimic.read(&self.locator)?.records;
            let features = self.text_inputs.features(admissions, &self.locator.cache_dir)?;
            // Empty until now, and nothing else holds it.
            let _ = self.text_features.set(features);
        }
        self.text_features.get().context("the features were just computed")
    }
}

/// A data set, read when it is first asked for.
struct Table<S: PublishedSet> {
    set: S,
    loaded: OnceLock<Loaded<S::Records>>,
}

impl<S: PublishedSet> Table<S> {
    fn new(set: S) -> Self {
        Self { set, loaded: OnceLock::new() }
    }

    fn read(&self, locator: &DataLocator) -> anyhow::Result<&Loaded<S::Records>> {
        if self.loaded.get().is_none() {
            let loaded = self.set.load(locator)?;
            announce(&loaded.provenance)?;
            // Empty until now, and nothing else holds it.
            let _ = self.loaded.set(loaded);
        }
        self.loaded.get().context("the data set was just read")
    }

    fn split(&self, locator: &DataLocator, options: &S::Options, seed: u64) -> anyhow::Result<Split> {
        Ok(self.set.split(&self.read(locator)?.records, options, seed)?)
    }
}

fn announce(provenance: &Provenance) -> anyhow::Result<()> {
    let mark = if provenance.synthetic { "SYNTHETIC data: " } else { "Data: " };
    let digest =
        if is_public(provenance) { format!(", sha256 {}…", &provenance.digest[..12]) } else { String::new() };
    say!("{mark}{} ({} records{digest})", provenance.source, provenance.n_records)?;
    for note in provenance.notes.iter().filter(|_| provenance.synthetic) {
        say!("  {note}")?;
    }
    Ok(())
}

/// Whether anybody can have these records: generated ones, and data sets that are published for
/// everyone.
fn is_public(provenance: &Provenance) -> bool {
    const PUBLISHED: [&str; 5] = ["adult", "dutch", "mnist", "fashion-mnist", "celeba"];
    provenance.synthetic || PUBLISHED.contains(&provenance.name.as_str())
}

/// The secret that keys the digests of records that are not public: drawn once, and kept beside the
/// data, readable by its owner alone.
fn digest_key(folder: &Path) -> anyhow::Result<[u8; 32]> {
    let path = folder.join("digest-key");
    let mut key = [0; 32];
    if path.exists() {
        return read_key(&path);
    }
    OsRng.try_fill_bytes(&mut key).context("a key for digests, from the operating system")?;
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let output = Output::private(&path)?;
    // Another process may have drawn one meanwhile; the first counts.
    if output.write_if_absent(hex::encode(key).as_bytes())? { Ok(key) } else { read_key(&path) }
}

fn read_key(path: &Path) -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    hex::decode_to_slice(text.trim(), &mut key).with_context(|| format!("{}: no key", path.display()))?;
    Ok(key)
}

/// The same with a share of its training part.
fn with_share(mut split: Split, share: f64, seed: u64) -> anyhow::Result<Split> {
    (_, split.train) = split.train.hold_out(TestFraction::new(share)?, seed);
    split.notes.push(format!("Of the training records a random {} are used.", split.train.len()));
    Ok(split)
}

/// The same with a validation part, held out of the training part unless the data set comes with
/// one.
fn with_validation(mut split: Split, share: f64, seed: u64) -> anyhow::Result<Split> {
    if split.validation.is_none() {
        let (train, validation) = split.train.hold_out(TestFraction::new(share)?, seed);
        split.train = train;
        split.notes.push(format!("{} training records are held out for validation.", validation.len()));
        split.validation = Some(validation);
    }
    Ok(split)
}
