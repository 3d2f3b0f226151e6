//! Sums of numbers that are only representable as logarithms.

/// Streaming `ln Σ e^x`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogSum {
    largest: f64,
    scaled: f64,
}

impl Default for LogSum {
    fn default() -> Self {
        Self { largest: f64::NEG_INFINITY, scaled: 0.0 }
    }
}

impl LogSum {
    /// Adds `e^x`; false when it is too small to matter.
    pub(crate) fn add(&mut self, x: f64) -> bool {
        if x > self.largest {
            self.scaled = self.scaled * libm::exp(self.largest - x) + 1.0;
            self.largest = x;
            return true;
        }
        let below = x - self.largest;
        if below > -41.0 {
            self.scaled += libm::exp(below);
            return true;
        }
        false
    }

    pub(crate) fn value(self) -> f64 {
        self.largest + libm::log(self.scaled)
    }
}
