//! Records of one's own: a declared table, a folder or files of images, or arrays of NumPy.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use candle_core::{DType, Tensor};
use dp_data::{Dataset, InputConstant, Loaded, Provenance, Split, TestFraction};
use dp_table::{EncodedFile, EncodedTable, PixelColumn, Schema, TableFiles, TableRow};
use ndarray::Array2;
use sha2::{Digest, Sha256};

/// What a file says of its records.
pub(crate) struct OwnData {
    /// For people.
    pub(crate) name: String,
    /// Whether the records are generated, and everything made of them is marked so.
    pub(crate) synthetic: bool,
    /// What they are in.
    pub(crate) files: RecordFiles,
    /// Share of the records that is held out for testing, where there are none of their own.
    pub(crate) test: TestFraction,
    /// Groups are the classes.
    pub(crate) group_by_class: bool,
}

/// What records are in.
pub(crate) enum RecordFiles {
    /// A declared table.
    Table(Box<OwnTable>),
    /// A file of arrays.
    Arrays(OwnArrays),
}

/// A declared table.
pub(crate) struct OwnTable {
    /// Of training, and of all records unless there is a table for testing.
    pub(crate) files: TableFiles,
    /// Of testing.
    pub(crate) test: Option<TableFiles>,
    /// Every column.
    pub(crate) schema: Schema,
    /// The column of images whose pixels are the inputs, in place of what the schema makes of it.
    pub(crate) pixels: Option<Pixels>,
    /// What of the declaration was read from the records.
    pub(crate) uncovered: Vec<String>,
}

/// A column of images.
pub(crate) struct Pixels {
    pub(crate) column: String,
    /// Height, width and channels.
    pub(crate) size: [usize; 3],
    pub(crate) resize: bool,
}

/// Arrays of an `.npz` file.
pub(crate) struct OwnArrays {
    pub(crate) path: PathBuf,
    /// `[records, …]`.
    pub(crate) inputs: String,
    /// `[records]`, from 0.
    pub(crate) labels: String,
    /// `[records]`, from 0; the same group for all unless given.
    pub(crate) groups: Option<String>,
    pub(crate) class_names: Vec<String>,
    pub(crate) group_names: Vec<String>,
}

/// All records, and those for testing where there are some of their own.
pub(crate) struct OwnRecords {
    all: Dataset,
    test: Option<Dataset>,
    fraction: TestFraction,
    constants: Vec<InputConstant>,
}

impl OwnData {
    /// The name of the encoding.
    pub(crate) fn encoding(&self) -> &'static str {
        match &self.files {
            RecordFiles::Table(table) if table.pixels.is_some() => "pixels",
            RecordFiles::Table(_) => "declared columns",
            RecordFiles::Arrays(_) => "arrays",
        }
    }

    /// Reads all records.
    ///
    /// # Errors
    /// If a file cannot be read, or a record does not fit.
    pub(crate) fn load(&self) -> anyhow::Result<Loaded<OwnRecords>> {
        let (mut all, mut test, digest, constants) = match &self.files {
            RecordFiles::Table(table) => table.read()?,
            RecordFiles::Arrays(arrays) => arrays.read()?,
        };
        if self.group_by_class {
            for part in std::iter::once(&mut all).chain(&mut test) {
                part.groups = part.labels.iter().map(|&label| label as usize).collect();
                part.group_names.clone_from(&part.class_names);
                "class".clone_into(&mut part.group_attribute);
            }
        }
        let n_records = all.len() + test.as_ref().map_or(0, Dataset::len);
        let provenance = Provenance {
            // Not the name of a published set: whose digests are public.
            name: format!("{} (own records)", self.name),
            synthetic: self.synthetic,
            source: format!("{} of one's own, {}", self.name, self.encoding()),
            sha256_ok: false,
            digest,
            n_records,
            files: Vec::new(),
            notes: Vec::new(),
        };
        Ok(Loaded { records: OwnRecords { all, test, fraction: self.test, constants }, provenance })
    }
}

impl OwnRecords {
    /// A training and a test part.
    pub(crate) fn split(&self, seed: u64) -> Split {
        let (train, test, note) = if let Some(test) = &self.test {
            (self.all.clone(), test.clone(), "The test part is a table of its own.".to_owned())
        } else {
            let (train, test) = self.all.divide(self.fraction, seed);
            let share = 100.0 * self.fraction.get();
            (train, test, format!("A random {share} % of the records are the test part."))
        };
        Split { train, test, validation: None, notes: vec![note], constants: self.constants.clone() }
    }
}

/// Records, test records, a digest and the constants of their inputs.
type Read = (Dataset, Option<Dataset>, String, Vec<InputConstant>);

impl OwnTable {
    fn read(&self) -> anyhow::Result<Read> {
        let (all, mut digest) = self.part(&self.files)?;
        let test = self.test.as_ref().map(|files| self.part(files)).transpose()?;
        let test = test.map(|(part, other)| {
            digest = hex::encode(Sha256::new().chain_update(&digest).chain_update(other).finalize());
            part
        });
        let read = |what: &String| {
            InputConstant::from_records(what.clone(), "was read from the private records when it was declared")
        };
        let mut constants: Vec<InputConstant> = self.uncovered.iter().map(read).collect();
        constants.push(InputConstant::public("the declared columns"));
        Ok((all, test, digest, constants))
    }

