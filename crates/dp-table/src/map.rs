//! A file as a slice of bytes.
#![expect(unsafe_code, reason = "mapping a file is unsafe because another process could cut it short")]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

/// A file mapped for reading. No other process may write it.
#[derive(Debug)]
pub(crate) struct Map(Mmap);

impl Map {
    /// The caller has made the file itself, with access for this user alone, or has opened one that
    /// it had made.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the file has no name, or is a kept one of this user (mode 0600) that is opened to
        // be read, so nobody cuts it short or changes it while it is mapped. Its bytes are plain
        // numbers: whatever they are, reading them is defined.
        unsafe { Mmap::map(file) }.map(Self)
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
