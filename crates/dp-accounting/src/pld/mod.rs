//! Privacy loss distributions: the tight ε, bracketed from both sides, by a contour integral or on
//! a grid.

#![expect(clippy::cast_possible_wrap, reason = "grid indices are far below 2^63")]

mod allocation;
mod base_loss;
mod bracket;
mod cells;
mod closed_form;
mod contour;
mod convolve;
mod discrete;
mod mechanism;
mod one_test;
mod pair_cells;

use bracket::{Bracket, Effort, Guess, Question, bracket};
use closed_form::ClosedForm;
use mechanism::PldMechanism;

use crate::composition::Composition;
use crate::limits::{self, OverComposition};
use crate::{
    Accountant, AccountingError, AttackBound, Certainty, Delta, DeltaBound, DpEvent, Epsilon, EpsilonBound, Ledger,
    Method, NeighbouringRelation, RdpAccountant,
};

/// Accountant by privacy loss distributions: a certified lower and upper bound on the best possible
/// ε.
///
/// Gaussians on the whole data, one sampled Gaussian, and one Laplace mechanism have a formula. Other compositions of
/// Gaussians, Poisson-sampled or not, are answered by the inversion integral of the loss's
/// moment-generating function, with every error bounded: a bracket of eight digits or more.
/// Otherwise, or where that integral is too long, the loss of each mechanism is discretised twice,
/// once so that it dominates the true one (connect-the-dots) and once so that the true one
/// dominates it; sums are taken by FFT under an exponential tilt, which keeps the relative error
/// small at any δ. Truncation, aliasing and rounding are bounded and charged to the bounds. The
/// grid is refined until the bracket is as narrow as asked for, or narrower than 1e-9 in ε.
/// [`EpsilonBound::method`] says which way was taken.
///
/// **Guarantee.** `lower ≤ ε ≤ upper` for the composition of the dominating pairs of the
/// mechanisms, the larger of the two directions of a relation that has both. For Poisson-sampled
/// Gaussian and Laplace queries and for random allocation with one participation that is the exact
/// ε.
///
/// **Edge cases.** When the width is not reached within the budget, or a mechanism has no privacy
/// loss distribution (zero-concentrated, one Rényi divergence, repeat-and-select), the answer is the
/// smaller of the upper bound so far and the RDP bound, marked [`Certainty::FallBack`]. Alternatives of
/// which a record meets one ([`DpEvent::OneOf`]) cost the largest ε of all, with what else was released;
/// where a record meets one several times, perhaps another each time, the answer falls back as well.
///
/// **Source.** Doroshenko et al. 2022 for the upper discretisation; Zhu, Dong & Wang 2022 for
/// dominating pairs.
///
/// **Example**
/// ```
/// use dp_accounting::{Accountant, Delta, DpEvent, NeighbouringRelation, NoiseMultiplier, PldAccountant, SamplingRate};
/// let step = DpEvent::gaussian(NoiseMultiplier::new(1.0)?).poisson_sampled(SamplingRate::new(256.0 / 36_178.0)?);
/// let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
/// accountant.compose(&step, 2_826)?;
/// let bound = accountant.epsilon(Delta::new(1e-6)?)?;
/// // RDP says 2.66.
/// assert!(bound.epsilon.get() < 2.413_272 && bound.lower.unwrap().get() > 2.413_270);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PldAccountant {
    composition: Composition,
    effort: Effort,
}

impl PldAccountant {
    /// An accountant that has seen nothing; brackets are at most 1e-3 wide, relatively, and grids
    /// have up to 2²¹ points.
    pub fn new(relation: NeighbouringRelation) -> Self {
        Self { composition: Composition::new(relation), effort: Effort { relative_width: 1e-3, max_points: 1 << 21 } }
    }

    /// An accountant that has seen everything in a ledger.
    ///
    /// # Errors
    /// As [`compose`](Accountant::compose).
    pub fn of(ledger: &Ledger) -> Result<Self, AccountingError> {
        let mut accountant = Self::new(ledger.relation());
        ledger.compose_into(&mut accountant)?;
        Ok(accountant)
    }

