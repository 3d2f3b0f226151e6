//! The parameter that just meets a target ε, rounded towards privacy.

use crate::{
    Accountant, AccountingError, Delta, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, PldAccountant,
    RdpAccountant, SamplingRate,
};

/// The least noise multiplier that a [`Calibration`] tries.
pub const LEAST_NOISE_MULTIPLIER: f64 = 1e-2;
/// The most steps that a [`Calibration`] tries.
pub const MOST_STEPS: u64 = 1 << 40;
/// Search range of noise multipliers.
const NOISE_RANGE: (f64, f64) = (LEAST_NOISE_MULTIPLIER, 1e7);
/// Search range of sampling rates.
const RATE_RANGE: (f64, f64) = (1e-12, 1.0);

/// Finds parameters that keep a target ε at δ, by any accountant.
///
/// **Guarantee.** The returned parameter was itself accounted for and meets the target; the search
/// only decides how close it comes.
///
/// **Example**
/// ```
/// use dp_accounting::{Calibration, Delta, DpEvent, Epsilon, NeighbouringRelation, SamplingRate};
/// let calibration = Calibration::new(NeighbouringRelation::AddRemove, Epsilon::new(3.0)?, Delta::new(1e-6)?)?;
/// let rate = SamplingRate::new(0.007_076_201_848_657_733)?;
/// let sigma = calibration.noise_multiplier(|sigma| DpEvent::gaussian(sigma).poisson_sampled(rate).repeated(2_826))?;
/// assert!((sigma.get() - 0.947_08).abs() < 1e-4); // Opacus 1.6: 0.947077
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration<A = RdpAccountant> {
    spent: A,
    target: Epsilon,
    delta: Delta,
    relative_tolerance: f64,
}

impl Calibration<PldAccountant> {
    /// A fresh budget, accounted for by privacy loss distributions: the least noise that can be
    /// shown to keep the target.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless the target is positive and finite.
    ///
    /// # Example
    /// ```
    /// use dp_accounting::{Calibration, Delta, DpEvent, Epsilon, NeighbouringRelation::AddRemove, SamplingRate};
    /// let (target, delta, rate) = (Epsilon::new(3.0)?, Delta::new(1e-6)?, SamplingRate::new(0.007)?);
    /// let steps = |sigma| DpEvent::gaussian(sigma).poisson_sampled(rate).repeated(2_826);
    /// let by_pld = Calibration::by_pld(AddRemove, target, delta)?.noise_multiplier(steps)?;
    /// let by_rdp = Calibration::new(AddRemove, target, delta)?.noise_multiplier(steps)?;
    /// assert!(by_pld.get() < 0.97 * by_rdp.get());
    /// # Ok::<(), dp_accounting::AccountingError>(())
    /// ```
    pub fn by_pld(relation: NeighbouringRelation, target: Epsilon, delta: Delta) -> Result<Self, AccountingError> {
        Self::of_remaining_budget(PldAccountant::new(relation), target, delta)
    }
}

impl Calibration<RdpAccountant> {
    /// A fresh budget, accounted for by RDP: in less than a millisecond, for some percent more
    /// noise than [`by_pld`](Calibration::by_pld).
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless the target is positive and finite.
    pub fn new(relation: NeighbouringRelation, target: Epsilon, delta: Delta) -> Result<Self, AccountingError> {
        Self::of_remaining_budget(RdpAccountant::new(relation), target, delta)
    }
}

impl<A: Accountant + Clone> Calibration<A> {
    /// Calibrates to the budget that is left after everything `spent` has composed, by the same
    /// accountant.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless the target is positive and finite.
    pub fn of_remaining_budget(spent: A, target: Epsilon, delta: Delta) -> Result<Self, AccountingError> {
        if target.get() > 0.0 && target.is_finite() {
            Ok(Self { spent, target, delta, relative_tolerance: 1e-9 })
        } else {
            Err(AccountingError::invalid("target_epsilon", target.get(), "a finite number above 0"))
        }
    }

    /// How close, relatively, continuous parameters come to the best value that this accountant can
    /// see; 1e-9 unless set.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless it lies in [1e-12, 0.5].
    pub fn with_relative_tolerance(mut self, tolerance: f64) -> Result<Self, AccountingError> {
        if !(1e-12..=0.5).contains(&tolerance) {
            return Err(AccountingError::invalid("relative_tolerance", tolerance, "a number in [1e-12, 0.5]"));
        }
        self.relative_tolerance = tolerance;
        Ok(self)
    }

    /// ε of what was spent and this event together.
    ///
    /// # Errors
    /// As [`Accountant::compose`] and [`Accountant::epsilon`].
    pub fn epsilon_of(&self, event: &DpEvent, count: u64) -> Result<Epsilon, AccountingError> {
        let mut accountant = self.spent.clone();
        accountant.compose(event, count)?;
        Ok(accountant.epsilon(self.delta)?.epsilon)
    }

    /// The smallest noise multiplier that meets the target, rounded up.
    ///
    /// # Errors
    /// [`AccountingError::Unreachable`] when even the largest noise misses the target, and the
    /// accountant's errors.
    pub fn noise_multiplier(
        &self,
        event: impl Fn(NoiseMultiplier) -> DpEvent,
    ) -> Result<NoiseMultiplier, AccountingError> {
        let epsilon = |sigma: f64| self.epsilon_of(&event(NoiseMultiplier::new(sigma)?), 1);
        NoiseMultiplier::new(self.search("noise multiplier", NOISE_RANGE.1, NOISE_RANGE.0, 1.0, epsilon)?)
    }

