//! What ranks exchange, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dp_engine::Result;
use dp_train::ranks::{Collective, Exchange, Exchanged};

/// Ranks whose messages are counted: the bytes that this one gives.
#[derive(Debug)]
pub(crate) struct Counted {
    inner: Arc<dyn Collective>,
    bytes: AtomicU64,
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Collective>) -> Self {
        Self { inner, bytes: AtomicU64::new(0) }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn count<T>(&self, message: &[T]) {
        self.bytes.fetch_add(size_of_val(message) as u64, Ordering::Relaxed);
    }
}

impl Collective for Counted {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn sum(&self, values: &mut Vec<i64>) -> Result<()> {
        self.count(values);
        self.inner.sum(values)
    }

    fn gather(&self, part: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.count(&part);
        self.inner.gather(part)
    }

    fn exchange(&self, own: Exchanged) -> Result<Exchange> {
        self.count(&own.words);
        self.inner.exchange(own)
    }

    fn gather_words(&self, words: &mut Vec<u64>, all: &mut Vec<u64>) -> Result<Vec<usize>> {
        self.count(words);
        self.inner.gather_words(words, all)
    }

    fn abort(&self, code: i32) -> ! {
        self.inner.abort(code)
    }
}