    /// Refines until `(upper - lower)/upper` is at most this.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless the width lies in [1e-9, 1).
    pub fn with_relative_width(mut self, width: f64) -> Result<Self, AccountingError> {
        if !(1e-9..1.0).contains(&width) {
            return Err(AccountingError::invalid("relative_width", width, "a number in [1e-9, 1)"));
        }
        self.effort.relative_width = width;
        Ok(self)
    }

    /// Bounds time and memory: all grids and transforms of an answer together have no more points,
    /// and no contour integral takes longer than that. Beyond it the answer falls back, and says
    /// how narrow the bracket is.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless it lies in [64, 2²⁶].
    pub fn with_max_points(mut self, max_points: usize) -> Result<Self, AccountingError> {
        if !(64..=1 << 26).contains(&max_points) {
            return Err(AccountingError::invalid("max_points", max_points, "64 to 2^26"));
        }
        self.effort.max_points = max_points;
        Ok(self)
    }

    /// The best bracket within the budget: by the contour integral where that is narrow enough,
    /// else with the help of the grid. There is no method where the coarser bound leaves nothing to
    /// find.
    ///
    /// The coarser bound is proven as well; where it contradicts what was found, the bracket holds
    /// what either allows.
    fn solve(&self, mechanisms: &[(PldMechanism, f64)], question: Question, guess: Guess) -> (Bracket, Option<Method>) {
        let is_narrow = |bracket: Bracket| bracket.is_narrow(question, self.effort.relative_width);
        let nothing = question.anything();
        if is_narrow(nothing.within(guess.upper)) {
            return (nothing.within(guess.upper), None);
        }
        let mut known = nothing;
        let directions = self.relation().directions();
        let along = |planned: Question| contour::bracket(mechanisms, question, planned, guess, self.effort, directions);
        if let Some(found) = along(question) {
            known = found.within(guess.upper);
            if is_narrow(known) {
                return (known, Some(Method::ContourIntegral));
            }
        }
        // An ε far from where its plan expected it: a coarse grid says where to plan for.
        if matches!(question, Question::Epsilon { .. }) && contour::can_answer(mechanisms) {
            let effort = Effort { max_points: self.effort.max_points / 32, ..self.effort };
            let coarse = bracket(mechanisms, question, guess, effort, directions).within(guess.upper);
            if let Some(found) = along(Question::Delta { epsilon: coarse.upper }).filter(|_| coarse.upper.is_finite()) {
                known = known.intersection(found.within(guess.upper));
                if is_narrow(known) {
                    return (known, Some(Method::ContourIntegral));
                }
            }
        }
        let by_grid = bracket(mechanisms, question, guess, self.effort, directions);
        known = known.intersection(by_grid).within(guess.upper);
        if !is_narrow(known)
            && known.upper.is_finite()
            && matches!(question, Question::Epsilon { .. })
            && let Some(found) = along(Question::Delta { epsilon: known.upper })
        {
            let found = known.intersection(found);
            if is_narrow(found) {
                return (found, Some(Method::ContourIntegral));
            }
            known = found;
        }
        (known, Some(Method::Grid))
    }

    fn certainty(&self, question: Question, bracket: Bracket) -> Certainty {
        if bracket.is_narrow(question, self.effort.relative_width) {
            return Certainty::Bound;
        }
        let max_points = self.effort.max_points;
        let nothing = question.anything();
        if bracket.upper >= nothing.upper && bracket.lower <= 1e-9 {
            let what = if nothing.upper.is_finite() { "δ is between 0 and 1" } else { "ε is at least 0" };
            return Certainty::FallBack {
                reason: format!("nothing is known within {max_points} grid points, nor by RDP, but that {what}"),
            };
        }
        Certainty::FallBack {
            reason: format!(
                "no bracket of relative width {} within {} grid points, but one of {:.1e}: its upper end, or the RDP bound if that is smaller",
                self.effort.relative_width,
                max_points,
                (bracket.upper - bracket.lower) / bracket.upper
            ),
        }
    }

