//! Events within events, walked without recursion: an event that holds a hundred thousand others,
//! one in the other, is refused and does not overflow the stack.

use std::fmt;

use serde::ser::{Error as _, Serialize, Serializer};

use crate::{AccountingError, DpEvent, canonical};

/// Levels of events within events that are analysed; JSON parsers stop at as many.
const MAX_LEVELS: usize = 64;

impl DpEvent {
    /// The events directly in this one.
    pub(crate) fn parts(&self) -> &[Self] {
        match self {
            Self::PoissonSampled { event, .. }
            | Self::FixedSizeSampled { event, .. }
            | Self::SelfComposed { event, .. }
            | Self::RepeatAndSelect { event, .. } => std::slice::from_ref(event.as_ref()),
            Self::Composed(events) | Self::OneOf(events) => events,
            _ => &[],
        }
    }

    fn parts_mut(&mut self) -> &mut [Self] {
        match self {
            Self::PoissonSampled { event, .. }
            | Self::FixedSizeSampled { event, .. }
            | Self::SelfComposed { event, .. }
            | Self::RepeatAndSelect { event, .. } => std::slice::from_mut(event.as_mut()),
            Self::Composed(events) | Self::OneOf(events) => events,
            _ => &mut [],
        }
    }

    /// Levels of events within events: 1 for an event that holds no other.
    fn levels(&self) -> usize {
        let (mut deepest, mut pending) = (0, vec![(self, 1)]);
        while let Some((event, level)) = pending.pop() {
            deepest = deepest.max(level);
            pending.extend(event.parts().iter().map(|part| (part, level + 1)));
        }
        deepest
    }

    /// An error if the event is nested too deeply to be analysed.
    pub(crate) fn check_levels(&self) -> Result<(), AccountingError> {
        match self.levels() {
            levels if levels <= MAX_LEVELS => Ok(()),
            levels => Err(AccountingError::invalid("levels of an event", levels, format!("at most {MAX_LEVELS}"))),
        }
    }

    /// A text in the place of an event that is nested too deeply to be shown.
    pub(crate) fn instead_of_text(&self) -> Option<String> {
        self.check_levels().err().map(|_| format!("event of more than {MAX_LEVELS} levels"))
    }

    /// This event with others in the place of its parts.
    fn without_parts(&self) -> Self {
        let part = || Box::new(Self::NonPrivate);
        let parts = |events: &[Self]| events.iter().map(|_| Self::NonPrivate).collect();
        match self {
            Self::NonPrivate => Self::NonPrivate,
            Self::Gaussian { noise_multiplier } => Self::Gaussian { noise_multiplier: *noise_multiplier },
            Self::Laplace { noise_multiplier } => Self::Laplace { noise_multiplier: *noise_multiplier },
            Self::JointGaussian { noise_multipliers } => {
                Self::JointGaussian { noise_multipliers: noise_multipliers.clone() }
            }
            Self::RandomisedResponse { epsilon, n_outcomes } => {
                Self::RandomisedResponse { epsilon: *epsilon, n_outcomes: *n_outcomes }
            }
            Self::ZeroConcentrated { rho } => Self::ZeroConcentrated { rho: *rho },
            &Self::RenyiAtOrder { order, divergence } => Self::RenyiAtOrder { order, divergence },
            Self::EpsilonDelta { epsilon, delta } => Self::EpsilonDelta { epsilon: *epsilon, delta: *delta },
            Self::BandedMatrixFactorisation(banded) => Self::BandedMatrixFactorisation(*banded),
            Self::TreeAggregation(tree) => Self::TreeAggregation(*tree),
            Self::MixtureOfGaussians(mixture) => Self::MixtureOfGaussians(mixture.clone()),
            Self::DiscreteLaplace { scale, sensitivity } => {
                Self::DiscreteLaplace { scale: *scale, sensitivity: *sensitivity }
            }
            Self::DiscreteGaussian { sigma, sensitivity } => {
                Self::DiscreteGaussian { sigma: *sigma, sensitivity: *sensitivity }
            }
            &Self::TruncatedPoissonGaussian { noise_multiplier, sampling_rate, n_records, max_batch_size } => {
                Self::TruncatedPoissonGaussian { noise_multiplier, sampling_rate, n_records, max_batch_size }
            }
            &Self::RandomAllocation { noise_multiplier, steps, participations } => {
                Self::RandomAllocation { noise_multiplier, steps, participations }
            }
            Self::PoissonSampled { sampling_rate, .. } => {
                Self::PoissonSampled { sampling_rate: *sampling_rate, event: part() }
            }
            Self::FixedSizeSampled { n_records, sample_size, .. } => {
                Self::FixedSizeSampled { n_records: *n_records, sample_size: *sample_size, event: part() }
            }
            Self::Composed(events) => Self::Composed(parts(events)),
            Self::SelfComposed { count, .. } => Self::SelfComposed { event: part(), count: *count },
            Self::OneOf(events) => Self::OneOf(parts(events)),
            Self::RepeatAndSelect { trials, .. } => Self::RepeatAndSelect { event: part(), trials: *trials },
        }
    }
}

