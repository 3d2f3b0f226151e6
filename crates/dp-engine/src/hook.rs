//! Where an audit puts other arithmetic in the place of a step's, to see that it is found.
//!
//! The step itself is the same with an audit and without: it asks here at a few places, and with
//! nothing put there goes on. In builds without the feature `audit` nothing can be put there.

#[cfg(feature = "audit")]
use std::cell::RefCell;
#[cfg(feature = "audit")]
use std::rc::Rc;

#[cfg(feature = "audit")]
use dp_clipping::ClipMethod;
#[cfg(feature = "audit")]
use rand_chacha::ChaCha20Rng;

/// Other arithmetic for the places that ask. `None` is the step's own.
pub trait Substitute {
    /// The factor of the left matrix of a product with this number of rows.
    fn left_factor(&self, _rows: usize) -> Option<f64> {
        None
    }

    /// The squared norm that a record is clipped by, in the place of the bound on it.
    fn sq_norm(&self, _sq_norm: f64) -> Option<f64> {
        None
    }

    /// Adds values to integers that count steps of the grid.
    fn add_values(&self, _steps: &mut [i64], _values: &mut dyn Iterator<Item = f64>, _grid: f64) -> Option<()> {
        None
    }

    /// Whether a rank that has this many records of the batch leaves the step out.
    fn skips_step(&self, _records: usize, _ranks: usize) -> bool {
        false
    }

    /// The clipping method of a step whose counts were released before.
    #[cfg(feature = "audit")]
    fn method(&self, own: Box<dyn ClipMethod>) -> Box<dyn ClipMethod> {
        own
    }

    /// Whether sums are looked at: [`Self::adds_to_sum`], [`Self::noise_std`] and [`Self::saw`].
    fn watches_sums(&self) -> bool {
        false
    }

    /// What else is in the sum of a step, `[params]` in steps of the grid. `sum` is without it, and the
    /// noise is to have the standard deviation `std`.
    fn adds_to_sum(&self, _sum: &[f64], _std: f64, _grid: f64) -> Vec<i64> {
        Vec::new()
    }

    /// The standard deviation that the noise has in the place of this one.
    fn noise_std(&self, std: f64) -> f64 {
        std
    }

    /// The sum of a step with its noise, `[params]`.
    fn saw(&self, _noisy: &[f64]) {}

    /// Whether [`Self::noisy`] makes the noise.
    fn makes_noise(&self) -> bool {
        false
    }

    /// The sum with noise of this standard deviation.
    #[cfg(feature = "audit")]
    fn noisy(&self, _sum: &[f64], _std: f64, _ranks: usize, _rng: &mut ChaCha20Rng) -> Vec<f32> {
        Vec::new()
    }
}

#[cfg(feature = "audit")]
thread_local! {
    static SUBSTITUTE: RefCell<Option<Rc<dyn Substitute>>> = const { RefCell::new(None) };
}

/// The answer of what was put in the step's place on this thread; `None` without.
#[cfg(feature = "audit")]
pub fn ask<R>(question: impl FnOnce(&dyn Substitute) -> Option<R>) -> Option<R> {
    SUBSTITUTE.with_borrow(|substitute| question(&**substitute.as_ref()?))
}

/// The answer of what was put in the step's place on this thread: nothing can be.
#[cfg(not(feature = "audit"))]
pub fn ask<R>(_question: impl FnOnce(&dyn Substitute) -> Option<R>) -> Option<R> {
    None
}

/// Whether what was put in the step's place on this thread says so; `false` without.
pub fn holds(question: impl FnOnce(&dyn Substitute) -> bool) -> bool {
    ask(|substitute| Some(question(substitute))).unwrap_or(false)
}

/// The clipping method that stands in the place of this one on this thread; itself without.
#[cfg(feature = "audit")]
pub fn method(own: Box<dyn ClipMethod>) -> Box<dyn ClipMethod> {
    SUBSTITUTE.with_borrow(|substitute| match substitute {
        Some(substitute) => substitute.method(own),
        None => own,
    })
}

/// Does the work with other arithmetic on this thread, or with the step's own.
#[cfg(feature = "audit")]
pub fn with<R>(substitute: Option<Rc<dyn Substitute>>, work: impl FnOnce() -> R) -> R {
    let before = SUBSTITUTE.replace(substitute);
    let result = work();
    SUBSTITUTE.set(before);
    result
}