    /// The largest ε of these compositions, of which a record meets one; as certain as the least certain.
    fn worst_epsilon(&self, choices: Vec<Composition>, delta: Delta) -> Result<EpsilonBound, AccountingError> {
        let mut worst = EpsilonBound::new(Epsilon::new(0.0)?, Certainty::Bound);
        let mut lower = 0.0_f64;
        for choice in choices {
            let bound = self.with_composition(choice).epsilon(delta)?;
            lower = lower.max(bound.lower.map_or(0.0, Epsilon::get));
            let certainty = worst.certainty.clone().weaker(bound.certainty.clone());
            let larger = if bound.epsilon > worst.epsilon { bound } else { worst };
            // Each of the alternatives has its own.
            worst = EpsilonBound { certainty, method: None, ..larger };
        }
        Ok(EpsilonBound { lower: Some(Epsilon::new(lower.min(worst.epsilon.get()))?), ..worst })
    }

    /// The same of δ.
    fn worst_delta(&self, choices: Vec<Composition>, epsilon: Epsilon) -> Result<DeltaBound, AccountingError> {
        let mut worst = DeltaBound::new(0.0, Certainty::Bound);
        let mut lower = 0.0_f64;
        for choice in choices {
            let bound = self.with_composition(choice).delta(epsilon)?;
            lower = lower.max(bound.lower.unwrap_or(0.0));
            let certainty = worst.certainty.clone().weaker(bound.certainty.clone());
            let larger = if bound.delta > worst.delta { bound } else { worst };
            worst = DeltaBound { certainty, method: None, ..larger };
        }
        Ok(DeltaBound { lower: Some(lower.min(worst.delta)), ..worst })
    }

    fn rdp(&self) -> RdpAccountant {
        RdpAccountant::from_composition(self.composition.clone())
    }

    /// The RDP accountant whose every divergence is proven, where that differs.
    fn proven_rdp(&self) -> RdpAccountant {
        self.rdp().with_proven_divergences()
    }
}

impl OverComposition for PldAccountant {
    fn composition(&self) -> &Composition {
        &self.composition
    }

    fn with_composition(&self, composition: Composition) -> Self {
        Self { composition, ..self.clone() }
    }
}

impl Accountant for PldAccountant {
    fn name(&self) -> String {
        "PLD".to_owned()
    }

    fn relation(&self) -> NeighbouringRelation {
        self.composition.relation()
    }

    fn compose(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
        self.composition.add(event, count)
    }

    fn epsilon(&self, delta: Delta) -> Result<EpsilonBound, AccountingError> {
        let bound = |Bracket { lower, upper }: Bracket, certainty: Certainty, method: Option<Method>| {
            let (epsilon, lower) = (Epsilon::new(upper)?, Some(Epsilon::new(lower)?));
            Ok(EpsilonBound { epsilon, lower, certainty, order: None, method })
        };
        if let Some(known) = limits::epsilon(self, delta)? {
            return Ok(known);
        }
        if let Some(choices) = self.composition.choices() {
            return self.worst_epsilon(choices, delta);
        }
        let mechanisms = match PldMechanism::of(&self.composition) {
            Ok(mechanisms) => mechanisms,
            Err(obstacle) => {
                let by_rdp = self.proven_rdp().epsilon(delta)?;
                return Ok(EpsilonBound { certainty: no_distribution(&obstacle), ..by_rdp });
            }
        };
        if let Some(formula) = ClosedForm::of(&mechanisms, self.relation().directions()) {
            let pure = self.composition.pure_epsilon().upper;
            return bound(formula.epsilon(delta.get(), pure), Certainty::Bound, Some(Method::ClosedForm));
        }
        // At most the pure ε.
        let by_rdp = self.proven_rdp().epsilon(delta)?;
        let upper = by_rdp.epsilon.get();
        let guess = Guess { upper, epsilon: upper, order: order_of(by_rdp.order) };
        let question = Question::Epsilon { delta: delta.get() };
        let (found, method) = self.solve(&mechanisms, question, guess);
        let found = if found.is_narrow(question, self.effort.relative_width) {
            found
        } else {
            // Many steps are no more private than one of them, which often has a formula.
            let of_one_step = of_one_step(&mechanisms, delta, self.relation().directions());
            let by_test = one_test::lower_bound(&mechanisms, question, self.relation().directions());
            let lower = found.lower.max(of_one_step).max(by_test).min(found.upper);
            Bracket { lower, ..found }
        };
        bound(found, self.certainty(question, found), method)
    }