    /// The largest sampling rate that meets the target, rounded down.
    ///
    /// # Errors
    /// [`AccountingError::Unreachable`] when even the smallest rate misses the target, and the
    /// accountant's errors.
    pub fn sampling_rate(&self, event: impl Fn(SamplingRate) -> DpEvent) -> Result<SamplingRate, AccountingError> {
        let epsilon = |rate: f64| self.epsilon_of(&event(SamplingRate::new(rate.min(1.0))?), 1);
        SamplingRate::new(self.search("sampling rate", RATE_RANGE.0, RATE_RANGE.1, 1e-3, epsilon)?)
    }

    /// The largest expected batch size out of `n_records` whose sampling rate meets the target.
    ///
    /// # Errors
    /// [`AccountingError::Unreachable`] when not even one record per batch meets the target, and
    /// the accountant's errors.
    pub fn batch_size(&self, n_records: u64, event: impl Fn(SamplingRate) -> DpEvent) -> Result<u64, AccountingError> {
        let epsilon = |size: u64| {
            let rate = SamplingRate::new(size as f64 / n_records as f64)?;
            self.epsilon_of(&event(rate), 1)
        };
        match self.search_count(n_records, epsilon)? {
            Some(size) => Ok(size),
            None => Err(self.unreachable("batch size", &format!("[1, {n_records}]"), epsilon(1)?.get())),
        }
    }

    /// The largest number of times that the event can still be composed, at most 2⁴⁰; 0 when not
    /// even once.
    ///
    /// # Errors
    /// The accountant's.
    pub fn steps(&self, event: &DpEvent) -> Result<u64, AccountingError> {
        Ok(self.search_count(MOST_STEPS, |steps| self.epsilon_of(event, steps))?.unwrap_or(0))
    }

    /// Bisection in the logarithm between an end that meets the target and one that need not;
    /// `start` saves evaluations.
    fn search(
        &self,
        parameter: &'static str,
        private_end: f64,
        other_end: f64,
        start: f64,
        epsilon: impl Fn(f64) -> Result<Epsilon, AccountingError>,
    ) -> Result<f64, AccountingError> {
        let direction = if private_end > other_end { 1.0 } else { -1.0 };
        let clamp = |x: f64| x.clamp(private_end.min(other_end), private_end.max(other_end));
        let mut good: Option<(f64, f64)> = None;
        let mut bad: Option<(f64, f64)> = None;
        // Bracket by doubling away from the start: extreme parameters are slow to account for and
        // rarely needed.
        let (mut x, mut factor) = (start, 2.0_f64);
        while good.is_none() || bad.is_none() {
            let value = epsilon(x)?.get();
            if value <= self.target.get() {
                good = Some((x, value));
                if x == other_end {
                    return Ok(x);
                }
            } else {
                bad = Some((x, value));
                if x == private_end {
                    return Err(self.unreachable(
                        parameter,
                        &format!("[{:e}, {:e}]", private_end.min(other_end), private_end.max(other_end)),
                        value,
                    ));
                }
            }
            if good.is_none() || bad.is_none() {
                let towards_privacy = if good.is_none() { direction } else { -direction };
                x = clamp(if towards_privacy > 0.0 { x * factor } else { x / factor });
                factor = (factor * factor).min(1e3);
            }
        }
        let (Some(mut good), Some(mut bad)) = (good, bad) else {
            return Err(self.unreachable(parameter, "the searched range", f64::INFINITY));
        };
        let mut turn = 0_u32;
        while libm::log(good.0 / bad.0).abs() > self.relative_tolerance {
            // ln ε is nearly linear in the logarithm of any of these parameters: interpolate, but
            // bisect every third time, so that the bracket shrinks whatever the curve does. Aiming
            // at a tenth of the tolerance on the private side ends the search early.
            let (a, b) = (libm::log(good.0), libm::log(bad.0));
            let slope = (libm::log(bad.1) - libm::log(good.1)) / (b - a);
            let guess = a + (libm::log(self.target.get()) - libm::log(good.1)) / slope;
            turn += 1;
            let nudge = 0.3 * self.relative_tolerance * direction;
            let inside = |x: f64| x > a.min(b) && x < a.max(b);
            let x = libm::exp(match guess + if turn.is_multiple_of(2) { nudge } else { -nudge } {
                x if !turn.is_multiple_of(4) && inside(x) => x,
                _ => 0.5 * (a + b),
            });
            if x == good.0 || x == bad.0 {
                break;
            }
            let value = epsilon(x)?.get();
            if value <= self.target.get() {
                good = (x, value);
            } else {
                bad = (x, value);
            }
        }
        Ok(good.0)
    }

    fn search_count(
        &self,
        max: u64,
        epsilon: impl Fn(u64) -> Result<Epsilon, AccountingError>,
    ) -> Result<Option<u64>, AccountingError> {
        let meets = |count: u64| match epsilon(count) {
            Ok(epsilon) => Ok(epsilon <= self.target),
            // More than can be accounted for.
            Err(AccountingError::CountOverflow { .. }) if count > 1 => Ok(false),
            Err(error) => Err(error),
        };
        if !meets(1)? {
            return Ok(None);
        }
        let (mut good, mut bad) = (1, 2);
        loop {
            if bad >= max {
                if meets(max)? {
                    return Ok(Some(max));
                }
                bad = max;
                break;
            }
            if !meets(bad)? {
                break;
            }
            (good, bad) = (bad, bad.saturating_mul(4));
        }
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if meets(middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(Some(good))
    }

    pub(crate) fn unreachable(&self, parameter: &'static str, searched: &str, closest: f64) -> AccountingError {
        AccountingError::Unreachable { parameter, searched: searched.to_owned(), target: self.target.get(), closest }
    }
}
