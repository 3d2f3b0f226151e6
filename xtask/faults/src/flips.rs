//! Stored files that are damaged: a bit is another, the end is missing, or bytes stand in them that
//! nobody wrote.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::FaultsError;
use crate::process::{Ending, Program};
use crate::tally::{Kind, Tally};
use crate::{Outcome, folder};

/// A stored file and the command that reads it.
#[derive(Debug, Clone)]
pub struct Stored {
    /// For tables.
    pub name: &'static str,
    /// The folder that holds it.
    pub before: PathBuf,
    /// The file in the folder.
    pub file: &'static str,
    /// Words of the command.
    pub arguments: Vec<String>,
    /// A file of the folder that says what was read, where the output does not.
    pub result: Option<&'static str>,
    /// Whether the format has checksums: a change is then an error, or changes nothing that is
    /// read. Else a digit may be another digit.
    pub is_sealed: bool,
}

/// Damages the file at so many places, spread over it, and once more at so many drawn from `seed`,
/// and reads it.
///
/// # Errors
/// [`FaultsError`] if the whole file cannot be read, or the machine fails.
pub fn damage(program: &Program, stored: &Stored, places: usize, seed: u64) -> Result<Vec<Tally>, FaultsError> {
    let path = stored.before.join(stored.file);
    let whole = fs::read(&path).map_err(FaultsError::machine("read", &path))?;
    let expected = read(program, stored, &whole)?;
    if let Some(loss) = &expected.1.ending.as_ref().filter(|ending| !ending.is_success()) {
        return Err(FaultsError::Unsound { name: stored.name.to_owned(), reason: loss.error().to_owned() });
    }
    let mut random = Random(seed);
    let mut flipped = Tally::new(stored.name, Kind::FlippedBit, whole.len() as u64);
    let mut cut = Tally::new(stored.name, Kind::CutFile, whole.len() as u64);
    let mut noise = Tally::new(stored.name, Kind::RandomBytes, whole.len() as u64);
    for place in 0..places {
        let mut bytes = whole.clone();
        // Headers are short and matter: half of the places are near the beginning.
        let span = if place % 2 == 0 { whole.len().min(512) } else { whole.len() };
        bytes[random.below(span)] ^= 1 << random.below(8);
        flipped.count(judge(read(program, stored, &bytes)?, &expected.0, stored));
        let end = random.below(whole.len());
        cut.count(judge(read(program, stored, &whole[..end])?, &expected.0, stored));
        let mut bytes = whole.clone();
        for _ in 0..=random.below(16) {
            let (at, n) = (random.below(bytes.len()), 1 + random.below(32));
            let end = bytes.len().min(at + n);
            bytes[at..end].iter_mut().for_each(|byte| *byte = random.next() as u8);
        }
        noise.count(judge(read(program, stored, &bytes)?, &expected.0, stored));
    }
    Ok(vec![flipped, cut, noise])
}

fn read(program: &Program, stored: &Stored, bytes: &[u8]) -> Result<(Vec<u8>, Outcome), FaultsError> {
    let folder = folder::copy_of(&stored.before)?;
    let path = folder.path().join(stored.file);
    fs::write(&path, bytes).map_err(FaultsError::machine("write", &path))?;
    let ending = program.run(folder.path(), &stored.arguments)?;
    let result = match stored.result {
        Some(file) => fs::read(folder.path().join(Path::new(file))).unwrap_or_default(),
        None => ending.output.clone(),
    };
    Ok((result, Outcome { ending: Some(ending), loss: None }))
}

fn judge((result, outcome): (Vec<u8>, Outcome), expected: &[u8], stored: &Stored) -> Outcome {
    let is_silent = outcome.ending.as_ref().is_some_and(Ending::is_success);
    let loss = (stored.is_sealed && is_silent && result != expected).then(|| "read as if it were whole".to_owned());
    Outcome { loss, ..outcome }
}

/// `SplitMix64`: the same places on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}
