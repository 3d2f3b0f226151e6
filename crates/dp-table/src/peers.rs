//! What processes that read a table together tell each other.

use std::io;
use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::TableError;

/// Processes that read one table together, each a part of it. All of them make the same calls in
/// the same order.
pub struct Peers<'a> {
    rank: usize,
    size: usize,
    gather: &'a Gather<'a>,
}

/// What every process gave, in their order.
pub type Gather<'a> = dyn Fn(Vec<u8>) -> io::Result<Vec<Vec<u8>>> + 'a;

impl<'a> Peers<'a> {
    /// This process's number, from 0, how many there are, and how they exchange messages.
    pub fn new(rank: usize, size: usize, gather: &'a Gather<'a>) -> Self {
        Self { rank, size: size.max(1), gather }
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// This process's part of so many things: as even as they go.
    pub(crate) fn part(&self, n: u64) -> Range<u64> {
        let boundary = |rank: usize| (u128::from(n) * rank as u128 / self.size as u128) as u64;
        boundary(self.rank)..boundary(self.rank + 1)
    }

    /// What every process has in the place of `value`, in their order; `table` is for the message.
    pub(crate) fn exchange<T: Serialize + DeserializeOwned>(
        &self,
        value: &T,
        table: &Path,
    ) -> Result<Vec<T>, TableError> {
        let exchange = || -> io::Result<Vec<T>> {
            let all = (self.gather)(serde_json::to_vec(value)?)?;
            all.iter().map(|message| serde_json::from_slice(message).map_err(io::Error::other)).collect()
        };
        exchange().map_err(TableError::io("share", table))
    }
}