    fn part(&self, files: &TableFiles) -> anyhow::Result<(Dataset, String)> {
        let folder = std::env::temp_dir();
        let (table, _) = EncodedTable::create(files, &self.schema, EncodedFile::Temporary(&folder))?;
        let rows: Vec<usize> = (0..table.rows()).collect();
        let (features, feature_names) = if let Some(pixels) = &self.pixels {
            pixels.read(files, table.rows())?
        } else {
            let mut features = vec![0.0; rows.len() * table.width()];
            table.gather(&rows, &mut features);
            (Array2::from_shape_vec((rows.len(), table.width()), features)?, table.feature_names())
        };
        let groups = table.encoding().groups();
        let attributes: Vec<&str> = self.schema.groups.iter().map(|group| group.column.as_str()).collect();
        let part = Dataset {
            features,
            labels: rows.iter().map(|&row| table.label(row)).collect(),
            groups: rows.iter().map(|&row| table.group(row) as usize).collect(),
            feature_names,
            class_names: self.schema.label.classes.clone(),
            group_names: groups.iter().map(ToString::to_string).collect(),
            group_attribute: if attributes.is_empty() { "all".to_owned() } else { attributes.join(" × ") },
        };
        Ok((part, table.digest().to_owned()))
    }
}

impl Pixels {
    fn read(&self, files: &TableFiles, n_rows: usize) -> anyhow::Result<(Array2<f32>, Vec<String>)> {
        let mut reader = files.open()?;
        let column = PixelColumn::new(&reader, &self.column, self.size, self.resize)?;
        let n_inputs = self.size.iter().product();
        let mut pixels = Vec::with_capacity(n_rows * n_inputs);
        let mut row = TableRow::default();
        while reader.read(&mut row)? {
            pixels.extend(column.pixels(&row)?);
        }
        let names = (0..n_inputs).map(|input| format!("{}[{input}]", self.column)).collect();
        let pixels = Array2::from_shape_vec((n_rows, n_inputs), pixels);
        Ok((pixels.with_context(|| format!("{}: the table changed while it was read", self.column))?, names))
    }
}

impl OwnArrays {
    fn read(&self) -> anyhow::Result<Read> {
        let place = self.path.display();
        let bytes = std::fs::read(&self.path).with_context(|| format!("reading {place}"))?;
        let array = |name: &str| -> anyhow::Result<Tensor> {
            let read = Tensor::read_npz_by_name(&self.path, &[name]);
            let mut read = read.with_context(|| format!("{place}: the array `{name}`"))?;
            read.pop().with_context(|| format!("{place}: no array `{name}`"))
        };
        let inputs = array(&self.inputs)?;
        let n_records = inputs.dims().first().copied().unwrap_or(0);
        ensure!(
            inputs.rank() >= 2 && inputs.elem_count() > 0,
            "{place}: `{}` has the shape {:?}: expected [records, …]",
            self.inputs,
            inputs.dims()
        );
        let n_inputs = inputs.elem_count() / n_records;
        let values = inputs.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            bail!("{place}: record {} of `{}` has {}: expected finite numbers", at / n_inputs, self.inputs, values[at]);
        }
        let numbers = |name: &str, names: &[String], what: &str| -> anyhow::Result<Vec<u32>> {
            let array = array(name)?;
            ensure!(
                array.dims() == [n_records],
                "{place}: `{name}` has the shape {:?}: expected [{n_records}], one {what} for each record",
                array.dims()
            );
            let values = array.to_dtype(DType::F64)?.to_vec1::<f64>()?;
            let number = |value: f64| {
                let is_known = value.fract() == 0.0 && (0.0..names.len() as f64).contains(&value);
                ensure!(
                    is_known,
                    "{place}: `{name}` has {value}: expected whole numbers from 0 to {}",
                    names.len() - 1
                );
                Ok(value as u32)
            };
            values.into_iter().map(number).collect()
        };
        let groups = match &self.groups {
            Some(name) => numbers(name, &self.group_names, "group")?,
            None => vec![0; n_records],
        };
        let all = Dataset {
            features: Array2::from_shape_vec((n_records, n_inputs), values)?,
            labels: numbers(&self.labels, &self.class_names, "class")?,
            groups: groups.into_iter().map(|group| group as usize).collect(),
            feature_names: (0..n_inputs).map(|input| format!("{}[{input}]", self.inputs)).collect(),
            class_names: self.class_names.clone(),
            group_names: if self.groups.is_some() { self.group_names.clone() } else { vec!["all".to_owned()] },
            group_attribute: self.groups.clone().unwrap_or_else(|| "all".to_owned()),
        };
        let how = "are taken as they are: whoever scaled or selected them did so outside of this program";
        let constants = vec![InputConstant::from_records("the inputs", how)];
        Ok((all, None, hex::encode(Sha256::digest(&bytes)), constants))
    }
}