impl Clone for DpEvent {
    fn clone(&self) -> Self {
        let mut copy = self.without_parts();
        let mut pending = vec![(self, &mut copy)];
        while let Some((from, to)) = pending.pop() {
            pending.extend(from.parts().iter().zip(to.parts_mut()).map(|(from, to)| {
                *to = from.without_parts();
                (from, to)
            }));
        }
        copy
    }
}

/// Events are equal if a ledger cannot tell them apart.
impl PartialEq for DpEvent {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && canonical::bytes(self) == canonical::bytes(other)
    }
}

impl fmt::Debug for DpEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DpEvent({self})")
    }
}

impl Drop for DpEvent {
    fn drop(&mut self) {
        // An event whose parts hold no others needs no list.
        if self.parts().iter().all(|part| part.parts().is_empty()) {
            return;
        }
        let take = |event: &mut Self, pending: &mut Vec<Self>| {
            pending.extend(event.parts_mut().iter_mut().map(|part| std::mem::replace(part, Self::NonPrivate)));
        };
        let mut pending = Vec::new();
        take(self, &mut pending);
        while let Some(mut event) = pending.pop() {
            take(&mut event, &mut pending);
        }
    }
}

/// Serialises the part of an event; an error if it is nested too deeply.
#[expect(clippy::borrowed_box, reason = "serde hands over the field as it is")]
pub(crate) fn serialize_part<S: Serializer>(event: &Box<DpEvent>, serializer: S) -> Result<S::Ok, S::Error> {
    event.check_levels().map_err(S::Error::custom)?;
    event.serialize(serializer)
}

/// Serialises the parts of an event; an error if one is nested too deeply.
pub(crate) fn serialize_parts<S: Serializer>(events: &[DpEvent], serializer: S) -> Result<S::Ok, S::Error> {
    events.iter().try_for_each(DpEvent::check_levels).map_err(S::Error::custom)?;
    events.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Accountant, GdpAccountant, Ledger, NeighbouringRelation, NoiseMultiplier, PldAccountant, RdpAccountant,
        SamplingRate, TrialCount,
    };

    /// An event of so many levels.
    fn nested(levels: usize, wrap: impl Fn(DpEvent) -> DpEvent) -> DpEvent {
        (1..levels).fold(DpEvent::gaussian(NoiseMultiplier::new(1.0).unwrap()), |event, _| wrap(event))
    }

    #[test]
    fn a_hundred_thousand_levels_are_an_error_everywhere() {
        let wraps: [fn(DpEvent) -> DpEvent; 5] = [
            |event| event.poisson_sampled(SamplingRate::new(1.0).unwrap()),
            |event| event.repeated(1),
            |event| DpEvent::Composed(vec![event, DpEvent::NonPrivate]),
            |event| DpEvent::OneOf(vec![event]),
            |event| event.best_of(TrialCount::poisson(2.0).unwrap()),
        ];
        for wrap in wraps {
            let event = nested(100_000, wrap);
            let relation = NeighbouringRelation::AddRemove;
            let error = RdpAccountant::new(relation).compose(&event, 1).unwrap_err();
            assert_eq!(error.to_string(), "levels of an event = 100000: expected at most 64");
            assert_eq!(PldAccountant::new(relation).compose(&event, 1).unwrap_err(), error);
            assert_eq!(GdpAccountant::new(relation).compose(&event, 1).unwrap_err(), error);
            assert_eq!(Ledger::new(relation).record(&event, 1).unwrap_err(), error);
            assert_eq!(event.for_user(2).unwrap_err(), error);
            assert!(serde_json::to_string(&event).unwrap_err().to_string().contains("at most 64"));
            assert_eq!(event.to_string(), "event of more than 64 levels");
            assert_eq!(format!("{event:?}"), "DpEvent(event of more than 64 levels)");
            assert!(event.clone() == event && event != wrap(event.clone()));
        }
        let json = format!("{}\"non-private\"{}", r#"{"composed":["#.repeat(100_000), "]}".repeat(100_000));
        assert!(serde_json::from_str::<DpEvent>(&json).is_err());
    }

    #[test]
    fn sixty_four_levels_are_analysed() {
        let event = nested(64, |event| event.repeated(1));
        RdpAccountant::new(NeighbouringRelation::AddRemove).compose(&event, 1).unwrap();
        assert_eq!(event.levels(), 64);
        assert!(event.to_string().starts_with("1 × 1 × "));
        let error = RdpAccountant::new(NeighbouringRelation::AddRemove).compose(&event.repeated(1), 1).unwrap_err();
        assert!(error.to_string().contains("= 65"), "{error}");
    }
}
