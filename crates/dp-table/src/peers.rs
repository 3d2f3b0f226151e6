//! Messages between processes that read a table together.

use std::io;
use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::TableError;

/// The processes that read one table together, each a part of it. All of them must make the same
/// calls in the same order.
pub struct Peers<'a> {
    rank: usize,
    size: usize,
    gather: &'a Gather<'a>,
}

/// Sends a message to all processes and returns the messages of all, in the order of ranks.
pub type Gather<'a> = dyn Fn(Vec<u8>) -> io::Result<Vec<Vec<u8>>> + 'a;

impl std::fmt::Debug for Peers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peers").field("rank", &self.rank).field("size", &self.size).finish_non_exhaustive()
    }
}

impl<'a> Peers<'a> {
    /// `rank` is the number of this process, from 0; `size` is the number of processes.
    pub fn new(rank: usize, size: usize, gather: &'a Gather<'a>) -> Self {
        Self { rank, size: size.max(1), gather }
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// This process's part of `n` things. The parts are as even as possible.
    pub(crate) fn part(&self, n: u64) -> Range<u64> {
        let boundary = |rank: usize| (u128::from(n) * rank as u128 / self.size as u128) as u64;
        boundary(self.rank)..boundary(self.rank + 1)
    }

    /// The `value` of every process, in the order of ranks; `table` is for the error.
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