    fn false_negative_rate_by_formula(&self, false_positive_rate: f64) -> Option<AttackBound> {
        let mechanisms = PldMechanism::of(&self.composition).ok()?;
        let formula = ClosedForm::of(&mechanisms, self.relation().directions())?;
        let missed = formula.false_negative_rate(false_positive_rate)?;
        let (guaranteed, possible) = (missed.lower.max(0.0), Some(missed.upper.min(1.0 - false_positive_rate)));
        Some(AttackBound { guaranteed, possible, certainty: Certainty::Bound })
    }

    fn exchanged_delta(&self, epsilon: Epsilon) -> Result<DeltaBound, AccountingError> {
        self.with_composition(self.composition.exchanged()).delta(epsilon)
    }

    fn delta(&self, epsilon: Epsilon) -> Result<DeltaBound, AccountingError> {
        let bound = |Bracket { lower, upper }: Bracket, certainty: Certainty, method: Option<Method>| DeltaBound {
            delta: upper,
            lower: Some(lower),
            certainty,
            order: None,
            method,
        };
        if let Some(known) = limits::delta(self, epsilon)? {
            return Ok(known);
        }
        if let Some(choices) = self.composition.choices() {
            return self.worst_delta(choices, epsilon);
        }
        let mechanisms = match PldMechanism::of(&self.composition) {
            Ok(mechanisms) => mechanisms,
            Err(obstacle) => {
                let by_rdp = self.proven_rdp().delta(epsilon)?;
                return Ok(DeltaBound { certainty: no_distribution(&obstacle), ..by_rdp });
            }
        };
        if let Some(formula) = ClosedForm::of(&mechanisms, self.relation().directions()) {
            return Ok(bound(formula.delta(epsilon.get()), Certainty::Bound, Some(Method::ClosedForm)));
        }
        let by_rdp = self.proven_rdp().delta(epsilon)?;
        let guess = Guess { upper: by_rdp.delta, epsilon: epsilon.get().max(1e-3), order: order_of(by_rdp.order) };
        let question = Question::Delta { epsilon: epsilon.get() };
        let (mut found, method) = self.solve(&mechanisms, question, guess);
        if !found.is_narrow(question, self.effort.relative_width) {
            let by_test = one_test::lower_bound(&mechanisms, question, self.relation().directions());
            found.lower = found.lower.max(by_test).min(found.upper);
        }
        Ok(bound(found, self.certainty(question, found), method))
    }
}

/// The largest lower end of ε that a single step has by its formula, 0 where none has one.
fn of_one_step(mechanisms: &[(PldMechanism, f64)], delta: Delta, directions: [bool; 2]) -> f64 {
    let formulas =
        mechanisms.iter().filter_map(|(mechanism, _)| ClosedForm::of(&[(mechanism.clone(), 1.0)], directions));
    formulas.map(|formula| formula.epsilon(delta.get(), f64::INFINITY).lower).fold(0.0, f64::max)
}

/// Order of the moment behind a Rényi order; any will do where there is none.
fn order_of(renyi_order: Option<f64>) -> f64 {
    renyi_order.unwrap_or(2.0) - 1.0
}

fn no_distribution(obstacle: &str) -> Certainty {
    Certainty::FallBack { reason: format!("{obstacle} has no privacy loss distribution: the RDP bound") }
}
